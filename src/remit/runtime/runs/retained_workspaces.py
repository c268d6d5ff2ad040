"""Retained workspaces: folders of failed runs, kept for people to look into.

    REMIT_HOME/run/kept/<run>

They are kept for a limited time, number and size, the newest first. No run sees them, because every
sandbox hides their place. The record and the clock alone decide which are kept, so that a crash
neither loses one nor keeps one for ever.
"""

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

from remit import threads
from remit.clock import HOUR, Clock, Micros, from_iso, to_iso
from remit.errors import RemitError
from remit.runtime.runs.workspace import destroy_workspace
from remit.services.command import Gate
from remit.services.execution import runs
from remit.services.identity import as_system
from remit.settings import Settings

log = logging.getLogger(__name__)

MOST_KEPT = 50
MOST_BYTES = 4 << 30
#: Most entries of a folder; one with more counts as too large.
_MOST_ENTRIES = 300_000


class RetainedWorkspaces:
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
        homes = await threads.FILES.run(_names, self._homes)
        for agent in await self._gate(as_system(), runs.purged, agents=homes):
            await self._remove(self._homes / agent)

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
