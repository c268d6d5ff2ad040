"""One run over HTTP, with its kept workspace on this machine, its output as a stream, and the
report of a remote agent about its end."""

from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from remit.app import App
from remit.entrypoints import transcripts
from remit.entrypoints.http.server import stream
from remit.entrypoints.http.server.stream import EVENT_STREAM, Announcer, resume_at
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, Id, new_router
from remit.entrypoints.http.wire.json_document import reply
from remit.entrypoints.http.wire.paging import LARGEST, Paged
from remit.model.execution import transcript
from remit.services.command import Ask, Context
from remit.services.execution import runs
from remit.services.identity import Caller

#: Output of a run is not announced; so it is polled.
LOOK_SECONDS: Final = 0.25
PAGE: Final = 200

View = dict[str, Any]
Count = Annotated[int, Field(ge=0, le=runs.MOST)]


class CancelRunBody(Body):
    reason: field_types.Remark | None = None


class UsageBody(Body):
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0
    cost_micros: Count = 0


class ReportBody(Body):
    ok: bool = True
    text: Annotated[str, Field(max_length=runs.LONGEST_TEXT)] = ""
    error: Annotated[str, Field(max_length=runs.LONGEST_ERROR)] | None = None
    session: Annotated[str, Field(max_length=runs.LONGEST_SESSION)] | None = None
    #: The fault, if not the agent's: `auth`, `rate`, `overload`, `billing`, `network`,
    #: `setup` or `message`; and until when that lasts, in ISO 8601.
    fault: Annotated[str, Field(max_length=40)] | None = None
    until: Annotated[str, Field(max_length=40)] | None = None
    usage: UsageBody = UsageBody()


def router(app: App, announcer: Announcer) -> APIRouter:
    routes = new_router("runs", "/api")

    @routes.get("/runs/{id}")
    async def show_run(request: Request, run: Id) -> Response:
        """With where its workspace is kept on this machine, if it went wrong."""
        view = await app.gate(caller(request), runs.show, run=run)
        return reply({**view, "kept": app.kept.of(view)})

    @routes.get(
        "/runs/{id}/log", responses={200: {"content": {"application/json": {}, EVENT_STREAM: {}}}}
    )
    async def read_run_log(
        request: Request,
        run: Id,
        page: Paged,
        follow: bool = False,
        after: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
        form: Annotated[Literal["raw", "transcript"], Query(alias="as")] = "raw",
        whole: bool = False,
    ) -> Response:
        """Output of a run, oldest first.

        With `follow=1` it comes as it is printed, as server-sent events, until the run ends;
        `Last-Event-ID`, or `after`, resumes behind the piece that was seen last. With
        `as=transcript` it comes as people read it: what was said, calls, results, denials, retries
        and turns, long ones cut unless `whole` is asked for; `number` counts these instead.
        """
        who = caller(request)
        read = form == "transcript"
        if follow:
            seen = resume_at(request.headers.get("last-event-id"), after) or 0
            view = await app.gate(who, runs.show, run=run)
            more = _entries(app, who, view, seen, whole) if read else _pieces(app, who, run, seen)
            return stream.follow(announcer, view["company_id"], more, "number", LOOK_SECONDS)
        begin = page.before_number(0) if page.cursor is not None else after or 0
        if read:

            def entries(ask: Ask) -> list[View]:
                new = (entry for entry in transcripts.entries(ask, run) if entry[0] > begin)
                return [transcript.view(*entry, whole=whole) for entry in islice(new, page.limit)]

            return page.reply(await app.gate.together(who, entries), lambda row: row["number"])
        answer = await app.gate(who, runs.log, run=run, after=begin, limit=page.limit)
        return page.reply(answer["pieces"], lambda piece: piece["number"])

    @routes.post("/runs/{id}/cancel")
    async def cancel_run(request: Request, run: Id, body: CancelRunBody | None = None) -> Response:
        """End it. Its token dies at once, its program as soon as its worker sees that."""
        reason = body.reason if body is not None else None
        view: View = {}

        def look(ctx: Context, cancelled: Any) -> None:
            view.update(runs.show.body(ctx, run=cancelled["id"]))

        who = replace(caller(request), on_answer=look)
        await app.gate(who, runs.cancel, run=run, reason=reason or "")
        return reply({**view, "kept": app.kept.of(view)})

    @routes.post("/runs/{id}/report")
    async def report_run(request: Request, run: Id, body: ReportBody) -> Response:
        """With the token of the run, and once: how it ended and what it took."""
        report = body.model_dump(exclude={"usage"})
        taken = body.usage.model_dump()
        return reply(await app.gate(caller(request), runs.report, run=run, **report, **taken))

    return routes


def _pieces(app: App, who: Caller, run: str, seen: int) -> stream.More:
    """Source of a run's raw output."""

    async def more() -> tuple[list[View], str | None]:
        nonlocal seen
        answer = await app.gate(who, runs.log, run=run, after=seen, limit=PAGE)
        pieces: list[View] = answer["pieces"]
        if pieces:
            seen = pieces[-1]["number"]
        return pieces, None if pieces or answer["live"] else answer["status"]

    return more


def _entries(app: App, who: Caller, view: View, seen: int, whole: bool) -> stream.More:
    """Source of a run's transcript. It is read from the beginning even when a client resumes,
    because the meaning of a line depends on those before it."""
    run, reading = view["id"], transcripts.Reading(view)
    status: str | None = None

    async def more() -> tuple[list[View], str | None]:
        nonlocal status
        if status is not None:
            return [], status
        entries: list[transcripts.Numbered] = []
        while not any(number > seen for number, _ in entries[-1:]):
            answer = await app.gate(who, runs.log, run=run, after=reading.seen, limit=PAGE)
            for piece in answer["pieces"]:
                entries += reading.add(piece)
            if not answer["pieces"]:
                break
        if not answer["pieces"] and not answer["live"]:
            status = answer["status"]
            ended = await app.gate(who, runs.show, run=run)
            entries += reading.end(ended)
        new = [(number, entry) for number, entry in entries if number > seen]
        rows = [transcript.view(number, entry, whole=whole) for number, entry in new]
        return rows, None if rows else status

    return more
