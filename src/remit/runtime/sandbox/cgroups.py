"""Bounds on all processes of a run together: how many they are, and how much memory they take.

The kernel keeps groups of processes in folders. Where we may make such a folder each run gets one;
where we may not, the run does without, and `remit doctor` says so. Both generations of the
interface are used: one tree for everything, or a tree for each kind of bound.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from remit.ids import is_id, random_name

PROCESSES, MEMORY = "pids", "memory"
_PREFIX = "remit-"
_JOIN = (
    "/bin/sh",
    "-c",
    'for group in $0; do echo 0 > "$group/cgroup.procs" || exit 125; done; exec "$@"',
)
_ROUNDS = 50


@dataclass(frozen=True)
class Places:
    """The places where groups can be made, by what they bound."""

    folders: Mapping[str, Path]
    #: One tree for everything.
    unified: bool = False

    @property
    def bound(self) -> frozenset[str]:
        return frozenset(self.folders)


class Group:
    """The processes of one run. They join it before they do anything else."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = list(dict.fromkeys(folders))

    def join(self, argv: Sequence[str]) -> list[str]:
        """The same command, begun inside."""
        return [*_JOIN, " ".join(map(str, self._folders)), *argv]

    def ran_out_of_memory(self) -> bool:
        return any(
            _count(folder / name, "oom_kill")
            for folder in self._folders
            for name in ("memory.events", "memory.oom_control")
        )

    def had_too_many_processes(self) -> bool:
        return any(_count(folder / "pids.events", "max") for folder in self._folders)

    def end(self) -> None:
        """Kill whoever is left, and go. May take a moment; call it from a thread."""
        for _ in range(_ROUNDS):
            left = [folder for folder in self._folders if not _removed(folder)]
            if not left:
                return
            for folder in left:
                _kill_all(folder)
            time.sleep(0.02)


@lru_cache(maxsize=1)
def look() -> Places:
    """The places where groups can be made; tried, not guessed."""
    unified = _unified()
    if unified is not None:
        return Places(dict.fromkeys((PROCESSES, MEMORY), unified), unified=True)
    found = {}
    for kind in (PROCESSES, MEMORY):
        place = _own_folder(kind)
        if place is not None and _can_be_used(place, (kind,)):
            found[kind] = place
    return Places(found)


def create(run_id: str, *, processes: int, memory: int | None = None) -> Group | None:
    """A group for a run, or none where there cannot be one."""
    assert is_id(run_id)
    places = look()
    limits: dict[Path, dict[str, int]] = {}
    if PROCESSES in places.bound:
        limits.setdefault(places.folders[PROCESSES], {})["pids.max"] = processes
    if memory is not None and MEMORY in places.bound:
        mine = limits.setdefault(places.folders[MEMORY], {})
        if places.unified:
            mine |= {"memory.max": memory, "memory.swap.max": 0, "memory.oom.group": 1}
        else:
            mine["memory.limit_in_bytes"] = memory
    made: list[Path] = []
    try:
        for place, bounds in limits.items():
            folder = place / f"{_PREFIX}{run_id}"
            folder.mkdir()
            made.append(folder)
            for name, value in bounds.items():
                if name != "memory.swap.max" or (folder / name).exists():
                    (folder / name).write_text(str(value))
    except OSError:
        for folder in made:
            _removed(folder)
        return None
    return Group(made) if made else None


def end_groups_of(run_ids: set[str]) -> None:
    """Kill whoever is left of runs that are over, whatever they call themselves by now."""
    for run, group in leftovers().items() if run_ids else ():
        if run in run_ids:
            group.end()


def leftovers() -> dict[str, Group]:
    """The groups that are there, by their run; also those of other instances."""
    found: dict[str, list[Path]] = {}
    for place in set(look().folders.values()):
        with contextlib.suppress(OSError):
            for folder in place.iterdir():
                run = folder.name.removeprefix(_PREFIX)
                if folder.name.startswith(_PREFIX) and is_id(run):
                    found.setdefault(run, []).append(folder)
    return {run: Group(folders) for run, folders in found.items()}


def _unified() -> Path | None:
    """Our own folder in the one tree, or the one above if it was given to us as a whole."""
    own = _own_folder("")
    if own is None:
        return None
    for place in (own, *([own.parent] if _is_delegated(own.parent) else [])):
        if _can_be_used(place, (PROCESSES, MEMORY)):
            return place
    return None


def _is_delegated(place: Path) -> bool:
    """Return whether the system's manager delegates the group to its user."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(place, name) == b"1":
                return True
    return False


def _can_be_used(place: Path, kinds: Sequence[str]) -> bool:
    tried = place / f"{_PREFIX}try-{random_name()}"
    if not (place / "cgroup.procs").exists():
        return False
    with contextlib.suppress(OSError):
        tried.mkdir()
        try:
            files = {PROCESSES: ("pids.max",), MEMORY: ("memory.max", "memory.limit_in_bytes")}
            if not _has_all(tried, kinds, files):
                with contextlib.suppress(OSError):
                    wanted = " ".join(f"+{kind}" for kind in kinds)
                    (place / "cgroup.subtree_control").write_text(wanted)
            return _has_all(tried, kinds, files)
        finally:
            tried.rmdir()
    return False


def _has_all(folder: Path, kinds: Sequence[str], files: Mapping[str, Sequence[str]]) -> bool:
    return all(
        any(os.access(folder / name, os.W_OK) for name in files[kind]) for kind in kinds
    ) and os.access(folder / "cgroup.procs", os.W_OK)


def _own_folder(kind: str) -> Path | None:
    """This process's group in the hierarchy of a controller; without one, in the unified
    hierarchy."""
    mine = next((path for kinds, path in _memberships() if kind in kinds), None)
    if mine is None:
        return None
    for root, place in _mounts(kind):
        if mine == root or mine.startswith(root.rstrip("/") + "/"):
            return Path(place, mine[len(root.rstrip("/")) :].lstrip("/"))
    return None


def _memberships() -> Iterator[tuple[list[str], str]]:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            yield kinds.split(","), path


def _mounts(kind: str) -> Iterator[tuple[str, str]]:
    """The mounted part of the hierarchy of a controller, and its mount point."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            before, _, after = line.partition(" - ")
            root, place = before.split()[3:5]
            type_, _, options = after.split()[:3]
            if type_ == ("cgroup" if kind else "cgroup2") and (
                not kind or kind in options.split(",")
            ):
                yield root, place


def _count(file: Path, name: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            word, _, number = line.partition(" ")
            if word == name:
                return int(number)
    return 0


def _kill_all(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / "cgroup.kill").write_text("1")
        return
    with contextlib.suppress(OSError, ValueError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if int(pid) not in (0, os.getpid()):
                    os.kill(int(pid), signal.SIGKILL)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
