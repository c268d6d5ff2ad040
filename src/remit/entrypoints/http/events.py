"""The record over HTTP: as a list, or as a stream that goes on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from remit.app import App
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.document import reply
from remit.entrypoints.http.fields import CompanyId, Id, new_router
from remit.entrypoints.http.paging import LARGEST, Paged
from remit.entrypoints.http.stream import EVENT_STREAM, Announcer, stream_events
from remit.errors import BadInput
from remit.services import events, searching

Sequence = Annotated[int | None, Query(ge=0, le=LARGEST)]


def router(app: App, announcer: Announcer) -> APIRouter:
    routes = new_router("events", "/api")
    in_company = "/companies/{companyId}/events"

    @routes.get(
        in_company, responses={200: {"content": {"application/json": {}, EVENT_STREAM: {}}}}
    )
    async def list_events(
        request: Request,
        company: CompanyId,
        page: Paged,
        after: Sequence = None,
        before: Sequence = None,
        action: Annotated[str, Query(max_length=100, description="`file`, `file.write`")] = "",
        actor: Annotated[str, Query(max_length=200, description="Whose name or id.")] = "",
        refused: bool = False,
    ) -> Response:
        """Newest first; with `after`, what came after that event, oldest first.

        With `action`, `actor` or `refused`, only such events, newest first. A page then goes
        through a part of the record: the Link leads on, also when nothing was found in that part.

        With `Accept: text/event-stream` the events come as they happen. `Last-Event-ID`, or
        `after`, resumes without a gap.
        """
        if EVENT_STREAM in request.headers.get("accept", ""):
            return await stream_events(app, announcer, request, company, after)
        if after is not None and before is not None:
            raise BadInput("after and before exclude each other.", "Give one of the two.")
        seen = None if page.cursor is None else page.before_number(0)
        if action or actor or refused:
            if after is not None:
                raise BadInput("after takes every event.", "Leave out action, actor and refused.")
            found = await app.gate(
                caller(request),
                searching.events,
                company=company,
                action=action,
                actor=actor,
                refused=refused,
                before=before if seen is None else seen,
                limit=page.limit,
            )
            return page.go_on(found["events"], found["before"])
        rows = await app.gate(
            caller(request),
            events.listing,
            company=company,
            after=after if after is None or seen is None else seen,
            before=before if after is not None or seen is None else seen,
            limit=page.limit,
        )
        return page.reply(rows, lambda row: row["seq"])

    @routes.get(in_company + "/verify")
    async def verify_events(
        request: Request, company: CompanyId, expect: Annotated[str | None, Query()] = None
    ) -> Response:
        """Whether the record is whole; if not, which event shows it.

        `expect` is a hash that an earlier check answered; the record must still contain it.
        """
        return reply(await app.gate(caller(request), events.verify, company=company, expect=expect))

    @routes.get("/events/{id}/why")
    async def explain_event(request: Request, event: Id) -> Response:
        """The steps from an event back to the person who made it possible."""
        return reply(await app.gate(caller(request), events.why, event=event))

    return routes
