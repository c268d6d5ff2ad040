"""Homes of agents on this machine: a folder for each agent, by its id.

An agent's programs store their conversations and other files there. The agent's memory is in the
knowledge base. Files that an earlier run left and that a program would obey or read as instructions
are removed before each run: those of the program by `forget`, those of shells and git, which
programs start by themselves, by `forget_start_files`. `SOUL.md` is for describing the agent to
people.
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
#: Start-up files of shells, and the settings of git.
_START_FILES = (
    *(".profile", ".bash_profile", ".bash_login", ".bashrc", ".bash_aliases", ".bash_logout"),
    *(".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".kshrc", ".mkshrc"),
    *(".cshrc", ".tcshrc", ".login", ".logout", ".gitconfig"),
)
_CONFIG = ".config"
_START_FOLDERS = ("fish", "git")


def folder(root: Path, agent: str) -> Path:
    """`root` is the home of the instance."""
    return root / "agents" / agent


def set_up(root: Path, agent: str) -> Path:
    """Make the home of an agent, unless it exists; its contents stay."""
    home = folder(root, agent)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileExistsError):
        os.close(os.open(home / SOUL, flags, 0o600))
    return home


def forget_start_files(home: Path) -> None:
    """Remove start-up files of shells and settings of git from a home, whatever they are."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as opened:
        top = os.open(home, flags)
        opened.callback(os.close, top)
        for name in _START_FILES:
            _take_away(home, top, name, top)
        try:
            config = os.open(_CONFIG, flags, dir_fd=top)
        except FileNotFoundError:
            return
        except OSError:  # a link or a file, which is no place for settings of ours
            _take_away(home, top, _CONFIG, top)
            return
        opened.callback(os.close, config)
        for name in _START_FOLDERS:
            _take_away(home, top, name, config)


def _take_away(home: Path, top: int, name: str, folder: int) -> None:
    """Remove an entry of a folder that is untrusted, and therefore named by its descriptor."""
    aside = f".{random_name()}"
    with contextlib.suppress(FileNotFoundError):
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=top)
        destroy_workspace(home / aside)


def forget(home: Path, name: str, keep: Sequence[str]) -> None:
    """Empty a folder of the home except for files that match these patterns; make it if missing.

    Its contents are untrusted, links included: files to keep are moved out one by one, and the rest
    is removed as a workspace is.
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
    """Yield the regular files below a folder that have one hard link, by their relative paths."""
    if not _is_folder(root):
        return
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                    yield os.path.relpath(path, root)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
