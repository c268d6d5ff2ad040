"""Small queries that many pages share."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from remit.entrypoints.web.site import Visit
from remit.model.organisation.grant import ACTIONS
from remit.services.knowledge import files
from remit.services.screens import agent_page, name_lookup
from remit.services.work import outcomes

MOST_OFFERED: Final = 200


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


def grantable(visit: Visit, company: str) -> list[tuple[str, str]]:
    """Resources that permissions can name, for a field that is typed: (value, words)."""
    newest = visit.ask(files.browse, company=company, limit=MOST_OFFERED)
    staff = visit.ask(agent_page.roster, company=company, limit=MOST_OFFERED)
    return [
        *((f"kb_file:{file['id']}", f"File: {file['description']}") for file in newest),
        *((f"message:agent:{agent['name']}", f"Mail to {agent['name']}") for agent in staff),
        *((action, f"Action: {action}") for action in sorted(ACTIONS)),
    ]


def open_outcomes(visit: Visit, company: str, agent: str) -> list[tuple[str, str]]:
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
