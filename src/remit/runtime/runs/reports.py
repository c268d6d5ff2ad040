"""Waiting for the report of a run that an agent executes elsewhere."""

import asyncio

from remit.adapters.running import RunResult, Usage
from remit.services.command import Gate
from remit.services.execution import run_reports
from remit.services.identity import as_system

LOOK_SECONDS = 0.25


async def wait_for_report(gate: Gate, run: str) -> RunResult:
    """Poll the database for the report, which another process may receive; the caller limits the
    time."""
    said = None
    while said is None:
        said = await gate(as_system(), run_reports.read, run=run)
        if said is None:
            await asyncio.sleep(LOOK_SECONDS)
    return RunResult(
        said["ok"],
        said["text"],
        said["reason"],
        said["error"],
        Usage(said["tokens_in"], said["tokens_out"], said["tokens_cached"], said["cost_micros"]),
        said["session"],
        fault=said["fault"],
        until=said["fault_until"],
    )
