"""Runs: an agent at work, with a token that is valid exactly as long."""

from collections.abc import Mapping
from typing import Annotated, Any, Required, TypedDict, Unpack

from remit.authority import Action
from remit.clock import from_iso
from remit.errors import BadInput, Conflict
from remit.ids import END_OF_IDS, earliest_id
from remit.model.execution.run import RunStatus
from remit.model.organisation.agent import AgentStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.execution.run_endings import changed, clean, finish, release
from remit.services.execution.running import begin, denials, entered, require_look
from remit.services.fields import AgentRef, CompanyRef, Help, Moment
from remit.services.messaging import final_reply, wishes
from remit.services.organisation import halts
from remit.services.surfaces import AsRoute
from remit.services.verbs import Added
from remit.store.execution import runs as statements


@command("runs.start")
def start(ctx: Context, *, agent: str, run: str, workspace: str | None) -> shapes.StartedRunShape:
    """Begin a run by hand. The database allows one live run per agent."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{agent_row.id}", home=agent_row.id)
    if agent_row.status is not AgentStatus.IDLE:
        raise Conflict(
            f"{agent_row.name} is {agent_row.status.value.replace('_', ' ')}.",
            "An agent runs when it is idle, once at a time.",
        )
    halts.refuse_stopped(ctx, agent_row)
    return begin(ctx, agent_row, run, workspace, epoch=0, worker=None, why="by hand")


@command("runs.end")
def end(
    ctx: Context,
    *,
    run: str,
    status: str = "completed",
    seen: int | None = None,
    report: Mapping[str, Any] | None = None,
) -> shapes.EndedShape:
    """End a run and revoke its token; what it left undone is due again."""
    run_row = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run_row.id}", home=run_row.agent_id)
    ended = RunStatus(status)
    known = clean(report or {})
    # The final reply is no progress: otherwise a run with nothing else to show could go on forever.
    progress = changed(ctx, run_row)
    if ended is RunStatus.COMPLETED and (words := known.get("final_response")):
        final_reply.deliver(ctx, lookup.known_agent(ctx, run_row.agent_id), run_row, words)
    finish(ctx, run_row, ended, known)
    if ended is RunStatus.COMPLETED:
        wishes.after_run(ctx, run_row)
    release(ctx, run_row, ended, seen, known, progress)
    return {"id": run_row.id, "status": ended.value}


@command("runs.cancel")
def cancel(ctx: Context, *, run: str, reason: object = "") -> shapes.EndedShape:
    """Cancel a run. The mail that it took up is not given to another run."""
    run_row = entered(ctx, run)
    ctx.require(Action.AGENT_CONTROL, on=f"run:{run_row.id}", over=run_row.agent_id)
    why = str(reason)[:1000] if reason else f"cancelled by {ctx.actor.name}"
    known = clean({"exit_reason": "cancelled", "error": why})
    finish(ctx, run_row, RunStatus.CANCELLED, known)
    release(ctx, run_row, RunStatus.CANCELLED, None, known)
    return {"id": run_row.id, "status": RunStatus.CANCELLED.value}


@query(
    "runs.listing",
    Added("status", None),
    Added("since", None),
    Added("until", None),
    AsRoute("GET /companies/{companyId}/runs", "list_runs", page="id"),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None,
    agent: AgentRef | None = None,
    live: Annotated[bool, Help("Only those that have not ended.")] = False,
    status: Annotated[str, RunStatus] | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[shapes.RunWithDenialsShape]:
    """Runs, newest first; only those that began between two times, if asked."""
    wanted = sought(
        ctx,
        company=company,
        agent=agent,
        status="running" if live else status,
        since=since,
        until=until,
    )
    wanted["before"] = min(str(wanted["before"]), before)
    runs = ctx.tx.all(statements.SOUGHT, limit=limit, **wanted)
    denied = denials(ctx, runs)
    return [{**views.run(run), "denied": denied.get(run.id, [])} for run in runs]


class Sought(TypedDict, total=False):
    """Filter of a search for runs."""

    company: Required[str | None]
    agent: str | None
    status: str | None
    since: str | None
    until: str | None


def sought(ctx: Context, **wanted: Unpack[Sought]) -> dict[str, object]:
    """Parameters of a query for runs, after checking that the caller may see them."""
    agent, status = wanted.get("agent"), wanted.get("status") or ""
    since, until = wanted.get("since"), wanted.get("until")
    if status and status not in set(RunStatus):
        raise BadInput(
            "status must be running, completed, failed or cancelled.", "Choose one of these."
        )
    lookup.company_of_caller(ctx, wanted["company"])
    whose = lookup.agent_ever(ctx, agent).id if agent else ctx.actor.agent_id
    require_look(ctx, whose, "runs")
    return {
        "company": ctx.company,
        "agent": whose,
        "any_agent": whose is None,
        "status": status,
        "any_status": not status,
        # Ids are ordered by time, and a run's id is made when it begins.
        "since": earliest_id(from_iso(since)) if since else "",
        "before": earliest_id(from_iso(until)) if until else END_OF_IDS,
    }


@query("runs.show")
def show(ctx: Context, *, run: str) -> shapes.RunWithDenialsShape:
    run_row = entered(ctx, run)
    require_look(ctx, run_row.agent_id, f"run:{run_row.id}")
    return {**views.run(run_row), "denied": denials(ctx, [run_row]).get(run_row.id, [])}


@query("runs.log")
def log(ctx: Context, *, run: str, after: int = 0, limit: int = 1000) -> shapes.RunLogShape:
    """Log of a run after a position, and whether the run is live."""
    run_row = entered(ctx, run)
    require_look(ctx, run_row.agent_id, f"run:{run_row.id}")
    pieces = ctx.tx.all(statements.LOG, run=run_row.id, after=after, limit=limit)
    return {
        "run_id": run_row.id,
        "status": run_row.status.value,
        "pieces": [
            {
                "number": piece.number,
                "at": views.time(piece.at),
                "stream": piece.stream,
                "text": piece.text,
            }
            for piece in pieces
        ],
        "live": run_row.status is RunStatus.RUNNING,
    }


@query("runs.workspace")
def workspace(ctx: Context) -> str | None:
    """Return the workspace of the calling run, if the caller is one."""
    return ctx.actor.workspace
