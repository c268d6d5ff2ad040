"""The company as of a time: grants, the tree, versions of files."""

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, NotFound
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.subjects import require_file
from remit.services.verbs import Added
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import grants as grant_statements
from remit.store.work import files as file_statements


@query("history.grants_at", Added("besides_mail", False))
def grants_at(
    ctx: Context,
    *,
    company: str | None,
    at: str,
    agent: str | None = None,
    besides_mail: bool = False,
    after: str = "",
    limit: int = 100,
) -> list[shapes.GrantShape]:
    """List the grants that were live at a time, of one agent or of everybody. `besides_mail` leaves
    out the grants that came by mail."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="grants")
    holder = lookup.agent_ever(ctx, agent).id if agent else None
    live = grant_statements.LIVE_AT_BESIDES_MAIL if besides_mail else grant_statements.LIVE_AT
    grants = ctx.tx.all(live, at=_past(ctx, at), holder=holder, after=after, limit=limit)
    return [views.grant(grant) for grant in grants]


@query("history.org_at")
def org_at(ctx: Context, *, company: str | None, at: str) -> list[shapes.PastPlaceShape]:
    """List the places in the tree of agents as of a time."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="org")
    places: list[shapes.PastPlaceShape] = []
    for place in ctx.tx.all(agent_statements.PLACES_AT, at=_past(ctx, at)):
        # Agents are never deleted.
        agent = ctx.tx.existing(agent_statements.AGENT, agent=place.agent_id)
        places.append(
            {
                "id": agent.id,
                "name": agent.name,
                "role": agent.role.value,
                "reports_to": place.boss_id,
                "boss_user_id": place.boss_user_id,
                "since": views.time(place.since),
            }
        )
    return places


@query("history.version_at")
def version_at(ctx: Context, *, file: str, at: str) -> int:
    """Return the number of the version that a file had at a time."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_READ, file_row)
    number = ctx.tx.one(file_statements.VERSION_AT, file=file_row.id, at=_past(ctx, at))
    if number is None:
        raise NotFound("The file did not exist then.", "Choose a later time.")
    return int(number)


def _past(ctx: Context, text: str) -> Micros:
    at = from_iso(text)
    if at > ctx.now:
        raise BadInput("That time has not come yet.", "Choose a time in the past.")
    return at
