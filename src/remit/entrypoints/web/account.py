"""One's own account: who one is here, and where one is signed in."""

from __future__ import annotations

from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from remit.entrypoints.web import asking
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import Unavailable
from remit.model.text import plural
from remit.services import notices, sessions


def routes(site: Site) -> list[Route]:
    return [
        site.page("/account", show),
        site.action("/account/webhook", set_webhook, show),
        site.page("/account/webhook", back),
        site.action("/account/test-notice", try_out, show),
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


async def back(visit: Visit) -> Response:
    """A key is shown once; whoever comes back looks at the account."""
    return RedirectResponse(visit.link("/account"), 303)


async def _notify(visit: Visit) -> dict[str, Any] | None:
    """How the visitor is told outside of what needs them in the company that is looked at."""
    if visit.company is None:
        return None
    shown = await visit.ask(notices.show, company=visit.company_id)
    return {**shown, "command": _command(visit, shown["user_id"])}


def _command(visit: Visit, user: str) -> str:
    """Whether whoever runs the instance named a command, or why it is not believed."""
    try:
        return "set" if visit.site.app.notifier.command_of(user) else "none"
    except Unavailable as error:
        return error.sentence


async def set_webhook(visit: Visit) -> Done | Response:
    """For the company that the form was about, whichever is looked at elsewhere by now."""
    visit.enter(visit.form.text("company"))
    url = visit.form.maybe("webhook")
    made = await visit.do(notices.set_webhook, company=visit.company_id, url=url)
    if url is None:
        return Done(visit.link("/account"), "Nothing is posted any more.")
    return await visit.show("webhook_key.html", key=made["key"], webhook=made["webhook"])


async def try_out(visit: Visit) -> Done:
    visit.enter(visit.form.text("company"))
    by_command = _command(visit, visit.me["id"]) == "set"
    tried = await visit.do(notices.try_out, company=visit.company_id, by_command=by_command)
    ways = " and by ".join(tried["ways"])
    return Done(visit.link("/account"), f"A test goes out by {ways}; what becomes of it is below.")


async def end(visit: Visit) -> Done:
    await visit.do(sessions.end_one, session=visit.argument("session"))
    return Done("/account", "The session is over. What it had open says so.")


async def end_others(visit: Visit) -> Done:
    ended = (await visit.do(sessions.end_others))["ended"]
    return Done("/account", f"{plural(ended, 'other session')} ended.")
