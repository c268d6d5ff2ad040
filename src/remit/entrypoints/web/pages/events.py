"""The record: events with actor and authority, and its verification."""

from itertools import groupby
from typing import Any, Final

from remit.entrypoints.web.site import MOST_ROWS, Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, event_text, run_text, time_range
from remit.errors import Conflict, NotFound
from remit.services.command import Answer
from remit.services.record import events, search
from remit.services.screens import agent_page, record_page

MOST_FAULTS: Final = 5


def routes(site: Site) -> Routes:
    return [
        site.page("/events", show),
        site.page("/events/{event}", why),
        site.action("/events/verify", verify, show),
    ]


def show(visit: Visit) -> Page:
    if not visit.whole:
        # The query would be refused, and the refusal recorded.
        return visit.show("events_closed.html")
    span = time_range.chosen(visit)
    wanted = {
        "q": visit.argument("q").strip()[: search.LONGEST_WORDS],
        "action": visit.argument("action").strip()[:100],
        "actor": visit.argument("actor").strip()[:200],
        "refused": "1" if visit.argument("refused") else "",
        "every": "1" if visit.argument("every") else "",
    }
    before = visit.number("before", digits=18)
    # Search results are not folded; only the whole record is.
    folded = not any(wanted[name] for name in ("q", "action", "refused", "every"))
    page: Answer = {"lines": [], "before": None, "last": 0}
    nobody: NotFound | None = None
    try:
        page = _events(visit, wanted, span, before, folded=folded)
    except NotFound as error:
        nobody = error
    lines = _told(visit, page["lines"])
    now = visit.site.app.clock.now()
    return visit.show(
        "events.html",
        days=[
            (day, list(day_lines))
            for day, day_lines in groupby(lines, lambda line: time_range.day_of(line["at"], now))
        ],
        wanted=wanted,
        span=span,
        ranges=time_range.RANGES,
        agents=visit.ask(agent_page.roster, company=visit.company_id),
        nobody=nobody,
        nouns=event_text.NOUNS,
        known={noun for noun, _ in event_text.NOUNS},
        filtered=any(value for name, value in wanted.items() if name != "every")
        or span.name != "all",
        folded=folded,
        last=page["last"],
        goes_on=before is None and span.until is None and not nobody,
        more=_address(visit, wanted, span, before=page["before"]) if page["before"] else "",
        looked_to=page["before"] if len(page["lines"]) < MOST_ROWS and not folded else None,
        address=lambda **change: _address(visit, wanted, span, **change),
    )


def _address(visit: Visit, wanted: dict[str, str], span: time_range.Range, **change: Any) -> str:
    """Address of the page with other filters."""
    name = span.name if span.name != "all" else ""
    where = {} if "range" in change else {**span.query, "range": name}
    return visit.link("/events", **{**wanted, **where, **change})


def _events(
    visit: Visit, wanted: Answer, span: time_range.Range, before: int | None, *, folded: bool
) -> Answer:
    """Lines of the record; without folding each has one event."""
    where: Answer = {
        "company": visit.company_id,
        "actor": wanted["actor"],
        "since": span.since,
        "until": span.until,
        "before": before,
        "limit": MOST_ROWS,
    }
    if folded:
        return visit.ask(record_page.page, **where)
    refused, action = bool(wanted["refused"]), wanted["action"]
    page = visit.ask(search.events, action=action, refused=refused, words=wanted["q"], **where)
    alone = {"effects": 1, "times": 1, "others": 0, "run": None}
    lines = [
        {"at": event["at"], "first": event["at"], "events": [event], **alone}
        for event in page["events"]
    ]
    return {**page, "lines": lines}


def _told(visit: Visit, lines: list[Answer]) -> list[Answer]:
    """Lines with their events in words."""
    told = iter(event_text.told(visit, (event for line in lines for event in line["events"])))
    runs = [line["run"] for line in lines if line["run"]]
    names = common_queries.names(visit, {run["agent_id"] for run in runs})
    reasons = run_text.reasons(visit, runs)
    return [
        {
            **line,
            "events": [next(told) for _ in line["events"]],
            "agent": names[line["run"]["agent_id"]] if line["run"] else "",
            "reason": reasons[line["run"]["id"]] if line["run"] else "",
        }
        for line in lines
    ]


def why(visit: Visit) -> Page:
    """Show one event, and the chain from it back to the person who authorised it."""
    if not visit.whole:
        return visit.show("events_closed.html")
    chain = visit.ask(events.why, event=visit.argument("event"))
    return visit.show(
        "event.html",
        steps=event_text.told(visit, chain["steps"]),
        authorised_by=(chain["authorised_by"] or "").partition(":")[2],
    )


async def verify(visit: Visit) -> Done:
    """Verify the whole record."""
    check = await visit.do(
        events.verify, company=visit.company_id, expect=visit.form.maybe("expect")
    )
    if not check["ok"]:
        faults = [fault["sentence"] for fault in check["faults"]]
        more = f" And {len(faults) - MOST_FAULTS} more." if len(faults) > MOST_FAULTS else ""
        sentences = " ".join(
            sentence[:1].upper() + sentence[1:] for sentence in faults[:MOST_FAULTS]
        )
        raise Conflict(
            f"The audit log does not hold. {sentences}{more}",
            "Somebody changed the database. Compare it with a backup.",
        )
    return Done(
        visit.link("/events"),
        f"The audit log is intact: {check['events']:,} events. Its last hash is {check['hash']}",
    )
