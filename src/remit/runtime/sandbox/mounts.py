"""Files that a sandboxed program sees, with either sandbox: those of the system, and its own."""

import contextlib
import os
import shutil
import stat
from collections import deque
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
    #: Files and folders in writable ones that are empty inside, and cannot be changed.
    covered: Sequence[Path] = ()
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


# ── files of a program outside the system ─────────────────────────────────────────────────────────
#
# A command is rarely one file: it is a link to a script of a package, run by an interpreter that is
# a link into an installation. The sandbox gets the links and the packages, and nothing beside them.

_MOST_LINKS = 40
_DEEPEST = 4
_LONGEST_FIRST_LINE = 512


@dataclass
class Parts:
    """The links that lead to a program, and its files and folders."""

    links: dict[Path, str] = field(default_factory=dict)
    places: set[Path] = field(default_factory=set)

    def outermost(self) -> list[Path]:
        """Return the places that are not inside another one."""
        return sorted(place for place in self.places if not self.places.intersection(place.parents))

    def loose_links(self) -> dict[Path, str]:
        """Return the links that are not inside a place."""
        return {
            link: to
            for link, to in sorted(self.links.items())
            if not self.places.intersection(link.parents)
        }


def parts_of(program: str, search: str) -> Parts:
    """Return all files that a program needs to start; `search` is its PATH."""
    parts = Parts()
    _collect(program, search, parts, 0)
    return parts


def _collect(program: str, search: str, parts: Parts, depth: int) -> None:
    if depth > _DEEPEST:
        return
    path = program if os.path.isabs(program) else None
    if path is None and "/" not in program:
        path = shutil.which(program, path=search)
    if path is None or not os.path.exists(path):
        return  # it is in the workspace, or it is not there at all
    real = _follow(Path(os.path.normpath(path)), parts)
    parts.places.add(real)
    for place in (*parts.links, real):
        parts.places.update(_package_of(place))
    interpreter = _interpreter(real)
    if interpreter:
        _collect(interpreter, search, parts, depth + 1)


def _follow(path: Path, parts: Parts) -> Path:
    """Resolve a path; records every link on the way, also those of folders."""
    here, left = Path("/"), deque(path.parts[1:])
    for _ in range(1000):
        if not left:
            break
        name = left.popleft()
        if name == "..":
            here = here.parent
            continue
        following = here / name
        if len(parts.links) < _MOST_LINKS and following.is_symlink():
            target = os.readlink(following)
            parts.links[following] = target
            steps = Path(target).parts
            if os.path.isabs(target):
                here, steps = Path("/"), steps[1:]
            left.extendleft(reversed(steps))
        else:
            here = following
    return here


def _package_of(file: Path) -> list[Path]:
    """Return the folders to which a file belongs: packages of Node.js, an environment or
    installation of Python."""
    names = file.parts
    if "node_modules" in names:
        return [Path(*names[: names.index("node_modules") + 1])]
    prefix = file.parent.parent
    if file.parent.name != "bin" or prefix in (Path("/"), Path.home(), *Path.home().parents):
        return []
    if (prefix / "pyvenv.cfg").is_file():
        return [prefix]
    libraries = sorted(prefix.glob("lib/python3*"))
    if libraries and file.name.startswith("python"):
        return [prefix]
    return libraries


def _interpreter(file: Path) -> str | None:
    """Return the interpreter of a script, from its first line."""
    try:
        with file.open("rb") as opened:
            first = opened.read(_LONGEST_FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode(errors="replace").split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None
