"""Lifecycle of a run on this machine: its workspace and token exist exactly as long as the run."""

import asyncio
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit import threads
from remit.clock import HOUR, Clock, Micros, from_iso, to_iso
from remit.errors import Conflict, RemitError
from remit.ids import Ids, RunId
from remit.model.execution.run import Run
from remit.model.text import plural
from remit.runtime.runs.processes import end_leftovers, runs_with_programs
from remit.runtime.runs.skill_folders import LENT
from remit.runtime.runs.workspace import create_workspace, destroy_workspace
from remit.runtime.sandbox import cgroups
from remit.services.command import Gate
from remit.services.execution import run_queue, runs
from remit.services.identity import as_system
from remit.settings import Settings

log = logging.getLogger(__name__)


MOST_KEPT = 50
MOST_BYTES = 4 << 30
#: Most entries of a folder; one with more counts as too large.
_MOST_ENTRIES = 300_000


@dataclass(frozen=True, slots=True)
class LiveRun:
    id: RunId
    token: str
    workspace: Path


class RetainedWorkspaces:
    """Retained workspaces: folders of failed runs, kept for people to look into.

        REMIT_HOME/run/kept/<run>

    They are kept for a limited time, number and size, the newest first. No run sees them, because
    every sandbox hides their place. The record and the clock alone decide which are kept, so that a
    crash neither loses one nor keeps one for ever.
    """

    def __init__(
        self,
        gate: Gate,
        clock: Clock,
        settings: Settings,
        *,
        most: int = MOST_KEPT,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._gate = gate
        self._clock = clock
        self._folder = settings.run_folder / "kept"
        self._homes = settings.home / "agents"
        self._lent = settings.home / LENT
        self._time: Micros = settings.keep_failed_workspaces * HOUR
        self._most = most
        self._most_bytes = most_bytes
        self._tidying = asyncio.Lock()
        #: Cached sizes: retained workspaces do not change any more.
        self._sizes: dict[str, int] = {}

    async def put_away(self, run: str, workspace: Path | str) -> None:
        """Retain the workspace of a failed run, if this is configured; remove any other."""
        known = await self._gate(as_system(), runs.ends, runs=[run])
        wanted = any(not ended_run.well and not ended_run.purged for ended_run in known)
        if not wanted or not self._time:
            await threads.FILES.run(destroy_workspace, workspace)
            return
        if await threads.FILES.run(self._move, run, Path(workspace)):
            await self.tidy()

    async def make_room(self, workspace: Path) -> None:
        """Remove a workspace and all retained ones: the disk may be too full to record an end."""
        await self._remove(workspace)
        async with self._tidying:
            for run in await threads.FILES.run(_names, self._folder):
                await self._remove(self._folder / run)

    def of(self, run: dict[str, Any]) -> dict[str, Any] | None:
        """Return the path of a run's retained workspace here, and until when it is kept."""
        place = self._folder / run["id"]
        if run["completed_at"] is None or not place.is_dir():
            return None
        until = from_iso(run["completed_at"]) + self._time
        return {"path": str(place), "until": to_iso(until)}

    async def tidy(self) -> None:
        """Remove workspaces that are too old, too many, too large or of no known run, and the
        workspaces and homes of purged agents."""
        async with self._tidying:
            await self._tidy()

    async def _tidy(self) -> None:
        there = await threads.FILES.run(_names, self._folder)
        ended_runs = await self._gate(as_system(), runs.ends, runs=there)
        ended = {ended_run.id: ended_run.at for ended_run in ended_runs if not ended_run.purged}
        now, room, count = self._clock.now(), self._most_bytes, 0
        for run in sorted(there, key=lambda name: ended.get(name) or 0, reverse=True):
            at = ended.get(run, 0)
            if at is None:
                continue  # its end is not recorded yet
            count += 1
            if at + self._time > now and count <= self._most:
                size = await threads.FILES.run(self._size, run)
                if size <= room:
                    room -= size
                    continue
            await self._remove(self._folder / run)
        for place in (self._homes, self._lent):
            known = await threads.FILES.run(_names, place)
            for agent in await self._gate(as_system(), runs.purged, agents=known):
                await self._remove(place / agent)

    def _move(self, run: str, workspace: Path) -> bool:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace.rename(self._folder / run)
        except FileNotFoundError:
            return False  # the run never had a workspace
        except OSError as error:
            log.warning("the workspace of run %s cannot be kept (%s)", run, error.strerror)
            destroy_workspace(workspace)
            return False
        return True

    async def _remove(self, folder: Path) -> None:
        self._sizes.pop(folder.name, None)
        try:
            await threads.FILES.run(destroy_workspace, folder)
        except RemitError as error:
            log.warning("%s is left: %s", folder, error)

    def _size(self, run: str) -> int:
        if run not in self._sizes:
            self._sizes[run] = size_of(self._folder / run, self._most_bytes)
        return self._sizes[run]


async def begin(gate: Gate, ids: Ids, workspaces: Path, agent: str) -> LiveRun:
    """Start a run of an agent; refused while another one is alive."""
    run_id = RunId(ids.new())
    folder = workspaces / run_id
    # The row comes first, so that a crash leaves no folder without a row.
    answer = await gate(as_system(), runs.start, agent=agent, run=run_id, workspace=str(folder))
    try:
        create_workspace(workspaces, run_id)
    except BaseException:
        report = {"exit_reason": "failed", "error": "it could not be given a folder"}
        await gate(as_system(), runs.end, run=run_id, status="failed", report=report)
        raise
    return LiveRun(run_id, answer["token"], folder)


async def finish(gate: Gate, run: LiveRun, status: str = "completed") -> None:
    """End a run. Its token is revoked first, so that nothing is stored from a workspace that is
    being removed."""
    try:
        await gate(as_system(), runs.end, run=run.id, status=status)
    finally:
        destroy_workspace(run.workspace)


async def recover(
    gate: Gate, workspaces: Path, kept: RetainedWorkspaces, *, alone: bool = True
) -> int:
    """After a start, end the runs that this instance left behind as lost; returns their number.

    Beside other processes on the same database, runs of workers are left to them, because a dead
    worker loses its leases. Programs of ended runs are killed either way.
    """
    living = await gate(as_system(), run_queue.live)
    lost = [run for run in living if alone or _is_by_hand(run, workspaces)]
    ours = {run.id for run in lost}
    await threads.ENDINGS.run(end_leftovers, ours)
    await _end_strays(gate, workspaces)
    report = {"exit_reason": "lost", "error": "the instance stopped while it was running"}
    for run in lost:
        try:
            await gate(as_system(), runs.end, run=run.id, status="lost", report=report)
        except Conflict:
            continue  # it was ended meanwhile
        if run.workspace:
            await _put_away(kept, run.id, run.workspace)
    await _tidy(gate, workspaces, kept)
    if lost:
        log.warning("%s cut off when the instance last stopped", plural(len(lost), "run"))
    return len(lost)


def _is_by_hand(run: Run, workspaces: Path) -> bool:
    """Return whether a run was begun without a worker by this instance, which alone can end it."""
    if run.worker is not None or run.workspace is None:
        return False
    return Path(run.workspace).is_relative_to(workspaces)


async def tidy_up(gate: Gate, workspaces: Path, kept: RetainedWorkspaces) -> None:
    """After the start of a worker beside others, clean up after ended runs on this machine."""
    await _end_strays(gate, workspaces)
    await _tidy(gate, workspaces, kept)


async def _end_strays(gate: Gate, workspaces: Path) -> None:
    """Kill the programs of ended runs on this machine.

    The programs are listed before the live runs are read. A run's row exists before its program,
    so a program that another worker starts meanwhile is never taken for a stray.
    """
    run_ids = await threads.ENDINGS.run(runs_with_programs, workspaces)
    living = {run.id for run in await gate(as_system(), run_queue.live)}
    await threads.ENDINGS.run(end_leftovers, run_ids - living)


async def _tidy(gate: Gate, workspaces: Path, kept: RetainedWorkspaces) -> None:
    """Put away the workspaces and cgroups of ended runs."""
    folders = await threads.FILES.run(_folders, workspaces)
    for run in await gate(as_system(), run_queue.over, runs=sorted(folders)):
        await _put_away(kept, run, folders[run])
    groups = sorted(await threads.ENDINGS.run(cgroups.leftovers))
    over = await gate(as_system(), run_queue.over, runs=groups)
    await threads.ENDINGS.run(cgroups.end_groups_of, set(over))


def _folders(workspaces: Path) -> dict[str, Path]:
    return {path.name: path for path in workspaces.iterdir()} if workspaces.is_dir() else {}


async def _put_away(kept: RetainedWorkspaces, run: str, folder: Path | str) -> None:
    try:
        await kept.put_away(run, folder)
    except RemitError as error:
        log.warning("a workspace is left: %s", error)


def size_of(folder: Path, most: int) -> int:
    """Return about how many bytes an unused folder takes; more than `most` if that cannot be
    determined."""
    total = entries = 0
    pending = [os.fspath(folder)]
    try:
        while pending:
            with os.scandir(pending.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
            if entries > _MOST_ENTRIES:
                return most + 1
    except OSError:  # too deep, or closed to its owner
        return most + 1
    return total


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder)) if folder.is_dir() else []
