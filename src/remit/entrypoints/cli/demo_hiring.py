"""The chapter about hiring: a helper is denied, a hire is sent back, revised, and approved."""

from __future__ import annotations

from typing import Any

from remit.entrypoints.cli.demo_stage import Stage, call
from remit.errors import Conflict
from remit.services import agents, approvals
from remit.testing import ScriptedAgent

PROMPT = "You check facts."
BETTER_PROMPT = "You check facts against their sources, and say which you used."

COMMENT = "It names its sources now."


class Hiring:
    def __init__(self, stage: Stage, boss: str) -> None:
        self.stage = stage
        self.narrator = stage.narrator
        self.boss = boss

    async def tell(self) -> None:
        run = await self.stage.start(self.boss)
        with ScriptedAgent(self.stage.url, run.token) as editor:
            await self._denied(editor)
            approval = await self._asked(editor)
            await self._sent_back(editor, approval)
            await self._approved(editor, approval)
        await self.stage.finish(run)

    async def _denied(self, editor: ScriptedAgent) -> None:
        say, expect = self.narrator.say, self.stage.expect
        self.narrator.title("Nobody comes in unasked")
        asked = await call(editor, "create_agent", name="ghostwriter", role="writes everything")
        expect(asked["status"] == "pending_approval" and asked["agentId"] is None)
        say("editor", "calls create_agent for a ghostwriter: nothing is created, a person is asked")
        await self._decide(asked["approvalId"], approvals.reject, "We sign what we write.")
        say("board", "rejects it: “We sign what we write.”")
        again = await call(editor, "create_agent", name="ghostwriter", role="writes everything")
        expect(again["status"] == "denied" and again["agentId"] is None)
        self.narrator.refused(again["message"])

    async def _asked(self, editor: ScriptedAgent) -> str:
        say, expect = self.narrator.say, self.stage.expect
        self.narrator.title("A hire, sent back and approved")
        hired = await call(
            editor,
            "hire_agent",
            name="checker",
            role="researcher",
            title="Fact checker",
            adapterType="scripted",
            prompt=PROMPT,
        )
        self.hired = hired["agent"]["id"]
        expect(hired["agent"]["status"] == "pending_approval")
        if hired.get("approval") is None:
            raise Conflict("Nobody was asked about the hire.")
        expect(hired["approval"]["status"] == "pending")
        say("editor", "hires checker, who is in the tree and can do nothing until it is approved")
        return str(hired["approval"]["id"])

    async def _sent_back(self, editor: ScriptedAgent, approval: str) -> None:
        say, expect = self.narrator.say, self.stage.expect
        note = "Against what does it check? Put that into the prompt."
        await self._decide(approval, approvals.request_revision, note, revision=1)
        say("board", f"asks for a revision: “{note}”")
        mail = (await call(editor, "mail_inbox"))["messages"]
        letters = [one for one in mail if note in one["body"]]
        expect(len(letters) == 1)
        await call(editor, "mail_ack", ids=[one["id"] for one in mail])
        say("editor", "finds that in its mail")
        again = await call(
            editor, "approval_resubmit", id=approval, payload={"prompt": BETTER_PROMPT}
        )
        expect((again["status"], again["revision"]) == ("pending", 2))
        await call(editor, "approval_comment", id=approval, body=COMMENT)
        say("editor", "changes the prompt, submits revision 2, and comments on it")

    async def _approved(self, editor: ScriptedAgent, approval: str) -> None:
        say, expect = self.narrator.say, self.stage.expect
        shown = await self.stage.app.gate(self.stage.board, approvals.show, approval=approval)
        expect(len(shown["revisions"]) == 2)
        expect(COMMENT in [one["body"] for one in shown["comments"]])
        await self._decide(approval, approvals.approve, None, revision=shown["revision"])
        say("board", "reads both revisions and approves the one it saw")
        taken_on = await self.stage.app.gate(self.stage.board, agents.show, agent=self.hired)
        expect(taken_on["status"] == "idle")
        seen = await call(editor, "agent_configurations", agent="checker")
        expect(seen["prompt"] == BETTER_PROMPT)
        say("checker", "can be given work, with the prompt that was approved")

    async def _decide(
        self, approval: str, verb: Any, note: str | None, revision: int | None = None
    ) -> None:
        await self.stage.app.gate(
            self.stage.board, verb, approval=approval, note=note, expected_revision=revision
        )


async def approve(stage: Stage, approval: dict[str, Any]) -> None:
    """The board says yes to what it was asked, as it was asked."""
    decided = await stage.app.gate(
        stage.board,
        approvals.approve,
        approval=approval["id"],
        expected_revision=approval["revision"],
    )
    stage.expect(decided["status"] == "approved")
