"""Cgroups: limits on the number and memory of all processes of a run together.

The kernel represents groups of processes as folders. Each run gets one where this process may make
it; elsewhere runs do without, and `remit doctor` says so. Both versions of the interface are
supported: one unified hierarchy, or one for each controller.
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
    """The folders in which groups can be made, by controller."""

    folders: Mapping[str, Path]
    #: Whether the hierarchy is unified (cgroup v2).
    unified: bool = False

    @property
    def bound(self) -> frozenset[str]:
        return frozenset(self.folders)


class Group:
    """The cgroup of one run, which its processes join before anything else."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = list(dict.fromkeys(folders))

    def join(self, argv: Sequence[str]) -> list[str]:
        """Return the command, started inside the group."""
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
        """Kill the remaining processes and remove the group. Blocks; call it from a thread."""
        for _ in range(_ROUNDS):
            left = [folder for folder in self._folders if not _removed(folder)]
            if not left:
                return
            for folder in left:
                _kill_all(folder)
            time.sleep(0.02)


@lru_cache(maxsize=1)
def look() -> Places:
    """Find the folders in which groups can be made, by trying."""
    unified = _unified()
    if unified is not None:
        return Places(dict.fromkeys((PROCESSES, MEMORY), unified), unified=True)
    folders = {}
    for kind in (PROCESSES, MEMORY):
        place = _own_folder(kind)
        if place is not None and _can_be_used(place, (kind,)):
            folders[kind] = place
    return Places(folders)


def create(run_id: str, *, processes: int, memory: int | None = None) -> Group | None:
    """Make a group with limits for a run; None where that is not possible."""
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
    folders: list[Path] = []
    try:
        for place, bounds in limits.items():
            folder = place / f"{_PREFIX}{run_id}"
            folder.mkdir()
            folders.append(folder)
            for name, value in bounds.items():
                if name != "memory.swap.max" or (folder / name).exists():
                    (folder / name).write_text(str(value))
    except OSError:
        for folder in folders:
            _removed(folder)
        return None
    return Group(folders) if folders else None


def end_groups_of(run_ids: set[str]) -> None:
    """Kill the remaining processes in the groups of ended runs, also those that their environment
    does not show any more, and remove the groups."""
    for run, group in leftovers().items() if run_ids else ():
        if run in run_ids:
            group.end()


def leftovers() -> dict[str, Group]:
    """Return the existing groups, by their run; also those of other instances."""
    by_run: dict[str, list[Path]] = {}
    for place in set(look().folders.values()):
        with contextlib.suppress(OSError):
            for folder in place.iterdir():
                run = folder.name.removeprefix(_PREFIX)
                if folder.name.startswith(_PREFIX) and is_id(run):
                    by_run.setdefault(run, []).append(folder)
    return {run: Group(folders) for run, folders in by_run.items()}


def _unified() -> Path | None:
    """Return this process's folder in the unified hierarchy, or its parent if that is delegated:
    the first in which groups can be made."""
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
    """Return the folder of this process's group in the hierarchy of a controller; for an empty
    name, in the unified hierarchy."""
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
    """Yield the mounted parts of a controller's hierarchy, with their mount points."""
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
