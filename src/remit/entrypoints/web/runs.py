"""Runs: what is and was at work, and one of them with its log as it grows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from remit.entrypoints import transcripts
from remit.entrypoints.http.caller import caller
from remit.entrypoints.web import asking
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import NotFound
from remit.model import transcript
from remit.services import runs
from remit.services.identity import Caller

PAGE: Final = 50
#: Of what it did, on the page itself; a script goes on from there, or a link leads there.
ENTRIES: Final = 300
PIECES: Final = 500


def routes(site: Site) -> list[Route]:
    async def whole_log(request: Request) -> Response:
        """All that a run printed, as text."""
        who = caller(request)
        run = request.path_params["run"]
        found = await site.app.gate(who, runs.show, run=run)
        return StreamingResponse(
            _text(site, who, found["id"]),
            media_type="text/plain; charset=utf-8",
            headers={"Content-Disposition": f'inline; filename="run-{found["id"]}.txt"'},
        )

    async def whole_entry(request: Request) -> Response:
        """One thing that a run did, with nothing cut."""
        who = caller(request)
        number = request.path_params["number"]
        run = await site.app.gate(who, runs.show, run=request.path_params["run"])
        async for place, entry in transcripts.entries(site.app.gate, who, run):
            if place == number:
                return PlainTextResponse(transcript.shown(entry, whole=True) + "\n")
        raise NotFound("This run has done nothing with that number.", "Go back to the run.")

    return [
        site.page("/runs", listing),
        Route("/runs/{run}/log/{number:int}", whole_entry, methods=["GET"]),
        Route("/runs/{run}/log.txt", whole_log, methods=["GET"]),
        site.page("/runs/{run}", show),
        site.action("/runs/{run}/cancel", cancel, show),
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


async def listing(visit: Visit) -> Response:
    live = visit.argument("live") == "1"
    found = await visit.ask(
        runs.listing,
        company=visit.company_id,
        live=live,
        before=visit.argument("before") or runs.END_OF_IDS,
        limit=PAGE,
    )
    return await visit.show(
        "runs.html",
        runs=found,
        live=live,
        names=await asking.names(visit, (one["agent_id"] for one in found)),
        more=visit.link("/runs", live="1" if live else "", before=found[-1]["id"])
        if len(found) == PAGE
        else "",
    )


async def show(visit: Visit) -> Response:
    one: dict[str, Any] = await visit.ask(runs.show, run=visit.argument("run"))
    visit.enter(one["company_id"])
    after = _number(visit.argument("after"))
    shown: list[dict[str, Any]] = []
    more = ""
    async for number, entry in transcripts.entries(visit.site.app.gate, visit.who, one):
        if number > after + ENTRIES:
            more = f"/runs/{one['id']}?after={after + ENTRIES}"
            break
        if number > after:
            shown.append(transcript.view(number, entry))
    return await visit.show(
        "run.html",
        one=one,
        after=after,
        entries=shown,
        seen=shown[-1]["number"] if shown else after,
        more=more,
        names=await asking.names(visit, (one["agent_id"], one["accountable_user_id"])),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0


async def cancel(visit: Visit) -> Done:
    run = visit.argument("run")
    await visit.do(runs.cancel, run=run, reason=visit.form.text("reason"))
    return Done(f"/runs/{run}", "The run is being ended.")
