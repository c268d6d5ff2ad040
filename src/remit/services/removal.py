"""Deleting an agent that was never taken on: its row, its place, its papers."""

from __future__ import annotations

from remit.model.agent import Agent
from remit.model.approval import Approval
from remit.services.command import Context
from remit.store import governance as statements
from remit.store import outcomes as outcome_statements


def delete(ctx: Context, agent: Agent, approval: Approval) -> None:
    """Nothing of it is left but its approval, the comments on that, and the record of events."""
    mandate = ctx.tx.one(outcome_statements.OUTCOME, company=ctx.company, outcome=agent.id)
    own = mandate is not None and mandate.owner_id == agent.id
    ctx.tx.run(statements.FORGET_APPROVAL_AGENT, approval=approval.id, now=ctx.now)
    ctx.tx.run(statements.DELETE_CONFIGS, agent=agent.id)
    ctx.tx.run(statements.DELETE_PLACES, agent=agent.id)
    if own:
        ctx.tx.run(statements.DELETE_EDGES, outcome=agent.id)
        ctx.tx.run(statements.DELETE_BLOCKERS, outcome=agent.id)
    papers = [agent.state_file_id, agent.log_file_id, *([agent.id] if own else [])]
    ctx.tx.run(statements.UNHOUSE_FILES, agent=agent.id)
    for file_id in papers:
        for statement in statements.DELETE_FILE:
            ctx.tx.run(statement, file=file_id)
    # Outcome and agent refer to each other; either order is fine until the commit.
    ctx.tx.run(statements.DELETE_AGENT, agent=agent.id)
    if own:
        ctx.tx.run(statements.DELETE_OUTCOME, outcome=agent.id)
