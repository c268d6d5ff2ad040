"""The whole difference of a change: stored with its proposal, shown to whoever approves a merge.

The diff of a review (`diff`) is bounded in each part. Here all of it is kept as it stands, or else
the files with their counts alone: nothing is left out unseen.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from remit.model.connections.diff import (
    Entry,
    counts,
    entries_of,
    hunk_begins,
    hunk_lines,
    mode_note,
)

#: Most bytes of a difference that is kept.
LARGEST: Final = 256 * 1024
#: Before a line that stands in no file; other lines begin with `+`, `-` or a blank.
LEFT_OUT: Final = "…"
_NO_END: Final = f"{LEFT_OUT} no newline at the end of the file"


@dataclass(frozen=True)
class FileDifference:
    """The difference of one file."""

    path: str
    #: Its path before; another one if it was renamed or copied.
    was: str
    #: A word of git, such as `A` for an added file.
    status: str
    #: A new kind of the file, such as a program or a link.
    note: str = ""
    #: Numbers of lines; None for a content that is no text.
    added: int | None = 0
    removed: int | None = 0
    #: Its lines, each with a mark; None where the difference is too large.
    lines: Sequence[str] | None = ()


def document(listing: bytes, patch: bytes, *, cut: bool) -> bytes:
    """Return the document of a difference. `listing` is the output of `git diff --raw --numstat -z`
    and `patch` that of `git diff`, in the same order; `cut` if the patch is not whole."""
    fields = listing.decode(errors="replace").split("\0")
    entries, at = entries_of(fields)
    numbers = counts(fields, at)
    # The end of a listing that is cut has the numbers.
    files = [_file(entry, *numbers[entry.new]) for entry in entries if entry.new in numbers]
    whole = not cut and len(patch) <= LARGEST
    lines = _lines(patch, len(files)) if whole else [None] * len(files)
    files = [replace(file, lines=own) for file, own in zip(files, lines, strict=True)]
    return json.dumps([asdict(file) for file in files], ensure_ascii=False).encode()


def read(content: bytes) -> list[FileDifference]:
    """Read a document of `document`."""
    return [FileDifference(**file) for file in json.loads(content)]


def _file(entry: Entry, added: int | None, removed: int | None) -> FileDifference:
    note = mode_note(entry.old_mode, entry.new_mode)
    return FileDifference(entry.new, entry.old, entry.status, note, added, removed)


def _lines(patch: bytes, files: int) -> list[list[str]]:
    """Return the lines of each file of a patch. Bytes that are no UTF-8 are spelled out, so that
    different ones look different."""
    by_file: list[list[str]] = [[] for _ in range(files)]
    at = -1
    lines = iter(patch.decode(errors="backslashreplace").split("\n"))
    for line in lines:
        if line.startswith("diff --git "):
            at += 1
        elif (begun := hunk_begins(line)) is not None and 0 <= at < files:
            by_file[at] += [f"{LEFT_OUT} from line {begun[3]}", *_marked(hunk_lines(begun, lines))]
        elif line.startswith("\\") and 0 <= at < files and by_file[at]:
            by_file[at].append(_NO_END)
    return by_file


def _marked(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield _NO_END if line.startswith("\\") else f"{line[:1] or ' '} {line[1:]}"
