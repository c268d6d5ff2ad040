"""Termination of an agent, or of an agent with everybody below it.

A subtree ends from the bottom up, as if its agents were terminated one by one: mandates close, and
their other outcomes go to the next above, in the end to the boss of the subtree.
"""

from remit.errors import Conflict
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.work.outcome import OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.services.organisation import tree
from remit.services.work import outcome_ending
from remit.store.organisation import agents as statements
from remit.store.work import outcomes as outcome_statements


def end(ctx: Context, agent: Agent, *, subtree: bool) -> shapes.TerminationShape:
    """Terminate an agent, and with `subtree` all below it; returns the agents and outcomes
    concerned."""
    tree.check_transition(agent, AgentStatus.TERMINATED)
    if agent.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{agent.name} awaits approval.", "Reject the hire, or withdraw it, instead."
        )
    if not subtree and ctx.tx.one(statements.LIVING_REPORT, agent=agent.id) is not None:
        raise Conflict(
            f"{agent.name} still has reports.",
            "Terminate it with everybody below it (`--subtree`), or move its reports first.",
        )
    below = ctx.tx.all(statements.SUBTREE_OF_AGENT, agent=agent.id)
    living = [member for member in below if member.status is not AgentStatus.TERMINATED]
    going = sorted(living, key=lambda member: (len(ctx.boss_chain(member.id)), member.name))
    owned = {
        outcome.id: outcome
        for member in going
        for outcome in ctx.tx.all(
            outcome_statements.OWNED_BY,
            owner=member.id,
            after="",
            limit=outcome_ending.MOST_AT_ONCE,
        )
        if outcome.status is OutcomeStatus.OPEN and outcome.kind is OutcomeKind.WORK
    }
    for ended_agent in reversed(going):
        _end_one(ctx, ended_agent.id)
    closed: list[shapes.TitledShape] = []
    moved: list[shapes.MovedOutcomeShape] = []
    for outcome in owned.values():
        # Outcomes are never deleted.
        now = ctx.tx.existing(outcome_statements.OUTCOME, outcome=outcome.id)
        brief: shapes.TitledShape = {"id": now.id, "title": now.title}
        if now.status is not OutcomeStatus.OPEN:
            closed.append(brief)
        else:
            moved.append({**brief, "owner_id": now.owner_id, "owner": _name(ctx, now.owner_id)})
    return {
        "agents_ended": [{"id": member.id, "name": member.name} for member in going],
        "outcomes_closed": closed,
        "outcomes_moved": moved,
    }


def _end_one(ctx: Context, agent_id: str) -> None:
    agent = lookup.known_agent(ctx, agent_id)
    if agent.status is AgentStatus.TERMINATED:
        return  # it ended with a mandate that it was hired for
    # Every agent has a mandate.
    mandate = ctx.tx.existing(outcome_statements.OUTCOME, outcome=agent.id)
    if mandate.status is OutcomeStatus.OPEN and mandate.owner_id == agent.id:
        outcome_ending.finish_tree(
            ctx, mandate, OutcomeStatus.CLOSED, f"{agent.name} was terminated"
        )
    else:
        outcome_ending.deactivate(ctx, agent)


def _name(ctx: Context, agent_id: str) -> str:
    agent = lookup.agent_row(ctx, agent_id)
    return agent.name if agent is not None else agent_id
