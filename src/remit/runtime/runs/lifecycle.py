"""Lifecycle of a run on this machine: its workspace and token exist exactly as long as the run."""

import logging
from dataclasses import dataclass
from pathlib import Path

from remit import threads
from remit.errors import Conflict, RemitError
from remit.ids import Ids, RunId
from remit.model.execution.run import Run
from remit.model.text import plural
from remit.runtime.runs.processes import end_leftovers, runs_with_programs
from remit.runtime.runs.retained_workspaces import RetainedWorkspaces
from remit.runtime.runs.workspace import create_workspace, destroy_workspace
from remit.runtime.sandbox import cgroups
from remit.services.command import Gate
from remit.services.execution import run_queue, runs
from remit.services.identity import as_system

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LiveRun:
    id: RunId
    token: str
    workspace: Path


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
