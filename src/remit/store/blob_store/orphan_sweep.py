"""Garbage collection of blobs that no row names.

A writer may store the very content that a sweep is about to remove, and there is no lock between
them. So an orphan is first moved to the trash, where readers still find it, and a later sweep
checks for a row once more before it deletes. That is safe as long as a writer commits its row
within `min_age` of its put.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import is_id

#: Key of a blob: the id of its file and the SHA-256 of its content.
Pair = tuple[str, str]
#: Returns those of the given pairs that a row names.
Referenced = Callable[[Sequence[Pair]], set[Pair]]

BATCH = 500

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SweepReport:
    trashed: int
    """Orphans moved to the trash, also those that came back at once."""
    restored: int
    deleted: int
    temporaries: int


def is_pair(file_id: str, sha256: str) -> bool:
    return is_id(file_id) and _SHA256.fullmatch(sha256) is not None


def check_pair(file_id: str, sha256: str) -> Pair:
    """Return a validated pair; rejects values that would lead to another path or key."""
    if not is_id(file_id):
        raise BadInput(f"{file_id[:60]!r} is not the id of a file.")
    if not _SHA256.fullmatch(sha256):
        raise BadInput(f"{sha256[:80]!r} is not a SHA-256 in hex.")
    return file_id, sha256


class Places(Protocol):
    """The operations of a sweep on the two places of a blob, its own and the trash."""

    def old(self, trash: bool, before: Micros) -> Iterator[Pair]:
        """Blobs last stored, or trash last trashed, before that time."""
        ...

    def move(self, pair: Pair, to_trash: bool) -> bool:
        """Move a blob and set its age to zero; False when it was gone."""
        ...

    def delete(self, pair: Pair) -> bool:
        """Delete a blob from the trash; False when it was gone."""
        ...


def discard_pair(places: Places, pair: Pair) -> None:
    """Trash and delete at once a blob that no row will ever name."""
    if places.move(pair, to_trash=True):
        places.delete(pair)


def sweep_places(places: Places, referenced: Referenced, before: Micros) -> tuple[int, int, int]:
    """Empty the trash, then trash orphans: in this order no blob passes both phases in one sweep.

    Returns how many blobs were trashed, restored and deleted."""
    trashed = restored = deleted = 0
    for batch in _batches(places.old(True, before)):
        kept = referenced(batch)
        restored += sum(places.move(pair, False) for pair in batch if pair in kept)
        deleted += sum(places.delete(pair) for pair in batch if pair not in kept)
    for batch in _batches(places.old(False, before)):
        kept = referenced(batch)
        moved = [pair for pair in batch if pair not in kept and places.move(pair, True)]
        trashed += len(moved)
        if moved:
            # A row may have appeared during the move.
            kept = referenced(moved)
            restored += sum(places.move(pair, False) for pair in moved if pair in kept)
    return trashed, restored, deleted


def remove_old_files(folder: str, before: Micros) -> int:
    """Remove temporaries that a crash left behind."""
    removed = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_old(entry, before):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)
                    removed += 1
    return removed


def is_old(entry: os.DirEntry[str], before: Micros) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns <= before * 1000
    except FileNotFoundError:
        return False


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while batch := list(islice(iterator, BATCH)):
        yield batch
