"""The life of a run on this machine: a folder and a token that exist exactly as long as it does."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from remit.errors import Conflict
from remit.ids import Ids, RunId
from remit.runtime.workspace import create_workspace, destroy_workspace
from remit.services import runs
from remit.services.command import Gate
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
    folder = create_workspace(workspaces, run_id)
    try:
        answer = await gate(as_system(), runs.start, agent=agent, run=run_id, workspace=str(folder))
    except BaseException:
        destroy_workspace(folder)
        raise
    return LiveRun(run_id, answer["token"], folder)


async def finish(gate: Gate, run: LiveRun, status: str = "completed") -> None:
    """End a run. The token dies first, so nothing is written from a folder that is going."""
    try:
        await gate(as_system(), runs.end, run=run.id, status=status)
    finally:
        destroy_workspace(run.workspace)


async def recover(gate: Gate) -> int:
    """After a start: runs that another process left behind are lost; answers how many."""
    lost = await gate(as_system(), runs.live)
    for run in lost:
        try:
            await gate(as_system(), runs.end, run=run["id"], status="lost")
        except Conflict:
            continue  # somebody else ended it
        if run["workspace"]:
            destroy_workspace(run["workspace"])
    if lost:
        log.warning("%d runs were cut off when the instance last stopped", len(lost))
    return len(lost)
