"""Search and actions: a page that works without scripts, and what Ctrl-K shows of it."""

from typing import Any, Final

from starlette.routing import Route

from remit.entrypoints.web.site import Page, Site, Visit
from remit.entrypoints.web.text import event_text
from remit.entrypoints.web.text.actions import ACTIONS
from remit.services.knowledge import files
from remit.services.record import search
from remit.services.screens import finding

MOST_EVENTS: Final = 4
#: What can be done with an agent that was found.
_WITH_AGENT: Final = (
    ("Write to {name}", "/agents/{id}?tab=mail", "mail"),
    ("Move {name}", "/org/change?agent={id}", "org"),
    ("Permissions of {name}", "/agents/{id}?tab=rights", "key"),
    ("Runs of {name}", "/agents/{id}?tab=runs", "run"),
)
_PLACES: Final = {
    "agent": "/agents/",
    "approval": "/approvals/",
    "outcome": "/outcomes/",
    "file": "/files/",
    "mail": "/inbox/",
    "person": "/companies/{company}/people/",
    "run": "/runs/",
}


def routes(site: Site) -> list[Route]:
    return [site.page("/search", show)]


async def show(visit: Visit) -> Page:
    sought = " ".join(visit.argument("q").split())[: finding.LONGEST]
    inside = bool(sought and visit.argument("inside"))
    page = await visit.look(lambda visit: _found(visit, sought, inside))
    for one in page.values["texts"]:  # what is shown of a text was read, which is recorded
        await visit.site.app.gate(visit.who, files.read, file=one["id"])
    return page


def _found(visit: Visit, sought: str, inside: bool) -> Page:
    things: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    if sought and visit.company is not None:
        company = visit.company_id
        things = [
            {**one, "address": _PLACES[one["kind"]].format(company=company) + one["id"]}
            for one in visit.ask(finding.find, company=company, words=sought)
        ]
        if inside:
            found = visit.ask(files.containing, company=company, words=sought, letters=True)
            texts = found["files"]
        if visit.whole:  # else asking would be refused, and the refusal would be in the record
            newest = visit.ask(search.events, company=company, words=sought, limit=MOST_EVENTS)
            events = event_text.told(visit, newest["events"])
    return visit.show(
        "search.html",
        sought=sought,
        inside=inside,
        things=things,
        texts=texts,
        events=events,
        actions=_actions(visit, sought, things),
        further=_further(visit, sought),
    )


def _actions(visit: Visit, sought: str, things: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Actions whose names have all words, and those for the agent that was meant."""
    company = visit.company["id"] if visit.company else ""
    wanted = sought.lower().split()
    found = [
        {"words": words, "address": _here(visit, address, company), "icon": icon, "key": key}
        for words, address, icon, board, key in ACTIONS
        if all(part in words.lower() for part in wanted) and (visit.decides or not board)
    ]
    for one in [thing for thing in things if thing["kind"] == "agent"][:1]:
        found += [
            _action(words.format(name=one["name"]), address.format(id=one["id"]), icon)
            for words, address, icon in _WITH_AGENT
        ]
    return found


def _further(visit: Visit, sought: str) -> list[dict[str, str]]:
    """Where else it can be looked for; reading contents is recorded, so it takes a step."""
    if not sought or visit.company is None:
        return []
    inside, record = visit.link("/search", q=sought, inside="1"), visit.link("/events", q=sought)
    found = [_action(f"Search contents of files and mail for “{sought}”", inside, "search")]
    if visit.whole:
        found.append(_action(f"Search the record for “{sought}”", record, "record"))
    return found


def _action(words: str, address: str, icon: str) -> dict[str, str]:
    return {"words": words, "address": address, "icon": icon, "key": ""}


def _here(visit: Visit, address: str, company: str) -> str:
    path, hash_, part = address.format(company=company).partition("#")
    return visit.link(path) + hash_ + part
