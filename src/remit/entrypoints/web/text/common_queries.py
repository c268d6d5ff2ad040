"""Queries that many pages share: names, and options of pickers: things that a field may name."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import Any, Final

from remit.entrypoints.web.site import Visit
from remit.errors import RemitError
from remit.model.organisation.grant import ACTIONS
from remit.services.command import Verb
from remit.services.connections import repos, secrets
from remit.services.knowledge import files
from remit.services.people import users
from remit.services.screens import agent_page, name_lookup
from remit.services.work import outcomes

#: Most options of a kind; others can be typed.
MOST_OFFERED: Final = 200

Offered = list[tuple[str, str]]


class Names(dict[str, str]):
    """Names by id; the end of the id if the name is unknown."""

    def __missing__(self, key: str) -> str:
        return f"…{key[-8:]}" if key else "nobody"


def names(visit: Visit, ids: Iterable[str | None]) -> Names:
    wanted = {key for key in ids if key}
    if not wanted or visit.company is None:
        return Names()
    known = Names()
    for company in visit.companies:
        unknown = wanted - known.keys()
        if unknown:
            more = visit.ask(name_lookup.names, company=company["id"], ids=sorted(unknown))
            known.update(more)
    return known


def grantable(visit: Visit, company: str) -> Offered:
    """Resources that permissions can name, for a field that is typed: (value, words)."""
    newest = visit.ask(files.browse, company=company, limit=MOST_OFFERED)
    staff = visit.ask(agent_page.roster, company=company, limit=MOST_OFFERED)
    return [
        *((f"kb_file:{file['id']}", f"File: {file['description']}") for file in newest),
        *((f"message:agent:{agent['name']}", f"Mail to {agent['name']}") for agent in staff),
        *((action, f"Action: {action}") for action in sorted(ACTIONS)),
    ]


def open_outcomes(visit: Visit, company: str, agent: str) -> Offered:
    """Return the id and the title of open outcomes of an agent, as options of a field."""
    rows = visit.ask(
        outcomes.listing, company=company, owner=agent, status="open", limit=MOST_OFFERED
    )
    return [(outcome["id"], outcome["title"]) for outcome in rows]


def called(visit: Visit, company: str, approvals: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names of the resources that approvals ask to use, as far as the visitor may know them."""
    named = {
        resource
        for approval in approvals
        if approval["type"] == "capability_use"
        and isinstance(resource := approval["payload"].get("resource"), str)
    }
    if not named:
        return {}
    resources = visit.ask(agent_page.resources, company=company, named=named)
    return {resource: about["name"] for resource, about in resources.items()}


def picks(visit: Visit, *kinds: str) -> dict[str, Offered]:
    """Return the options by kind, as far as the visitor may see them: (value, label)."""
    options: dict[str, Offered] = {}
    for kind in kinds or KINDS:
        try:
            options[kind] = KINDS[kind](visit)
        except RemitError:
            options[kind] = []  # without the right to list them, a name can still be typed
    return options


def _agents(visit: Visit) -> Offered:
    roster = visit.ask(agent_page.roster, company=visit.company_id, limit=MOST_OFFERED)
    return [(agent["name"], _words(agent)) for agent in roster]


def _words(agent: dict[str, Any]) -> str:
    return ", ".join(filter(None, (agent["role"], agent.get("title"))))


def _offered(
    verb: Verb[..., Any],
    sent: Callable[[Any], str],
    words: Callable[[Any], str],
    *,
    board: bool = False,
) -> Callable[[Visit], Offered]:
    """Return a query of the things that a verb lists, for visitors who see the whole company;
    with `board`, only for those on the board."""

    def offer(visit: Visit) -> Offered:
        if not visit.whole or (board and not visit.decides):
            return []
        rows = visit.ask(verb, company=visit.company_id, limit=MOST_OFFERED)
        return [(sent(row), words(row)) for row in rows]

    return offer


_users = _offered(users.listing, itemgetter("name"), itemgetter("role"))


def _addresses(visit: Visit) -> Offered:
    agents = [(f"agent:{name}", words) for name, words in _agents(visit)]
    return [
        ("board", "everybody on the board"),
        *agents,
        *((f"user:{name}", role) for name, role in _users(visit)),
    ]


KINDS: Final[dict[str, Callable[[Visit], Offered]]] = {
    "agent": _agents,
    "user": _users,
    "address": _addresses,
    "secret": _offered(secrets.listing, attrgetter("name"), attrgetter("name"), board=True),
    "repo": _offered(repos.listing, itemgetter("name"), itemgetter("url"), board=True),
    "outcome": _offered(outcomes.listing, itemgetter("id"), itemgetter("title")),
}
