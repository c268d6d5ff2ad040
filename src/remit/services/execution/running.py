"""Shared by the verbs about runs: the start of one, look-up, and who may see it."""

import json
from collections.abc import Callable, Sequence

from remit.authority import Action
from remit.clock import Micros
from remit.ids import RunId, TokenKind, UserId, is_id
from remit.model.execution.job import Job
from remit.model.execution.run import Lease, Run, RunStatus
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.principal import ActorKind
from remit.model.work.outcome import Look, Outcome, OutcomeKind, comes_by_itself
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.services.organisation import tree
from remit.services.people import users
from remit.services.spending import pricing
from remit.store.engine.database import Transaction
from remit.store.execution import due, leases
from remit.store.execution import runs as statements

#: A run stores at most so many of the outcomes that were due when it began.
MOST_DUE = 50


def begin(
    ctx: Context,
    agent: Agent,
    run_id: str,
    workspace: str | None,
    *,
    epoch: int,
    worker: str | None,
    why: str,
    account: str | None = None,
) -> shapes.StartedRunShape:
    """Begin a run, with what is due to the agent now, and issue its token."""
    assert is_id(run_id)
    lease = ctx.tx.one(leases.LEASE, agent=agent.id)
    is_due = due_of(ctx.tx, agent.id, lease, ctx.now)
    price = pricing.price_of(ctx, agent.adapter_type, json.loads(agent.adapter_config))
    run = Run(
        id=RunId(run_id),
        company_id=agent.company_id,
        agent_id=agent.id,
        status=RunStatus.RUNNING,
        workspace=workspace,
        started_at=ctx.now,
        epoch=epoch,
        worker=worker,
        adapter_type=agent.adapter_type,
        why=why,
        accountable_user_id=_accountable(ctx, agent),
        occasion=_occasion(ctx, lease, is_due) if worker is not None else None,
        outcome_ids=json.dumps(
            [outcome.id for outcome in is_due if outcome.kind is OutcomeKind.WORK]
        ),
        shown=ctx.place_in_record,
        account_id=account,
        price=None if price is None else price.stored(),
    )
    ctx.tx.add(run)
    tree.set_status(ctx, agent, AgentStatus.RUNNING)
    ctx.record("run.start", f"run:{run_id}", {"agent_id": agent.id, "why": why, "worker": worker})
    return {
        **users.issue(ctx, TokenKind.RUN, "", None, agent=agent.id, run=run_id),
        "run_id": run_id,
    }


def due_of(tx: Transaction, agent: str, lease: Lease | None, now: Micros) -> list[Outcome]:
    """The due outcomes of an agent, most pressing first: those that are due by themselves, and,
    when its time has come, those that it left alone."""
    is_due = tx.all(due.DUE_OF, agent=agent, limit=MOST_DUE, now=now)
    if lease is not None and lease.look_at is not None and lease.look_at <= now and not lease.rests:
        concerned = due.LEFT_OF if lease.look_for is Look.START else due.LOOKED_OF
        is_due += tx.all(concerned, agent=agent, limit=MOST_DUE, now=now)
        is_due.sort(key=lambda outcome: (not outcome.important, not outcome.urgent, outcome.id))
    return is_due[:MOST_DUE]


def _occasion(ctx: Context, lease: Lease | None, is_due: Sequence[Outcome]) -> str:
    """The occasion of a run: news or a date, or only a nudge or review by the clock."""
    if not is_due or any(comes_by_itself(outcome, ctx.now) for outcome in is_due):
        return "news"
    nudged = lease is not None and lease.look_for is Look.NUDGE
    return Look.NUDGE.value if nudged else Look.REVIEW.value


def _accountable(ctx: Context, agent: Agent) -> UserId | None:
    """Return the person at the top of the agent's chain of bosses."""
    chain = ctx.boss_chain(agent.id)
    top = lookup.agent_row(ctx, chain[-1]) if chain else None
    return top.boss_user_id if top else None


def entered(ctx: Context, run: str) -> Run:
    return lookup.find(ctx, RUN, run)


def reader(ctx: Context) -> Callable[[Run | Job], bool]:
    """Return a predicate: whether the caller may see a run or a job. Agents see their own and those
    of agents below."""

    def sees(row: Run | Job) -> bool:
        if row.agent_id == ctx.actor.agent_id:
            return True
        if ctx.actor.kind is ActorKind.AGENT:
            place = ctx.boss_chain(row.agent_id)
            return ctx.decide(Action.AGENT_CONTROL, place=place).allowed
        return ctx.decide(Action.OUTCOME_READ, home=row.agent_id).allowed

    return sees


RUN = lookup.Noun("run", statements.RUN, statements.RUNS_BY_PREFIX, reader)


def require_look(ctx: Context, agent: str | None, on: str) -> None:
    """Check that the caller may see runs and jobs of an agent: its own, or of one below."""
    if agent is not None and agent == ctx.actor.agent_id:
        ctx.require(Action.COMPANY_READ, on=on)
    elif ctx.actor.kind is ActorKind.AGENT:
        ctx.require(Action.AGENT_CONTROL, on=on, over=agent)
    else:
        ctx.require(Action.OUTCOME_READ, on=on, home=agent)


def denials(ctx: Context, runs: Sequence[Run]) -> dict[str, list[shapes.DenialShape]]:
    """The denials of runs of the company, by their program or by Remit, with counts; runs without
    any are left out."""
    if not runs:
        return {}
    first, last = min(run.id for run in runs), max(run.id for run in runs)
    counted = ctx.tx.all(statements.DENIALS, first=first, last=last)
    return {
        run: [{"tool": tool, "count": count} for tool, count in json.loads(text).items()]
        for run, text in counted
    }
