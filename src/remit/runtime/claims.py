"""The loop of work that is claimed: a look, a claim with a lease, a task, and what came of it."""

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
    """The verbs of what is claimed; a module of the services is the implementation. There are also
    `renew` where leases are `renewed`, and `held` and `take_over` where they are `watched`."""

    next_due: Verb[..., Any]
    claim: Verb[..., Any]


class Claims(Loop[W], Generic[W, F]):
    """Works on what it has claimed; `tick` does what can be done now, `start` goes on doing so."""

    #: Whether leases last for as long as the work does.
    renewed: ClassVar[bool] = True
    #: Whether leases of others are taken over that stay as they are for too long.
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
        """`noun` is what the verbs call what is claimed."""
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
        """The rows that there is something to do about now."""

    @abstractmethod
    async def _take(self, found: F) -> int:
        """Claim what can be claimed of it; answers how many that were."""

    @abstractmethod
    async def _work(self, held: Held, claimed: Any) -> None:
        """Do what was claimed, and say what came of it. `claimed` is the answer of the verb."""

    async def tick(self) -> int:
        """Do what can be done now, and wait for it; answers how many tasks that were."""
        begun, _ = await self._dispatch()
        await asyncio.gather(*self._tasks.values())
        return begun

    async def _look(self) -> Micros | None:
        _, due = await self._dispatch()
        return due

    async def _dispatch(self) -> tuple[int, Micros | None]:
        """Claim what can be claimed now; answers how many that were, and when more will be due."""
        found, due = await self._ask(lambda ask: (self._found(ask), ask(self._claiming.next_due)))
        return await self._take(found), due

    async def _claim(self, item: str, about: W) -> bool:
        if self._stopping:
            return False
        asked = {self._noun: item, "worker": self._name, "lease": self._lease}
        claimed = await self._do(self._claiming.claim, **asked)
        if claimed is not None:
            held = (item, claimed["epoch"])
            self._begin(held, about, self._work(held, claimed))
        return claimed is not None

    async def _held_elsewhere(self) -> dict[Held, Micros]:
        found: dict[Held, Micros] = await self._do(self._claiming.held)
        return {one: until for one, until in found.items() if one not in self._tasks}

    async def _take_over_from(self, held: Held, until: Micros) -> None:
        item, epoch = held
        await self._do(self._claiming.take_over, **{self._noun: item}, epoch=epoch, until=until)

    async def _say(self, verb: Verb[..., Any], held: Held, **more: Any) -> None:
        """Write down what came of it; without that, its lease ends and it is claimed again."""
        item, epoch = held
        try:
            await self._do(verb, **{self._noun: item}, epoch=epoch, **more)
        except Conflict:
            pass  # it is over, or somebody took over
        except Exception:
            log.exception("what became of the %s %s could not be kept", self._noun, item)
