"""Diffs of changes, computed by git from the mirror of the repository."""

from pathlib import Path
from typing import Any

from remit.errors import RemitError
from remit.model.connections import whole_diff
from remit.model.connections.change import Change
from remit.model.connections.diff import Diff, files_of, order, read
from remit.runtime.repos.cache import Repos
from remit.runtime.repos.mirrors import Mirror
from remit.services.changes import reviews
from remit.services.command import Answer, Gate
from remit.services.identity import Caller

#: Most bytes that are read from git; a larger diff is shown in part.
MOST_LISTED = 4 << 20
MOST_PATCH = 4 << 20
SECONDS = 30.0
#: Attributes come from an empty tree, so that no file of the repository can hide itself in a diff.
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_PLAINLY = ("-c", f"attr.tree={_EMPTY_TREE}", "-c", "diff.renameLimit=400")
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--full-index")
#: The order of files is read from standard input.
_ORDERED = ("-O/dev/stdin",)


class _Enough(Exception):
    """Raised when the output exceeds its limit."""


async def between(mirror: Mirror, base: str, head: str) -> Diff:
    """Return the difference between two commits of the mirror."""
    listed, patch, cut = await _printed(mirror, base, head, MOST_PATCH)
    return read(base, head, files_of(listed), patch, cut=cut)


async def whole(mirror: Mirror, base: str, head: str, at: Path) -> bytes:
    """Return the document of the whole difference between two commits; they are in the repository
    at a place that reads from the mirror."""
    listed, patch, cut = await _printed(mirror, base, head, whole_diff.LARGEST, at)
    return whole_diff.document(listed, patch, cut=cut)


async def _printed(
    mirror: Mirror, base: str, head: str, most: int, at: Path | None = None
) -> tuple[bytes, bytes, bool]:
    """Return git's list of files, the lines of at most so many bytes, and whether there is more."""
    names = ("--raw", "--numstat", "-z", "--no-abbrev")
    listed, _ = await _some(mirror, MOST_LISTED, *names, base, head, at=at)
    # Instructions and configuration come first, so that no number of other files hides them.
    of_files: Any = {"stdin": order(listed), "at": at}
    listed, more = await _some(mirror, MOST_LISTED, *_ORDERED, *names, base, head, **of_files)
    lines = (*_ORDERED, "--unified=3", "--src-prefix=a/", "--dst-prefix=b/")
    patch, cut = await _some(mirror, most, *lines, base, head, **of_files)
    if more:  # the last entry is incomplete
        listed = listed[: listed.rfind(b"\0:") + 1]
    return listed, patch, cut or more


async def _some(
    mirror: Mirror, most: int, *arguments: str, stdin: bytes = b"", at: Path | None = None
) -> tuple[bytes, bool]:
    printed = bytearray()

    def take(piece: bytes) -> None:
        printed.extend(piece[: most + 1 - len(printed)])
        if len(printed) > most:
            raise _Enough

    try:
        await mirror.look(
            *(*_PLAINLY, *_DIFF, *arguments, "--"),
            at=at,
            stdin=stdin,
            take=take,
            seconds=SECONDS,
        )
    except _Enough:
        return bytes(printed[:most]), True
    return bytes(printed), False


class Reviews:
    """Diffs of changes for reviews."""

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
            return await between(mirror, change.base_commit, change.head_commit)
