"""The chapters about work: a mandate is taken apart, handed on, taken back, and verified."""

from __future__ import annotations

from typing import Any

from remit.entrypoints.cli import trees
from remit.entrypoints.cli.demo_hiring import approve
from remit.entrypoints.cli.demo_mail import Correspondence
from remit.entrypoints.cli.demo_stage import Stage, call
from remit.services import agents
from remit.testing import ScriptedAgent

ANNOUNCEMENT = "# Remit is here\n\nIt keeps a record of who did what, and by whose authority.\n"


class Work:
    def __init__(self, stage: Stage, boss: str, facts: str) -> None:
        self.stage = stage
        self.narrator = stage.narrator
        self.boss = boss
        self.facts = facts
        self.mail = Correspondence(stage)

    async def tell(self) -> None:
        run = await self.stage.start(self.boss)
        with ScriptedAgent(self.stage.url, run.token) as editor:
            await self._take_apart(editor)
            scribing = await self.stage.start(self.text["id"])
            calling = await self.stage.start(self.press["id"])
            with (
                ScriptedAgent(self.stage.url, scribing.token) as scribe,
                ScriptedAgent(self.stage.url, calling.token) as herald,
            ):
                self.narrator.title("The hired agents at work")
                await self.mail.brief(editor, "scribe", scribe)
                await self._check_facts(scribe)
                await self._call_the_press(herald)
                await self.mail.escalate(editor, scribe)
                await self._write(scribe)
                await self._keep_out(editor, scribe)
                await self._take_back(editor, herald)
                await self._verify(editor)
            await self.stage.finish(scribing)
            await self.stage.finish(calling)
            await self.mail.deliver(editor, self.draft["id"], ANNOUNCEMENT)
            await self._draw(editor)
        await self.stage.finish(run)

    async def _take_apart(self, editor: ScriptedAgent) -> None:
        say = self.narrator.say
        self.narrator.title("A mandate, taken apart")
        launch = await call(
            editor,
            "outcome_create",
            parent_id=self.boss,
            title="The launch is known",
            important=True,
        )
        self.text = await call(
            editor,
            "outcome_create",
            parent_id=launch["id"],
            title="The announcement is written",
            description="Short, and nothing but facts.",
        )
        self.press = await call(
            editor,
            "outcome_create",
            parent_id=launch["id"],
            title="The press has it",
            blocked_by=[self.text["id"]],
            urgent=True,
        )
        say("editor", "takes “The launch is known” apart: write it, then tell the press")
        seen = await call(editor, "outcome_view", id=self.press["id"])
        self.stage.expect(not seen["actionable"])
        say("editor", f"sees that the press cannot be told yet: {seen['why_not_actionable']}")
        self.draft = await call(
            editor, "kb_create", description="Announcement", content="To be written.\n"
        )
        resources = {self.draft["id"]: "write", self.facts: "read"}
        await self._hire(editor, self.text, "scribe", resources)
        say("editor", "hires scribe for the writing; the draft and the facts come with the job")
        await self._hire(editor, self.press, "herald", {})
        say("editor", "hires herald for the press")
        say("board", "approves both; only then the work is theirs")
        await self._read_decisions(editor)

    async def _hire(
        self, editor: ScriptedAgent, outcome: dict[str, Any], name: str, files: dict[str, str]
    ) -> None:
        answer = await call(
            editor,
            "delegate",
            outcome_id=outcome["id"],
            hire={"name": name, "adapter": "scripted", "title": f"The {name}"},
            grants=[{"resource": f"kb_file:{id_}", "level": level} for id_, level in files.items()],
        )
        # An agent is hired for an outcome; both have one id.
        self.stage.expect(answer["agent"]["id"] == outcome["id"])
        self.stage.expect(answer["outcome"]["owner"] == "agent:editor")
        await approve(self.stage, answer["approval"])

    async def _read_decisions(self, editor: ScriptedAgent) -> None:
        letters = (await call(editor, "mail_inbox"))["messages"]
        decided = [letter["subject"] for letter in letters if "hire" in letter["subject"]]
        self.stage.expect(any("herald" in subject for subject in decided))
        await call(editor, "mail_ack", ids=[letter["id"] for letter in letters])
        self.narrator.say("editor", "was told of each decision by mail")

    async def _check_facts(self, scribe: ScriptedAgent) -> None:
        say = self.narrator.say
        facts = await call(scribe, "kb_read", id=self.facts)
        self.stage.expect("record" in facts["content"])
        say("scribe", "reads the facts at once; its boss thought of that")
        check = await call(
            scribe, "outcome_create", parent_id=self.text["id"], title="The facts are checked"
        )
        self.notes = await call(
            scribe, "kb_create", description="Checks", content=f"Checked kb://{self.facts}.\n"
        )
        await call(scribe, "outcome_complete", id=check["id"], evidence=[self.notes["id"]])
        say("scribe", "adds “The facts are checked” below its mandate, and completes it")

    async def _write(self, scribe: ScriptedAgent) -> None:
        draft = await call(scribe, "kb_read", id=self.draft["id"])
        self.draft = await call(
            scribe,
            "kb_write",
            id=draft["id"],
            content=ANNOUNCEMENT,
            version=draft["version"],
            hash=draft["hash"],
        )
        await call(scribe, "log_submit", summary="Wrote the announcement from checked facts.")
        self.narrator.say("scribe", "writes the announcement, and in its log what it did")

    async def _call_the_press(self, herald: ScriptedAgent) -> None:
        await call(
            herald, "outcome_create", parent_id=self.press["id"], title="A list of newspapers"
        )
        await call(herald, "kb_create", description="Newspapers", content="None yet.\n")
        await call(herald, "log_submit", summary="Looked for newspapers. Found none.")
        self.narrator.say("herald", "plans a list of newspapers, finds none, and says so")

    async def _keep_out(self, editor: ScriptedAgent, scribe: ScriptedAgent) -> None:
        self.narrator.title("Who decides what")
        refused = await self.stage.refused(
            scribe, "outcome_complete", id=self.text["id"], note="I am done."
        )
        self.stage.expect(refused.code == "own_mandate")
        self.narrator.say("scribe", "cannot pass judgement on its own mandate")
        refused = await self.stage.refused(
            editor, "outcome_create", parent_id=self.text["id"], title="Do it my way"
        )
        self.stage.expect(refused.code == "delegated_away")
        self.narrator.say("editor", "cannot reach into what it handed over")
        await self.mail.keep_apart(scribe)
        await self.mail.report(scribe, editor, self.notes)

    async def _take_back(self, editor: ScriptedAgent, herald: ScriptedAgent) -> None:
        self.narrator.title("Taken back, and verified")
        answer = await call(
            editor, "reclaim", outcome_id=self.press["id"], reason="No newspapers were found."
        )
        self.narrator.say("editor", "reclaims “The press has it”: herald stops, its work stays")
        try:
            await call(herald, "kb_list")
            self.stage.expect(False)
        except ConnectionError:
            self.narrator.say("herald", "is cut off in the middle of its run")
        handover = await call(editor, "kb_read", id=answer["handover_file_id"])
        self.stage.expect("A list of newspapers" in handover["content"])
        for line in handover["content"].splitlines():
            if line:
                self.narrator.line(f"          │ {line}")

    async def _verify(self, editor: ScriptedAgent) -> None:
        log = await call(editor, "log_read", agent="agent:scribe")
        self.stage.expect("checked facts" in log["entries"][0]["summary"])
        seen = await call(editor, "kb_read", id=self.draft["id"])
        self.stage.expect(seen["content"] == ANNOUNCEMENT)
        done = await call(
            editor,
            "outcome_complete",
            id=self.text["id"],
            evidence=[seen["id"]],
            note="Short, and nothing but facts.",
        )
        evidence = done["verdict"]["evidence"][0]
        self.stage.expect(evidence["version"] == seen["version"])
        self.narrator.say(
            "editor",
            f"reads scribe's log and version {seen['version']}, and completes it on that evidence",
        )
        gone = await self.stage.app.gate(self.stage.board, agents.show, agent=self.text["id"])
        self.stage.expect(gone["status"] == "terminated")
        self.narrator.say("scribe", "has done what it was hired for, and leaves")

    async def _draw(self, editor: ScriptedAgent) -> None:
        self.narrator.title("Where it stands")
        tree = await call(editor, "outcome_subtree", id=self.boss)
        found = list(trees.lines(tree["children"], "children", _line))
        self.narrator.line(f"  {tree['title']} ({tree['status']})")
        for branch, label, status in found:
            self.narrator.line(f"  {branch}{label} ({status})")
        # What the press waited for is done, and what herald planned is left to do.
        states = {line.label.lstrip("!* "): line.tail for line in found}
        self.stage.expect(states.get("The announcement is written") == "completed")
        self.stage.expect(states.get("The facts are checked") == "completed")
        self.stage.expect(states.get("The press has it") == "open, waits")
        self.stage.expect(states.get("A list of newspapers") == "open, ready")


def _line(branch: str, node: dict[str, Any]) -> trees.Line:
    marks = ("!" if node.get("urgent") else "") + ("*" if node.get("important") else "")
    status = node["status"]
    if status == "open":
        status = "open, ready" if node["actionable"] else "open, waits"
    return trees.Line(branch, f"{marks} {node['title']}".strip(), status)
