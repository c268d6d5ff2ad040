"""Disk use of a running program, also where the program tries to hide it.

Folders without permissions for their owner are opened while they are counted. Removed files take
space as long as a process has them open or mapped; of a mapped file, the kernel tells only root the
size, and others the length of the mapping.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Attempts to open a folder, which the program may close again each time.
_TRIES = 5
_PASSING = (FileNotFoundError, NotADirectoryError, ProcessLookupError)


#: Identity of a file: its device and inode.
_File = tuple[int, int]


class Hidden(Exception):
    """Raised when the disk use cannot be determined."""


def used(folders: Iterable[Path], processes: Iterable[int]) -> int:
    """Return about how many bytes are in some folders, and in removed files on the same disks that
    the processes have open or mapped."""
    places = list(folders)
    disks = {os.stat(place).st_dev for place in places if place.exists()}
    held: dict[_File, int] = {}
    for process in processes:
        for file, blocks in (*_removed(process), *_mapped(process)):
            if file[0] in disks:
                held[file] = max(blocks, held.get(file, 0))
    return 512 * (sum(held.values()) + sum(map(_blocks, places)))


def _blocks(folder: Path) -> int:
    total, pending = 0, [os.fspath(folder)]
    with ExitStack() as closing:
        while pending:
            for entry in _listed(pending.pop(), closing):
                # Entries of a folder that is closed just now are counted in the next measurement.
                with contextlib.suppress(*_PASSING, PermissionError):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks
    return total


def _listed(path: str, closing: ExitStack) -> list[os.DirEntry[str]]:
    for _ in range(_TRIES):
        try:
            with os.scandir(path) as listing:
                entries = list(listing)
            if entries:  # listing needs no permission to enter
                os.stat(entries[0].path, follow_symlinks=False)
            return entries
        except PermissionError:
            _open(path, closing)
        except _PASSING:
            return []
    raise Hidden


def _open(path: str, closing: ExitStack) -> None:
    """Give the owner access to a folder, until the count is complete."""
    with contextlib.suppress(*_PASSING):
        fd = os.open(path, _FOLDER)
        closing.callback(os.close, fd)
        # By descriptor, because the name may mean something else by now.
        place, mode = f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode)
        os.chmod(place, mode | 0o700)
        closing.callback(os.chmod, place, mode)


def _removed(process: int) -> Iterator[tuple[_File, int]]:
    with contextlib.suppress(*_PASSING, PermissionError):
        for file in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(*_PASSING, PermissionError):
                status = os.stat(f"/proc/{process}/fd/{file}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    yield (status.st_dev, status.st_ino), status.st_blocks


def _mapped(process: int) -> Iterator[tuple[_File, int]]:
    with contextlib.suppress(*_PASSING, PermissionError):
        for line in Path(f"/proc/{process}/maps").read_bytes().splitlines():
            if not line.endswith(b" (deleted)"):
                continue
            span, _, _, device, inode, _ = line.split(None, 5)
            begin, end = (int(number, 16) for number in span.split(b"-"))
            major, minor = (int(number, 16) for number in device.split(b":"))
            try:
                blocks = os.stat(f"/proc/{process}/map_files/{begin:x}-{end:x}").st_blocks
            except OSError:
                blocks = (end - begin) // 512
            yield (os.makedev(major, minor), int(inode)), blocks
