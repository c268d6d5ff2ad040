"""What a machine has to know of the runs and agents whose folders it still has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remit.ids import AgentId, RunId, is_id
from remit.model.run import ENDED_WELL
from remit.services import tree
from remit.services.command import Context, query
from remit.services.running import system_only
from remit.store import agents as agent_statements
from remit.store import runs as statements


@query("leftovers.of_runs")
def of_runs(ctx: Context, *, runs: Sequence[str]) -> list[dict[str, Any]]:
    """Those of the runs that there are, and how and when they ended; for Remit itself."""
    system_only(ctx)
    found = [ctx.tx.one(statements.RUN, run=RunId(run)) for run in runs if is_id(run)]
    return [
        {
            "id": run.id,
            "well": run.status in ENDED_WELL,
            "at": run.ended_at,
            "purged": bool(_purged(ctx, [run.agent_id])),
        }
        for run in found
        if run is not None
    ]


@query("leftovers.purged")
def purged(ctx: Context, *, agents: Sequence[str]) -> list[str]:
    """Those of the agents that are gone for good; for Remit itself."""
    system_only(ctx)
    return _purged(ctx, agents)


def _purged(ctx: Context, agents: Sequence[str]) -> list[str]:
    found = [
        ctx.tx.one(agent_statements.AGENT_ANYWHERE, agent=AgentId(agent))
        for agent in agents
        if is_id(agent)
    ]
    return [agent.id for agent in found if agent is not None and tree.is_purged(ctx, agent)]
