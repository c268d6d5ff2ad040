"""The chapter where nobody starts anything by hand: mail in, a program runs, its answer comes."""

from __future__ import annotations

import asyncio
from typing import Any

from remit.entrypoints.cli.demo_stage import Stage, WentWrong, only
from remit.runtime import sandbox
from remit.runtime.worker import Worker
from remit.services import agents, inbox, runs, threads

TASK = "Count these: now the launch is known"
ANSWER = "5 words."
#: It finds the task in what it is told, and its last line is its answer.
_PROGRAM = (
    'words=$(grep -o "Count these: [a-z ]*" | head -n 1 | wc -w); echo counting; '
    """echo "{\\"text\\": \\"$((words - 2)) words.\\"}" """
)
_PATIENCE_SECONDS = 10.0
_STEP_SECONDS = 0.05


class Started:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.narrator = stage.narrator

    async def tell(self) -> None:
        stage, say = self.stage, self.narrator.say
        self.narrator.title("A program, started by its mail")
        held = sandbox.look()
        agent = await self._take_on(as_process=held.usable)
        sent = await stage.app.library.send(
            stage.board, company=stage.company, to="agent:counter", body=TASK
        )
        say("board", "takes on counter, which is a program of one line, and writes to it")
        worker = Worker(stage.app, stage.url)
        worker.start()
        try:
            letter = await self._answer()
            run = await self._run(agent, sent["id"])
        finally:
            await worker.stop()
        if held.usable:
            say("remit", "starts it in a sandbox: its workspace, and nothing else of this machine")
        else:
            say("remit", f"runs it as a script, because there is no sandbox here: {held.reason}")
        stage.expect(letter["body"].strip() == ANSWER)
        stage.expect(run["status"] == "completed")
        stage.expect(run["worker"] == worker.name)
        printed = await stage.app.gate(stage.board, runs.log, run=run["id"])
        text = "".join(piece["text"] for piece in printed["pieces"])
        stage.expect(("counting" if held.usable else "mail_send") in text)
        say("counter", f"does its work, answers by mail: “{ANSWER}”, and is not running any more")
        say("board", f"finds the run, why it began ({run['why']}), and what it printed")
        await stage.app.gate(stage.board, inbox.acknowledge, ids=[letter["id"]])

    async def _take_on(self, *, as_process: bool) -> str:
        step = {"tool": "mail_send", "arguments": {"to": "board", "body": ANSWER}}
        made = await self.stage.app.gate(
            self.stage.board,
            agents.create,
            company=self.stage.company,
            name="counter",
            purpose="Count words",
            perpetual=True,  # so that nothing but mail is work for it
            adapter_type="process" if as_process else "scripted",
            adapter_config={"command": "/bin/sh", "args": ["-c", _PROGRAM]}
            if as_process
            else {"script": [step]},
            runtime_config={"autoReply": as_process},
        )
        return str(made["id"])

    async def _answer(self) -> dict[str, Any]:
        """What came back, once it did."""
        stage = self.stage
        for _ in range(int(_PATIENCE_SECONDS / _STEP_SECONDS)):
            found = await stage.app.gate(stage.board, threads.own_inbox, company=stage.company)
            if found:
                return only(found, "answer")
            await asyncio.sleep(_STEP_SECONDS)
        raise WentWrong("Nobody started the agent that was written to.")

    async def _run(self, agent: str, message: str) -> dict[str, Any]:
        """The run that took up the letter, once it has ended."""
        stage = self.stage
        for _ in range(int(_PATIENCE_SECONDS / _STEP_SECONDS)):
            found = await stage.app.gate(
                stage.board, runs.listing, company=stage.company, agent=agent
            )
            mine = [one for one in found if message in one["envelope_ids"]]
            if mine and mine[0]["status"] != "running":
                return only(mine, "run")
            await asyncio.sleep(_STEP_SECONDS)
        raise WentWrong("The run does not end.")
