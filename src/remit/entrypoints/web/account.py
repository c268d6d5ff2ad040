"""One's own account: who one is here, and where one is signed in."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web import asking
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import Unavailable
from remit.model.text import plural
from remit.services import notices, sessions


def routes(site: Site) -> list[Route]:
    return [
        site.page("/account", show),
        site.action("/account/sessions/{session}/end", end, show),
        site.action("/account/end-others", end_others, show),
    ]


async def show(visit: Visit) -> Response:
    scopes = [one.get("scope_agent_id") for one in visit.companies]
    return await visit.show(
        "account.html",
        sessions=await visit.ask(sessions.mine),
        notify=await _notify(visit),
        names=await asking.names(visit, scopes),
    )


async def _notify(visit: Visit) -> dict[str, Any] | None:
    """How the visitor is told outside of what needs them in the company that is looked at."""
    if visit.company is None:
        return None
    shown = await visit.ask(notices.show, company=visit.company_id)
    try:
        command = "set" if visit.site.app.notifier.command_of(shown["user_id"]) else "none"
    except Unavailable as error:
        command = error.sentence
    return {**shown, "command": command}


async def end(visit: Visit) -> Done:
    await visit.do(sessions.end_one, session=visit.argument("session"))
    return Done("/account", "The session is over. What it had open says so.")


async def end_others(visit: Visit) -> Done:
    ended = (await visit.do(sessions.end_others))["ended"]
    return Done("/account", f"{plural(ended, 'other session')} ended.")
