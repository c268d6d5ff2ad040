"""A company at work in a temporary home: scripted agents, real calls, no model and no key."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from remit.entrypoints.cli.demo_hiring import Hiring
from remit.entrypoints.cli.demo_mail import Correspondence
from remit.entrypoints.cli.demo_stage import Stage, WentWrong, call
from remit.entrypoints.cli.demo_work import Work
from remit.entrypoints.cli.demo_worker import Started
from remit.entrypoints.cli.narrator import Narrator
from remit.entrypoints.serve import running
from remit.errors import RemitError
from remit.services import agents, companies, events, grants
from remit.services.identity import Caller
from remit.settings import load
from remit.testing import ScriptedAgent, ToolRefused

PLAN = """# Launch plan

1. Write the announcement.
2. Check the facts, see kb://{facts}.
"""
FACTS = "Remit keeps a record of who did what, why, and by whose authority.\n"
_PAUSE_SECONDS = 0.25


def run(*, serve: bool = False, speed: str = "normal", as_json: bool = False) -> int:
    """Tell the story, check that it came out right, and answer the exit code."""
    pause = 0.0 if speed == "fast" or as_json else _PAUSE_SECONDS
    narrator = Narrator(pause, quiet=as_json)
    with tempfile.TemporaryDirectory(prefix="remit-demo-") as home:
        code = asyncio.run(_play(Path(home), narrator, serve))
    if as_json:
        print(json.dumps({"ok": code == 0, "story": narrator.told}, ensure_ascii=False))
    return code


async def _play(home: Path, narrator: Narrator, serve: bool) -> int:
    settings = load({"REMIT_HOME": str(home)})
    async with running(settings) as (app, url):
        board = Caller((home / "board.token").read_text().strip())
        story = Story(app, url, board, narrator)
        await story.tell()
        if serve:
            narrator.line()
            narrator.line(f"The company is still there at {url}. Stop it with Ctrl-C.")
            narrator.line(f"  REMIT_HOME={home} remit status")
            await asyncio.Event().wait()
    return 0 if story.came_out_right else 1


class Story(Stage):
    """The first chapters: a wish, files, rights, and two writers."""

    async def tell(self) -> None:
        try:
            await self._chapters()
        except (RemitError, ToolRefused, ConnectionError, WentWrong) as wrong:
            # A story that cannot go on has not come out right.
            self.narrator.refused(str(wrong))
            self.expect(False)
        self.narrator.line()
        self.narrator.line(
            "Everything came out as it should." if self.came_out_right else "Something is wrong."
        )

    async def _chapters(self) -> None:
        self.narrator.title("A company of two agents")
        company = await self.app.gate(
            self.board, companies.create, name="Lighthouse", root_name="editor"
        )
        self.company, boss = company["id"], company["root_agent_id"]
        self.narrator.say("board", "creates the company Lighthouse with its root agent, editor")
        writer = await self._hire("writer", "Writes what is needed", boss="editor")
        editing = await self.start(boss)
        writing = await self.start(writer["id"])
        with (
            ScriptedAgent(self.url, editing.token) as editor,
            ScriptedAgent(self.url, writing.token) as author,
        ):
            await Correspondence(self).wish(editing, editor)
            await self._files_and_rights(editor, author, editing.workspace)
            await self._conflict(editor, author)
        await self.finish(editing)
        await self.finish(writing)
        await Hiring(self, boss).tell()
        await Work(self, boss, self.facts["id"]).tell()
        await Started(self).tell()
        with ScriptedAgent(self.url, writing.token) as late:
            await self._check(late)

    async def _hire(self, name: str, purpose: str, boss: str) -> dict[str, Any]:
        agent = await self.app.gate(
            self.board,
            agents.create,
            company=self.company,
            name=name,
            reports_to=boss,
            purpose=purpose,
        )
        self.narrator.say("board", f"creates agent {name}, report of {boss}: “{purpose}”")
        return agent

    async def _files_and_rights(
        self, editor: ScriptedAgent, author: ScriptedAgent, workspace: Path
    ) -> None:
        say = self.narrator.say
        self.narrator.title("Knowledge, and who may read it")
        (workspace / "facts.md").write_text(FACTS)
        self.facts = await call(editor, "kb_create", description="Facts", path="facts.md")
        say("editor", "imports facts.md from its workspace into the knowledge base")
        self.plan = await call(
            editor,
            "kb_create",
            description="Launch plan",
            content=PLAN.format(facts=self.facts["id"]),
        )
        say("editor", "writes the launch plan, which links to the facts")
        found = (await call(author, "kb_browse", query="launch"))["files"]
        self.expect(found[0]["level"] == "none")
        say("writer", f"searches “launch” and learns of “{found[0]['description']}”, level none")
        refused = await self.refused(author, "kb_read", id=self.plan["id"])
        self.expect(refused.code == "no_capability")
        await call(
            editor,
            "capability_grant",
            to="agent:writer",
            resource=f"kb_file:{self.plan['id']}",
            level="write",
        )
        say("editor", "passes write on the plan to its report, for as long as the mandate lasts")
        seen = await call(author, "kb_read", id=self.plan["id"])
        self.expect("Launch plan" in seen["content"])
        say("writer", f"tries again at once and reads version {seen['version']}")
        refused = await self.refused(author, "kb_read", id=self.facts["id"])
        self.expect(refused.code == "no_capability")

    async def _conflict(self, editor: ScriptedAgent, author: ScriptedAgent) -> None:
        say = self.narrator.say
        self.narrator.title("Two writers, no lost update")
        plan = self.plan["id"]
        mine = await call(editor, "kb_read", id=plan)
        theirs = await call(author, "kb_read", id=plan)
        text = theirs["content"] + "3. Publish.\n"
        done = await call(
            author,
            "kb_write",
            id=plan,
            content=text,
            version=theirs["version"],
            hash=theirs["hash"],
            idempotency_key="publish-step",
        )
        say("writer", f"adds a step: version {done['version']}")
        again = await call(
            author,
            "kb_write",
            id=plan,
            content=text,
            version=theirs["version"],
            hash=theirs["hash"],
            idempotency_key="publish-step",
        )
        self.expect(again == done)
        say("writer", "repeats the call after a hiccup: same key, same answer, done once")
        refused = await self.refused(
            editor,
            "kb_write",
            id=plan,
            content="# Another plan\n",
            version=mine["version"],
            hash=mine["hash"],
        )
        self.expect(refused.code == "conflict")
        latest = await call(editor, "kb_read", id=plan)
        self.expect(refused.details.get("version") == latest["version"])
        merged = await call(
            editor,
            "kb_write",
            id=plan,
            content=latest["content"] + "4. Celebrate.\n",
            version=latest["version"],
            hash=latest["hash"],
        )
        say(
            "editor",
            f"reads version {latest['version']}, merges, writes version {merged['version']}",
        )

    async def _check(self, late: ScriptedAgent) -> None:
        self.narrator.title("The record")
        try:
            await call(late, "kb_list")
            self.expect(False)
        except ConnectionError:
            self.narrator.say("writer", "calls once more after its run: the token died with it")
        held = await self.app.gate(self.board, grants.listing, company=self.company)
        passed_on = {f"grant:{grant['id']}" for grant in held if grant["parent_id"]}
        written = await self.app.gate(self.board, events.listing, company=self.company, limit=1000)
        effects = [
            event
            for event in written
            if event["action"] == "file.write" and event["basis"] in passed_on
        ]
        self.expect(bool(effects))
        for effect in effects[:1]:
            why = await self.app.gate(self.board, events.why, event=effect["id"])
            steps = " ← ".join(f"{step['who']} {step['action']}" for step in why["steps"])
            self.expect(why["authorised_by"] == "user:board")
            self.narrator.say("why?", steps)
        verified = await self.app.gate(self.board, events.verify, company=self.company)
        self.expect(verified["ok"])
        denied = sum(not event["allowed"] for event in written)
        self.narrator.say(
            "verify",
            f"{verified['events']} events, {denied} of them refusals; "
            f"the chain {'holds' if verified['ok'] else 'is broken'}",
        )
