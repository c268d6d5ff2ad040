"""The loop of errands at remotes, shared by the publisher and the merger."""

from abc import abstractmethod
from typing import Any, ClassVar

from remit.channels.contract import Undelivered
from remit.forges.api import ForgeFailed
from remit.runtime.deliveries import Deliveries, Waiting
from remit.runtime.repos import git
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.forges import undelivered
from remit.services import shapes
from remit.services.changes import errands
from remit.services.command import Ask, Gate
from remit.services.verbs import Verb

#: Shortest time between two rounds, which batches the many changes that concern no repository.
SHORTEST_SLEEP = 0.1


class Errands(Deliveries):
    """Does errands, one at a time in each repository."""

    at_once_each = 1
    # Not renewed, because the lease is longer than an errand may take.
    renewed = watched = False
    put_back = errands.put_back
    at_once: ClassVar[int]
    #: The query for errands that are ready, each with its repository.
    ready: ClassVar[Verb[..., Any]]

    def __init__(self, gate: Gate, repos: Repos, **more: Any) -> None:
        more = {"lease": errands.LEASE, "backoff": errands.BACKOFF, **more}
        options = {"at_once": self.at_once, "shortest": SHORTEST_SLEEP, **more}
        super().__init__(gate, errands, "errand", **options)
        self._repos = repos

    @abstractmethod
    async def _errand(self, claimed: shapes.ClaimedErrandShape) -> None:
        """Do a claimed errand."""

    def _ready(self, ask: Ask) -> Waiting:
        waiting: Waiting = ask(self.ready)
        return waiting

    async def _attempt(self, claimed: shapes.ClaimedErrandShape) -> dict[str, Any]:
        try:
            await self._errand(claimed)
        except git.GitFailed as error:
            raise Undelivered(error.said) from error
        except ForgeFailed as failed:
            raise undelivered(failed) from failed
        return {}  # the errand has recorded its result itself
