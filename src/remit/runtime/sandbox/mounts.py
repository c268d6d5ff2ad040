"""The machine as every program is shown it, whichever sandbox holds it."""

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

    #: Folders that it writes to.
    written: Sequence[Path] = ()
    #: Folders that it reads, each without these files and folders in it.
    read: Mapping[Path, Sequence[Path]] = field(default_factory=dict)
    #: Whether it reaches any network.
    network: bool = True


NOTHING_MORE = View()


@dataclass(frozen=True)
class Given:
    """All that a sandbox is told of one program, besides what the program itself consists of."""

    own: tuple[Path, ...]
    cwd: Path
    #: Not shown even where it lies in something that is.
    hidden: Sequence[Path] = ()
    #: Single files, each with its place inside.
    lent: Mapping[Path, Path] = field(default_factory=dict)
    view: View = field(default_factory=View)

    @property
    def home(self) -> Path:
        return self.own[-1]

    @property
    def writable(self) -> list[Path]:
        return [*self.own, *self.view.written]


def remove_link(folder: Path, place: Path) -> None:
    """Nothing can be shown at a place where a link lies; a program, or Landlock, may have left one.

    What is on the way there is a program's own, so that no link is followed.
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
    return inside(path, [Path(one) for one in SYSTEM])


def inside(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == one or one in path.parents for one in folders)
