"""Questions and schedules as lists, for whoever may see them."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from remit.authority import Action
from remit.model.principal import ActorKind
from remit.model.question import Question
from remit.model.schedule import Schedule
from remit.services import lookup
from remit.services.command import Context
from remit.store.statement import Statement

T = TypeVar("T", Question, Schedule)


def listed(
    ctx: Context,
    statement: Statement[T],
    *,
    agent: str | None,
    ended_too: bool,
    after: str,
    limit: int,
) -> list[T]:
    """Those of one agent; for a person, of everybody in their part of the company."""
    whose = lookup.agent(ctx, agent).id if agent else ctx.actor.agent_id
    if whose is not None:
        look(ctx, whose)
    found: list[T] = []
    in_reach = cache(lambda agent: may_look(ctx, agent))
    while True:
        page = ctx.tx.all(
            statement,
            company=ctx.company,
            after=after,
            agent=whose or "",
            any_agent=whose is None,
            ended_too=ended_too,
            limit=limit,
        )
        found += [one for one in page if whose is not None or in_reach(one.agent_id)]
        if len(page) < limit or len(found) >= limit:
            return found[:limit]
        after = page[-1].id


def look(ctx: Context, agent: str) -> None:
    """End the call unless the caller may see what this agent left open."""
    ctx.require(_looking(ctx), on=f"agent:{agent}", home=agent, place=ctx.place(agent))


def may_look(ctx: Context, agent: str) -> bool:
    return ctx.decide(_looking(ctx), home=agent, place=ctx.place(agent)).allowed


def _looking(ctx: Context) -> Action:
    """Agents see what they could cancel; people may look without a say."""
    if ctx.actor.kind is ActorKind.AGENT:
        return Action.THREAD_CANCEL
    return Action.MESSAGE_READ
