"""The record over HTTP: as a list, or as a stream that goes on."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from remit.app import App
from remit.clock import from_iso
from remit.entrypoints.http.server.stream import EVENT_STREAM, Announcer, stream_events
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.field_types import Moment
from remit.entrypoints.http.wire.fields import CompanyId, new_router
from remit.entrypoints.http.wire.paging import LARGEST, Paged
from remit.errors import BadInput
from remit.services.record import events, search

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
        actor: Annotated[str, Query(max_length=200, description="Name or id of the actor.")] = "",
        refused: bool = False,
        q: Annotated[str, Query(max_length=200, description="Words in it.")] = "",
        since: Annotated[Moment | None, Query(description="ISO 8601.")] = None,
        until: Annotated[Moment | None, Query(description="ISO 8601.")] = None,
    ) -> Response:
        """Newest first; with `after`, what came after that event, oldest first.

        With `action`, `actor`, `refused`, `q`, `since` or `until`, only such events, newest first.
        A page then goes through a part of the record: the Link leads on, also when nothing was
        found in that part.

        With `Accept: text/event-stream` the events come as they happen. `Last-Event-ID`, or
        `after`, resumes without a gap.
        """
        if EVENT_STREAM in request.headers.get("accept", ""):
            return await stream_events(app, announcer, request, company, after)
        if after is not None and before is not None:
            raise BadInput("after and before exclude each other.", "Give one of the two.")
        seen = None if page.cursor is None else page.before_number(0)
        if action or actor or refused or q or since or until:
            if after is not None:
                raise BadInput("after takes every event.", "Leave out what is to be found.")
            part = await app.gate(
                caller(request),
                search.events,
                company=company,
                action=action,
                actor=actor,
                refused=refused,
                words=q,
                since=from_iso(since) if since else None,
                until=from_iso(until) if until else None,
                before=before if seen is None else seen,
                limit=page.limit,
            )
            return page.go_on(part["events"], part["before"])
        rows = await app.gate(
            caller(request),
            events.listing,
            company=company,
            after=after if after is None or seen is None else seen,
            before=before if after is not None or seen is None else seen,
            limit=page.limit,
        )
        return page.reply(rows, lambda row: row["seq"])

    return routes
