"""Skills, commands and agents in a repository, read from its mirror for a person to lend."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from remit.errors import BadInput, NotFound, TooLarge
from remit.model.connections.change import LONGEST_PATH
from remit.model.connections.lent_plugin import LARGEST_PLUGIN, MOST_FILES, arranged
from remit.runtime.repos.clones import resolve
from remit.runtime.repos.mirrors import Mirror

_LONGEST_LIST = 16 << 20
_FILES = (b"100644", b"100755")


@dataclass(frozen=True)
class Found:
    """Files of a commit, arranged as a plugin."""

    commit: str
    files: dict[str, bytes]
    left_out: list[str]


async def read(mirror: Mirror, ref: str | None, folder: str) -> Found:
    """Read what can be lent of a folder of the repository, links and submodules left out."""
    at = _folder(folder)
    commit = (await resolve(mirror, ref)).commit
    blobs = await _blobs(mirror, commit, at)
    if not blobs:
        raise NotFound(
            f"{mirror.repo.name} has no files at {at or '/'}.", "Check --path and --ref."
        )
    name = PurePosixPath(at).name or mirror.repo.name
    chosen, left_out = arranged(blobs, name)
    if len(chosen) > MOST_FILES or sum(blobs[path][1] for path in chosen.values()) > LARGEST_PLUGIN:
        raise TooLarge(
            f"A plugin has at most {MOST_FILES} files and {LARGEST_PLUGIN >> 10} KiB.",
            "Lend a folder in it.",
        )
    files = {
        path: await mirror.look("cat-file", "blob", blobs[source][0])
        for path, source in chosen.items()
    }
    return Found(commit, files, left_out)


async def _blobs(mirror: Mirror, commit: str, at: str) -> dict[str, tuple[str, int]]:
    """Return the ids and sizes of the files below a folder of a commit, by path."""
    listing = bytearray()

    def take(piece: bytes) -> None:
        listing.extend(piece)
        if len(listing) > _LONGEST_LIST:
            raise TooLarge("The repository has too many files.", "Name a folder with --path.")

    options = ("ls-tree", "-r", "-z", "--long", "--full-tree", "--end-of-options", commit)
    await mirror.look(*options, *([at] if at else ()), take=take)
    blobs_by_path: dict[str, tuple[str, int]] = {}
    for entry in bytes(listing).split(b"\0"):
        about, _, raw = entry.partition(b"\t")
        fields: list[Any] = about.split()
        path = raw.decode(errors="surrogateescape").removeprefix(f"{at}/" if at else "")
        if len(fields) == 4 and fields[0] in _FILES and path.isprintable():
            blobs_by_path[path] = (fields[2].decode(), int(fields[3]))
    return blobs_by_path


def _folder(text: str) -> str:
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts or len(text) > LONGEST_PATH or text.startswith((":", "-")):
        raise BadInput(f"{text[:100]!r} is not a folder of a repository.", "Give it like .claude.")
    return "/".join(parts)
