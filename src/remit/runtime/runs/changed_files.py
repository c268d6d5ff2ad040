"""Files that a run changed in the folders that it works in, as a digest.

Work of a program's own tools, such as a shell, reaches Remit by its files alone. The digest is the
same if the same files were changed to the same contents, so a run that only repeats the one before
can be told from one that got on. Folders are read while others may change them: no link is
followed, and whatever cannot be read is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remit.runtime.runs.workspace import KB_FOLDER

#: More files are not looked at, nor more bytes of one file and of all.
MOST_FILES: Final = 20_000
_LARGEST_FILE: Final = 1 << 20
_MOST_BYTES: Final = 64 << 20
#: Folders that programs fill by themselves, and Remit's own.
_LEFT_OUT: Final = frozenset(
    {
        *(".tmp", KB_FOLDER, "__pycache__", "node_modules", ".venv", ".cache"),
        *(".pytest_cache", ".mypy_cache", ".ruff_cache"),
    }
)
#: Of a repository: its branches, and which one is checked out.
_OF_GIT: Final = frozenset({"HEAD", "packed-refs", "refs"})
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

#: Size, time of the last change and number of a file.
_State = tuple[int, int, int]


@dataclass(frozen=True)
class Seen:
    """The files of some folders at one time."""

    folders: Sequence[Path]
    states: dict[tuple[int, str], _State]
    #: Whether these are all files.
    whole: bool = True


def look(folders: Sequence[Path]) -> Seen:
    """Look at the files below some folders."""
    apart = [
        folder
        for number, folder in enumerate(folders)
        if not any(folder == other or other in folder.parents for other in folders[:number])
    ]
    states: dict[tuple[int, str], _State] = {}
    for number, folder in enumerate(apart):
        for path, state in _files(folder):
            if len(states) >= MOST_FILES:
                return Seen(apart, states, whole=False)
            states[number, path] = state
    return Seen(apart, states)


def digest_since(before: Seen) -> str | None:
    """Return a digest of the files that were changed, added or removed since; None without any."""
    after = look(before.folders)
    then, now = before.states, after.states
    known = then.keys() | now.keys() if before.whole and after.whole else then.keys() & now.keys()
    digest, left, changed = hashlib.sha256(), _MOST_BYTES, False
    for number, path in sorted(known):
        state = now.get((number, path))
        if state == then.get((number, path)):
            continue
        changed = True
        digest.update(f"{number}\0{path}\0".encode(errors="surrogateescape"))
        content = b"" if state is None else _read(before.folders[number] / path, left)
        left -= len(content)
        size = -1 if state is None else state[0]
        digest.update(f"{size}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    return digest.hexdigest() if changed else None


def _files(folder: Path) -> Iterator[tuple[str, _State]]:
    """Yield the files below a folder, relative to it, in no order."""
    pending, folders = [""], 0
    while pending and folders < MOST_FILES:
        folders += 1
        parent = pending.pop()
        in_git = os.path.basename(parent) == ".git"
        with contextlib.suppress(OSError), os.scandir(folder / parent) as entries:
            for entry in entries:
                path = os.path.join(parent, entry.name)
                if entry.name in _LEFT_OUT or (in_git and entry.name not in _OF_GIT):
                    continue
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        known = entry.stat(follow_symlinks=False)
                        yield path, (known.st_size, known.st_mtime_ns, known.st_ino)


def _read(path: Path, most: int) -> bytes:
    """Return the beginning of a regular file; nothing of anything else."""
    try:
        opened = os.open(path, _FILE)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return b""
        return file.read(max(0, min(most, _LARGEST_FILE)))
