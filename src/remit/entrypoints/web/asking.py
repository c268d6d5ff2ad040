"""Small questions that many pages have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from remit.entrypoints.web.site import Visit
from remit.services import naming, portrait


class Names(dict[str, str]):
    """What somebody is called; the end of the id for whoever is not known any more."""

    def __missing__(self, one: str) -> str:
        return f"…{one[-8:]}" if one else "nobody"


async def names(visit: Visit, ids: Iterable[str | None]) -> Names:
    wanted = {one for one in ids if one}
    if not wanted or visit.company is None:
        return Names()
    found = Names()
    for company in visit.companies:
        left = wanted - found.keys()
        if left:
            more = await visit.ask(naming.names, company=company["id"], ids=sorted(left))
            found.update(more)
    return found


async def called(
    visit: Visit, company: str, approvals: Iterable[Mapping[str, Any]]
) -> dict[str, str]:
    """The names of what approvals ask to use, for those that may be known."""
    named = {
        resource
        for one in approvals
        if one["type"] == "capability_use"
        and isinstance(resource := one["payload"].get("resource"), str)
    }
    if not named:
        return {}
    found = await visit.ask(portrait.resources, company=company, named=named)
    return {resource: about["name"] for resource, about in found.items()}
