"""Report of a remote run, whose agent is elsewhere: how it ended, and what it used.

The agent reports once, with the token of the run. The worker that began the run waits for the
report and ends the run.
"""

from remit.clock import from_iso
from remit.errors import BadInput, Conflict, NotFound
from remit.model.execution.fault import Fault
from remit.model.execution.run import RunStatus
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.spending import ledger
from remit.services.verbs import Added
from remit.store.execution import runs as statements

LONGEST_TEXT = 100_000
LONGEST_ERROR = 500
LONGEST_SESSION = 200
MOST = 1 << 53
FAILED = "reported"


@command("run_reports.submit", Added("fault", None), Added("until", None))
def submit(
    ctx: Context,
    *,
    run: str,
    ok: bool = True,
    text: str = "",
    error: str | None = None,
    session: str | None = None,
    tokens_in: int = 0,
    tokens_out: int = 0,
    tokens_cached: int = 0,
    cost_micros: int = 0,
    fault: str | None = None,
    until: str | None = None,
) -> shapes.ReportedShape:
    """Say how one's own run ended. It is believed as a program's exit code is."""
    if ctx.actor.run_id is None or ctx.actor.run_id != run:
        raise NotFound("There is no such run.")
    lookup.company_of_caller(ctx, None)
    ctx.allow_by_rule(views.OWN)
    run_row = ctx.tx.one(statements.RUN, run=ctx.actor.run_id)
    if run_row is None or run_row.status is not RunStatus.RUNNING:
        raise Conflict("The run has ended already.")
    if run_row.exit_reason is not None:
        raise Conflict("The run was reported already.", "There is nothing more to do.")
    numbers = {
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "tokens_cached": tokens_cached,
        "cost_micros": cost_micros,
    }
    if not all(0 <= number <= MOST for number in numbers.values()):
        raise BadInput("The usage of a run is not below zero.")
    ledger.took(ctx, run_row, numbers)
    told: shapes.RunEndShape = {
        "session_id": session[:LONGEST_SESSION] if session else None,
        "final_response": text[:LONGEST_TEXT] or None,
        "context_length": None,
        "exit_reason": "completed" if ok else FAILED,
        "error": None if ok else (error or "the agent says that it failed")[:LONGEST_ERROR],
        "fault": None if ok else _fault(fault),
        "fault_until": None if ok or until is None else from_iso(until),
    }
    ctx.tx.run(
        statements.REPORT_RUN,
        run=run_row.id,
        **{f"new_{name}": value for name, value in told.items()},
    )
    ctx.record("run.report", f"run:{run_row.id}", {"ok": ok, "error": told["error"]})
    return {"id": run_row.id, "ok": ok}


def _fault(named: str | None) -> str | None:
    if named is None:
        return None
    try:
        return Fault(named).value
    except ValueError:
        raise BadInput(
            f"{named[:40]!r} is not a fault.", f"Known: {', '.join(Fault)}; or leave it out."
        ) from None


@query("run_reports.read", FOR_REMIT)
def read(ctx: Context, *, run: str) -> shapes.RunReportShape | None:
    """Report of a remote run, for the worker that waits; None as long as there is none.

    A run that somebody ended has a reason, too, which is no report: the waiting worker is
    cancelled, and tells the agent elsewhere.
    """
    run_row = ctx.tx.one(statements.RUN, run=run)
    if run_row is None:
        raise NotFound("There is no such run.")
    if run_row.exit_reason is None or run_row.status is not RunStatus.RUNNING:
        return None
    return {
        "ok": run_row.exit_reason == "completed",
        "text": run_row.final_response or "",
        "reason": run_row.exit_reason,
        "error": run_row.error,
        "fault": run_row.fault,
        "fault_until": run_row.fault_until,
        "session": run_row.session_id,
        "tokens_in": run_row.tokens_in,
        "tokens_out": run_row.tokens_out,
        "tokens_cached": run_row.tokens_cached,
        "cost_micros": run_row.cost_micros,
    }
