"""Runner of checks on proposals: in a fresh clone and a sandbox, with limits of time and size.

The clone is made from the mirror, in a folder that no agent can reach. Paths that a check protects
are restored from the base before any code of the author runs. The sandbox has no secrets, and no
network unless the board allowed it; the clone is deleted afterwards.
"""

from pathlib import Path
from typing import Any

from remit.channels.contract import Undelivered
from remit.model.connections.change import Change
from remit.model.connections.check import RepoCheck
from remit.model.connections.repo import Repo
from remit.runtime.claims import Deliveries
from remit.runtime.repos import git
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.clones import Found, copy, survey
from remit.runtime.repos.mirrors import CHECK_SECONDS, Mirror
from remit.runtime.runs import conditions, held_commands
from remit.runtime.sandbox.mounts import View
from remit.services import shapes
from remit.services.changes import checking
from remit.services.command import Gate
from remit.services.connections.folders import Shown

MOST_MEMORY = 4 << 30
#: Most disk space of a check, including its clone.
MOST_DISK = 16 << 30
_ENV = {"CI": "true", "REMIT_CHECK": "true", "LC_ALL": "C.UTF-8"}


class Checker(Deliveries):
    verbs, noun = checking, "check"
    put_back = checking.put_back
    lease = checking.LEASE
    watched = False
    shortest = 0.1
    at_once = 2

    def __init__(self, gate: Gate, repos: Repos, home: Path, **more: Any) -> None:
        super().__init__(gate, **more)
        self._repos = repos
        self._home = home

    async def _attempt(self, claimed: shapes.ClaimedCheckShape) -> dict[str, Any]:
        repo, change = claimed["repo"], claimed["change"]
        if repo.removed_at is not None:
            raise Undelivered("the repository was removed", for_good=True)
        try:
            shown = Shown(claimed["tools"])
            around = await conditions.prepare(self._home, self._repos, shown)
            async with self._repos.staged() as stage:
                (stage / "home").mkdir(mode=0o700, parents=True)
                wanted = claimed["wanted"]
                await self._laid_out(stage, repo, change, claimed["bundle"], wanted)
                ended = await held_commands.run(
                    ["/bin/sh", "-c", wanted.command],
                    folder=stage / "work",
                    home=stage / "home",
                    env=around.environment(_ENV),
                    seconds=wanted.seconds,
                    view=View(read=around.read, network=wanted.network),
                    hidden=[self._home],
                    memory=MOST_MEMORY,
                    disk=MOST_DISK,
                )
        except git.GitFailed as error:
            raise Undelivered(error.said) from error
        why = f"wrote more than {MOST_DISK >> 20} MiB, or hid how much" if ended.too_much else None
        return {"code": ended.code, "log": ended.heard.text, "cut": ended.heard.cut, "why": why}

    async def _laid_out(
        self, stage: Path, repo: Repo, change: Change, bundle: shapes.BundleShape, wanted: RepoCheck
    ) -> None:
        async with self._repos.holding(repo, change, bundle) as mirror:
            await survey(mirror, change.head_commit)
            work = stage / "work"
            await copy(mirror, Found(change.branch, change.head_commit, branch=False), work)
            await protect(mirror, work, change, wanted)


async def protect(mirror: Mirror, work: Path, change: Change, wanted: RepoCheck) -> None:
    """Restore the paths that a check protects to their state at the base; remove added ones."""
    base = await _paths(mirror, change.base_commit)
    head = await _paths(mirror, change.head_commit)
    kept = [path for path in base if wanted.protects(path, base)]
    added = [path for path in head - base if wanted.protects(path, base)]
    listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
    # The author's attributes must not affect how files of the base are written: a script with other
    # line ends is another script.
    plainly = work / ".git" / "info" / "attributes"
    plainly.parent.mkdir(exist_ok=True)
    plainly.write_text("* -text !eol -ident !filter !working-tree-encoding\n")
    for paths, command in (
        (added, ("rm", "--quiet", "--force", *listed)),
        (kept, ("checkout", "--quiet", change.base_commit, *listed)),
    ):
        if paths:
            pathspecs = "".join(f"{path}\0" for path in sorted(paths)).encode(
                errors="surrogateescape"
            )
            literally = ("--literal-pathspecs", *command)
            await mirror.look(*literally, at=work, stdin=pathspecs, seconds=CHECK_SECONDS)
    plainly.unlink()


async def _paths(mirror: Mirror, commit: str) -> frozenset[str]:
    options = ("-r", "-z", "--name-only", "--full-tree", "--end-of-options")
    listing = await mirror.look("ls-tree", *options, commit, seconds=CHECK_SECONDS)
    return frozenset(listing.decode(errors="surrogateescape").split("\0")[:-1])
