"""Publisher: pushes each proposal to a branch of its own at the remote, and opens or updates its
request at the forge.

Each step first reads the present state, so that an interrupted errand can be repeated: a branch
that is at the proposed commit is not pushed, and one that another person moved is left alone.
"""

import json

from remit.channels.contract import Undelivered
from remit.model.connections.change import Change
from remit.model.connections.repo import Repo
from remit.runtime.repos.errands import Errands
from remit.runtime.repos.forges import ensure_request
from remit.services import shapes
from remit.services.changes import errands, requests
from remit.services.command import Arguments

AT_ONCE = 4


class Publisher(Errands):
    at_once = AT_ONCE
    ready = errands.ready

    async def _errand(self, claimed: shapes.ClaimedErrandShape) -> None:
        repo = claimed["repo"]
        if repo.removed_at is not None:
            raise Undelivered("the repository was removed", for_good=True)
        await self._publish(claimed, repo, claimed["change"])
        if repo.forge is not None:
            await self._request(claimed, repo, claimed["change"])

    async def _publish(
        self, claimed: shapes.ClaimedErrandShape, repo: Repo, change: Change
    ) -> None:
        held: Arguments = {"errand": claimed["errand"], "epoch": claimed["epoch"]}
        async with (
            self._repos.holding(repo, change, claimed["bundle"]) as mirror,
            self._repos.opened(repo) as credentials,
        ):
            there = await mirror.remote_commit(credentials, change.remote_branch)
            if there != change.head_commit:
                pushed = json.loads(claimed["details"]).get("pushed", [])
                if there is not None and there not in (change.published_commit, *pushed):
                    raise Undelivered(
                        f"somebody else moved {change.remote_branch} at the remote",
                        for_good=True,
                    )
                await self._do(errands.pushing, **held, head=change.head_commit)
                to = (change.head_commit, change.remote_branch, there or "")
                await mirror.move_branch(credentials, *to)
        await self._do(errands.published, **held, head=change.head_commit)

    async def _request(
        self, claimed: shapes.ClaimedErrandShape, repo: Repo, change: Change
    ) -> None:
        """Ensure one request for the change at the forge, however often this is repeated."""
        forge, _ = await self._repos.forges.opened(repo)
        request = await ensure_request(forge, change, claimed["identity"])
        held: Arguments = {"errand": claimed["errand"], "epoch": claimed["epoch"]}
        await self._do(requests.opened, **held, number=request.number, url=request.url)
