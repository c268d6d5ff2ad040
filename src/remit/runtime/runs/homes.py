"""The home of an agent on this machine: one place for every agent, whatever it is called.

Its programs keep their conversations there, and what else they like. What an agent is to remember
is in the knowledge base, and nothing that lies here goes into a prompt: what a program would read
as instructions is taken away before each run (`forget`). `SOUL.md` is for whoever wants to describe
the agent to people.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from remit.ids import random_name
from remit.runtime.runs.workspace import destroy_workspace

SOUL = "SOUL.md"


def folder(root: Path, agent: str) -> Path:
    """`root` is the home of the instance."""
    return root / "agents" / agent


def set_up(root: Path, agent: str) -> Path:
    """Make it, as often as you like; what is there stays."""
    home = folder(root, agent)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileExistsError):
        os.close(os.open(home / SOUL, flags, 0o600))
    return home


def forget(home: Path, name: str, keep: Sequence[str]) -> None:
    """Leave nothing of a folder but files that match these patterns, and make it if it is missing.

    Whatever an earlier run put there is its own, links and all: what is kept is moved out of it,
    file by file, and the rest goes as a workspace goes.
    """
    place = home / name
    aside = home / f".{random_name()}"
    with contextlib.suppress(FileNotFoundError):
        os.rename(place, aside)
    place.mkdir(mode=0o700)
    for path in _plain_files(aside):
        if any(fnmatchcase(path, pattern) for pattern in keep):
            with contextlib.suppress(OSError):  # without it a conversation begins anew
                (place / path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.rename(aside / path, place / path)
    destroy_workspace(aside)


def _plain_files(root: Path) -> Iterator[str]:
    """All below a folder that are files and nothing else, by their names in it."""
    if not _is_folder(root):
        return
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
                    yield os.path.relpath(path, root)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
