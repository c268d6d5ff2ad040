"""Diffs of changes, as git tells them from our own copy of the repository."""

from remit.model.connections.diff import Diff, files_of, read
from remit.runtime.repos.mirrors import Mirror

#: Of what git prints; a change that says more is shown in part.
MOST_LISTED = 4 << 20
MOST_PATCH = 4 << 20
SECONDS = 30.0
#: No file of the repository says how it is shown, or that it is not.
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_PLAINLY = ("-c", f"attr.tree={_EMPTY_TREE}", "-c", "diff.renameLimit=400")
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--full-index")


class _Enough(Exception):
    """There is more than is shown."""


async def between(mirror: Mirror, base: str, head: str) -> Diff:
    """The difference between two commits that our copy has."""
    names = ("--raw", "--numstat", "-z", "--no-abbrev")
    listed, more = await _some(mirror, MOST_LISTED, *names, base, head)
    lines = ("--unified=3", "--src-prefix=a/", "--dst-prefix=b/")
    patch, cut = await _some(mirror, MOST_PATCH, *lines, base, head)
    if more:  # what is listed last is not whole
        listed = listed[: listed.rfind(b"\0:") + 1]
    return read(base, head, files_of(listed), patch, cut=cut or more)


async def _some(mirror: Mirror, most: int, *arguments: str) -> tuple[bytes, bool]:
    printed = bytearray()

    def take(piece: bytes) -> None:
        printed.extend(piece[: most + 1 - len(printed)])
        if len(printed) > most:
            raise _Enough

    try:
        await mirror.look(*_PLAINLY, *_DIFF, *arguments, "--", take=take, seconds=SECONDS)
    except _Enough:
        return bytes(printed[:most]), True
    return bytes(printed), False
