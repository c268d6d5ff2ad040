"""Folders with Remit's skills and with lent ones on this machine, which runs are shown read only.

    REMIT_HOME/skills/remit             a plugin of Claude Code; other programs are told its files
    REMIT_HOME/lent/<agent>/<plugin>    a plugin that people lent to the agent

They lie outside of what a run in the sandbox can write. They are compared, byte for byte, before
each run, because a run with full access, or a person, can change them.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from remit.adapters.setup import skills
from remit.errors import Unavailable
from remit.ids import random_name
from remit.model.connections.lent_plugin import LentPlugin
from remit.runtime.runs.workspace import destroy_workspace

#: The folder of an instance with what agents are lent.
LENT = "lent"
_ATTEMPTS = 5


def of_remit(home: Path) -> Path:
    """Return the folder with Remit's skills, made anew unless it holds exactly what it should;
    `home` is that of the instance."""
    return kept(home / "skills", skills.PLUGIN, skills.plugin())


def lent_to(home: Path, agent: str, plugins: Iterable[LentPlugin]) -> list[Path]:
    """Return the folders with what an agent is lent; those that were taken back are removed."""
    root = home / LENT / agent
    places = [kept(root, plugin.id, plugin.files()) for plugin in plugins]
    known = {place.name for place in places}
    for name in os.listdir(root) if root.is_dir() else ():
        if name not in known:
            destroy_workspace(root / name)
    return places


def kept(root: Path, name: str, wanted: Mapping[PurePosixPath, bytes]) -> Path:
    """Return a folder below `root` that holds exactly these files."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = root / name
    for _ in range(_ATTEMPTS):
        if _holds(place, wanted):
            return place
        stage, aside = root / f".{random_name()}", root / f".{random_name()}"
        _write(stage, wanted)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.rename(place, aside)
            # Fails if another process was faster, whose folder is compared in turn.
            with contextlib.suppress(OSError):
                os.rename(stage, place)
        finally:
            for left in (stage, aside):
                destroy_workspace(left)
    raise Unavailable("The skills of Remit keep being changed.", f"See who writes to {root}.")


def _holds(place: Path, wanted: Mapping[PurePosixPath, bytes]) -> bool:
    """Return whether a folder has these files and nothing else, not even through a link."""
    try:
        return dict(_files(place)) == dict(wanted)
    except OSError:
        return False


def _files(place: Path) -> Iterator[tuple[PurePosixPath, bytes | None]]:
    """Yield the files below a folder with their contents; None for what is no plain file."""
    if not stat.S_ISDIR(os.lstat(place).st_mode):
        raise NotADirectoryError(place)
    pending = [PurePosixPath()]
    while pending:
        folder = pending.pop()
        with os.scandir(place / folder) as entries:
            for entry in entries:
                path = folder / entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path, (place / path).read_bytes()
                else:
                    yield path, None


def _write(stage: Path, contents: Mapping[PurePosixPath, bytes]) -> None:
    for path, content in contents.items():
        file = stage / path
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o400)
