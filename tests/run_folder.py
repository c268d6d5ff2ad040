"""The folder of a test run: what its workers share, and what its tests write.

It lies in memory where there is enough, because a sync costs nothing there: tests kill programs,
not machines, so what was written is there whether it was synced or not. REMIT_TEST_FOLDER names
another place, which is kept, to look at what a failed test left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_VARIABLE = "REMIT_TEST_RUN"
_MEMORY = Path("/dev/shm")
_PREFIX = "remit-tests-"
#: A whole run takes less than half of it.
_ENOUGH = 4 << 30


@dataclass(frozen=True)
class RunFolder:
    path: Path
    #: The process that began the run.
    owner: int

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        with locked(self.path / f"{name}.lock"):
            yield

    def remove(self) -> None:
        if "REMIT_TEST_FOLDER" not in os.environ:
            shutil.rmtree(self.path, ignore_errors=True)


def begin(*, on_disk: bool = False) -> RunFolder:
    """Make the folder, for this process and for the workers it starts."""
    in_memory = not on_disk and _has_room()
    place = os.environ.get("REMIT_TEST_FOLDER") or (_MEMORY if in_memory else None)
    if in_memory:
        _remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place))
    folder.chmod(0o711)  # the database server in it is another user
    (folder / "tmp").mkdir()
    os.environ["TMPDIR"] = str(folder / "tmp")
    tempfile.tempdir = None  # found anew, in the folder
    os.environ[_VARIABLE] = f"{os.getpid()}:{folder}"
    return current()


def current() -> RunFolder:
    owner, _, folder = os.environ[_VARIABLE].partition(":")
    return RunFolder(Path(folder), int(owner))


def is_under_way() -> bool:
    """Scripts use what tests use, without a run around them."""
    return _VARIABLE in os.environ


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _remove_leftovers() -> None:
    """What runs that were killed left in memory."""
    for folder in _MEMORY.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdecimal() and not Path("/proc", owner).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _has_room() -> bool:
    return _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH
