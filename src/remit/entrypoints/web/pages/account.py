"""The visitor's own account: tokens, sessions, linked chats and notifications."""

from typing import Any, Final

from starlette.routing import Route

from remit.channels import registry
from remit.entrypoints.web.pages.company_settings import shown_once
from remit.entrypoints.web.pages.front.home import KINDS
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries
from remit.errors import Unavailable
from remit.model.messaging import notice
from remit.model.messaging.notice import Way
from remit.model.text import plural
from remit.services.chat import accounts
from remit.services.command import Verb
from remit.services.connections import notice_rules, notices
from remit.services.people import sessions, tokens, users

#: Kinds of notices and their labels.
NOTICES: Final = (
    *((kind, KINDS[kind][0]) for kind in notice.KINDS),
    (notice.ALL, "Everything else"),
    (notice.ESCALATED, "Left undecided by others"),
)


def routes(site: Site) -> Routes:
    own = {"webhook": set_webhook, "chat-code": link_chat, "tokens": new_token, "link": new_link}

    def does(path: str, verb: Verb[..., Any], message: str) -> Route:
        return site.does(f"/account/{path}", verb, show, "/account", message)

    return [
        site.page("/account", show),
        *(
            route
            for to, act in own.items()
            for route in site.answered(f"/account/{to}", act, show, "/account")
        ),
        *site.forms("/account", show, notices=set_rules, test_notice=try_out),
        does("linked/{account}/revoke", accounts.revoke, "{label} unlinked."),
        does("sessions/{session}/end", sessions.end_one, "Session ended."),
        does("tokens/{token}/revoke", tokens.revoke, "Token revoked."),
        site.action("/account/end-others", end_others, show),
    ]


def show(visit: Visit) -> Page:
    scopes = [company.get("scope_agent_id") for company in visit.companies]
    return visit.show(
        "account.html",
        sessions=visit.ask(sessions.mine),
        tokens=[row for row in visit.ask(tokens.listing) if row["revoked_at"] is None][::-1],
        linked=visit.ask(accounts.mine),
        linkable=[channel.type for channel in registry.installed.all() if channel.vouches],
        notify=_notify(visit),
        names=common_queries.names(visit, scopes),
    )


def _notify(visit: Visit) -> dict[str, Any] | None:
    """Notification settings of the visitor in the current company."""
    if visit.company is None:
        return None
    shown = visit.ask(notices.show, company=visit.company_id)
    members = visit.ask(users.listing, company=visit.company_id) if visit.whole else []
    others = [member["name"] for member in members if member["role"] == "board"]
    return {
        **shown,
        "command": _command(visit, shown["user_id"]),
        "kinds": NOTICES,
        "ways": [
            *(("usual", "Usual ways"), ("none", "Nowhere")),
            *((way, way.capitalize()) for way in (*Way, *registry.installed.types())),
        ],
        "deputies": [
            ("", "The next member of the board"),
            *((name, name) for name in others if name != visit.me["name"]),
        ],
    }


def _command(visit: Visit, user: str) -> str:
    """Return whether the operator set a command, or the reason why its file is not trusted."""
    try:
        return "set" if visit.site.app.notifier.command_of(user) else "none"
    except Unavailable as error:
        return error.sentence


async def set_webhook(visit: Visit) -> Done | Page:
    """Set the webhook in the form's company, whichever is current in other tabs by now."""
    visit.enter(visit.form.text("company"))
    url = visit.form.maybe("webhook")
    hook = await visit.do(notices.set_webhook, company=visit.company_id, url=url)
    if url is None:
        return Done(visit.link("/account"), "Webhook removed.")
    return visit.show("webhook_key.html", key=hook["key"], webhook=hook["webhook"])


async def set_rules(visit: Visit) -> Done:
    """Set all rules of the form; omitted ones are off."""
    visit.enter(visit.form.text("company"))
    form = visit.form
    chosen = {kind: form.text(f"way-{kind}") or "usual" for kind, _ in NOTICES}
    known: dict[str, list[str] | None] = {"usual": None, "none": []}
    routes = {kind: known.get(way, way.split(",")) for kind, way in chosen.items()}
    await visit.do(
        notice_rules.change,
        company=visit.company_id,
        routes=routes,
        quiet=form.text("quiet"),
        time_zone=form.text("time_zone"),
        urgent=form.every("urgent"),
        digest=form.every("digest"),
        digest_at=form.text("digest_at"),
        after_minutes=form.number("after_minutes"),
        escalate_minutes=form.number("escalate_minutes"),
        escalate_to=form.text("escalate_to"),
    )
    return Done(visit.link("/account"), "Notice rules saved.")


async def try_out(visit: Visit) -> Done:
    visit.enter(visit.form.text("company"))
    by_command = _command(visit, visit.me["id"]) == "set"
    tried = await visit.do(notices.try_out, company=visit.company_id, by_command=by_command)
    ways = " and by ".join(tried["ways"])
    return Done(visit.link("/account"), f"A test goes out by {ways}; what becomes of it is below.")


async def new_token(visit: Visit) -> Page:
    fields = visit.form.arguments(tokens.create, ("label", "days"))
    token = await visit.do(tokens.create, **fields)
    return shown_once(visit, "A token of yours", visit.me, token, "/account")


async def new_link(visit: Visit) -> Page:
    """Show a sign-in link for another browser of the same person."""
    link = await visit.do(sessions.create_link)
    return shown_once(visit, "A link for another browser", visit.me, link, "/account")


async def link_chat(visit: Visit) -> Page:
    code = await visit.do(accounts.code, kind=visit.form.text("kind"))
    return visit.show("link_code.html", made=code)


async def end_others(visit: Visit) -> Done:
    ended = (await visit.do(sessions.end_others))["ended"]
    return Done("/account", f"{plural(ended, 'other session')} ended.")
