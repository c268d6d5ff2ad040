"""What every verb about runs rests on: beginning one, finding one, and who may look."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from remit.authority import Action
from remit.errors import NotFound
from remit.ids import RunId, TokenKind, UserId, is_id, normalise
from remit.model.agent import Agent, AgentStatus
from remit.model.outcome import Look, Outcome, OutcomeKind
from remit.model.principal import ActorKind
from remit.model.run import (
    Run,
    RunStatus,
)
from remit.services import lookup, tree, users
from remit.services.command import Answer, Context
from remit.store import due
from remit.store import runs as statements
from remit.store.statement import row

#: A run knows so many of the outcomes that were due when it began.
MOST_DUE = 50


def begin(
    ctx: Context,
    agent: Agent,
    run: str,
    workspace: str | None,
    *,
    epoch: int,
    worker: str | None,
    why: str,
    account: str | None = None,
) -> Answer:
    """Begin a run, for whatever is due to the agent now."""
    assert is_id(run)
    is_due = ctx.tx.all(due.DUE_OF, agent=agent.id, now=ctx.now, limit=MOST_DUE)
    made = Run(
        id=RunId(run),
        company_id=agent.company_id,
        agent_id=agent.id,
        status=RunStatus.RUNNING,
        workspace=workspace,
        started_at=ctx.now,
        ended_at=None,
        epoch=epoch,
        worker=worker,
        adapter_type=agent.adapter_type,
        session_id=None,
        why=why,
        message_ids="[]",
        final_response=None,
        context_length=None,
        tokens_in=0,
        tokens_out=0,
        tokens_cached=0,
        cost_micros=0,
        exit_reason=None,
        error=None,
        accountable_user_id=_accountable(ctx, agent),
        log_bytes=0,
        occasion=_occasion(is_due) if worker is not None else None,
        outcome_ids=json.dumps([one.id for one in is_due if one.kind is OutcomeKind.WORK]),
        shown=ctx.place_in_record,
        goes_on=False,
        account_id=account,
    )
    ctx.tx.run(statements.INSERT_RUN, **row(made))
    tree.set_status(ctx, agent, AgentStatus.RUNNING)
    ctx.record("run.start", f"run:{run}", {"agent_id": agent.id, "why": why, "worker": worker})
    return {**users.issue(ctx, TokenKind.RUN, "", None, agent=agent.id, run=run), "run_id": run}


def _occasion(is_due: Sequence[Outcome]) -> str:
    """What a run is for: something new, or only that the clock brought something back."""
    by_clock = {
        one.look_for for one in is_due if one.kind is OutcomeKind.WORK and one.news <= one.seen
    }
    others = [one for one in is_due if one.kind is OutcomeKind.INBOX or one.news > one.seen]
    if others or Look.DEFERRAL in by_clock or not by_clock:
        return "news"
    return Look.NUDGE.value if Look.NUDGE in by_clock else Look.REVIEW.value


def _accountable(ctx: Context, agent: Agent) -> UserId | None:
    """The person whom the chain of bosses leads to."""
    chain = ctx.place(agent.id)
    top = lookup.agent_row(ctx, chain[-1]) if chain else None
    return top.boss_user_id if top else None


def entered(ctx: Context, run: str) -> Run:
    text = normalise(run)
    if not is_id(text):
        lookup.enter_by(ctx, "run", text)
        named = lookup.matching(ctx, "run", statements.RUNS_BY_PREFIX, text)
        text = lookup.only([one for one in named if _may_look(ctx, one)], "run").id
    found = ctx.tx.one(statements.RUN, run=RunId(text))
    try:
        if found is not None:
            ctx.enter(found.company_id)
            # Entering may have waited for another command that changed it.
            found = ctx.tx.one(statements.RUN, run=RunId(text))
    except NotFound:
        found = None  # of another company: as if there were none
    if found is None:
        raise NotFound("There is no such run.")
    return found


def _may_look(ctx: Context, run: Run) -> bool:
    """What the caller may not know of does not make a part of an id ambiguous."""
    if run.agent_id == ctx.actor.agent_id:
        return True
    if ctx.actor.kind is ActorKind.AGENT:
        return ctx.decide(Action.AGENT_CONTROL, None, place=ctx.place(run.agent_id)).allowed
    return ctx.decide(Action.OUTCOME_READ, None, home=run.agent_id).allowed


def require_look(ctx: Context, agent: str | None, on: str) -> None:
    """One's own, and those of who works below."""
    if agent is not None and agent == ctx.actor.agent_id:
        ctx.require(Action.COMPANY_READ, on=on)
    elif ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.AGENT_CONTROL, on=on, place=ctx.place(agent))
    else:
        ctx.require(Action.OUTCOME_READ, on=on, home=agent)


def system_only(ctx: Context) -> None:
    if ctx.actor.kind is not ActorKind.SYSTEM:
        raise NotFound("There is nothing here with that id.")


def denials(ctx: Context, found: Sequence[Run]) -> dict[str, list[dict[str, Any]]]:
    """What runs of the company at hand were denied, by their program or by Remit, and how often;
    only those that were denied anything."""
    if not found:
        return {}
    first, last = min(one.id for one in found), max(one.id for one in found)
    counted = ctx.tx.all(statements.DENIALS, company=ctx.company, first=first, last=last)
    return {
        run: [{"tool": tool, "count": count} for tool, count in json.loads(text).items()]
        for run, text in counted
    }
