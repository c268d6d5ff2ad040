"""The loop under workers, jobs, deliveries and timers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from remit.clock import SECOND, Micros
from remit.errors import Unavailable
from remit.runtime import loop as loops
from remit.runtime.loop import Loop
from remit.testing.clock import VirtualClock


class Rounds(Loop[None]):
    """Counts its rounds, and does what it is told in each."""

    def __init__(self, work: Callable[["Rounds"], Micros | None], **pauses: float) -> None:
        self.clock = VirtualClock()
        #: Of the database, and how often the loop has asked for it.
        self.version: int | None = None
        self.asked = 0
        gate: Any = SimpleNamespace(clock=self.clock, listeners=[], version=self._answer)
        super().__init__(gate, "the loop", **pauses)
        self.listeners = gate.listeners
        self.rounds = 0
        self._work = work

    def _answer(self) -> int | None:
        self.asked += 1
        return self.version

    async def _look(self) -> Micros | None:
        self.rounds += 1
        return self._work(self)


def played(one: Callable[[], Rounds], story: Callable[[Rounds], Awaitable[None]]) -> None:
    async def play() -> None:
        loop = one()
        loop.start()
        try:
            async with asyncio.timeout(10):
                await story(loop)
        finally:
            await loop.stop()

    asyncio.run(play())


async def until(true: Callable[[], object]) -> None:
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def test_a_round_that_fails_is_tried_again_after_a_pause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loops, "BACKOFF_SECONDS", 0.01)

    def fails(loop: Rounds) -> None:
        if loop.rounds < 3:
            raise (Unavailable("The disk is full."), ValueError("a defect"))[loop.rounds - 1]

    async def story(loop: Rounds) -> None:
        began = time.monotonic()
        while loop.rounds < 3:
            loop.wake()  # which does not cut the pause short
            await asyncio.sleep(0.001)
        assert time.monotonic() - began >= 0.02

    played(lambda: Rounds(fails, longest=60), story)
    assert [record.getMessage() for record in caplog.records] == [
        "the loop goes on after: The disk is full.",
        "the loop goes on after an unexpected error",
    ]


def test_a_round_follows_a_wake_the_next_due_time_or_the_longest_sleep() -> None:
    async def woken(loop: Rounds) -> None:
        await until(lambda: loop.rounds == 1)
        (heard,) = loop.listeners
        await asyncio.to_thread(heard, "company")
        await until(lambda: loop.rounds == 2)

    async def due(loop: Rounds) -> None:
        await until(lambda: loop.rounds == 2)

    played(lambda: Rounds(lambda _: None, longest=60), woken)
    soon = 5 * SECOND // 1000
    played(lambda: Rounds(lambda loop: loop.clock.now() + soon, longest=60), due)
    played(lambda: Rounds(lambda _: None, longest=0.005), due)


def still(*works: Callable[[Rounds], Micros | None]) -> Rounds:
    """A loop on a database that nobody writes to."""
    loop = Rounds(*works or (lambda _: None,), longest=0.005)
    loop.version = 1
    return loop


def test_a_database_that_did_not_change_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "LONGEST_TRUST", 60)

    async def changed(loop: Rounds) -> None:
        await until(lambda: loop.asked > 5)
        assert loop.rounds == 1
        loop.version = 2
        await until(lambda: loop.rounds == 2)

    async def due(loop: Rounds) -> None:
        await until(lambda: loop.asked > 5)
        assert loop.rounds == 1
        loop.clock.advance(SECOND)
        await until(lambda: loop.rounds == 2)

    async def now_and_then(loop: Rounds) -> None:
        await until(lambda: loop.rounds == 2)

    played(still, changed)
    played(lambda: still(lambda loop: loop.clock.now() + SECOND), due)
    monkeypatch.setattr(loops, "LONGEST_TRUST", 0.02)
    played(still, now_and_then)


def test_leases_of_others_are_read_again_when_something_changed() -> None:
    read: list[int | None] = []
    taken: list[str] = []

    def watching() -> Rounds:
        loop = still()

        async def others() -> dict[str, Micros]:
            read.append(loop.version)
            return {"run": 1}

        async def take_over(run: str, _: Micros) -> None:
            taken.append(run)

        loop._watch(SECOND // 50, others, take_over)
        return loop

    async def story(loop: Rounds) -> None:
        await until(lambda: taken)  # it was silent for too long, as was seen in one reading
        assert read == [1]
        loop.version = 2
        await until(lambda: read == [1, 2])

    played(watching, story)


def test_a_time_in_which_the_leases_could_not_be_read_is_no_silence_of_others() -> None:
    taken: list[str] = []
    #: Who was taken over, at each reading.
    seen: list[list[str]] = []

    def watching() -> Rounds:
        loop = still()
        loop.version = 0

        async def others() -> dict[str, Micros]:
            assert loop.version is not None
            loop.version += 1
            seen.append(list(taken))
            if len(seen) == 2:
                await asyncio.sleep(0.4)  # the database is away for longer than a lease lasts
            return {"run": 1}

        async def take_over(run: str, _: Micros) -> None:
            taken.append(run)

        loop._watch(3 * SECOND // 10, others, take_over)
        return loop

    async def story(_: Rounds) -> None:
        await until(lambda: taken and len(seen) > 2)  # it stays as it is while it is watched
        assert seen[2] == []

    played(watching, story)


def test_what_happens_at_once_is_looked_at_together() -> None:
    async def story(loop: Rounds) -> None:
        await until(lambda: loop.rounds == 1)
        for _ in range(100):
            loop.wake()
            await asyncio.sleep(0)
        assert loop.rounds == 1
        await until(lambda: loop.rounds == 2)

    played(lambda: Rounds(lambda _: None, shortest=0.05, longest=60), story)


def test_a_pause_between_rounds_ends_when_something_is_due_but_not_for_what_stays_overdue() -> None:
    async def met(loop: Rounds) -> None:
        await until(lambda: loop.rounds == 3)

    async def throttled(loop: Rounds) -> None:
        await until(lambda: loop.rounds == 1)
        await asyncio.sleep(0.05)
        assert loop.rounds == 1

    played(lambda: Rounds(lambda loop: loop.clock.now() + 5_000, shortest=60), met)
    played(lambda: Rounds(lambda loop: loop.clock.now() - 120 * SECOND, shortest=60), throttled)


def test_a_task_is_cancelled_once_and_its_place_is_free_while_it_puts_things_away() -> None:
    cancelled: list[str] = []
    tidy = asyncio.Event()

    async def work(loop: Rounds) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("cancelled")
            loop._release(("job", 1))
            await tidy.wait()

    async def story(loop: Rounds) -> None:
        loop._begin(("job", 1), None, work(loop))
        await asyncio.sleep(0)
        assert loop.busy == 1
        loop._cancel(("job", 1))
        await until(lambda: cancelled)
        assert loop.busy == 0
        loop._cancel(("job", 1))
        ending = asyncio.create_task(loop.stop())
        await asyncio.sleep(0.01)
        assert not ending.done()
        tidy.set()
        await ending

    played(lambda: Rounds(lambda _: None, longest=60), story)
    assert cancelled == ["cancelled"]


def test_a_loop_ends_within_its_time_whatever_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loops, "TASKS_SECONDS", 0.01)

    async def deaf(over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async def story(loop: Rounds) -> None:
        over = asyncio.Event()
        loop._begin(("job", 1), None, deaf(over))
        await asyncio.sleep(0)
        await loop.stop()
        assert loop.listeners == []
        over.set()
        await asyncio.sleep(0.01)

    played(lambda: Rounds(lambda _: None, longest=60), story)
    assert "a task of the loop did not come to an end within 0.01 seconds" in caplog.text
