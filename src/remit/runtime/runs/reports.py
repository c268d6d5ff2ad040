"""Waiting for the report of a run that an agent executes elsewhere."""

import asyncio

from remit.adapters.running import RunResult, Usage
from remit.services.command import Gate
from remit.services.execution import runs
from remit.services.identity import as_system

LOOK_SECONDS = 0.25


async def wait_for_report(gate: Gate, run: str) -> RunResult:
    """Poll the database for the report, which another process may receive; the caller limits the
    time."""
    report = None
    while report is None:
        report = await gate(as_system(), runs.read_report, run=run)
        if report is None:
            await asyncio.sleep(LOOK_SECONDS)
    return RunResult(
        report["ok"],
        report["text"],
        report["reason"],
        report["error"],
        Usage(
            report["tokens_in"],
            report["tokens_out"],
            report["tokens_cached"],
            report["cost_micros"],
        ),
        report["session"],
        fault=report["fault"],
        until=report["fault_until"],
    )
