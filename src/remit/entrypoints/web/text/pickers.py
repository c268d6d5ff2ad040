"""Options of pickers: things of the company that a field may name."""

from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Any, Final

from remit.entrypoints.web.site import Visit
from remit.errors import RemitError
from remit.services.command import Verb
from remit.services.connections import repos, secrets
from remit.services.people import users
from remit.services.screens import agent_page
from remit.services.work import outcomes

#: Most options of a kind; others can be typed.
MOST: Final = 200

Offered = list[tuple[str, str]]


def of(visit: Visit, *kinds: str) -> dict[str, Offered]:
    """Return the options by kind, as far as the visitor may see them: (value, label)."""
    options: dict[str, Offered] = {}
    for kind in kinds or KINDS:
        try:
            options[kind] = KINDS[kind](visit)
        except RemitError:
            options[kind] = []  # without the right to list them, a name can still be typed
    return options


def _agents(visit: Visit) -> Offered:
    roster = visit.ask(agent_page.roster, company=visit.company_id, limit=MOST)
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
        rows = visit.ask(verb, company=visit.company_id, limit=MOST)
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
