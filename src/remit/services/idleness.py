"""Why an agent is not running."""

from __future__ import annotations

from typing import Any

from remit.adapters import registry
from remit.model.agent import HUMAN, Agent, AgentStatus
from remit.model.outcome import Look, Outcome
from remit.model.run import Lease
from remit.model.text import plural
from remit.services import (
    accounts,
    budgets,
    halts,
    ledger,
    limits,
    lookup,
    mending,
    tree,
    views,
    waits,
)
from remit.services.command import Context, query
from remit.services.running import require_look
from remit.store import due, leases
from remit.store import jobs as job_statements
from remit.store import outcomes as outcome_statements
from remit.store import runs as statements


@query("idleness.why_idle")
def why_idle(ctx: Context, *, agent: str) -> dict[str, Any]:
    """Why an agent is not running, in one word and one sentence."""
    found = lookup.agent_anywhere(ctx, agent)
    require_look(ctx, found.id, f"agent:{found.id}")
    word, sentence = reason(ctx, found)
    return {"agent_id": found.id, "name": found.name, "reason": word, "sentence": sentence}


def reason(ctx: Context, agent: Agent) -> tuple[str, str]:
    """One word and one sentence, for views that show it beside other things."""
    lease = ctx.tx.one(leases.LEASE, agent=agent.id)
    if ctx.tx.one(statements.LIVE_RUN_OF, agent=agent.id) is not None:
        return "running", "It is running."
    if agent.status is AgentStatus.PENDING_APPROVAL:
        return "approval", "It waits for its hire to be approved."
    if agent.status is AgentStatus.TERMINATED:
        return "terminated", "It does not work here any more."
    halt = halts.covering(ctx, agent.id)
    if halt is not None:
        return "halted", halts.explain(ctx, halt)
    if agent.status is AgentStatus.PAUSED:
        return "paused", "It is paused; somebody has to resume it."
    if agent.status is AgentStatus.ERROR:
        told = (lease.told if lease and lease.told else "all its runs failed").removesuffix(".")
        return "stopped", f"It does not work: {told}. {mending.step(agent)}"
    if tree.is_vacant(ctx, agent):
        return "no_person", (
            "It is the seat of a person, and nobody holds it; its mail reaches the board. "
            f"`remit org seat {agent.name} --user NAME` gives it to somebody."
        )
    if ctx.tx.one(leases.HAS_WORK, agent=agent.id, now=ctx.now) is None:
        return _nothing_to_do(ctx, agent)
    if agent.adapter_type == HUMAN:
        return "person", "A person holds its seat."
    if lease is not None and lease.held:
        return "cancelled", "Its last run was ended by somebody; it waits for something new."
    over = ledger.used_up(ctx, agent.id)
    if over is not None:
        return "budget", f"{budgets.sentence(ctx, over)} It goes on when there is some again."
    reached = limits.keeping(ctx, agent)
    if reached is not None:
        return "limit", f"{limits.sentence(ctx, reached)} {limits.next_step(ctx, reached)}"
    missing = _without_adapter(agent)
    if missing is not None:
        return "no_adapter", missing
    closed = accounts.holding(ctx, agent, lease.held_by if lease else None)
    if closed is not None:
        return "held", f"{accounts.sentence(closed)} {accounts.step(closed)}"
    if lease is None or not lease.awake:
        return "waking", "It has something to do and will be woken within the minute."
    if lease.due_at > ctx.now:
        return "backoff", f"{_why_backoff(lease)} It is tried again at {views.time(lease.due_at)}."
    return "no_slot", "It waits for a free slot of a worker."


def _without_adapter(agent: Agent) -> str | None:
    """Why nobody here can run it: its adapter is not known."""
    if agent.adapter_type in registry.types():
        return None
    return f"There is no adapter {agent.adapter_type!r} here. Install it, or choose another."


def _why_backoff(lease: Lease) -> str:
    if lease.failures:
        why = (lease.told or "for an unknown reason").removesuffix(".")
        return f"Its last run failed ({why})."
    return "Its last run left its mail where it was."


def _nothing_to_do(ctx: Context, agent: Agent) -> tuple[str, str]:
    """Why nothing is due to it, from what it waits for to what it simply has not."""
    waiting = waits.of_agent(ctx, agent.id)
    if waiting:
        return "waiting", waits.sentence(ctx, waiting)
    if (held := _held_jobs(ctx, agent)) is not None:
        return "held", held
    later = ctx.tx.one(due.NEXT_LOOK_OF, agent=agent.id, now=ctx.now)
    if later is not None:
        outcome = _later(ctx, agent, later)
        at = views.time(later)
        if outcome.look_for == Look.DEFERRAL:
            return "deferred", f"{outcome.title!r} was put off until {at}."
        return "reviewing_at", f"Nothing is new; {outcome.title!r} is looked at again at {at}."
    if ctx.tx.all(due.LEFT_ALONE, agent=agent.id, now=ctx.now, limit=1):
        return "nothing_new", (
            "It has looked at what it could work on, and nothing happened since. Mail, a change or "
            "a decision starts it."
        )
    for outcome in ctx.tx.all(outcome_statements.OWNED_BY, owner=agent.id, after="", limit=50):
        if outcome.open_prereqs and outcome.status.value == "open":
            others = "one other" if outcome.open_prereqs == 1 else f"{outcome.open_prereqs} other"
            plural = "outcome" if outcome.open_prereqs == 1 else "outcomes"
            return "blocked", f"{outcome.title!r} waits for {others} {plural}."
    return "no_work", "It has no mail and nothing that can be worked on."


def _held_jobs(ctx: Context, agent: Agent) -> str | None:
    """What its background jobs wait for, whose answers would start it."""
    waiting = ctx.tx.all(job_statements.HELD_OF, agent=agent.id)
    closed = next((found for job in waiting if (found := accounts.holding_job(ctx, job))), None)
    if closed is None:
        return None
    verb = "wait" if len(waiting) > 1 else "waits"
    return (
        f"{plural(len(waiting), 'background job')} of it {verb}. {accounts.sentence(closed)} "
        f"{accounts.step(closed)}"
    )


def _later(ctx: Context, agent: Agent, at: int) -> Outcome:
    """What the clock brings back then."""
    return ctx.tx.all(due.LOOKED_AT, agent=agent.id, at=at)[0]
