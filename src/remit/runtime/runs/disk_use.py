"""Disk that a program uses while it works, also where it does not want that seen.

A folder that is closed to its owner is opened for as long as it is looked at. A file that was
removed takes room for as long as a process has it open, or in its memory. Of the latter the kernel
says the size to root alone; to others, how much of it is mapped.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: A program may close a folder as often as we open it.
_TRIES = 5
_PASSING = (FileNotFoundError, NotADirectoryError, ProcessLookupError)


#: A file by its disk and its number there.
_File = tuple[int, int]


class Hidden(Exception):
    """Nobody can tell how much there is."""


def used(folders: Iterable[Path], processes: Iterable[int]) -> int:
    """About how many bytes lie in some folders, and in removed files that the processes have
    open or mapped on the same disk."""
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
                # A folder that is closed to us in this moment is looked at in the next.
                with contextlib.suppress(*_PASSING, PermissionError):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks
    return total


def _listed(path: str, closing: ExitStack) -> list[os.DirEntry[str]]:
    for _ in range(_TRIES):
        try:
            with os.scandir(path) as found:
                entries = list(found)
            if entries:  # to list a folder is not to look into it
                os.stat(entries[0].path, follow_symlinks=False)
            return entries
        except PermissionError:
            _open(path, closing)
        except _PASSING:
            return []
    raise Hidden


def _open(path: str, closing: ExitStack) -> None:
    """Open a folder of ours to us, until all has been looked at."""
    with contextlib.suppress(*_PASSING):
        fd = os.open(path, _FOLDER)
        closing.callback(os.close, fd)
        # The opened file, whatever has its name by now.
        place, mode = f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode)
        os.chmod(place, mode | 0o700)
        closing.callback(os.chmod, place, mode)


def _removed(process: int) -> Iterator[tuple[_File, int]]:
    with contextlib.suppress(*_PASSING, PermissionError):
        for file in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(*_PASSING, PermissionError):
                found = os.stat(f"/proc/{process}/fd/{file}")
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    yield (found.st_dev, found.st_ino), found.st_blocks


def _mapped(process: int) -> Iterator[tuple[_File, int]]:
    with contextlib.suppress(*_PASSING, PermissionError):
        for line in Path(f"/proc/{process}/maps").read_bytes().splitlines():
            if not line.endswith(b" (deleted)"):
                continue
            span, _, _, device, inode, _ = line.split(None, 5)
            begin, end = (int(one, 16) for one in span.split(b"-"))
            major, minor = (int(one, 16) for one in device.split(b":"))
            try:
                blocks = os.stat(f"/proc/{process}/map_files/{begin:x}-{end:x}").st_blocks
            except OSError:
                blocks = (end - begin) // 512
            yield (os.makedev(major, minor), int(inode)), blocks
