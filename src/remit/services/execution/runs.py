"""Runs: an agent at work, with a token that is valid exactly as long.

A remote run, whose agent is elsewhere, reports once, with that token, how it ended and what it
used. The worker that began the run waits for the report and ends the run.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Required, TypedDict, Unpack

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import END_OF_IDS, AgentId, RunId, earliest_id, is_id
from remit.model.execution.fault import Fault
from remit.model.execution.run import ENDED_WELL, Run, RunStatus
from remit.model.organisation.agent import AgentStatus
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.execution.run_endings import clean, finish, got_on, release
from remit.services.execution.running import begin, denials, entered, require_look
from remit.services.fields import AgentRef, CompanyRef, Help, Moment
from remit.services.messaging import final_reply, wishes
from remit.services.organisation import halts, tree
from remit.services.spending import ledger
from remit.services.surfaces import AsRoute
from remit.services.verbs import Added
from remit.store.execution import runs as statements
from remit.store.organisation import agents as agent_statements

#: Of a report: the lengths of its texts, and the largest number.
LONGEST_TEXT, LONGEST_ERROR, LONGEST_SESSION = 100_000, 500, 200
MOST = 1 << 53
#: Exit reason of a run whose agent said that it failed.
REPORTED = "reported"


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
    progress = got_on(ctx, run_row, ended, known.get("changed_files"))
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
        "pieces": [_piece(piece) for piece in pieces],
        "live": run_row.status is RunStatus.RUNNING,
    }


_piece = views.view_of(statements.LogPiece, shapes.LogPieceShape)


@query("runs.workspace")
def workspace(ctx: Context) -> str | None:
    """Return the workspace of the calling run, if the caller is one."""
    return ctx.actor.workspace


# ── reports of remote runs ──────────────────────────────────────────────────────────────────────


@command("run_reports.submit", Added("fault", None), Added("until", None))
def report(
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
        raise NotFound.of("run")
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
        "exit_reason": "completed" if ok else REPORTED,
        "error": None if ok else (error or "the agent says that it failed")[:LONGEST_ERROR],
        "fault": None if ok else _fault(fault),
        "fault_until": None if ok or until is None else from_iso(until),
        # Nobody here sees what it does.
        "acted": True,
    }
    ctx.tx.run(
        statements.REPORT_RUN,
        run=run_row.id,
        **{f"new_{name}": told.get(name) for name in statements.REPORT},
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
def read_report(ctx: Context, *, run: str) -> shapes.RunReportShape | None:
    """Report of a remote run, for the worker that waits; None as long as there is none.

    A run that somebody ended has a reason, too, which is no report: the waiting worker is
    cancelled, and tells the agent elsewhere.
    """
    run_row = ctx.tx.one(statements.RUN, run=run)
    if run_row is None:
        raise NotFound.of("run")
    if run_row.exit_reason is None or run_row.status is not RunStatus.RUNNING:
        return None
    return _report(run_row)


_report = views.view_of(
    Run,
    shapes.RunReportShape,
    ok=lambda run: run.exit_reason == "completed",
    text=lambda run: run.final_response or "",
    reason="exit_reason",
    session="session_id",
)


# ── retention of workspaces ─────────────────────────────────────────────────────────────────────


class Ended(NamedTuple):
    """The end of a run; `at` is None while it is live. `purged`: its agent is gone for good."""

    id: str
    well: bool
    at: Micros | None
    purged: bool


@query("leftovers.of_runs", FOR_REMIT)
def ends(ctx: Context, *, runs: Sequence[str]) -> list[Ended]:
    """Return the ends of those of the runs that exist."""
    rows = [ctx.tx.one(statements.RUN, run=RunId(run)) for run in runs if is_id(run)]
    return [
        Ended(
            run.id,
            run.status in ENDED_WELL,
            run.ended_at,
            bool(purged.body(ctx, agents=[run.agent_id])),
        )
        for run in rows
        if run is not None
    ]


@query("leftovers.purged", FOR_REMIT)
def purged(ctx: Context, *, agents: Sequence[str]) -> list[str]:
    """Return those of the agents that are purged, so that their workspaces can go."""
    rows = [
        ctx.tx.one(agent_statements.AGENT_ANYWHERE, agent=AgentId(agent))
        for agent in agents
        if is_id(agent)
    ]
    return [agent.id for agent in rows if agent is not None and tree.is_purged(ctx, agent)]
