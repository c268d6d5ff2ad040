"""Recovery of agents in `error`: unknown adapters, unreadable settings, or a day of failed runs.

The adapter of such an agent is checked at growing intervals; once the check passes, the agent works
again without a person.
"""

import json
from typing import NamedTuple

from remit.authority import Action
from remit.errors import Conflict
from remit.model.organisation.agent import Agent, AgentStatus
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.execution import run_endings, waking
from remit.services.organisation import tree
from remit.store.execution import leases
from remit.store.organisation import agents as agent_statements

MOST_AT_ONCE = 100


class Broken(NamedTuple):
    """An agent or a set-up that a worker should check, with a configuration that uses it."""

    id: str
    adapter_type: str
    config: dict[str, object] | None


@query("mending.to_check", FOR_REMIT)
def to_check(ctx: Context) -> list[Broken]:
    """Return the agents in `error` whose adapter is due for a check."""
    agents = [
        ctx.tx.one(agent_statements.AGENT_ANYWHERE, agent=agent_id)
        for agent_id in ctx.tx.all(leases.IN_ERROR, limit=MOST_AT_ONCE)
    ]
    return [
        Broken(agent.id, agent.adapter_type, json.loads(agent.adapter_config))
        for agent in agents
        if agent is not None
    ]


@command("mending.checked", FOR_REMIT)
def checked(ctx: Context, *, agent: str, usable: bool, cause: str = "") -> shapes.EndedShape:
    """Report of a worker's check of the adapter of an agent in `error`."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.RUN_CHANGE, on=f"agent:{agent_row.id}", home=agent_row.id)
    if agent_row.status is not AgentStatus.ERROR:
        raise Conflict(f"{agent_row.name} is not in error any more.")
    if usable:
        tree.set_status(ctx, agent_row, AgentStatus.IDLE)
        # The failures stay counted: after one more the agent is in `error` again.
        ctx.tx.run(leases.LOOK_AT, agent=agent_row.id, due=ctx.now)
        waking.wake(ctx, agent_row.id, "its adapter can be used")
    else:
        run_endings.give_up(ctx, agent_row)
    ctx.record(
        "agent.check",
        f"agent:{agent_row.id}",
        {"usable": usable, "cause": cause[:500], "name": agent_row.name},
    )
    status = AgentStatus.IDLE if usable else AgentStatus.ERROR
    return {"id": agent_row.id, "status": status.value}


def step(agent: Agent) -> str:
    """The next step for a person about an agent in `error`."""
    return (
        f"`remit adapter test --agent {agent.name}` says what is missing; fix it, or choose "
        f"another with `remit agent set {agent.name} adapterType=…`. `remit agent resume "
        f"{agent.name}` tries it at once."
    )
