"""The company as it was: who held what, who reported to whom, what a file said."""

from __future__ import annotations

from typing import Any

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, NotFound
from remit.services import lookup, views
from remit.services.command import Context, query
from remit.store import agents as agent_statements
from remit.store import files as file_statements
from remit.store import grants as grant_statements


@query("history.grants_at")
def grants_at(
    ctx: Context,
    *,
    company: str | None,
    at: str,
    agent: str | None = None,
    after: str = "",
    limit: int = 100,
) -> list[dict[str, Any]]:
    """The grants that were live at a time, of one agent or of everybody."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="grants")
    holder = lookup.agent_ever(ctx, agent).id if agent else None
    found = ctx.tx.all(
        grant_statements.LIVE_AT,
        company=ctx.company,
        at=_past(ctx, at),
        holder=holder or "",
        any_holder=holder is None,
        after=after,
        limit=limit,
    )
    return [views.grant(grant) for grant in found]


@query("history.org_at")
def org_at(ctx: Context, *, company: str | None, at: str) -> list[dict[str, Any]]:
    """Who reported to whom at a time."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="org")
    found = []
    for place in ctx.tx.all(agent_statements.PLACES_AT, company=ctx.company, at=_past(ctx, at)):
        agent = ctx.tx.one(agent_statements.AGENT, company=ctx.company, agent=place.agent_id)
        assert agent is not None, "agents are never deleted"
        found.append(
            {
                "id": agent.id,
                "name": agent.name,
                "role": agent.role.value,
                "reports_to": place.boss_id,
                "boss_user_id": place.boss_user_id,
                "since": views.time(place.since),
            }
        )
    return found


@query("history.version_at")
def version_at(ctx: Context, *, file: str, at: str) -> int:
    """The number of the version that a file had at a time."""
    found = lookup.file(ctx, file, Action.FILE_READ)
    number = ctx.tx.one(file_statements.VERSION_AT, file=found.id, at=_past(ctx, at))
    if number is None:
        raise NotFound("The file did not exist then.", "Choose a later time.")
    return int(number)


def _past(ctx: Context, text: str) -> Micros:
    at = from_iso(text)
    if at > ctx.now:
        raise BadInput("That time has not come yet.", "Choose a time in the past.")
    return at
