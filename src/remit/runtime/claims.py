"""The loops of leased queues: find ready rows, claim one with a lease, work on it in a task, and
record the result.

`Deliveries` are messages, posts, notices, intake, errands and checks, a few at once. Claims of a
killed process are taken over at the next start, if no other process runs. Beside other processes, a
`watched` lease is taken over when it has not changed for too long by a monotonic clock; any other
when it has expired.

In `Polling`, one process holds the lease of each polled channel or forge, and renews it for as long
as its task lasts.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from remit.channels.contract import Undelivered
from remit.clock import SECOND, Micros
from remit.errors import Conflict, RemitError
from remit.runtime.deadlines import uninterrupted
from remit.runtime.loop import Loop
from remit.services.command import Ask, Gate
from remit.services.queues import BACKOFF, DELIVERY_LEASE, MAY_HAVE_IT, Held
from remit.services.verbs import Verb

W = TypeVar("W")
F = TypeVar("F")
log = logging.getLogger(__name__)


class Claims(Loop[W], Generic[W, F]):
    """Works on claimed rows: `tick` does what can be done now, `start` repeats that."""

    #: Whether leases are renewed for as long as the work lasts.
    renewed: ClassVar[bool] = True
    #: Whether leases of other workers are taken over that were not renewed for too long.
    watched: ClassVar[bool] = True

    #: The verbs of the queue, a module of services: `next_due` and `claim`; also `renew` where
    #: leases are `renewed`, and `held` and `take_over` where they are `watched`.
    verbs: Any
    #: The name of the verbs' parameter for the row.
    noun: str
    #: The subject of the loop, for the log; by default its rows.
    title: str = ""
    #: Shortest time between two rounds, which batches the changes that do not concern the queue.
    shortest: float
    #: How long a claim lasts that is not renewed.
    lease: Micros

    def __init__(self, gate: Gate, *, name: str = "local", lease: Micros | None = None) -> None:
        title = f"the loop of {self.title or f'{self.noun}s'}"
        super().__init__(gate, title, shortest=self.shortest)
        self._name = name
        self.lease = self.lease if lease is None else lease
        if self.renewed:
            self._renew(self.lease, self.verbs.renew)
        if self.watched:
            self._watch(self.lease, self._held_elsewhere, self._take_over_from)

    @abstractmethod
    def _found(self, ask: Ask) -> F:
        """Query the rows that are ready."""

    @abstractmethod
    async def _take(self, rows: F) -> int:
        """Claim as many of the found rows as possible; returns their number."""

    @abstractmethod
    async def _work(self, held: Held, claimed: Any) -> None:
        """Work on a claimed row and record the result; `claimed` is the answer of the verb."""

    async def tick(self) -> int:
        """Start all tasks that are possible now and wait for their end; returns their number."""
        begun, _ = await self._dispatch()
        await asyncio.gather(*self._tasks.values())
        return begun

    async def _look(self) -> Micros | None:
        _, due = await self._dispatch()
        return due

    async def _dispatch(self) -> tuple[int, Micros | None]:
        """Claim the ready rows; returns their number, and when the next row is due."""
        rows, due = await self._ask(lambda ask: (self._found(ask), ask(self.verbs.next_due)))
        return await self._take(rows), due

    async def _claim(self, item: str, about: W) -> bool:
        if self._stopping:
            return False
        arguments = {self.noun: item, "worker": self._name, "lease": self.lease}
        claimed = await self._do(self.verbs.claim, **arguments)
        if claimed is not None:
            held = (item, claimed["epoch"])
            self._begin(held, about, self._work(held, claimed))
        return claimed is not None

    async def _held_elsewhere(self) -> dict[Held, Micros]:
        leases: dict[Held, Micros] = await self._do(self.verbs.held)
        return {held: until for held, until in leases.items() if held not in self._tasks}

    async def _take_over_from(self, held: Held, until: Micros) -> None:
        item, epoch = held
        await self._do(self.verbs.take_over, **{self.noun: item}, epoch=epoch, until=until)

    async def _say(self, verb: Verb[..., Any], held: Held, **more: Any) -> None:
        """Record the result of a claim; if that fails, the lease expires and the row is retried."""
        item, epoch = held
        try:
            await self._do(verb, **{self.noun: item}, epoch=epoch, **more)
        except Conflict:
            pass  # it has ended, or another worker took it over
        except Exception:
            log.exception("what became of the %s %s could not be kept", self.noun, item)


#: Rows by their keys, each with its sender.
Waiting = Sequence[tuple[str, object]]


class Deliveries(Claims[object, tuple[Sequence[Held], Waiting]]):
    """A loop that delivers the rows of a queue."""

    lease = DELIVERY_LEASE
    #: Pauses after failed attempts.
    backoff: tuple[Micros, ...] = BACKOFF
    #: Most deliveries at once.
    at_once: ClassVar[int]
    #: Most deliveries of one sender at once, so that a slow receiver does not delay others.
    at_once_each: int | None = None
    #: The verb by which a process that is stopped gives back a row that it has begun.
    put_back: ClassVar[Verb[..., Any] | None] = None

    def _ready(self, ask: Ask) -> Waiting:
        """Query the deliveries that are ready, each with its sender."""
        waiting: Waiting = ask(self.verbs.ready)
        return waiting

    @abstractmethod
    async def _attempt(self, claimed: Any) -> dict[str, Any] | None:
        """Do the work of a claimed row; raises `Undelivered`. Returns the arguments for the verb
        `delivered`, or None if the attempt has ended the row itself."""

    async def recover(self) -> None:
        """Take over all deliveries under way, at a start without other processes."""
        await self._take_over(await self._do(self.verbs.under_way), alone=True)

    async def _take_over(self, silent: Sequence[Held], *, alone: bool = False) -> None:
        """Requeue deliveries whose holder is gone."""
        for held in silent:
            if held not in self._tasks:  # else it runs here, and only its lease expired
                await self._say(self.verbs.take_over, held, alone=alone)

    async def _take_over_from(self, held: Held, until: Micros) -> None:
        await self._say(self.verbs.take_over, held, until=until)

    def _found(self, ask: Ask) -> tuple[Sequence[Held], Waiting]:
        silent = () if self.watched else ask(self.verbs.expired)
        return silent, self._ready(ask) if self.busy < self.at_once else ()

    async def _take(self, rows: tuple[Sequence[Held], Waiting]) -> int:
        silent, ready = rows
        if silent:
            await self._take_over(silent)
            ready = await self._ask(self._ready)
        begun = 0
        for item, sender in ready:
            of_sender = [*self._held.values()].count(sender)
            if self.busy < self.at_once and of_sender < (self.at_once_each or self.at_once):
                begun += await uninterrupted(self._claim(item, sender))
        return begun

    async def _work(self, held: Held, claimed: Any) -> None:
        try:
            kept = await self._attempt(claimed)
        except asyncio.CancelledError:
            if self.put_back is not None:
                await uninterrupted(self._say(self.put_back, held))
            raise
        except Undelivered as error:
            await self._fail(held, error)
        except RemitError as error:
            await self._fail(held, Undelivered(error.sentence))
        except Exception as error:  # otherwise the row would wait for the end of its lease
            log.exception("the attempt at the %s %s failed", self.noun, held[0])
            await self._fail(held, Undelivered(f"it failed ({type(error).__name__})"))
        else:
            if kept is not None:
                await uninterrupted(self._say(self.verbs.delivered, held, **kept))

    async def _fail(self, held: Held, error: Undelivered) -> None:
        why = f"{error.sentence}; {MAY_HAVE_IT}" if error.unsure else error.sentence
        more = {"why": why, "for_good": error.for_good, "backoff": self.backoff}
        if error.retry_after is not None:
            more["retry_after"] = round(error.retry_after * SECOND)
        await uninterrupted(self._say(self.verbs.failed, held, **more))


class Polling(Claims[str, list[str]]):
    """The polling tasks of this process, each with its lease."""

    shortest = 0.2
    #: Most tasks at once; None for no limit.
    at_once: int | None = None

    async def recover(self) -> None:
        """Free all leases, at a start without other processes."""
        await self._do(self.verbs.free)

    def _found(self, ask: Ask) -> list[str]:
        ready: list[str] = ask(self.verbs.ready)
        return ready

    async def _take(self, rows: list[str]) -> int:
        begun = 0
        for item in rows:
            room = self.at_once is None or self.busy < self.at_once
            if item not in self._held.values() and room:
                begun += await uninterrupted(self._claim(item, item))
        return begun

    async def _ended(self, held: Held, **more: Any) -> None:
        await self._say(self.verbs.ended, held, **more)
