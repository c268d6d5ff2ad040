"""Cycles of waits: found in the transaction that closes one, and reported.

An outcome depends on its open parts and prerequisites; one that waits depends on the awaited agent,
and so on the outcomes of that agent that wait themselves. No agent in a cycle gets further by
waiting.
"""

from collections.abc import Iterable

from remit.ids import AgentId
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.model.work.wait import Wait
from remit.services import lookup, shapes
from remit.services.context import Context
from remit.store.work import outcomes as outcome_statements
from remit.store.work import waits as statements

#: The search gives up after so many outcomes: nobody could follow a longer cycle.
MOST_SEEN = 1000
MOST_OF_AN_AGENT = 50


def told(ctx: Context, wait: Wait) -> shapes.CycleToldShape:
    """Return the cycle that a new wait closed, if any, for the answer of the call.

    The nearest common boss of the agents in it is told, or the board.
    """
    start = ctx.tx.all(statements.OUTCOMES_OF_WAIT, wait=wait.id)
    if wait.awaited_agent_id is None or not start:
        return {}
    return _told(ctx, _cycle(ctx, start, _held_up(ctx, wait.awaited_agent_id)))


def told_of_prerequisites(
    ctx: Context, outcome: Outcome, prerequisites: list[Outcome]
) -> shapes.CycleToldShape:
    """Return the cycle that new prerequisites closed, if any, like `told`."""
    return _told(ctx, _cycle(ctx, [outcome], prerequisites))


def _told(ctx: Context, circle: list[Outcome] | None) -> shapes.CycleToldShape:
    if circle is None:
        return {}
    agents = list(dict.fromkeys(outcome.owner_id for outcome in circle))
    names = [lookup.name_of(ctx, agent) for agent in agents]
    listed = " waits for ".join([*names, names[0]])
    _tell_boss(ctx, agents, listed, circle)
    return {
        "cycle": {
            "agents": names,
            "outcomes": [outcome.id for outcome in circle],
            "sentence": f"Nobody gets on by waiting: {listed}. Decide what you can yourself.",
        }
    }


def _cycle(
    ctx: Context, start: list[Outcome], depended_on: Iterable[Outcome]
) -> list[Outcome] | None:
    """Return the path of outcomes from the dependencies of `start` back to it, if there is one."""
    goal = {outcome.id for outcome in start}
    came_from: dict[str, Outcome | None] = {}
    pending: list[Outcome] = []

    def go_on(outcomes: Iterable[Outcome], before: Outcome | None) -> None:
        for outcome in outcomes:
            if outcome.id not in came_from and outcome.status is OutcomeStatus.OPEN:
                came_from[outcome.id] = before
                pending.append(outcome)

    go_on(depended_on, None)
    while pending and len(came_from) <= MOST_SEEN:
        here = pending.pop()
        if here.id in goal:
            return _way_to(here, came_from)
        for wait in ctx.tx.all(statements.WAITS_OF_OUTCOME, outcome=here.id):
            if wait.awaited_agent_id is not None:
                if wait.awaited_agent_id in {outcome.owner_id for outcome in start}:
                    return [*start[:1], *reversed(_way_to(here, came_from))]
                go_on(_held_up(ctx, wait.awaited_agent_id), here)
        go_on(_needed(ctx, here), here)
    return None


def _way_to(outcome: Outcome, came_from: dict[str, Outcome | None]) -> list[Outcome]:
    way = [outcome]
    while (before := came_from[way[-1].id]) is not None:
        way.append(before)
    return way


def _held_up(ctx: Context, agent: str) -> list[Outcome]:
    return ctx.tx.all(statements.HELD_UP_OF, agent=agent, limit=MOST_OF_AN_AGENT)


def _needed(ctx: Context, outcome: Outcome) -> list[Outcome]:
    parts = ctx.tx.all(outcome_statements.CHILDREN, outcome=outcome.id, limit=MOST_OF_AN_AGENT)
    return [*parts, *ctx.tx.all(outcome_statements.BLOCKERS, outcome=outcome.id)]


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
