"""Files of a program outside the system's folders, for a sandbox that shows only these.

A command is rarely one file: it is a link to a script of a package, run by an interpreter that is
a link into an installation. The sandbox gets the links and the packages, and nothing beside them.
"""

import os
import shutil
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

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
