"""Diffs of changes for reviews."""

from remit.errors import RemitError
from remit.model.connections.change import Change
from remit.model.connections.diff import Diff
from remit.runtime.repos import diffs
from remit.runtime.repos.cache import Repos
from remit.services.changes import reviews
from remit.services.command import Answer, Gate
from remit.services.identity import Caller


class Reviews:
    def __init__(self, gate: Gate, repos: Repos) -> None:
        self._gate = gate
        self._repos = repos

    async def shown(self, known: Answer) -> tuple[Diff | None, str]:
        """Return the diff of a change from `reviews.material`, or the reason why there is none."""
        try:
            return await self._diff(known), ""
        except RemitError as error:
            return None, error.sentence

    async def diff(self, caller: Caller, change: str) -> Diff:
        return await self._diff(await self._gate(caller, reviews.material, change=change))

    async def _diff(self, known: Answer) -> Diff:
        change: Change = known["change"]
        async with self._repos.holding(known["repo"], change, known["bundle"]) as mirror:
            return await diffs.between(mirror, change.base_commit, change.head_commit)
