"""Carries messages outside, a few at once: the loop under channels and under notices.

What a process that was killed had claimed is taken over at the next start, if that is alone; beside
others when its lease stayed as it was for too long by a clock that nobody can set, or, of what is
claimed for longer than any attempt takes and not renewed, when its lease is over.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from remit.channels.contract import Undelivered
from remit.clock import SECOND, Micros
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
    expired: Verb[..., Any]
    under_way: Verb[..., Any]
    take_over: Verb[..., Any]
    delivered: Verb[..., Any]
    failed: Verb[..., Any]


class Deliveries(Claims[object, tuple[Sequence[Held], Waiting]]):
    """Delivers."""

    #: Of one sender, so that a slow receiver keeps no others waiting.
    at_once_each: int | None = None
    #: Whether leases are renewed, and others' watched; the verbs then have `renew` and `held`.
    renewed = False

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
        if self.renewed:
            watched: Any = verbs
            self._renew(lease, watched.renew)
            self._watch(lease, self._held_elsewhere, self._take_over_from)

    @abstractmethod
    def _ready(self, ask: Ask) -> Waiting:
        """The deliveries that can go out now, each with its sender."""

    @abstractmethod
    async def _attempt(self, claimed: Any) -> dict[str, Any]:
        """Hand it to the outside; raises `Undelivered`. Answers what is kept of it."""

    async def _interrupted(self, held: Held) -> None:
        """The attempt is cut off because the process is stopped."""

    async def recover(self) -> None:
        """Take over everything that is under way: there is no other process."""
        await self._take_over(await self._do(self._verbs.under_way), alone=True)

    async def _take_over(self, silent: Sequence[Held], *, alone: bool = False) -> None:
        """Have tried again what was claimed and not ended before the lease was over."""
        for held in silent:
            if held not in self._tasks:  # by us, and only the clock says that it takes long
                await self._say(self._verbs.take_over, held, alone=alone)

    async def _held_elsewhere(self) -> dict[Held, Micros]:
        watched: Any = self._verbs
        return await self._of_others(watched.held)

    async def _take_over_from(self, held: Held, until: Micros) -> None:
        await self._say(self._verbs.take_over, held, until=until)

    def _found(self, ask: Ask) -> tuple[Sequence[Held], Waiting]:
        silent = () if self.renewed else ask(self._verbs.expired)
        return silent, self._ready(ask) if self.busy < self._at_once else ()

    async def _take(self, found: tuple[Sequence[Held], Waiting]) -> int:
        silent, ready = found
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
            await uninterrupted(self._interrupted(held))
            raise
        except Undelivered as error:
            why = f"{error.sentence}; {MAY_HAVE_IT}" if error.unsure else error.sentence
            more = {"why": why, "for_good": error.for_good, "backoff": self._backoff}
            if error.retry_after is not None:
                more["retry_after"] = round(error.retry_after * SECOND)
            await uninterrupted(self._say(self._verbs.failed, held, **more))
        else:
            await uninterrupted(self._say(self._verbs.delivered, held, **kept))
