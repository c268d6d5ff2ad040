"""A folder to prepare something in, beside where it is to be."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def workplace(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder of one's own that goes away; those of processes that were killed go first."""
    remove_left_over(parent, prefix)
    with tempfile.TemporaryDirectory(dir=parent, prefix=prefix) as made, _locked(Path(made)):
        yield Path(made)


def remove_left_over(parent: Path, prefix: str) -> None:
    """The lock of a workplace is held as long as its process lives."""
    for left in parent.glob(f"{prefix}*"):
        with _locked(left) as gone:
            if gone:
                shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(held)
