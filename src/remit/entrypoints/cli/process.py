"""The instance's process as seen from outside: who holds the home folder's lock."""

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from remit.settings import Settings

_STEP_SECONDS = 0.02
_OPEN_FILES = Path("/proc/self/fd")


class Holder(NamedTuple):
    """Process that holds the lock, and its address; empty if the lock is free."""

    pid: int | None = None
    url: str | None = None
    #: Its addresses for others, the one for links first.
    outside: tuple[str, ...] = ()
    #: Repairs made at its start, one sentence each.
    restored: tuple[str, ...] = ()


def lock_file(settings: Settings) -> Path:
    return settings.run_folder / "instance.lock"


def holder(settings: Settings) -> Holder:
    """Process that the lock file names, provided that it really has the lock."""
    try:
        lines = lock_file(settings).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return Holder()
    if not lines or not (lines[0].isascii() and lines[0].isdigit()):
        return Holder()
    pid = int(lines[0])
    # Read /proc instead of trying the lock, which could make a starting instance fail.
    has_it = _has_open(pid, lock_file(settings)) if _OPEN_FILES.exists() else is_locked(settings)
    if not has_it:
        return Holder()
    urls = lines[1].split() if len(lines) > 1 else []
    return Holder(pid, urls[0] if urls else None, tuple(urls[1:]), tuple(lines[2:]))


def is_locked(settings: Settings) -> bool:
    """Return whether the lock is held, even by a process that is not in the file yet."""
    try:
        with lock_file(settings).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def terminate(settings: Settings, pid: int, number: signal.Signals = signal.SIGTERM) -> bool:
    """Signal the lock's holder to stop; a process that has reused its id is not signalled."""
    if not hasattr(os, "pidfd_open"):
        if holder(settings).pid != pid:
            return False
        os.kill(pid, number)
        return True
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if holder(settings).pid != pid:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def wait_until_stopped(settings: Settings, pid: int, seconds: float) -> bool:
    """Wait until the process releases the lock; return False if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while holder(settings).pid == pid:
        if time.monotonic() >= end:
            return False
        time.sleep(_STEP_SECONDS)
    return True


def _has_open(pid: int, file: Path) -> bool:
    try:
        wanted = file.stat()
        return any(_is_same(entry, wanted) for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _is_same(descriptor: Path, wanted: os.stat_result) -> bool:
    try:
        status = descriptor.stat()
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == (wanted.st_dev, wanted.st_ino)
