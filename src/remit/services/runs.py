"""Runs: an agent at work, with a token that lives exactly as long."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.errors import Conflict, NotFound
from remit.ids import RunId, TokenKind, is_id
from remit.model.agent import AgentStatus
from remit.model.run import Run, RunStatus
from remit.services import inbox, lookup, tree, users
from remit.services.command import Answer, Context, command, query
from remit.store import agents as statements
from remit.store import people


@command
def start(ctx: Context, *, agent: str, run: str, workspace: str | None) -> Answer:
    """Begin a run. The database lets an agent have one at a time."""
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{found.id}", home=found.id)
    if found.status is not AgentStatus.IDLE:
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "An agent runs when it is idle, once at a time.",
        )
    assert is_id(run)
    ctx.tx.run(
        statements.INSERT_RUN,
        id=run,
        company_id=ctx.company,
        agent_id=found.id,
        status=RunStatus.RUNNING.value,
        workspace=workspace,
        started_at=ctx.now,
        ended_at=None,
    )
    tree.set_status(ctx, found, AgentStatus.RUNNING)
    ctx.record("run.start", f"run:{run}", {"agent_id": found.id})
    return {**users.issue(ctx, TokenKind.RUN, "", None, agent=found.id, run=run), "run_id": run}


@command
def end(ctx: Context, *, run: str, status: str = "completed") -> Answer:
    """End a run; its token dies with it."""
    found = _entered(ctx, run)
    ctx.require(Action.RUN_CHANGE, on=f"run:{run}", home=found.agent_id)
    ended = RunStatus(status)
    if not ctx.tx.run(statements.END_RUN, run=found.id, new_status=ended.value, now=ctx.now):
        raise Conflict("The run has ended already.")
    ctx.tx.run(people.REVOKE_TOKENS_OF, run=found.id, agent=None, user=None, now=ctx.now)
    agent = lookup.agent_anywhere(ctx, found.agent_id)
    inbox.run_ended(
        ctx, run, found.agent_id, well=ended in (RunStatus.COMPLETED, RunStatus.CANCELLED)
    )
    if agent.status is AgentStatus.RUNNING:
        tree.set_status(ctx, agent, AgentStatus.IDLE)
    ctx.record("run.end", f"run:{run}", {"agent_id": found.agent_id, "status": ended.value})
    return {"id": run, "status": ended.value}


@query
def workspace(ctx: Context) -> str | None:
    """The folder of the run that is calling, if it is one."""
    return ctx.actor.workspace


@query
def live(ctx: Context) -> list[dict[str, Any]]:
    """All runs that are thought to be alive; for Remit itself after a restart."""
    if not ctx.decide(Action.RUN_CHANGE).allowed or ctx.actor.id:
        raise NotFound("There is nothing here with that id.")
    return [
        {"id": run.id, "agent_id": run.agent_id, "workspace": run.workspace}
        for run in ctx.tx.all(statements.LIVE_RUNS)
    ]


def _entered(ctx: Context, run: str) -> Run:
    found = ctx.tx.one(statements.RUN, run=RunId(run))
    if found is None:
        raise NotFound("There is no such run.")
    ctx.enter(found.company_id)
    return found
