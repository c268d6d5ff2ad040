"""Runs over HTTP: who is at work, what was printed, and putting an end to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import camel, reply
from remit.entrypoints.http.fields import Body, CompanyId, Id, Reference, new_router
from remit.entrypoints.http.paging import LARGEST, Paged, by_id
from remit.entrypoints.http.stream import (
    EVENT_STREAM,
    KEEP_ALIVE_SECONDS,
    Announcer,
    message,
    resume_at,
)
from remit.errors import RemitError
from remit.services import idleness, runs
from remit.services.identity import Caller

#: What a run prints is not announced; so it is looked for.
LOOK_SECONDS: Final = 0.25
PAGE: Final = 200


class CancelBody(Body):
    reason: str | None = None


def router(app: App, announcer: Announcer) -> APIRouter:
    routes = new_router("runs", "/api")

    @routes.get("/companies/{companyId}/runs")
    async def list_runs(
        request: Request,
        company: CompanyId,
        page: Paged,
        live: bool = False,
        agent: Annotated[Reference | None, Query()] = None,
    ) -> Response:
        """Newest first; with `live` only those that have not ended."""
        rows = await app.gate(
            caller(request),
            runs.listing,
            company=company,
            agent=agent,
            live=live,
            before=page.after_id(runs.END_OF_IDS),
            limit=page.limit,
        )
        return page.reply(rows, by_id)

    @routes.get("/runs/{id}")
    async def show_run(request: Request, run: Id) -> Response:
        """With where its workspace is kept on this machine, if it went wrong."""
        view = await app.gate(caller(request), runs.show, run=run)
        return reply({**view, "kept": app.kept.of(view)})

    @routes.get(
        "/runs/{id}/log",
        responses={200: {"content": {"application/json": {}, EVENT_STREAM: {}}}},
    )
    async def read_run_log(
        request: Request,
        run: Id,
        page: Paged,
        follow: bool = False,
        after: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
    ) -> Response:
        """What a run printed, oldest first.

        With `follow=1` it comes as it is printed, as server-sent events, until the run ends;
        `Last-Event-ID`, or `after`, resumes behind the piece that was seen last.
        """
        who = caller(request)
        if follow:
            seen = resume_at(request.headers.get("last-event-id"), after) or 0
            found = await app.gate(who, runs.show, run=run)
            return StreamingResponse(
                _follow(app, announcer, who, found["id"], found["company_id"], seen),
                media_type=EVENT_STREAM,
                headers={"X-Accel-Buffering": "no"},
            )
        begin = page.before_number(0) if page.cursor is not None else after or 0
        answer = await app.gate(who, runs.log, run=run, after=begin, limit=page.limit)
        return page.reply(answer["pieces"], lambda piece: piece["number"])

    @routes.post("/runs/{id}/cancel")
    async def cancel_run(request: Request, run: Id, body: CancelBody | None = None) -> Response:
        """End it. Its token dies at once, its program as soon as its worker sees that."""
        reason = body.reason if body is not None else None
        who = caller(request)
        done = await app.gate(who, runs.cancel, run=run, reason=reason or "")
        view = await app.gate(Caller(who.token), runs.show, run=done["id"])
        return reply({**view, "kept": app.kept.of(view)})

    @routes.get("/agents/{id}/why-idle")
    async def explain_idleness(request: Request, agent: Id) -> Response:
        """Why an agent is not running, in a word and a sentence."""
        return reply(await app.gate(caller(request), idleness.why_idle, agent=agent))

    return routes


async def _follow(
    app: App, announcer: Announcer, who: Caller, run: str, company: str, seen: int
) -> AsyncIterator[bytes]:
    """Each look is a call like any other: who lost the right to see it sees no more."""
    with announcer.subscribe(company) as grown:
        yield b": connected\n\n"
        quiet = 0.0
        while not announcer.closing:
            grown.clear()
            try:
                answer = await app.gate(who, runs.log, run=run, after=seen, limit=PAGE)
            except RemitError as error:
                yield message("end", {"error": error.sentence, "code": error.reason})
                return
            if pieces := answer["pieces"]:
                yield b"".join(message(None, camel(piece), piece["number"]) for piece in pieces)
                seen, quiet = pieces[-1]["number"], 0.0
                continue
            if not answer["live"]:
                yield message("end", {"status": answer["status"]})
                return
            try:
                await asyncio.wait_for(grown.wait(), LOOK_SECONDS)
            except TimeoutError:
                quiet += LOOK_SECONDS
            if quiet >= KEEP_ALIVE_SECONDS:
                yield b": still here\n\n"
                quiet = 0.0
