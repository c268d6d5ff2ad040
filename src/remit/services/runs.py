"""Runs: an agent at work, with a token that lives exactly as long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remit.authority import Action
from remit.errors import Conflict
from remit.model.agent import AgentStatus
from remit.model.run import RunStatus
from remit.services import halts, handoff, lookup, views, wishes
from remit.services.command import Answer, Context, command, query
from remit.services.run_endings import changed, clean, finish, release
from remit.services.running import begin, denials, entered, require_look
from remit.store import runs as statements

END_OF_IDS = "g"


@command("runs.start")
def start(ctx: Context, *, agent: str, run: str, workspace: str | None) -> Answer:
    """Begin a run by hand. The database lets an agent have one at a time."""
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{found.id}", home=found.id)
    if found.status is not AgentStatus.IDLE:
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "An agent runs when it is idle, once at a time.",
        )
    halts.refuse_stopped(ctx, found)
    return begin(ctx, found, run, workspace, epoch=0, worker=None, why="by hand")


@command("runs.end")
def end(
    ctx: Context,
    *,
    run: str,
    status: str = "completed",
    seen: int | None = None,
    report: Mapping[str, Any] | None = None,
) -> Answer:
    """End a run; its token dies with it, and what it left undone is seen to again."""
    found = entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{found.id}", home=found.agent_id)
    ended = RunStatus(status)
    known = clean(report or {})
    # Last words are no progress: who has nothing else to show could go on saying them for ever.
    progress = changed(ctx, found)
    if ended is RunStatus.COMPLETED and known.get("final_response"):
        agent = lookup.agent_row(ctx, found.agent_id)
        assert agent is not None
        handoff.deliver(ctx, agent, found, known["final_response"])
    finish(ctx, found, ended, known)
    if ended is RunStatus.COMPLETED:
        wishes.after_run(ctx, found)
    release(ctx, found, ended, seen, known, progress)
    return {"id": found.id, "status": ended.value}


@command("runs.cancel")
def cancel(ctx: Context, *, run: str, reason: object = "") -> Answer:
    """Stop a run. What it took up is not given to another; it ended because somebody said so."""
    found = entered(ctx, run)
    ctx.require(
        Action.AGENT_CONTROL,
        on=f"run:{found.id}",
        home=found.agent_id,
        place=ctx.place(found.agent_id),
    )
    why = str(reason)[:1000] if reason else f"cancelled by {ctx.actor.name}"
    known = clean({"exit_reason": "cancelled", "error": why})
    finish(ctx, found, RunStatus.CANCELLED, known)
    release(ctx, found, RunStatus.CANCELLED, None, known)
    return {"id": found.id, "status": RunStatus.CANCELLED.value}


@query("runs.listing")
def listing(
    ctx: Context,
    *,
    company: str | None,
    agent: str | None = None,
    live: bool = False,
    before: str = END_OF_IDS,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """Runs, newest first."""
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent_ever(ctx, agent).id if agent else ctx.actor.agent_id
    require_look(ctx, whose, "runs")
    found = ctx.tx.all(
        statements.RUNS,
        company=ctx.company,
        agent=whose,
        any_agent=whose is None,
        ended_too=not live,
        before=before,
        limit=limit,
    )
    denied = denials(ctx, found)
    return [{**views.run(one), "denied": denied.get(one.id, [])} for one in found]


@query("runs.show")
def show(ctx: Context, *, run: str) -> dict[str, Any]:
    found = entered(ctx, run)
    require_look(ctx, found.agent_id, f"run:{found.id}")
    return {**views.run(found), "denied": denials(ctx, [found]).get(found.id, [])}


@query("runs.log")
def log(ctx: Context, *, run: str, after: int = 0, limit: int = 1000) -> dict[str, Any]:
    """What a run printed, from a place on; and whether there may be more to come."""
    found = entered(ctx, run)
    require_look(ctx, found.agent_id, f"run:{found.id}")
    pieces = ctx.tx.all(statements.LOG, run=found.id, after=after, limit=limit)
    return {
        "run_id": found.id,
        "status": found.status.value,
        "pieces": [
            {"number": one.number, "at": views.time(one.at), "stream": one.stream, "text": one.text}
            for one in pieces
        ],
        "live": found.status is RunStatus.RUNNING,
    }


@query("runs.workspace")
def workspace(ctx: Context) -> str | None:
    """The folder of the run that is calling, if it is one."""
    return ctx.actor.workspace
