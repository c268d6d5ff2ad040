"""What those are called whose ids stand in something that was shown."""

from __future__ import annotations

from collections.abc import Iterable

from remit.authority import Action
from remit.ids import AgentId, UserId
from remit.services import lookup
from remit.services.command import Context, query
from remit.store import people

MOST = 2000


@query
def names(ctx: Context, *, company: str | None, ids: Iterable[str]) -> dict[str, str]:
    """Agents of the company and people, by id; whoever is not known is left out."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="names")
    found: dict[str, str] = {}
    for one in sorted(set(ids))[:MOST]:
        agent = lookup.agent_row(ctx, AgentId(one))
        if agent is not None and agent.company_id == ctx.company:
            found[one] = agent.name
            continue
        user = ctx.tx.one(people.USER, user=UserId(one))
        if user is not None and (
            user.id == ctx.actor.id
            or ctx.tx.one(people.MEMBERSHIP, company=ctx.company, user=user.id) is not None
        ):
            found[one] = user.name
    return found
