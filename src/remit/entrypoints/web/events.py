"""The record: what happened, who did it, by whose authority, and whether it is whole."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web import happenings
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import Conflict, NotFound
from remit.services import events, searching

PAGE: Final = 50
MOST_FAULTS: Final = 5


def routes(site: Site) -> list[Route]:
    return [
        site.page("/events", show),
        site.page("/events/{event}", why),
        site.action("/events/verify", verify, show),
    ]


async def show(visit: Visit) -> Response:
    if not visit.whole:
        # Asking would be refused, and the refusal would be in the record.
        return await visit.show("events_closed.html")
    wanted = {
        "action": visit.argument("action").strip()[:100],
        "actor": visit.argument("actor").strip()[:200],
        "refused": "1" if visit.argument("refused") else "",
    }
    found: dict[str, Any] = {"events": [], "before": None, "last": 0}
    nobody: NotFound | None = None
    text = visit.argument("before")
    before = int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
    try:
        found = await visit.ask(
            searching.events,
            company=visit.company_id,
            action=wanted["action"],
            actor=wanted["actor"],
            refused=bool(wanted["refused"]),
            before=before,
            limit=PAGE,
        )
    except NotFound as error:
        nobody = error
    rows = await happenings.told(visit, found["events"])
    return await visit.show(
        "events.html",
        events=rows,
        wanted=wanted,
        nobody=nobody,
        nouns=happenings.NOUNS,
        known={noun for noun, _ in happenings.NOUNS},
        filtered=any(wanted.values()),
        first_page=before is None,
        full=len(rows) == PAGE,
        more=visit.link("/events", **wanted, before=found["before"]) if found["before"] else "",
        looked_to=found["before"] if len(rows) < PAGE else None,
    )


async def why(visit: Visit) -> Response:
    """One event, and the steps from it back to the person who made it possible."""
    if not visit.whole:
        return await visit.show("events_closed.html")
    found = await visit.ask(events.why, event=visit.argument("event"))
    return await visit.show(
        "event.html",
        steps=await happenings.told(visit, found["steps"]),
        authorised_by=(found["authorised_by"] or "").partition(":")[2],
    )


async def verify(visit: Visit) -> Done:
    """Go through the whole record."""
    found = await visit.ask(
        events.verify, company=visit.company_id, expect=visit.form.maybe("expect")
    )
    if not found["ok"]:
        faults = [fault["sentence"] for fault in found["faults"]]
        more = f" And {len(faults) - MOST_FAULTS} more." if len(faults) > MOST_FAULTS else ""
        told = " ".join(one[:1].upper() + one[1:] for one in faults[:MOST_FAULTS])
        raise Conflict(
            f"The record does not hold. {told}{more}",
            "Somebody changed the database. Compare it with a backup.",
        )
    return Done(
        visit.link("/events"),
        f"The record is whole: {found['events']:,} events. Its last hash is {found['hash']}",
    )
