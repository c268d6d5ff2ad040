"""Search and actions: a page that works without scripts; Ctrl-K shows parts of it."""

from typing import Any, Final
from urllib.parse import parse_qsl

from remit.entrypoints.web.pages.setup import connections, running
from remit.entrypoints.web.site import Page, Routes, Site, Visit
from remit.entrypoints.web.text import event_text
from remit.entrypoints.web.text.actions import ACTIONS, OPERATORS, RARE
from remit.entrypoints.web.text.words import status as in_words
from remit.services.command import Answer
from remit.services.knowledge import files
from remit.services.record import search
from remit.services.screens import finding

MOST_EVENTS: Final = 4
#: Most agents offered for a verb, such as "pause len".
MOST_MEANT: Final = 3
#: Actions on a found agent: words, address, icon, and the verb that is sent.
_WITH_AGENT: Final = (
    ("Write to {name}", "/agents/{id}?tab=mail", "mail", ""),
    ("Move {name}", "/org/change?agent={id}", "org", ""),
    ("Permissions of {name}", "/agents/{id}?tab=rights", "key", ""),
    ("Runs of {name}", "/agents/{id}?tab=runs", "run", ""),
    ("Configure {name}", "/agents/{id}?tab=configuration", "settings", ""),
    ("Wake {name}", "/agents/{id}/control", "go", "wake"),
    ("Pause {name}", "/agents/{id}/control", "stop", "pause"),
    ("Resume {name}", "/agents/{id}/control", "go", "resume"),
    ("Terminate {name}…", "/agents/{id}/terminate", "cross", ""),
)
_VERBS: Final = {words.split()[0].lower() for words, *_ in _WITH_AGENT}
#: Verbs without effect in each status of an agent.
_POINTLESS: Final = {
    "paused": {"wake", "pause"},
    "error": {"wake"},
    "terminated": {"wake", "pause", "resume"},
    "pending_approval": {"wake", "pause", "resume"},
}
_PLACES: Final = {
    "agent": "/agents/",
    "approval": "/approvals/",
    "outcome": "/outcomes/",
    "file": "/files/",
    "mail": "/inbox/",
    "person": "/companies/{company}/people/",
    "run": "/runs/",
}


def routes(site: Site) -> Routes:
    return [site.page("/search", show)]


async def show(visit: Visit) -> Page:
    sought = " ".join(visit.argument("q").split())[: finding.LONGEST]
    inside = bool(sought and visit.argument("inside"))
    page = await visit.look(lambda visit: _found(visit, sought, inside))
    for file in page.values["texts"]:  # what is shown of a text was read, which is recorded
        await visit.site.app.gate(visit.who, files.read, file=file["id"])
    return page


def _found(visit: Visit, sought: str, inside: bool) -> Page:
    things: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    if sought and visit.company is not None:
        company = visit.company_id
        things = [
            {
                **match,
                "address": _PLACES[match["kind"]].format(company=company) + match["id"],
                "shown": _worded(match["about"]),
            }
            for match in visit.ask(finding.find, company=company, words=sought)
        ]
        if inside:
            page = visit.ask(files.containing, company=company, words=sought, letters=True)
            texts = page["files"]
        if visit.whole:  # else the query would be refused, and the refusal recorded
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


def _worded(about: str) -> str:
    """Replace the last word of a description, a status, by the word that other pages use."""
    before, comma, last = about.rpartition(", ")
    return f"{before}{comma}{in_words(last)}"


def _actions(visit: Visit, sought: str, things: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Actions whose names contain all words, and those on the agent that was named."""
    company = visit.company["id"] if visit.company else ""
    wanted = sought.lower().split()
    known = [*ACTIONS, *(RARE if wanted else ())]
    if wanted and visit.me["operator"]:
        known += OPERATORS
    actions = [
        _action(words, _here(visit, address, company), icon, key=key)
        for words, address, icon, board, key in known
        if visit.decides or not board
    ]
    if wanted and visit.company is not None:
        actions += [*_set_up(visit), *_brake(visit)]
    actions = [
        action for action in actions if all(part in action["words"].lower() for part in wanted)
    ]
    for agent in [thing for thing in things if thing["kind"] == "agent"][:1]:
        actions += _with_agent(visit, agent, "")
    verb, _, name = sought.lower().partition(" ")
    if name and verb in _VERBS and visit.company is not None:
        meant = visit.ask(finding.find, company=company, words=name.removeprefix("to "))
        for agent in [thing for thing in meant if thing["kind"] == "agent"][:MOST_MEANT]:
            actions += _with_agent(visit, agent, verb)
    return actions


def _set_up(visit: Visit) -> list[dict[str, Any]]:
    """Actions for all kinds of set-up: list, and add."""
    actions = []
    for noun in (*connections.ALL, *running.ALL):
        actions.append(_action(noun.title, visit.link(noun.path), noun.icon))
        if noun.may_add(visit):
            words = f"{noun.verb} {noun.one}"
            actions.append(_action(words, visit.link(f"{noun.path}/new"), "plus"))
    return actions


def _brake(visit: Visit) -> list[dict[str, Any]]:
    """Actions that stop and resume the company, for those who may."""
    if not visit.decides:
        return []
    part = "the company" if visit.whole else "your part of the company"
    fields = {"agent": visit.part or ""}
    here = f"/companies/{visit.company_id}"
    return [
        _action(f"Stop {part}", f"{here}/stop", "stop", fields=fields),
        _action(f"Resume {part}", f"{here}/go", "go", fields=fields),
    ]


def _with_agent(visit: Visit, agent: dict[str, Any], verb: str) -> list[dict[str, Any]]:
    """Actions on an agent; only the given verb if there is one."""
    status = str(agent["about"]).rpartition(", ")[2]
    pointless = _POINTLESS.get(status, {"resume"})
    return [
        _action(
            *(words.format(name=agent["name"]), address.format(id=agent["id"]), icon),
            fields={"verb": sent} if sent else None,
        )
        for words, address, icon, sent in _WITH_AGENT
        if words.lower().startswith(verb)
        and sent not in pointless
        and (visit.decides or (not sent and not words.startswith(("Move", "Terminate"))))
    ]


def _further(visit: Visit, sought: str) -> list[dict[str, Any]]:
    """Wider searches, as a second step, because reading contents is recorded."""
    if not sought or visit.company is None:
        return []
    inside, record = visit.link("/search", q=sought, inside="1"), visit.link("/events", q=sought)
    actions = [_action(f"Search contents of files and mail for “{sought}”", inside, "search")]
    if visit.whole:
        actions.append(_action(f"Search the record for “{sought}”", record, "record"))
    return actions


def _action(words: str, address: str, icon: str, *, key: str = "", fields: Any = None) -> Answer:
    """Describe an action; with `fields` it is a form, else a link to a page."""
    return {"words": words, "address": address, "icon": icon, "key": key, "fields": fields}


def _here(visit: Visit, address: str, company: str) -> str:
    path, hash_, part = address.format(company=company).partition("#")
    path, _, query = path.partition("?")
    return visit.link(path, **dict(parse_qsl(query))) + hash_ + part
