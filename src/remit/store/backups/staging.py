"""Staging folders: temporary folders beside a target, locked while their process lives."""

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
    """Context manager: a locked temporary folder; first removes those of killed processes."""
    with contextlib.ExitStack() as held:
        with _in_turn(parent):  # else another process would remove it before it is locked
            _remove(parent, prefix)
            temporary = tempfile.TemporaryDirectory(dir=parent, prefix=prefix)
            folder = Path(held.enter_context(temporary))
            held.enter_context(_locked(folder))
        yield folder


def remove_left_over(parent: Path, prefix: str) -> None:
    """Remove the workplaces of killed processes: a living process holds the lock of its own."""
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
