"""Mounts that every sandboxed program sees, with either sandbox."""

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Folders of the system that programs need; read only.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
)


@dataclass(frozen=True)
class View:
    """The mounts of a program beside its workspace, its home and the system."""

    #: Writable folders.
    written: Sequence[Path] = ()
    #: Readable folders, each with the files and folders in it that are hidden.
    read: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    #: Whether it reaches any network.
    network: bool = True


NOTHING_MORE = View()


@dataclass(frozen=True)
class Given:
    """The parameters of a sandbox for one program, besides the program's own files."""

    own: tuple[Path, ...]
    cwd: Path
    #: Hidden folders, even where they lie in a visible one.
    hidden: Sequence[Path] = ()
    #: Single files of the worker, each with its path inside.
    lent: Mapping[Path, Path] = field(default_factory=dict)
    view: View = field(default_factory=View)

    @property
    def home(self) -> Path:
        return self.own[-1]

    @property
    def writable(self) -> list[Path]:
        return [*self.own, *self.view.written]


def remove_link(folder: Path, place: Path) -> None:
    """Remove a link at a path where a file is to be mounted; a program, or Landlock, may have left
    one.

    The folders on the way are untrusted, so no link is followed.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError, ValueError):
        here = os.open(folder, flags)
        opened.callback(os.close, here)
        for name in place.relative_to(folder).parts[:-1]:
            here = os.open(name, flags, dir_fd=here)
            opened.callback(os.close, here)
        if stat.S_ISLNK(os.lstat(place.name, dir_fd=here).st_mode):
            os.unlink(place.name, dir_fd=here)


def of_system(path: Path) -> bool:
    return inside(path, [Path(place) for place in SYSTEM])


def inside(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == folder or folder in path.parents for folder in folders)
