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
from remit.runtime.runs.lease_watch import Silence
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

    async def ask(self, key: str, name: str, given: Any, work: Awaitable[Any]) -> Any:
        """Record it; what failed without saying what became of it has no answer."""
        number = self.recorder.asked(key, name, given)
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
            given = {
                "file": file,
                "version": version,
                "hash": digest,
                "new": hashlib.sha256(text.encode()).hexdigest(),
                "text": text,
                "key": text if self.chance.random() < 0.3 else None,
            }
            if given["key"]:
                self.keyed.append(given)
            await self._asks_to_write(given)
        else:
            await self._asks_to_write(self.chance.choice(self.keyed))

    async def inherit(self, path: Path) -> None:
        for lost in recorded([path]):
            if lost.name == "write" and lost.unknown and lost.given["key"]:
                await self._asks_to_write(lost.given)

    async def _asks_to_write(self, given: dict[str, Any]) -> None:
        answer = await self.ask(given["file"], "write", given, self._write(given))
        if answer is not None and answer[1] is not None:
            self.seen[given["file"]] = answer[1:]

    async def _read(self, file: str) -> Any:
        view, content = await self.app.library.read(self.board, file=file)
        return [view["version"], hashlib.sha256(content).hexdigest()]

    async def _write(self, given: dict[str, Any]) -> Any:
        caller = keyed(self.board, given["key"]) if given["key"] else self.board
        try:
            made = await self.app.library.write(
                caller,
                given["text"].encode(),
                file=given["file"],
                version=given["version"],
                sha256=given["hash"],
            )
        except Conflict as error:
            return ["stale", error.details.get("version"), error.details.get("hash")]
        return ["written", made["version"], made["hash"]]

    # ── approvals ───────────────────────────────────────────────────────────────────────────

    async def decide(self) -> None:
        """Everybody is at the same one until it is decided, and a little longer."""
        if self.approval >= len(self.part.approvals):
            await self.work()
            return
        one = self.part.approvals[self.approval]
        # Mostly what fits what was seen last, so that several try the same at once.
        back = self.seen.get(one, [""])[0] == "revision_requested"
        name = self.chance.choices(
            ["show", "revise", "resubmit", "approve", "reject", "cancel"],
            [3, 2, 9, 1, 1, 1] if back else [3, 9, 2, 1, 1, 1],
        )[0]
        given: dict[str, Any] = {}
        if name in ("revise", "approve", "reject") and self.chance.random() < 0.6:
            given["seen"] = self.seen.get(one, ["", 1])[1]
        answer = await self.ask(one, name, given, self._decide(one, name, given.get("seen")))
        if answer is None:
            return
        if answer[0] == "is":
            self.seen[one] = answer[1:]
        elif answer[0] == "stale_revision":
            self.seen[one] = ["pending", answer[1]]
        elif answer[0] == "wrong_status":
            self.seen[one] = [answer[1], self.seen.get(one, ["", 1])[1]]
        if answer[0] != "stale_revision" and answer[1] in ("approved", "rejected", "cancelled"):
            self.closed += 1
        if self.closed > 3:
            self.approval, self.closed = self.approval + 1, 0

    async def _decide(self, one: str, name: str, seen: int | None) -> Any:
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
            found = await self.app.gate(who, verbs[name], approval=one, **more)
        except Conflict as error:
            return [error.reason, *error.details.values()][:2]
        return ["is", found["status"], found["revision"]]

    # ── runs ────────────────────────────────────────────────────────────────────────────────

    async def work(self) -> None:
        agent = self.chance.choice(self.part.agents)
        mine = [one for one in self.begun if one[0] == agent][-3:]
        what = self.chance.random()
        if what < 0.25:
            await self._look()
        elif what < 0.45 or not mine:
            await self._begin(agent, by_hand=self.chance.random() < 0.2)
        else:
            _, run, token, epoch = self.chance.choice(mine)
            if what < 0.6:
                given: dict[str, Any] = {"epoch": epoch}
                await self.ask(agent, "renew", given, self._renew(agent, epoch))
            elif what < 0.75:
                await self.ask(agent, "act", {"run": run}, self._act(token))
            else:
                # Some calls of a run are under way while it is ended.
                calls = [self.ask(agent, "act", {"run": run}, self._act(token)) for _ in range(2)]
                ending = self.ask(agent, "end", {"run": run}, self._end(run))
                await asyncio.gather(calls[0], ending, calls[1])

    async def _begin(self, agent: str, *, by_hand: bool) -> None:
        run = self.app.ids.new()
        given = {"run": run}
        tokens: list[str] = []
        name = "start" if by_hand else "claim"
        answer = await self.ask(agent, name, given, self._claim(agent, run, by_hand, tokens))
        if tokens:
            self.begun.append((agent, run, tokens[0], answer[1] if not by_hand else 0))

    async def _claim(self, agent: str, run: str, by_hand: bool, tokens: list[str]) -> Any:
        given: dict[str, Any] = {"agent": agent, "run": run, "workspace": f"/nowhere/{run}"}
        try:
            if by_hand:
                made = await self.app.gate(as_system(), runs.start, **given)
            else:
                given |= {"worker": self.name, "lease": 10 * MINUTE}
                made = await self.app.gate(as_system(), run_queue.claim, **given)
        except Conflict:
            return ["refused"]
        tokens.append(made["token"])
        return ["begun"] if by_hand else ["begun", made["epoch"]]

    async def _look(self) -> None:
        """Who is held until when; who was silent for too long loses its run to others."""
        numbers = {one: self.recorder.asked(one, "look", {}) for one in self.part.agents}
        found: dict[str, Any] = dict.fromkeys(self.part.agents)
        try:
            held = await self.app.gate(as_system(), run_queue.held)
            for run, until in held.items():
                found[await self._whose(run)] = [run, until]
        except Unavailable:
            return
        for agent, number in numbers.items():
            self.recorder.answered(number, found[agent])
        silent = self.silence.of(held, time.monotonic())
        if self.chance.random() < 0.05:
            silent = list(held)
        for run in silent:
            given = {"run": run, "until": held[run]}
            await self.ask(self.whose[run], "take", given, self._take(run, held[run]))
        if self.chance.random() < 0.2:
            await self._end_what_nobody_holds()

    async def _end_what_nobody_holds(self) -> None:
        """Who began a run by hand may have been killed, and nobody takes over from them."""
        try:
            live = await self.app.gate(as_system(), run_queue.live)
        except Unavailable:
            return
        for one in live:
            if one.worker is None and one.agent_id in self.part.agents:
                await self.ask(one.agent_id, "end", {"run": one.id}, self._end(one.id))

    async def _whose(self, run: str) -> str:
        if run not in self.whose:
            self.whose[run] = (await self.app.gate(self.board, runs.show, run=run))["agent_id"]
        return self.whose[run]

    async def _renew(self, agent: str, epoch: int) -> Any:
        asked: Any = {"held": [(agent, epoch)], "lease": 10 * MINUTE}
        lost = await self.app.gate(as_system(), run_queue.renew, **asked)
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
