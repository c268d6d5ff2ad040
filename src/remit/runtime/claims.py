"""The loop of a leased queue: find ready rows, claim one with a lease, work on it in a task, and
record the result."""

import asyncio
import logging
from abc import abstractmethod
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from remit.clock import Micros
from remit.errors import Conflict
from remit.runtime.loop import Loop
from remit.services.command import Ask, Gate
from remit.services.queues import Held
from remit.services.verbs import Verb

W = TypeVar("W")
F = TypeVar("F")
log = logging.getLogger(__name__)


class Verbs(Protocol):
    """The verbs of a queue, implemented by a module of services. It has also `renew` where leases
    are `renewed`, and `held` and `take_over` where they are `watched`."""

    next_due: Verb[..., Any]
    claim: Verb[..., Any]


class Claims(Loop[W], Generic[W, F]):
    """Works on claimed rows: `tick` does what can be done now, `start` repeats that."""

    #: Whether leases are renewed for as long as the work lasts.
    renewed: ClassVar[bool] = True
    #: Whether leases of other workers are taken over that were not renewed for too long.
    watched: ClassVar[bool] = True

    def __init__(
        self,
        gate: Gate,
        verbs: Verbs,
        noun: str,
        title: str,
        *,
        shortest: float,
        name: str,
        lease: Micros,
    ) -> None:
        """`noun` is the name of the verbs' parameter for the row."""
        super().__init__(gate, title, shortest=shortest)
        self._noun = noun
        self._name = name
        self._lease = lease
        leased: Any = verbs
        self._claiming = leased
        if self.renewed:
            self._renew(lease, self._claiming.renew)
        if self.watched:
            self._watch(lease, self._held_elsewhere, self._take_over_from)

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
        rows, due = await self._ask(lambda ask: (self._found(ask), ask(self._claiming.next_due)))
        return await self._take(rows), due

    async def _claim(self, item: str, about: W) -> bool:
        if self._stopping:
            return False
        arguments = {self._noun: item, "worker": self._name, "lease": self._lease}
        claimed = await self._do(self._claiming.claim, **arguments)
        if claimed is not None:
            held = (item, claimed["epoch"])
            self._begin(held, about, self._work(held, claimed))
        return claimed is not None

    async def _held_elsewhere(self) -> dict[Held, Micros]:
        leases: dict[Held, Micros] = await self._do(self._claiming.held)
        return {held: until for held, until in leases.items() if held not in self._tasks}

    async def _take_over_from(self, held: Held, until: Micros) -> None:
        item, epoch = held
        await self._do(self._claiming.take_over, **{self._noun: item}, epoch=epoch, until=until)

    async def _say(self, verb: Verb[..., Any], held: Held, **more: Any) -> None:
        """Record the result of a claim; if that fails, the lease expires and the row is retried."""
        item, epoch = held
        try:
            await self._do(verb, **{self._noun: item}, epoch=epoch, **more)
        except Conflict:
            pass  # it has ended, or another worker took it over
        except Exception:
            log.exception("what became of the %s %s could not be kept", self._noun, item)
