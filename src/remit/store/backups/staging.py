"""A folder to prepare something in, beside where it is to be."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from remit.store.blob_store.blobs import alone


@contextlib.contextmanager
def workplace(parent: Path, prefix: str) -> Iterator[Path]:
    """A folder of one's own that goes away; those of processes that were killed go first."""
    with contextlib.ExitStack() as held:
        with _in_turn(parent):  # or another would take it for left over before it is locked
            _remove(parent, prefix)
            made = tempfile.TemporaryDirectory(dir=parent, prefix=prefix)
            folder = Path(held.enter_context(made))
            held.enter_context(_locked(folder))
        yield folder


def remove_left_over(parent: Path, prefix: str) -> None:
    """The lock of a workplace is held as long as its process lives."""
    if parent.is_dir():
        with _in_turn(parent):
            _remove(parent, prefix)


def _remove(parent: Path, prefix: str) -> None:
    for left in parent.glob(f"{prefix}*"):
        with _locked(left) as gone:
            if gone:
                shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _in_turn(parent: Path) -> Iterator[None]:
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    with alone(held) as free:
        yield free
