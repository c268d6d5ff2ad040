"""Runs that need attention: those that a limit ended, and those that are silent.

A run that repeats itself, or whose calls fail again and again, is ended here when Remit's own tools
see it, whatever its program is.
"""

from typing import NamedTuple

from remit.authority import Action
from remit.clock import MINUTE, Micros
from remit.model.execution.limit import REPETITION, RUNAWAY, command_that_raises, ended_by
from remit.model.execution.run import Run, RunStatus
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.execution import fruitless
from remit.services.execution.run_endings import finish, got_on, release
from remit.services.execution.running import entered
from remit.services.spending import limits
from remit.services.verbs import Added
from remit.services.work import waits
from remit.store.execution import limits as statements

#: A run without a sign of life for so long is shown to people.
SILENT: Micros = 15 * MINUTE
MOST = 100


class Watched(NamedTuple):
    """A calling run, how often in a row it may make the same call, and how many of its calls in a
    row may fail; all None for a person."""

    run_id: str | None
    identical_calls: int | None
    failed_calls: int | None


@query("runaway.watched")
def watched(ctx: Context) -> Watched:
    """Return the calling run, with the limits of its calls."""
    if ctx.actor.run_id is None:
        return Watched(None, None, None)
    lookup.company_of_caller(ctx, None)
    of = limits.of_company(ctx)
    return Watched(ctx.actor.run_id, of.identical_calls, of.failed_calls)


@command("runaway.end", FOR_REMIT, Added("reason", REPETITION))
def end(ctx: Context, *, run: str, error: str, reason: str = REPETITION) -> shapes.EndedShape:
    """End a run that repeats the same call, or whose calls fail; for Remit itself."""
    run_row = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=run_row.agent_id)
    fault = RUNAWAY[reason].value
    known: shapes.RunEndShape = {"exit_reason": reason, "error": error, "fault": fault}
    progress = got_on(ctx, run_row, RunStatus.FAILED)
    finish(ctx, run_row, RunStatus.FAILED, known)
    release(ctx, run_row, RunStatus.FAILED, None, known, progress)
    return {"id": run, "status": RunStatus.FAILED.value}


def silent(ctx: Context) -> list[tuple[Run, Micros]]:
    """Return runs of the company without a sign of life, and since when; not those whose agent
    waits for somebody."""
    before = ctx.now - SILENT
    quiet_runs = []
    for run in ctx.tx.all(statements.QUIET_RUNS, before=before, limit=MOST):
        printed = ctx.tx.one(statements.LAST_PRINTED, run=run.id) or run.started_at
        last = max(printed, ctx.tx.one(statements.LAST_DEED, run=run.id) or 0)
        if last <= before and not waits.of_agent(ctx, run.agent_id):
            quiet_runs.append((run, last))
    return quiet_runs


def silent_item(ctx: Context, run: Run, last: Micros) -> shapes.AwaitingShape:
    minutes = (ctx.now - last) // MINUTE
    title = f"{lookup.name_of(ctx, run.agent_id)} has given no sign of life for {minutes} minutes"
    cause = "it printed nothing, called nothing and awaits nobody"
    about = (run.id, title, run.agent_id, last, cause)
    return {
        **views.awaiting(ctx.company, "silent_run", *about),
        "next": f"remit run cancel {run.id}",
    }


def runaway_item(ctx: Context, run: Run) -> shapes.AwaitingShape | None:
    """Item about a run that a limit ended; None for any other."""
    limit = ended_by(run.exit_reason)
    if limit is None:
        return None
    name = lookup.name_of(ctx, run.agent_id)
    why = (run.error or "it took too much").removesuffix(".")
    title, step = f"A run of {name} was ended: {why}", f"remit run tail {run.id}"
    runs = fruitless.in_a_row(ctx, run.agent_id)
    if not fruitless.has_effect(ctx, run) and (runs or run.changed_files is None):
        step = fruitless.next_step(ctx, run)
        if runs > 1:
            title = f"{name} gets nothing done: {runs} runs in a row were ended. {why}"
    elif (allowed := limits.of_company(ctx).of(limit)) is not None:
        step = f"{step}, then {command_that_raises(limit, allowed)}"
    about = (run.id, title, run.agent_id, run.ended_at, why)
    return {**views.awaiting(ctx.company, "runaway", *about), "next": step}
