"""Deletion of an agent that was never approved: its row, its place, its documents."""

from remit.errors import Conflict
from remit.model.organisation.agent import Agent
from remit.services.command import Context
from remit.store.organisation import governance as statements
from remit.store.work import outcomes as outcome_statements


def delete(ctx: Context, agent: Agent) -> None:
    """Delete an agent. Its approval, the comments on that, and the events stay."""
    _check_no_member_has_it(ctx, agent)
    mandate = ctx.tx.one(outcome_statements.OUTCOME, outcome=agent.id)
    own = mandate is not None and mandate.owner_id == agent.id
    for statement in statements.FORGET_AGENT:
        ctx.tx.run(statement, agent=agent.id)
    if own:
        for statement in statements.FORGET_OUTCOME:
            ctx.tx.run(statement, outcome=agent.id)
    for file_id in (agent.state_file_id, agent.log_file_id, *([agent.id] if own else [])):
        _delete_paper(ctx, file_id)
    # Outcome and agent refer to each other; either order is fine until the commit.
    ctx.tx.run(statements.DELETE_AGENT, agent=agent.id)
    if own:
        ctx.tx.run(statements.DELETE_OUTCOME, outcome=agent.id)


def _check_no_member_has_it(ctx: Context, agent: Agent) -> None:
    """Refuse while a member's part of the company is this agent: what part they get instead is for
    a person to decide."""
    member = ctx.tx.one(statements.MEMBER_OVER, agent=agent.id)
    if member is not None:
        raise Conflict(
            f"{member}'s part of the company is {agent.name}.",
            "Give that member another part first.",
        )


def _delete_paper(ctx: Context, file_id: str) -> None:
    """Delete a document of the agent, or keep it as a file if it was sent to others."""
    if ctx.tx.one(statements.SENT_FILE, file=file_id) is not None:
        ctx.tx.run(statements.KEEP_AS_FILE, file=file_id)
        return
    for statement in statements.DELETE_FILE:
        ctx.tx.run(statement, file=file_id)
