"""The chapters told through mail: a wish, a question that goes up and its answer, the result."""

from __future__ import annotations

from typing import Any

from remit.entrypoints.cli.demo_stage import Stage, call, only
from remit.runtime.runs import LiveRun
from remit.services import inbox, needs_you, outcomes, questions, threads
from remit.services.identity import Caller
from remit.testing import ScriptedAgent

WISH = "Please make the launch known. Nothing but facts."
PROMISE = "I see to it; you hear from me when it is written."
PROCESS_INBOX = "Process inbox"
PRICE = "May the announcement name the price?"
NOT_YET = "Not before Friday."


class Correspondence:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.narrator = stage.narrator

    async def wish(self, run: LiveRun, editor: ScriptedAgent) -> None:
        """The board writes; the agent finds it at the beginning of its turn."""
        stage, say = self.stage, self.narrator.say
        self.narrator.title("A wish, by mail")
        await stage.app.library.send(
            stage.board, company=stage.company, to="agent:editor", subject="The launch", body=WISH
        )
        say("board", "writes to editor, and does not wait for an answer")
        stage.expect(PROCESS_INBOX in await self._ready(run))
        say("editor", f"has something to do: “{PROCESS_INBOX}”. Its turn begins with")
        turn = await stage.app.gate(Caller(run.token), inbox.turn)
        lines = turn["text"].splitlines()
        stage.expect("from-board: yes" in lines)
        stage.expect(f"| {WISH}" in lines)
        for line in lines[3:]:
            self.narrator.line(f"          │ {line}")
        await call(
            editor, "mail_send", to="board", body=PROMISE, reply_to=only(turn["ids"], "letter")
        )
        await call(editor, "mail_ack", ids=turn["ids"])
        stage.expect(PROCESS_INBOX not in await self._ready(run))
        say("editor", f"answers: “{PROMISE}”, and acknowledges it; it will not come again")
        found = await stage.app.gate(stage.board, threads.own_inbox, company=stage.company)
        await stage.app.gate(stage.board, inbox.acknowledge, ids=[only(found, "answer")["id"]])

    async def brief(self, editor: ScriptedAgent, name: str, scribe: ScriptedAgent) -> None:
        await call(
            editor,
            "mail_send",
            to=f"agent:{name}",
            subject="Your mandate",
            body="Short, and nothing but facts. Ask me when in doubt.",
        )
        letter = only(await self._take_up(scribe), "letter")
        self.stage.expect(letter["sender_name"] == "editor" and not letter["from_board"])
        self.narrator.say("editor", f"writes to {name}, who takes it up in its own run")

    async def escalate(self, editor: ScriptedAgent, scribe: ScriptedAgent) -> None:
        """A question goes up step by step, and so the answer comes down."""
        stage, say = self.stage, self.narrator.say
        self.narrator.title("A question, and its answer")
        asked = await call(scribe, "ask", question=PRICE, options=["yes", "no"])
        say("scribe", f"asks its boss: “{PRICE}” Nobody waits")
        letter = only((await call(editor, "mail_inbox"))["messages"], "letter")
        stage.expect(letter["question_id"] == asked["id"])
        raised = await call(editor, "ask", question=f"Scribe asks: {PRICE}", to="board")
        say("editor", "finds the question in its inbox, cannot decide it, and asks the board")
        awaits = await self._awaits_board()
        stage.expect(only(awaits, "question")["id"] == raised["id"])
        say("board", f"finds it in the one list of what needs a person: “{awaits[0]['title']}”")
        await stage.app.gate(stage.board, questions.answer, question=raised["id"], answer=NOT_YET)
        say("board", f"answers: “{NOT_YET}”")
        stage.expect(await self._awaits_board() == [])
        answer = (await call(editor, "mail_inbox"))["messages"][-1]
        stage.expect(answer["from_board"] and NOT_YET in answer["body"])
        await call(editor, "mail_send", to="agent:scribe", body="no", reply_to=letter["id"])
        await call(editor, "mail_ack", ids=[letter["id"], answer["id"]])
        say("editor", "finds the answer in its inbox, and replies to scribe: “no”")
        reply = only(await self._take_up(scribe), "reply")
        stage.expect(reply["body"] == "no")
        known = await stage.app.gate(
            stage.board, questions.listing, company=stage.company, ended_too=True
        )
        stage.expect({one["answer"] for one in known} == {"no", NOT_YET})
        say("scribe", "reads it and leaves the price out")

    async def report(
        self, scribe: ScriptedAgent, editor: ScriptedAgent, notes: dict[str, Any]
    ) -> None:
        """What is attached can be read by whoever it was sent to."""
        refused = await self.stage.refused(editor, "kb_read", id=notes["id"])
        self.stage.expect(refused.code == "no_capability")
        self.narrator.say("editor", "may not read what scribe keeps for itself")
        await call(
            scribe,
            "mail_send",
            to="agent:editor",
            subject="The announcement is written",
            body="Please look at it. What I checked is attached.",
            attachments=[notes["id"]],
        )
        letter = only(await self._take_up(editor), "report")
        seen = await call(editor, "kb_read", id=letter["attachments"][0])
        self.stage.expect("Checked kb://" in seen["content"])
        self.narrator.say(
            "scribe", "reports by mail and attaches its checks; now editor reads them"
        )

    async def keep_apart(self, scribe: ScriptedAgent) -> None:
        refused = await self.stage.refused(scribe, "mail_send", to="agent:writer", body="Hello!")
        self.stage.expect(refused.code == "not_in_reach")
        self.narrator.say("scribe", "cannot write past its boss; the company has it that way")

    async def deliver(self, editor: ScriptedAgent, result: str, content: str) -> None:
        """The result goes to the person who wished for it."""
        stage, say = self.stage, self.narrator.say
        self.narrator.title("The result, by mail")
        await call(
            editor,
            "mail_send",
            to="board",
            subject="The announcement",
            body="It is written and verified. The press has to wait: no newspapers were found.",
            attachments=[result],
        )
        say("editor", "writes to the board and attaches the announcement")
        found = await stage.app.gate(stage.board, threads.own_inbox, company=stage.company)
        letter = only(found, "letter")
        view, seen = await stage.app.library.read(stage.board, file=letter["attachments"][0])
        stage.expect(seen.decode() == content)
        await stage.app.gate(stage.board, inbox.acknowledge, ids=[letter["id"]])
        say("board", f"reads “{letter['subject']}” and version {view['version']} of the file")
        stage.expect(await self._awaits_board() == [])
        say("board", "has nothing left that needs it")

    async def _take_up(self, agent: ScriptedAgent) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await call(agent, "mail_inbox"))["messages"]
        await call(agent, "mail_ack", ids=[letter["id"] for letter in found])
        return found

    async def _ready(self, run: LiveRun) -> list[str]:
        """The titles of what the agent of a run can work on."""
        found = await self.stage.app.gate(Caller(run.token), outcomes.listing, actionable=True)
        return [outcome["title"] for outcome in found]

    async def _awaits_board(self) -> list[dict[str, Any]]:
        return await self.stage.app.gate(
            self.stage.board, needs_you.listing, company=self.stage.company
        )
