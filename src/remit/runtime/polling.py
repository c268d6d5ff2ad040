"""Polling: one process holds the lease of each polled channel or forge, and renews it for as long
as its task lasts."""

from typing import Any, Protocol

from remit.clock import Micros
from remit.runtime import claims
from remit.runtime.claims import Claims
from remit.runtime.deadlines import uninterrupted
from remit.services.command import Ask, Gate
from remit.services.queues import Held
from remit.services.verbs import Verb

SHORTEST_SLEEP = 0.2


class Verbs(claims.Verbs, Protocol):
    ready: Verb[..., Any]
    ended: Verb[..., Any]
    free: Verb[..., Any]


class Polling(Claims[str, list[str]]):
    """The polling tasks of this process, each with its lease."""

    #: Most tasks at once; None for no limit.
    at_once: int | None = None

    def __init__(
        self, gate: Gate, verbs: Verbs, noun: str, title: str, *, name: str, lease: Micros
    ) -> None:
        super().__init__(gate, verbs, noun, title, shortest=SHORTEST_SLEEP, name=name, lease=lease)
        self._verbs = verbs

    async def recover(self) -> None:
        """Free all leases, at a start without other processes."""
        await self._do(self._verbs.free)

    def _found(self, ask: Ask) -> list[str]:
        ready: list[str] = ask(self._verbs.ready)
        return ready

    async def _take(self, rows: list[str]) -> int:
        begun = 0
        for item in rows:
            room = self.at_once is None or self.busy < self.at_once
            if item not in self._held.values() and room:
                begun += await uninterrupted(self._claim(item, item))
        return begun

    async def _ended(self, held: Held, **more: Any) -> None:
        await self._say(self._verbs.ended, held, **more)
