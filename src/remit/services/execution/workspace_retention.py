"""Retention of workspaces: the runs and agents whose folders a machine still has."""

from collections.abc import Sequence
from typing import NamedTuple

from remit.clock import Micros
from remit.ids import AgentId, RunId, is_id
from remit.model.execution.run import ENDED_WELL
from remit.services.command import FOR_REMIT, Context, query
from remit.services.organisation import tree
from remit.store.execution import runs as statements
from remit.store.organisation import agents as agent_statements


class Ended(NamedTuple):
    """The end of a run; `at` is None while it is live. `purged`: its agent is gone for good."""

    id: str
    well: bool
    at: Micros | None
    purged: bool


@query("leftovers.of_runs", FOR_REMIT)
def of_runs(ctx: Context, *, runs: Sequence[str]) -> list[Ended]:
    """Return the ends of those of the runs that exist."""
    rows = [ctx.tx.one(statements.RUN, run=RunId(run)) for run in runs if is_id(run)]
    return [
        Ended(run.id, run.status in ENDED_WELL, run.ended_at, bool(_purged(ctx, [run.agent_id])))
        for run in rows
        if run is not None
    ]


@query("leftovers.purged", FOR_REMIT)
def purged(ctx: Context, *, agents: Sequence[str]) -> list[str]:
    """Return those of the agents that are purged, so that their workspaces can go."""
    return _purged(ctx, agents)


def _purged(ctx: Context, agents: Sequence[str]) -> list[str]:
    rows = [
        ctx.tx.one(agent_statements.AGENT_ANYWHERE, agent=AgentId(agent))
        for agent in agents
        if is_id(agent)
    ]
    return [agent.id for agent in rows if agent is not None and tree.is_purged(ctx, agent)]
