"""Runs: as a list or over time, and one with its steps and its log."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from remit.clock import DAY, MINUTE, Micros, from_iso, to_iso
from remit.entrypoints import transcripts
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.web.site import MOST_ROWS, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, event_text, run_text
from remit.entrypoints.web.text.time_range import RANGES, Range, chosen
from remit.entrypoints.web.text.timeline import MOST_LANES, Timeline, lanes_of
from remit.errors import NotFound
from remit.model.execution import transcript
from remit.model.execution.run import RunStatus
from remit.services.command import Answer, Ask
from remit.services.execution import runs
from remit.services.identity import Caller
from remit.services.screens import agent_page, name_lookup, record_page, run_page

#: Most entries of a transcript on a page; a script or a link loads more.
ENTRIES: Final = 300
PIECES: Final = 500
#: In the order in which they are offered; a lost run has failed.
CANCELLED: Final = "The run is being cancelled."
STATUSES: Final = ("running", "completed", "failed", "cancelled")


def routes(site: Site) -> Routes:
    async def whole_log(request: Request) -> Response:
        """Return the whole output of a run as text."""
        who = caller(request)
        run = request.path_params["run"]
        detail = await site.app.gate(who, runs.show, run=run)
        return StreamingResponse(
            _text(site, who, detail["id"]),
            media_type="text/plain; charset=utf-8",
            headers={"Content-Disposition": f'inline; filename="run-{detail["id"]}.txt"'},
        )

    async def whole_entry(request: Request) -> Response:
        """Return one entry of a run's transcript, uncut."""
        who = caller(request)
        number = request.path_params["number"]

        def find(ask: Ask) -> str:
            for place, entry in transcripts.entries(ask, request.path_params["run"]):
                if place == number:
                    return transcript.shown(entry, whole=True)
            raise NotFound("This run has done nothing with that number.", "Go back to the run.")

        return PlainTextResponse(await site.app.gate.together(who, find) + "\n")

    return [
        site.page("/runs", listing),
        Route("/runs/{run}/log/{number:int}", whole_entry, methods=["GET"]),
        Route("/runs/{run}/log.txt", whole_log, methods=["GET"]),
        site.page("/runs/{run}", show),
        site.does("/runs/{run}/cancel", runs.cancel, show, "/runs/{run}", CANCELLED, "reason"),
    ]


async def _text(site: Site, who: Caller, run: str) -> AsyncIterator[bytes]:
    seen = 0
    while True:
        page = await site.app.gate(who, runs.log, run=run, after=seen, limit=PIECES)
        for piece in page["pieces"]:
            yield piece["text"].encode()
            seen = piece["number"]
        if len(page["pieces"]) < PIECES:
            return


def listing(visit: Visit) -> Page:
    over_time = visit.argument("view") == "timeline"
    span = chosen(visit, "24h" if over_time else "all")
    status = "running" if visit.argument("live") else visit.argument("status")
    wanted = {
        "agent": visit.argument("agent").strip()[:200] or None,
        "status": status if status in set(RunStatus) else None,
        "since": None if span.since is None else to_iso(span.since),
        "until": None if span.until is None else to_iso(span.until),
    }
    address = partial(_address, visit, wanted, span, over_time)
    nobody: NotFound | None = None
    shown: dict[str, Any] = {"runs": [], "more": "", "drawing": None, "totals": None}
    try:
        if over_time:
            shown |= _over_time(visit, wanted, span, address)
        else:
            shown |= _listed(visit, wanted, address)
        shown["totals"] = visit.ask(run_page.totals, company=visit.company_id, **wanted)
    except NotFound as error:
        nobody = error
    return visit.show(
        "runs.html",
        **shown,
        wanted=wanted,
        span=span,
        ranges=RANGES,
        agents=visit.ask(agent_page.roster, company=visit.company_id),
        over_time=over_time,
        nobody=nobody,
        filtered=any(wanted.values()),
        address=address,
        choices_of_status=[
            (choice.capitalize(), address(status=choice, before=""), wanted["status"] == choice)
            for choice in STATUSES
        ],
    )


def _address(visit: Visit, wanted: Answer, span: Range, over_time: bool, **change: Any) -> str:
    """Address of the page with other filters."""
    where = span.query if "range" not in change and "from" not in change else {}
    view = "timeline" if over_time else ""
    return visit.link(
        "/runs",
        **{"view": view, "agent": wanted["agent"], "status": wanted["status"], **where, **change},
    )


def _listed(visit: Visit, wanted: dict[str, Any], address: Any) -> dict[str, Any]:
    rows = visit.listed(runs.listing, **wanted)
    return {
        "runs": rows,
        "names": common_queries.names(visit, (run["agent_id"] for run in rows)),
        "reasons": run_text.reasons(visit, rows),
        "more": address(before=rows[-1]["id"]) if len(rows) == MOST_ROWS else "",
    }


def _over_time(visit: Visit, wanted: Answer, span: Range, address: Any) -> Answer:
    answer = visit.ask(run_page.spans, company=visit.company_id, **wanted)
    spans, now = answer["spans"], from_iso(answer["now"])
    any_run = bool(spans or visit.ask(runs.listing, company=visit.company_id, limit=1))
    since, until = span.since, span.until if span.until is not None else now
    if since is None or not (visit.argument("range") or span.first):
        # No range was chosen: show all runs, scaled to fit.
        first = min((run["started_at"] for run in spans), default=now - DAY)
        since = first - max(MINUTE, (until - first) // 50)
    names = common_queries.names(visit, {run["agent_id"] for run in spans})

    def zoom(first: Micros, last: Micros) -> str:
        """Address of a part of the timeline, in whole minutes with a margin."""
        around = max(MINUTE, (last - first) // 10)
        return str(
            address(**{"from": _minute(first - around), "to": _minute(last + around + MINUTE)})
        )

    third = max(MINUTE, (until - since) // 3)
    return {
        "drawing": Timeline(spans, names, since, until, now, zoom).draw if spans else None,
        "any_run": any_run,
        "drawn": len(spans),
        "lanes": lanes_of(spans),
        "names": names,
        "lanes_cut": len({run["agent_id"] for run in spans}) > MOST_LANES,
        "cut_off": answer["cut_off"],
        "zooms": [
            ("Earlier", zoom(since - third, until - third)),
            ("Later", zoom(since + third, until + third)),
            ("Zoom in", zoom(since + third, until - third)),
            ("Zoom out", zoom(since - third, until + third)),
        ],
    }


def _minute(at: Micros) -> str:
    return to_iso(at)[:16]


def show(visit: Visit) -> Page:
    run = visit.ask(runs.show, run=visit.argument("run"))
    visit.enter(run["company_id"])
    after = visit.number("after") or 0
    shown: list[dict[str, Any]] = []
    more = ""
    for number, entry in transcripts.entries(visit.ask, run["id"]):
        if number > after + ENTRIES:
            more = f"/runs/{run['id']}?after={after + ENTRIES}"
            break
        if number > after:
            shown.append(transcript.view(number, entry))
    effects = visit.ask(record_page.of_run, run=run["id"]) if visit.whole else []
    return visit.show(
        "run.html",
        one=run,
        after=after,
        entries=shown,
        turns=run_text.turns(shown),
        seen=shown[-1]["number"] if shown else after,
        more=more,
        reason=run_text.reasons(visit, [run])[run["id"]],
        effects=event_text.told(visit, effects),
        works_on=visit.ask(
            name_lookup.titles,
            company=visit.company_id,
            resources=[f"outcome:{own}" for own in run["outcome_ids"]],
        ),
        names=common_queries.names(visit, (run["agent_id"], run["accountable_user_id"])),
    )
