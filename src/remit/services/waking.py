"""Waking agents: whatever gives an agent something to do says so in the same transaction.

Who cannot be started is not woken: a person at work, somebody paused, stopped, gone or not yet
taken on. What lets them be started again wakes them.
"""

from __future__ import annotations

from collections.abc import Iterable

from remit.services.command import Context
from remit.store import leases
from remit.store import outcomes as outcome_statements


def wake(ctx: Context, agent: str, why: str) -> bool:
    """Have an agent started as soon as may be, if there is something for it to do."""
    if ctx.tx.one(leases.CAN_BE_WOKEN, agent=agent, now=ctx.now) is None:
        return False
    ctx.tx.run(leases.WAKE, agent=agent, company=ctx.company, due=ctx.now, why=why)
    return True


def wake_all(ctx: Context, agents: Iterable[str], why: str) -> None:
    for agent in dict.fromkeys(agents):
        wake(ctx, agent, why)


def wake_dependents(ctx: Context, outcome: str) -> None:
    """Whoever waited for this outcome may be able to go on."""
    wake_all(
        ctx,
        ctx.tx.all(outcome_statements.OWNERS_OF_DEPENDENTS, outcome=outcome),
        "what it waited for is finished",
    )


def wake_afresh(ctx: Context, agent: str, why: str) -> bool:
    """The same, and what went wrong before does not make it wait."""
    ctx.tx.run(leases.CALM, agent=agent, now=ctx.now)
    return wake(ctx, agent, why)


def hold(ctx: Context, agent: str) -> None:
    """It is not to be started until somebody says so."""
    ctx.tx.run(leases.HOLD, agent=agent)
