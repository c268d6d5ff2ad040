"""Merging of a change: exactly the commits that were approved, exactly once.

A forge merges its request itself, if that still has the approved head. For a plain remote:

    fetch → is it merged already? → make the merge commit → record its id → push if the branch has
    not moved → record the merge

A process that dies on the way has pushed the recorded commit, or has not; the next attempt looks
for it in the branch first. No code of the author runs: no hook, no filter, no merge driver.
"""

import json
from collections.abc import Mapping
from typing import Any

from remit.channels.contract import Undelivered
from remit.errors import Conflict
from remit.forges.api import ForgeFailed
from remit.forges.contract import Forge
from remit.model.connections.change import Change, MergeMethod
from remit.model.connections.commit_identity import CommitIdentity, named
from remit.model.connections.forge import Request, RequestState
from remit.model.connections.repo import Repo
from remit.runtime.repos import git
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.errands import Errands
from remit.runtime.repos.mirrors import Mirror
from remit.runtime.repos.signing import Signer
from remit.services import shapes
from remit.services.changes import reviews
from remit.services.organisation.halts import STOPPED

SECONDS = 120.0
#: Status codes of a forge that refuses a merge: not mergeable, another head, not acceptable.
_NOT_SO = frozenset({405, 406, 409, 422})
#: The error of a git that printed no message: `merge-tree` found conflicts.
_DISAGREE = "it ended with 1"


Claimed = shapes.ClaimedErrandShape
#: The decision: head, base and method; and the commit, once it is about to be pushed.
Pinned = Mapping[str, Any]


class CannotMerge(Exception):
    """The change cannot be merged as it is; a retry would not help."""

    def __init__(self, why: str, *, conflicts: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.conflicts = conflicts


class Merger(Errands):
    """Merges changes, one at a time in each repository."""

    at_once = 2
    ready = reviews.ready

    async def _errand(self, claimed: Claimed) -> None:
        await self.carry_out(claimed, CommitIdentity.of(**claimed["identity"]))

    async def carry_out(self, claimed: Claimed, who: CommitIdentity) -> None:
        """Do a claimed errand; a refusal is recorded, and other errors are raised for a retry."""
        change, repo = claimed["change"], claimed["repo"]
        pinned = json.loads(claimed["details"])
        try:
            if (change.head_commit, change.base_commit) != (pinned["head"], pinned["base"]):
                raise CannotMerge("its author proposed something else meanwhile")
            await self._repos.newest(repo)
            async with self._repos.holding(repo, change, claimed["bundle"]) as mirror:
                if repo.forge is None:
                    commit = await self._merge(claimed, who, pinned, mirror)
                else:
                    commit = await self._merge_there(claimed, who, pinned, mirror)
            if repo.forge is not None and not await has(self._repos, repo, change.target, commit):
                raise Undelivered(f"{change.target} does not have it yet")
        except CannotMerge as refusal:
            why, conflicts = refusal.why, refusal.conflicts
            await self._record(reviews.refused, claimed, why=why, conflicts=conflicts)
            return
        await self._record(reviews.taken_in, claimed, commit=commit)

    async def _merge(
        self, claimed: Claimed, who: CommitIdentity, pinned: Pinned, mirror: Mirror
    ) -> str:
        change = claimed["change"]
        tip = await _tip(mirror, change.target)
        for there in (pinned.get("commit"), change.head_commit):
            if there and await _contains(mirror, tip, there):
                return str(there)
        await _refuse_another_base(mirror, change, tip)
        signer = await self._repos.signer(mirror.repo, who)
        commit = await made(mirror, change, tip, MergeMethod(pinned["method"]), who, signer)
        await self._intend(claimed, commit)
        async with self._repos.opened(mirror.repo) as credentials:
            await mirror.move_branch(credentials, commit, change.target, tip)
        return commit

    async def _intend(self, claimed: Claimed, commit: str) -> None:
        try:
            await self._record(reviews.intend, claimed, commit=commit)
        except Conflict as conflict:
            if conflict.reason == STOPPED:
                raise Undelivered(conflict.sentence, retry_after=0) from conflict
            raise CannotMerge(conflict.sentence) from conflict

    async def _merge_there(
        self, claimed: Claimed, who: CommitIdentity, pinned: Pinned, mirror: Mirror
    ) -> str:
        """Have the forge merge the request; it refuses if the request's head has changed."""
        change = claimed["change"]
        if change.request_number is None:
            raise CannotMerge("it has no request at the forge")
        forge, _ = await self._repos.forges.opened(mirror.repo)
        request = await _request(forge, change)
        if request.state is RequestState.OPEN:
            await _refuse_another_base(mirror, change, await _tip(mirror, change.target))
            await self._intend(claimed, change.head_commit)
            title = f"Merge {change.remote_branch}: {change.title}"
            if pinned["method"] == MergeMethod.SQUASH:
                title = change.title
            message = who.message(change.description, f"Remit-Change: {change.id}")
            try:
                await forge.merge(
                    *(request.number, change.head_commit, MergeMethod(pinned["method"])),
                    *(title, message.removeprefix("Change\n\n")),
                )
            except ForgeFailed as failed:
                request = await _request(forge, change)
                if request.state is RequestState.OPEN:
                    if failed.status not in _NOT_SO:
                        raise
                    raise CannotMerge(
                        failed.sentence, conflicts=request.mergeable is False
                    ) from failed
            request = await _request(forge, change)
        if request.state is not RequestState.MERGED or request.merged_commit is None:
            raise Undelivered("the forge has not taken it in yet")
        return request.merged_commit


async def _request(forge: Forge, change: Change) -> Request:
    """Return the present request; refuse one that no longer matches the approved change."""
    assert change.request_number is not None
    request = await forge.request(change.request_number)
    assert request is not None, "nothing was known of it"
    if request.state is RequestState.CLOSED:
        raise CannotMerge("its request was closed at the forge")
    about = (request.branch, request.head, request.target)
    if about != (change.remote_branch, change.head_commit, change.target):
        raise CannotMerge("the branch, commit or target of its request is not the reviewed one")
    return request


async def _tip(mirror: Mirror, branch: str) -> str:
    tip = await mirror.commit_of(f"refs/heads/{branch}")
    if tip is None or "\n" in tip:
        raise CannotMerge(f"the repository has no branch {branch} any more")
    return tip


async def has(repos: Repos, repo: Repo, branch: str, commit: str) -> bool:
    """Return whether a branch contains a commit, according to the remote and not to the forge."""
    await repos.newest(repo)
    async with repos.fresh(repo) as mirror:
        return await _contains(mirror, f"refs/heads/{branch}", commit)


async def _contains(mirror: Mirror, tip: str, commit: str) -> bool:
    try:
        await mirror.look("merge-base", "--is-ancestor", commit, tip)
    except git.GitFailed:
        return False  # also if the commit is unknown
    return True


async def _refuse_another_base(mirror: Mirror, change: Change, tip: str) -> None:
    """Refuse a merge whose base is not the one that was reviewed."""
    try:
        bases = await mirror.look("merge-base", "--all", tip, change.head_commit)
    except git.GitFailed:
        bases = b""
    if bases.decode().split() != [change.base_commit]:
        raise CannotMerge(
            f"its merge base with {change.target} is not the one that was reviewed",
            conflicts=True,
        )


async def made(
    mirror: Mirror,
    change: Change,
    tip: str,
    method: MergeMethod,
    who: CommitIdentity,
    signer: Signer | None = None,
) -> str:
    """Make the commit to which the branch is to move."""
    if method is MergeMethod.FAST_FORWARD:
        if tip != change.base_commit:
            raise CannotMerge(f"{change.target} has moved on, so it cannot be fast-forwarded")
        return change.head_commit
    tree = await _tree(mirror, tip, change.head_commit)
    squashed = method is MergeMethod.SQUASH
    parents = ("-p", tip) if squashed else ("-p", tip, "-p", change.head_commit)
    title = change.title if squashed else f"Merge {change.remote_branch}: {change.title}"
    message = who.message(f"{title}\n\n{change.description}", f"Remit-Change: {change.id}")
    name, address = named(who.committer)
    names = (
        *("-c", f"author.name={who.name}", "-c", f"author.email={who.email}"),
        *("-c", f"committer.name={name}", "-c", f"committer.email={address}"),
    )
    unsigned = await mirror.look(
        *(*names, "-c", "commit.gpgSign=false", "commit-tree", *parents, tree),
        stdin=message.encode(errors="replace"),
        seconds=SECONDS,
    )
    commit = unsigned.decode().strip()
    if signer is None:
        return commit
    whole = signer.signed(await mirror.look("cat-file", "commit", commit))
    signed = await mirror.look("hash-object", "-t", "commit", "-w", "--stdin", stdin=whole)
    return signed.decode().strip()


async def _tree(mirror: Mirror, tip: str, head: str) -> str:
    """Return the tree of the merge; refuse it on conflicts."""
    options = ("--write-tree", "--no-messages", "--name-only", "--end-of-options")
    try:
        output = await mirror.look("merge-tree", *options, tip, head, seconds=SECONDS)
    except git.GitFailed as error:
        if error.said != _DISAGREE:
            raise
        raise CannotMerge(
            "it conflicts with newer commits of the branch", conflicts=True
        ) from error
    return output.decode().split("\n", 1)[0].strip()
