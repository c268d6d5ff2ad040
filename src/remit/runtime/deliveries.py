"""Base loop of delivery queues: messages, posts, notices, intake, errands, checks; a few at once.

Claims of a killed process are taken over at the next start, if no other process runs. Beside other
processes, a `watched` lease is taken over when it has not changed for too long by a monotonic
clock; any other when it has expired.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from remit.channels.contract import Undelivered
from remit.clock import SECOND, Micros
from remit.errors import RemitError
from remit.runtime import claims
from remit.runtime.claims import Claims
from remit.runtime.deadlines import uninterrupted
from remit.services.command import Ask, Gate
from remit.services.queues import BACKOFF, DELIVERY_LEASE, MAY_HAVE_IT, Held
from remit.services.verbs import Verb

log = logging.getLogger(__name__)
#: Rows by their keys, each with its sender.
Waiting = Sequence[tuple[str, object]]


class Verbs(claims.Verbs, Protocol):
    ready: Verb[..., Any]
    expired: Verb[..., Any]
    under_way: Verb[..., Any]
    take_over: Verb[..., Any]
    delivered: Verb[..., Any]
    failed: Verb[..., Any]


class Deliveries(Claims[object, tuple[Sequence[Held], Waiting]]):
    """A loop that delivers the rows of a queue."""

    #: Most deliveries of one sender at once, so that a slow receiver does not delay others.
    at_once_each: int | None = None
    #: The verb by which a process that is stopped gives back a row that it has begun.
    put_back: ClassVar[Verb[..., Any] | None] = None

    def __init__(
        self,
        gate: Gate,
        verbs: Verbs,
        noun: str,
        *,
        at_once: int,
        shortest: float,
        name: str = "local",
        lease: Micros = DELIVERY_LEASE,
        backoff: tuple[Micros, ...] = BACKOFF,
    ) -> None:
        title = f"the loop of {noun}s"
        super().__init__(gate, verbs, noun, title, shortest=shortest, name=name, lease=lease)
        self._verbs = verbs
        self._at_once = at_once
        self._backoff = backoff

    def _ready(self, ask: Ask) -> Waiting:
        """Query the deliveries that are ready, each with its sender."""
        waiting: Waiting = ask(self._verbs.ready)
        return waiting

    @abstractmethod
    async def _attempt(self, claimed: Any) -> dict[str, Any] | None:
        """Do the work of a claimed row; raises `Undelivered`. Returns the arguments for the verb
        `delivered`, or None if the attempt has ended the row itself."""

    async def recover(self) -> None:
        """Take over all deliveries under way, at a start without other processes."""
        await self._take_over(await self._do(self._verbs.under_way), alone=True)

    async def _take_over(self, silent: Sequence[Held], *, alone: bool = False) -> None:
        """Requeue deliveries whose holder is gone."""
        for held in silent:
            if held not in self._tasks:  # else it runs here, and only its lease expired
                await self._say(self._verbs.take_over, held, alone=alone)

    async def _take_over_from(self, held: Held, until: Micros) -> None:
        await self._say(self._verbs.take_over, held, until=until)

    def _found(self, ask: Ask) -> tuple[Sequence[Held], Waiting]:
        silent = () if self.watched else ask(self._verbs.expired)
        return silent, self._ready(ask) if self.busy < self._at_once else ()

    async def _take(self, rows: tuple[Sequence[Held], Waiting]) -> int:
        silent, ready = rows
        if silent:
            await self._take_over(silent)
            ready = await self._ask(self._ready)
        begun = 0
        for item, sender in ready:
            of_sender = [*self._held.values()].count(sender)
            if self.busy < self._at_once and of_sender < (self.at_once_each or self._at_once):
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
            log.exception("the attempt at the %s %s failed", self._noun, held[0])
            await self._fail(held, Undelivered(f"it failed ({type(error).__name__})"))
        else:
            if kept is not None:
                await uninterrupted(self._say(self._verbs.delivered, held, **kept))

    async def _fail(self, held: Held, error: Undelivered) -> None:
        why = f"{error.sentence}; {MAY_HAVE_IT}" if error.unsure else error.sentence
        more = {"why": why, "for_good": error.for_good, "backoff": self._backoff}
        if error.retry_after is not None:
            more["retry_after"] = round(error.retry_after * SECOND)
        await uninterrupted(self._say(self._verbs.failed, held, **more))
