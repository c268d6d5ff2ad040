"""Base of every loop: rounds that follow a wake or the next due time, and the tasks they start.

A round that fails is repeated after a pause, so that a loop never ends silently. A task holds its
row by a lease with an epoch; the row's id and the epoch together are the key of the task.
"""

import asyncio
import contextlib
import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from remit.clock import SECOND, Micros
from remit.errors import Conflict, RemitError
from remit.ids import CompanyId
from remit.runtime.deadlines import within
from remit.services.command import Ask, Gate
from remit.services.identity import as_system
from remit.services.queues import Held
from remit.services.verbs import Verb

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")
P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)

#: Longest sleep without a look at the database: another process may write, or the clock may jump.
LONGEST_SLEEP = 1.0
#: Longest time without a round while the database is unchanged. Some rows become due without being
#: in the next due time, such as reminders and expired leases; none has to be on the second.
LONGEST_TRUST = 3.0
#: After a failure, before the next attempt.
BACKOFF_SECONDS = 1.0
#: Between two renewals of leases; a third of the lease, if that is shorter.
RENEW_SECONDS = 3.0
#: Time limits of a stop: for the loop itself, and then for its tasks.
LOOP_SECONDS = 1.5
TASKS_SECONDS = 5.0


class Loop(ABC, Generic[W]):
    """Repeats `_look`; one loop of each kind in a process."""

    def __init__(
        self, gate: Gate, title: str, *, shortest: float = 0.0, longest: float = LONGEST_SLEEP
    ) -> None:
        """`shortest` is the least time between two rounds, which batches unrelated changes."""
        self._gate = gate
        self._title = title
        self._shortest = shortest
        self._longest = longest
        self._works: list[Callable[[], Coroutine[Any, Any, None]]] = [self._round]
        self._loops: list[asyncio.Task[None]] = []
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        #: While a lease is held: the subject of its task, and the task.
        self._held: dict[Held, W] = {}
        self._tasks: dict[Held, asyncio.Task[None]] = {}
        #: All unfinished tasks, also those that lost their lease and are cleaning up.
        self._unended: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def _look(self) -> Micros | None:
        """Start the tasks that are possible now; returns when the next one is due."""

    # ── the rounds ──────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._gate.listeners.append(self._changed)
        self._loops += [asyncio.create_task(self._forever(work)) for work in self._works]

    def wake(self) -> None:
        """Start the next round at once; callable from any thread."""
        # A round that is about to start anyway sees every commit before this call.
        if self._loop is not None and not self._woken.is_set():
            self._loop.call_soon_threadsafe(self._woken.set)

    async def stop(self) -> None:
        """Stop once, in a bounded time; the next start recovers tasks that hang."""
        if self._stopping:
            return
        self._stopping = True
        if self._changed in self._gate.listeners:
            self._gate.listeners.remove(self._changed)
        for loop in self._loops:
            loop.cancel()
        await within(
            LOOP_SECONDS, asyncio.gather(*self._loops, return_exceptions=True), self._title
        )
        for held in list(self._tasks):
            self._cancel(held)
        await within(
            TASKS_SECONDS,
            asyncio.gather(*self._unended, return_exceptions=True),
            f"a task of {self._title}",
        )

    def _every(self, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
        """Repeat some work beside the rounds."""

        async def again() -> None:
            await work()
            await asyncio.sleep(_until_next(seconds))

        self._works.append(again)

    def _changed(self, _: CompanyId) -> None:
        self.wake()

    async def _forever(self, work: Callable[[], Awaitable[None]]) -> None:
        while not self._stopping:
            try:
                await work()
            except RemitError as error:
                log.warning("%s goes on after: %s", self._title, error)
                await asyncio.sleep(BACKOFF_SECONDS)
            except Exception:
                log.exception("%s goes on after an unexpected error", self._title)
                await asyncio.sleep(BACKOFF_SECONDS)

    async def _round(self) -> None:
        self._woken.clear()
        seen, trusted = self._gate.version(), time.monotonic() + LONGEST_TRUST
        due = await self._look()
        await asyncio.sleep(self._pause(due))
        while not await self._woken_or_due(due):
            # Rounds over an unchanged database would be most of the work of an idle machine.
            if seen is None or self._gate.version() != seen or time.monotonic() >= trusted:
                break

    def _pause(self, due: Micros | None) -> float:
        """Return the pause before the next round: until the due time, and `shortest` at most. Rows
        that stay overdue get the full pause, so that the loop does not spin."""
        if due is None:
            return self._shortest
        left = self._seconds_until(due)
        return self._shortest if left < -self._shortest else min(max(left, 0.0), self._shortest)

    async def _woken_or_due(self, due: Micros | None) -> bool:
        """Sleep; returns whether a wake or the due time ended the sleep."""
        left = _until_next(self._longest)
        if due is not None:
            left = min(max(self._seconds_until(due), 0.001), left)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._woken.wait()
        return self._woken.is_set() or (due is not None and self._seconds_until(due) <= 0)

    def _seconds_until(self, due: Micros) -> float:
        return (due - self._gate.clock.now()) / SECOND

    async def _do(self, verb: Verb[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb as the system."""
        return await self._gate(as_system(), verb, *args, **kwargs)

    async def _ask(self, questions: Callable[[Ask], T]) -> T:
        """Run several queries in one transaction, which costs little more than one query."""
        return await self._gate.together(as_system(), questions)

    # ── the tasks ───────────────────────────────────────────────────────────────────────────

    @property
    def busy(self) -> int:
        return len(self._tasks)

    def _begin(self, held: Held, what: W, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._held[held], self._tasks[held] = what, task
        self._unended.add(task)
        task.add_done_callback(self._unended.discard)
        task.add_done_callback(lambda _: self._release(held))

    def _release(self, held: Held) -> None:
        """Free the place of a task that lost its lease or ended; it may still be cleaning up."""
        if self._tasks.pop(held, None) is not None:
            del self._held[held]
            self._woken.set()

    def _cancel(self, held: Held) -> None:
        """Cancel a task once; a second cancellation would interrupt its cleanup."""
        task = self._tasks.get(held)
        if task is not None and not task.cancelling():
            task.cancel()

    # ── leases ──────────────────────────────────────────────────────────────────────────────

    def _renew(self, lease: Micros, verb: Verb[..., list[Held]]) -> None:
        """Renew the leases of all tasks, and cancel tasks whose lease another worker took."""

        async def renew() -> None:
            if held := list(self._tasks):
                for lost in await self._do(verb, held=held, lease=lease):
                    self._cancel(lost)

        self._every(min(RENEW_SECONDS, lease / SECOND / 3), renew)

    def _watch(
        self,
        lease: Micros,
        others: Callable[[], Awaitable[Mapping[K, Micros]]],
        take_over: Callable[[K, Micros], Awaitable[None]],
    ) -> None:
        """Watch the leases of other workers, and take over those not renewed for too long."""
        silence: Silence[K] = Silence(lease / SECOND, 2 * self._longest)
        seen: int | None = None
        held: Mapping[K, Micros] = {}

        async def watch() -> None:
            nonlocal seen, held
            version = self._gate.version()
            if version is None or version != seen:
                held, seen = await others(), version
            for key in silence.of(held, time.monotonic()):
                with contextlib.suppress(Conflict):  # it was renewed meanwhile
                    await take_over(key, held[key])

        self._every(self._longest, watch)


def _until_next(seconds: float) -> float:
    """Return at most so many seconds, rounded to a common grid: all loops of a process then wake at
    the same moments, and an idle processor is woken once for all of them."""
    return max(seconds - time.monotonic() % seconds, seconds / 50)


class Silence(Generic[K]):
    """Finds leases that have not been renewed for too long, whose worker is gone.

    The times in leases come from other machines and from clocks that can be set, so only their
    changes count.
    """

    def __init__(self, seconds: float, longest_gap: float = math.inf) -> None:
        """Between two looks, at most `longest_gap` counts: a renewal may be later because the
        database was away, and so was the look."""
        self._seconds = seconds
        self._longest_gap = longest_gap
        self._looked: float | None = None
        #: The time that counts, by an own clock.
        self._watched = 0.0
        #: The last seen end of each lease, and the own time since which it has been unchanged.
        self._seen: dict[K, tuple[Micros, float]] = {}

    def of(self, leases: Mapping[K, Micros], now: float) -> list[K]:
        """Return the leases that have not changed for the given time, by this process's clock."""
        if self._looked is not None:
            self._watched += min(now - self._looked, self._longest_gap)
        self._looked, now = now, self._watched
        before, self._seen = self._seen, {}
        for held, until in leases.items():
            seen = before.get(held)
            self._seen[held] = seen if seen is not None and seen[0] == until else (until, now)
        return [held for held, (_, since) in self._seen.items() if now - since >= self._seconds]
