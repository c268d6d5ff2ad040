"""Options of pickers: things of the company that a field may name."""

from collections.abc import Callable
from typing import Any, Final

from remit.entrypoints.web.site import Visit
from remit.errors import RemitError
from remit.services.connections import repos, secrets
from remit.services.people import users
from remit.services.screens import agent_page
from remit.services.work import outcomes

#: Most options of a kind; others can be typed.
MOST: Final = 200

Offered = list[tuple[str, str]]


def of(visit: Visit, *kinds: str) -> dict[str, Offered]:
    """Return the options by kind, as far as the visitor may see them: (value, label)."""
    found: dict[str, Offered] = {}
    for kind in kinds or KINDS:
        try:
            found[kind] = KINDS[kind](visit)
        except RemitError:
            found[kind] = []  # without the right to list them, a name can still be typed
    return found


def _agents(visit: Visit) -> Offered:
    found = visit.ask(agent_page.roster, company=visit.company_id, limit=MOST)
    return [(one["name"], _words(one)) for one in found]


def _words(agent: dict[str, Any]) -> str:
    return ", ".join(filter(None, (agent["role"], agent.get("title"))))


def _users(visit: Visit) -> Offered:
    if not visit.whole:
        return []
    return [
        (one["name"], one["role"])
        for one in visit.ask(users.listing, company=visit.company_id, limit=MOST)
    ]


def _addresses(visit: Visit) -> Offered:
    agents = [(f"agent:{name}", words) for name, words in _agents(visit)]
    return [
        ("board", "everybody on the board"),
        *agents,
        *((f"user:{name}", role) for name, role in _users(visit)),
    ]


def _secrets(visit: Visit) -> Offered:
    if not (visit.whole and visit.decides):
        return []
    found = visit.ask(secrets.listing, company=visit.company_id, limit=MOST)
    return [(one.name, one.name) for one in found]


def _repos(visit: Visit) -> Offered:
    if not (visit.whole and visit.decides):
        return []
    found = visit.ask(repos.listing, company=visit.company_id, limit=MOST)
    return [(one["name"], one["url"]) for one in found]


def _outcomes(visit: Visit) -> Offered:
    if not visit.whole:
        return []
    found = visit.ask(outcomes.listing, company=visit.company_id, limit=MOST)
    return [(one["id"], one["title"]) for one in found]


KINDS: Final[dict[str, Callable[[Visit], Offered]]] = {
    "agent": _agents,
    "user": _users,
    "address": _addresses,
    "secret": _secrets,
    "repo": _repos,
    "outcome": _outcomes,
}
