"""Cycles of waits: found in the transaction that closes one, and reported.

An outcome depends on its open parts and prerequisites; one that waits depends on the awaited agent,
and so on the outcomes of that agent that wait themselves, and on its desk if that waits. No agent
in a cycle gets further by waiting.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from remit.ids import AgentId
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.model.work.wait import Wait
from remit.services import lookup, shapes
from remit.services.context import Context
from remit.store.work import outcomes as outcome_statements
from remit.store.work import waits as statements

#: The search gives up after so many outcomes: nobody could follow a longer cycle.
MOST_SEEN = 1000
MOST_OF_AN_AGENT = 50


@dataclass(frozen=True)
class _Place:
    """A part of a circle: an outcome that waits, or the desk of an agent that could work on one."""

    agent_id: AgentId
    outcome: Outcome | None = None

    @property
    def key(self) -> str:
        return f"desk:{self.agent_id}" if self.outcome is None else self.outcome.id


def told(ctx: Context, wait: Wait) -> shapes.CycleToldShape:
    """Return the cycle that a new wait closed, if any, for the answer of the call.

    The nearest common boss of the agents in it is told, or the board.
    """
    if wait.awaited_agent_id is None:
        return {}
    held_up = ctx.tx.all(statements.OUTCOMES_OF_WAIT, wait=wait.id)
    start = _desk_of(ctx, wait.agent_id) if wait.desk else _places(held_up)
    if not start:
        return {}
    return _told(ctx, _cycle(ctx, start, _held_up(ctx, wait.awaited_agent_id)))


def told_of_prerequisites(
    ctx: Context, outcome: Outcome, prerequisites: list[Outcome]
) -> shapes.CycleToldShape:
    """Return the cycle that new prerequisites closed, if any, like `told`."""
    return _told(ctx, _cycle(ctx, _places([outcome]), _places(prerequisites)))


def _told(ctx: Context, circle: list[_Place] | None) -> shapes.CycleToldShape:
    if circle is None:
        return {}
    agents = list(dict.fromkeys(place.agent_id for place in circle))
    names = [lookup.name_of(ctx, agent) for agent in agents]
    listed = " waits for ".join([*names, names[0]])
    outcomes = [place.outcome for place in circle if place.outcome is not None]
    _tell_boss(ctx, agents, listed, outcomes)
    return {
        "cycle": {
            "agents": names,
            "outcomes": [outcome.id for outcome in outcomes],
            "sentence": f"Nobody gets on by waiting: {listed}. Decide what you can yourself.",
        }
    }


def _cycle(ctx: Context, start: list[_Place], depended_on: Iterable[_Place]) -> list[_Place] | None:
    """Return the path from the dependencies of `start` back to it, if there is one."""
    goal = {place.key for place in start}
    waiting = {place.agent_id for place in start}
    came_from: dict[str, _Place | None] = {}
    pending: list[_Place] = []

    def go_on(places: Iterable[_Place], before: _Place | None) -> None:
        for place in places:
            if place.key not in came_from:
                came_from[place.key] = before
                pending.append(place)

    go_on(depended_on, None)
    while pending and len(came_from) <= MOST_SEEN:
        here = pending.pop()
        if here.key in goal:
            return _way_to(here, came_from)
        for wait in _waits_at(ctx, here):
            if wait.awaited_agent_id is not None:
                if wait.awaited_agent_id in waiting:
                    return [*start[:1], *reversed(_way_to(here, came_from))]
                go_on(_held_up(ctx, wait.awaited_agent_id), here)
        if here.outcome is not None:
            go_on(_needed(ctx, here.outcome), here)
    return None


def _way_to(place: _Place, came_from: dict[str, _Place | None]) -> list[_Place]:
    way = [place]
    while (before := came_from[way[-1].key]) is not None:
        way.append(before)
    return way


def _places(outcomes: Iterable[Outcome]) -> list[_Place]:
    return [
        _Place(outcome.owner_id, outcome)
        for outcome in outcomes
        if outcome.status is OutcomeStatus.OPEN
    ]


def _waits_at(ctx: Context, place: _Place) -> list[Wait]:
    if place.outcome is not None:
        return ctx.tx.all(statements.WAITS_OF_OUTCOME, outcome=place.outcome.id)
    return ctx.tx.all(statements.WAITS_OF_DESK, agent=place.agent_id, limit=MOST_OF_AN_AGENT)


def _held_up(ctx: Context, agent: AgentId) -> list[_Place]:
    """The outcomes of an agent that wait, and its desk, if that waits."""
    outcomes = ctx.tx.all(statements.HELD_UP_OF, agent=agent, limit=MOST_OF_AN_AGENT)
    return [*_places(outcomes), *_desk_of(ctx, agent)]


def _desk_of(ctx: Context, agent: AgentId) -> list[_Place]:
    """The desk of an agent, if it waits and has something that could be worked on."""
    if ctx.tx.one(statements.NEWEST_OF_DESK, agent=agent) is None:
        return []
    works = ctx.tx.all(outcome_statements.ACTIONABLE, owner=agent, limit=2)
    return [_Place(agent)] if any(outcome.kind is OutcomeKind.WORK for outcome in works) else []


def _needed(ctx: Context, outcome: Outcome) -> list[_Place]:
    parts = ctx.tx.all(outcome_statements.CHILDREN, outcome=outcome.id, limit=MOST_OF_AN_AGENT)
    return _places([*parts, *ctx.tx.all(outcome_statements.BLOCKERS, outcome=outcome.id)])


def _tell_boss(ctx: Context, agents: list[AgentId], listed: str, circle: list[Outcome]) -> None:
    from remit.services.governance import (
        approval_engine,  # it imports mail, which imports this
    )

    boss = _common_boss(ctx, agents)
    titles = "\n".join(f"- {outcome.title} (outcome:{outcome.id})" for outcome in circle)
    approval_engine.tell(
        ctx,
        f"agent:{boss}" if boss else "board",
        "Agents wait for each other",
        f"{listed}. Nobody in this circle gets on by waiting; decide for one of them.\n\n{titles}",
    )


def _common_boss(ctx: Context, agents: list[AgentId]) -> AgentId | None:
    """Return the nearest agent above all of them that is none of them."""
    chains = [ctx.boss_chain(agent) for agent in agents]
    common = set(chains[0]).intersection(*chains[1:]) - set(agents)
    return next((AgentId(agent) for agent in chains[0] if agent in common), None)
