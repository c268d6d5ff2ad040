"""Errands at remotes: the loop that the publisher and the merger share, and the publisher."""

import json
from abc import abstractmethod
from typing import Any, ClassVar

from remit.channels.contract import Undelivered
from remit.forges.api import ForgeFailed
from remit.model.connections.change import Change
from remit.model.connections.repo import Repo
from remit.runtime.claims import Deliveries, Waiting
from remit.runtime.repos import git
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.forges import ensure_request, undelivered
from remit.services import shapes
from remit.services.changes import errands, requests
from remit.services.command import Ask, Gate
from remit.services.verbs import Verb


class Errands(Deliveries):
    """Does errands, one at a time in each repository."""

    verbs, noun = errands, "errand"
    put_back = errands.put_back
    lease = errands.LEASE
    backoff = errands.BACKOFF
    shortest = 0.1
    at_once_each = 1
    # Not renewed, because the lease is longer than an errand may take.
    renewed = watched = False
    #: The query for errands that are ready, each with its repository.
    ready: ClassVar[Verb[..., Any]]

    def __init__(self, gate: Gate, repos: Repos, **more: Any) -> None:
        super().__init__(gate, **more)
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

    async def _record(
        self, verb: Verb[..., Any], claimed: shapes.ClaimedErrandShape, **more: Any
    ) -> None:
        await self._do(verb, errand=claimed["errand"], epoch=claimed["epoch"], **more)


class Publisher(Errands):
    """Pushes each proposal to a branch of its own at the remote, and opens or updates its request
    at the forge.

    Each step first reads the present state, so that an interrupted errand can be repeated: a branch
    that is at the proposed commit is not pushed, and one that another person moved is left alone.
    """

    at_once = 4
    ready = errands.ready

    async def _errand(self, claimed: shapes.ClaimedErrandShape) -> None:
        repo, change = claimed["repo"], claimed["change"]
        if repo.removed_at is not None:
            raise Undelivered("the repository was removed", for_good=True)
        if change.awaits_look(repo.push):
            return  # the look queues another errand
        await self._publish(claimed, repo, change)
        if repo.forge is not None:
            forge, _ = await self._repos.forges.opened(repo)
            request = await ensure_request(forge, change, claimed["identity"])
            about = {"number": request.number, "url": request.url}
            await self._record(requests.opened, claimed, **about)

    async def _publish(
        self, claimed: shapes.ClaimedErrandShape, repo: Repo, change: Change
    ) -> None:
        head, branch = change.head_commit, change.remote_branch
        place = repo.pushed_to
        async with (
            self._repos.holding(repo, change, claimed["bundle"]) as mirror,
            self._repos.opened(place) as credentials,
        ):
            there = await mirror.remote_commit(credentials, branch, place.url)
            if there != head:
                pushed = json.loads(claimed["details"]).get("pushed", [])
                if there is not None and there not in (change.published_commit, *pushed):
                    sentence = f"somebody else moved {branch} at the remote"
                    raise Undelivered(sentence, for_good=True)
                await self._record(errands.pushing, claimed, head=head)
                await mirror.move_branch(credentials, head, branch, there or "", place.url)
        await self._record(errands.published, claimed, head=head)
