"""Processes that all work on a few files, approvals and agents, and write down what they see.

Each opens the database for itself. What it asks next is decided by its seed, and when it comes to
be asked by the machine. A process that takes the place of a killed one first repeats, with their
keys, the writes whose answers the dead one did not get.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.app import App
from remit.clock import MINUTE
from remit.errors import Conflict, Unauthenticated, Unavailable
from remit.runtime.loop import Silence
from remit.services.execution import run_endings, run_queue, runs
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.testing.linearizability import Recorder, recorded
from tests.company import keyed, settings
from tests.runtime_stage import _put, _ready, fork_on_order

MODULE = "tests.history_stage"
#: How long a run must not be heard of before others take it.
SILENCE = 0.15


@dataclass
class Part:
    """What one process is told."""

    url: str
    home: str
    history: str
    name: str
    seed: str
    board: str
    asker: str
    files: list[str]
    approvals: list[str]
    agents: list[str]
    tasks: int = 2
    #: The history of who died before.
    heir_of: str | None = None


class Player:
    """One of those that work side by side in a process."""

    def __init__(self, app: App, part: Part, name: str) -> None:
        self.app = app
        self.part = part
        self.chance = random.Random(f"{part.seed} {name}")
        #: Made when it is enough.
        self.over = Path(part.history, "over")
        self.recorder = Recorder(Path(part.history, f"{name}.jsonl"), name, time.monotonic_ns)
        self.name = name
        self.board, self.asker = Caller(part.board), Caller(part.asker)
        self.seen: dict[str, list[Any]] = {}
        self.keyed: list[dict[str, Any]] = []
        self.approval, self.closed = 0, 0
        self.silence: Silence[str] = Silence(SILENCE)
        self.whose: dict[str, str] = {}
        #: What it began, also when it lost it since: agent, run, token, epoch.
        self.begun: list[tuple[str, str, str, int]] = []
        self.count = 0

    async def play(self) -> None:
        acts = [self.file, self.file, self.file, self.decide, self.decide, self.work, self.work]
        if self.part.heir_of is not None:
            await self.inherit(Path(self.part.heir_of))
        while not self.over.exists():
            await self.chance.choice(acts)()

    async def ask(self, key: str, name: str, arguments: Any, work: Awaitable[Any]) -> Any:
        """Record it; what failed without saying what became of it has no answer."""
        number = self.recorder.asked(key, name, arguments)
        try:
            answer = await work
        except Unavailable:
            return None
        self.recorder.answered(number, answer)
        return answer

    # ── files ───────────────────────────────────────────────────────────────────────────────

    async def file(self) -> None:
        file = self.chance.choice(self.part.files)
        what = self.chance.random()
        if file not in self.seen or what < 0.35:
            answer = await self.ask(file, "read", {}, self._read(file))
            if answer:
                self.seen[file] = answer
        elif what < 0.9 or not self.keyed:
            self.count += 1
            text = f"{self.name} {self.count}"
            version, digest = self.seen[file]
            arguments = {
                "file": file,
                "version": version,
                "hash": digest,
                "new": hashlib.sha256(text.encode()).hexdigest(),
                "text": text,
                "key": text if self.chance.random() < 0.3 else None,
            }
            if arguments["key"]:
                self.keyed.append(arguments)
            await self._asks_to_write(arguments)
        else:
            await self._asks_to_write(self.chance.choice(self.keyed))

    async def inherit(self, path: Path) -> None:
        for lost in recorded([path]):
            if lost.name == "write" and lost.unknown and lost.given["key"]:
                await self._asks_to_write(lost.given)

    async def _asks_to_write(self, arguments: dict[str, Any]) -> None:
        answer = await self.ask(arguments["file"], "write", arguments, self._write(arguments))
        if answer is not None and answer[1] is not None:
            self.seen[arguments["file"]] = answer[1:]

    async def _read(self, file: str) -> Any:
        view, content = await self.app.library.read(self.board, file=file)
        return [view["version"], hashlib.sha256(content).hexdigest()]

    async def _write(self, arguments: dict[str, Any]) -> Any:
        caller = keyed(self.board, arguments["key"]) if arguments["key"] else self.board
        try:
            version = await self.app.library.write(
                caller,
                arguments["text"].encode(),
                file=arguments["file"],
                version=arguments["version"],
                sha256=arguments["hash"],
            )
        except Conflict as error:
            return ["stale", error.details.get("version"), error.details.get("hash")]
        return ["written", version["version"], version["hash"]]

    # ── approvals ───────────────────────────────────────────────────────────────────────────

    async def decide(self) -> None:
        """Everybody is at the same one until it is decided, and a little longer."""
        if self.approval >= len(self.part.approvals):
            await self.work()
            return
        approval = self.part.approvals[self.approval]
        # Mostly what fits what was seen last, so that several try the same at once.
        back = self.seen.get(approval, [""])[0] == "revision_requested"
        name = self.chance.choices(
            ["show", "revise", "resubmit", "approve", "reject", "cancel"],
            [3, 2, 9, 1, 1, 1] if back else [3, 9, 2, 1, 1, 1],
        )[0]
        arguments: dict[str, Any] = {}
        if name in ("revise", "approve", "reject") and self.chance.random() < 0.6:
            arguments["seen"] = self.seen.get(approval, ["", 1])[1]
        answer = await self.ask(
            approval, name, arguments, self._decide(approval, name, arguments.get("seen"))
        )
        if answer is None:
            return
        if answer[0] == "is":
            self.seen[approval] = answer[1:]
        elif answer[0] == "stale_revision":
            self.seen[approval] = ["pending", answer[1]]
        elif answer[0] == "wrong_status":
            self.seen[approval] = [answer[1], self.seen.get(approval, ["", 1])[1]]
        if answer[0] != "stale_revision" and answer[1] in ("approved", "rejected", "cancelled"):
            self.closed += 1
        if self.closed > 3:
            self.approval, self.closed = self.approval + 1, 0

    async def _decide(self, approval: str, name: str, seen: int | None) -> Any:
        verbs: dict[str, Any] = {
            "approve": approvals.approve,
            "reject": approvals.reject,
            "revise": approvals.request_revision,
            "cancel": approvals.cancel,
            "show": approvals.show,
            "resubmit": approvals.resubmit,
        }
        who = self.asker if name == "resubmit" else self.board
        more = {"expected_revision": seen} if seen is not None else {}
        try:
            answer = await self.app.gate(who, verbs[name], approval=approval, **more)
        except Conflict as error:
            return [error.reason, *error.details.values()][:2]
        return ["is", answer["status"], answer["revision"]]

    # ── runs ────────────────────────────────────────────────────────────────────────────────

    async def work(self) -> None:
        agent = self.chance.choice(self.part.agents)
        mine = [entry for entry in self.begun if entry[0] == agent][-3:]
        what = self.chance.random()
        if what < 0.25:
            await self._look()
        elif what < 0.45 or not mine:
            await self._begin(agent, by_hand=self.chance.random() < 0.2)
        else:
            _, run, token, epoch = self.chance.choice(mine)
            if what < 0.6:
                arguments: dict[str, Any] = {"epoch": epoch}
                await self.ask(agent, "renew", arguments, self._renew(agent, epoch))
            elif what < 0.75:
                await self.ask(agent, "act", {"run": run}, self._act(token))
            else:
                # Some calls of a run are under way while it is ended.
                calls = [self.ask(agent, "act", {"run": run}, self._act(token)) for _ in range(2)]
                ending = self.ask(agent, "end", {"run": run}, self._end(run))
                await asyncio.gather(calls[0], ending, calls[1])

    async def _begin(self, agent: str, *, by_hand: bool) -> None:
        run = self.app.ids.new()
        arguments = {"run": run}
        tokens: list[str] = []
        name = "start" if by_hand else "claim"
        answer = await self.ask(agent, name, arguments, self._claim(agent, run, by_hand, tokens))
        if tokens:
            self.begun.append((agent, run, tokens[0], answer[1] if not by_hand else 0))

    async def _claim(self, agent: str, run: str, by_hand: bool, tokens: list[str]) -> Any:
        arguments: dict[str, Any] = {"agent": agent, "run": run, "workspace": f"/nowhere/{run}"}
        try:
            if by_hand:
                claim = await self.app.gate(as_system(), runs.start, **arguments)
            else:
                arguments |= {"worker": self.name, "lease": 10 * MINUTE}
                claim = await self.app.gate(as_system(), run_queue.claim, **arguments)
        except Conflict:
            return ["refused"]
        tokens.append(claim["token"])
        return ["begun"] if by_hand else ["begun", claim["epoch"]]

    async def _look(self) -> None:
        """Who is held until when; who was silent for too long loses its run to others."""
        numbers = {
            agent_id: self.recorder.asked(agent_id, "look", {}) for agent_id in self.part.agents
        }
        leases: dict[str, Any] = dict.fromkeys(self.part.agents)
        try:
            held = await self.app.gate(as_system(), run_queue.held)
            for run, until in held.items():
                leases[await self._whose(run)] = [run, until]
        except Unavailable:
            return
        for agent, number in numbers.items():
            self.recorder.answered(number, leases[agent])
        silent = self.silence.of(held, time.monotonic())
        if self.chance.random() < 0.05:
            silent = list(held)
        for run in silent:
            arguments = {"run": run, "until": held[run]}
            await self.ask(self.whose[run], "take", arguments, self._take(run, held[run]))
        if self.chance.random() < 0.2:
            await self._end_what_nobody_holds()

    async def _end_what_nobody_holds(self) -> None:
        """Who began a run by hand may have been killed, and nobody takes over from them."""
        try:
            live = await self.app.gate(as_system(), run_queue.live)
        except Unavailable:
            return
        for run in live:
            if run.worker is None and run.agent_id in self.part.agents:
                await self.ask(run.agent_id, "end", {"run": run.id}, self._end(run.id))

    async def _whose(self, run: str) -> str:
        if run not in self.whose:
            self.whose[run] = (await self.app.gate(self.board, runs.show, run=run))["agent_id"]
        return self.whose[run]

    async def _renew(self, agent: str, epoch: int) -> Any:
        arguments: Any = {"held": [(agent, epoch)], "lease": 10 * MINUTE}
        lost = await self.app.gate(as_system(), run_queue.renew, **arguments)
        return ["lost"] if lost else ["kept"]

    async def _take(self, run: str, until: int) -> Any:
        try:
            await self.app.gate(as_system(), run_queue.take_over, run=run, until=until)
        except Conflict:
            return ["refused"]
        return ["taken"]

    async def _act(self, token: str) -> Any:
        try:
            await self.app.gate(Caller(token), agents.submit_log, summary="Here.")
        except Unauthenticated:
            return ["refused"]
        return ["done"]

    async def _end(self, run: str) -> Any:
        try:
            await self.app.gate(as_system(), runs.end, run=run, status="failed")
        except Conflict:
            return ["refused"]
        return ["ended"]


async def play(part: Part) -> None:
    async with App(settings(part.url, Path(part.home))) as app:
        players = [Player(app, part, f"{part.name}.{n}") for n in range(part.tasks)]
        _ready()
        await asyncio.gather(*(player.play() for player in players))


def be(order: dict[str, Any]) -> None:
    part = Part(**order)
    try:
        asyncio.run(play(part))
    except Exception as error:
        # Nothing may come but what the models know; the test looks for it.
        Path(part.history, f"{part.name}.error").write_text(repr(error))


def main() -> None:
    # The pause after a failure would leave the agents standing; what begins and ends is the same.
    _put(run_endings, "pause_after", lambda failures: 0)
    fork_on_order(be)
