"""Rights that follow from the tree and from ownership, listed beside those that were granted."""

from typing import Any

from remit.ids import OutcomeId
from remit.model.organisation.agent import Agent
from remit.services import shapes
from remit.services.command import Context
from remit.store.messaging import channels as channel_statements
from remit.store.organisation import agents as statements
from remit.store.work import outcomes as outcome_statements

#: Owners of very many outcomes list them with the outcome tools.
MOST_OUTCOMES = 200


def rights(ctx: Context, agent: Agent) -> list[shapes.DerivedGrantShape]:
    """Return the rights of an agent without a grant, each with its reason."""
    page: Any = {"company": agent.company_id, "after": "", "limit": MOST_OUTCOMES}
    derived_rights = [
        _right(agent, "outcome", agent.id, "read", "the mandate; the work is below it"),
        _right(agent, "kb_file", agent.state_file_id, "write", "its memory"),
        _right(agent, "kb_file", agent.log_file_id, "read", "its activity log"),
    ]
    if agent.boss_id is not None:
        derived_rights.append(_right(agent, "message", agent.boss_id, "use", "its boss"))
    derived_rights += [
        _right(agent, "message", report.id, "use", f"its report {report.name}")
        for report in ctx.tx.all(statements.REPORTS, agent=agent.id)
    ]
    derived_rights += [
        _right(agent, "channel", bound.adapter_type, "use", "is bound to it")
        for bound in ctx.tx.all(channel_statements.BINDINGS, agent=agent.id, **page)
    ]
    derived_rights += [
        _right(agent, "outcome", outcome.id, "write", "delegated it, and will judge it")
        for outcome in ctx.tx.all(outcome_statements.DELEGATED_BY, agent=agent.id)
    ]
    for outcome in ctx.tx.all(outcome_statements.OWNED_BY, owner=agent.id, **page):
        if outcome.id != OutcomeId(agent.id):
            level, reason = (
                ("read", "it was delegated here; the work is below it")
                if outcome.delegated
                else ("write", "owns it")
            )
            derived_rights.append(_right(agent, "outcome", outcome.id, level, reason))
    return derived_rights


def _right(
    agent: Agent, kind: str, resource_id: str, level: str, reason: str
) -> shapes.DerivedGrantShape:
    return {
        "id": None,
        "holder_id": agent.id,
        "resource": f"{kind}:{resource_id}",
        "level": level,
        "mode": "allow",
        "reason": reason,
        "derived": True,
    }
