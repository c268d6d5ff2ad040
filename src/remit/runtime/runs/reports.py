"""Waiting for what an agent elsewhere says about its run."""

import asyncio

from remit.adapters.running import RunResult, Usage
from remit.services.command import Gate
from remit.services.execution import run_reports
from remit.services.identity import as_system

LOOK_SECONDS = 0.25


async def wait_for_report(gate: Gate, run: str) -> RunResult:
    """Until it is there; whoever waits sets the time. It may come in by another process."""
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
