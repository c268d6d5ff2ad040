"""Waking agents: news to an agent marks it as due, in the transaction that makes the news.

News is what somebody else did about an outcome, or what the clock brought. Being open starts
nothing by itself, and an agent's own acts are no news to it. An agent that cannot be started is not
woken: a person, or an agent that is paused, stopped, gone or not yet approved. The change that
makes it startable again wakes it.
"""

from remit.clock import Micros
from remit.ids import AgentId, CompanyId
from remit.model.execution.run import Lease
from remit.model.work.outcome import Look, Outcome
from remit.services.context import Context
from remit.store.execution import due, leases
from remit.store.work import outcomes as outcome_statements


def wake(ctx: Context, agent: str, why: str, *, by_clock: bool = False) -> bool:
    """Mark an agent as due at once, if it is idle or runs and something is due; returns whether so.

    News ends a pause, but a pause after a failure only once for each failure.
    """
    return bool(ctx.tx.run(leases.WAKE, agent=agent, due=ctx.now, why=why, by_clock=by_clock))


def wake_for_own(ctx: Context, agent: str, why: str) -> None:
    """Wake an agent for something that it made itself, which ends no pause after a failure."""
    lease = ctx.tx.one(leases.LEASE, agent=agent)
    if lease is None or not lease.failures or lease.due_at <= ctx.now:
        wake(ctx, agent, why)
    elif not lease.awake:
        ctx.tx.run(leases.WAKE_AGAIN, agent=agent, due=lease.due_at, new_why=why)


def news(ctx: Context, outcome: Outcome, why: str) -> None:
    """Mark an outcome as having news for its owner, and wake the owner, unless the owner made
    them."""
    if is_own(ctx, outcome.owner_id):
        return
    ctx.tx.run(due.NEWS, outcome=outcome.id, place=ctx.place_in_record + 1)
    wake(ctx, outcome.owner_id, why)


def moved(ctx: Context, outcome: Outcome) -> None:
    """Note progress of an outcome, by anybody; the time that it stands still begins anew."""
    ctx.tx.run(due.MOVED, outcome=outcome.id)


def new_owner(ctx: Context, owner: str) -> dict[str, object]:
    """Parameters that give an outcome to a new owner, with the position in the record of that news:
    0 if the owner took it itself."""
    return {"new_owner": owner, "news": place_of_news(ctx, owner)}


def place_of_news(ctx: Context, owner: str) -> int:
    """The position in the record of news for an outcome's owner; 0 if the owner does it itself."""
    return 0 if is_own(ctx, owner) else ctx.place_in_record + 1


def is_own(ctx: Context, owner: str) -> bool:
    """Return whether the agent itself does this, in a run: its own changes are no news to it."""
    return ctx.actor.agent_id == owner and ctx.actor.run_id is not None


def news_for_dependents(ctx: Context, outcome: str) -> None:
    """Mark and wake those who depend on an outcome that ended."""
    ctx.tx.run(
        due.NEWS_FOR_DEPENDENTS,
        outcome=outcome,
        actor=ctx.actor.agent_id if ctx.actor.agent_id and ctx.actor.run_id else "",
        place=ctx.place_in_record + 1,
    )
    ctx.tx.run(due.DEPENDENTS_MOVED, outcome=outcome)
    for owner in dict.fromkeys(
        ctx.tx.all(outcome_statements.OWNERS_OF_DEPENDENTS, outcome=outcome)
    ):
        acted(ctx, owner)
        wake(ctx, owner, "what it waited for is finished")


def lease_of(ctx: Context, agent: AgentId) -> Lease:
    """Return the lease of an agent; one that was never woken gets one, and sleeps."""
    lease = ctx.tx.one(leases.LEASE, agent=agent)
    if lease is not None:
        return lease
    asleep = Lease(
        agent_id=agent,
        company_id=CompanyId(ctx.company or ""),
        wake_seq=0,
        done_seq=0,
        epoch=0,
        lease_until=None,
        worker=None,
        due_at=ctx.now,
        why="",
        idle_runs=0,
        failures=0,
        spared=0,
        told=None,
    )
    ctx.tx.add(asleep)
    return asleep


def look_now(ctx: Context, agent: AgentId) -> None:
    """Make everything that an agent could work on due now, because it is to be started."""
    lease_of(ctx, agent)
    ctx.tx.run(leases.LOOK, agent=agent, at=ctx.now, what_for=Look.START)


def acted(ctx: Context, agent: str) -> None:
    """End the pause of an agent's nudges and reviews, because it made, took, reopened or freed work
    itself, in a run; others change nothing about it."""
    if not is_own(ctx, agent):
        return
    lease = ctx.tx.one(leases.LEASE, agent=agent)
    if lease is not None and lease.rests:
        ctx.tx.run(leases.ACT, agent=agent, place=ctx.place_in_record + 1)


def wake_afresh(ctx: Context, agent: str, why: str) -> bool:
    """Wake an agent, and forget its failures, so that no backoff delays it; returns as `wake`."""
    ctx.tx.run(leases.CALM, agent=agent)
    return wake(ctx, agent, why)


def gather(ctx: Context, agent: str, pause: Micros) -> None:
    """Start an agent that was woken just now a little later, so that one run sees more."""
    ctx.tx.run(leases.DELAY, agent=agent, due=ctx.now + pause)


def hold(ctx: Context, agent: str) -> None:
    """Keep an agent from being started until it is woken again."""
    ctx.tx.run(leases.HOLD, agent=agent)
