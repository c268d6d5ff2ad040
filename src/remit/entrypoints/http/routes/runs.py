"""One run over HTTP, with its kept workspace on this machine, and its output as a stream."""

from collections.abc import AsyncIterator
from itertools import islice
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from remit.app import App
from remit.entrypoints import transcripts
from remit.entrypoints.http.server.stream import (
    EVENT_STREAM,
    KEEP_ALIVE_SECONDS,
    Announcer,
    message,
    resume_at,
    waited_in_vain,
)
from remit.entrypoints.http.wire import field_types
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import Body, Id, new_router
from remit.entrypoints.http.wire.json_document import camel, reply
from remit.entrypoints.http.wire.paging import LARGEST, Paged
from remit.errors import RemitError
from remit.model.execution import transcript
from remit.services.command import Ask
from remit.services.execution import runs
from remit.services.identity import Caller

#: Output of a run is not announced; so it is polled.
LOOK_SECONDS: Final = 0.25
PAGE: Final = 200

View = dict[str, Any]


class CancelRunBody(Body):
    reason: field_types.Remark | None = None


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
            source: _Pieces | _Entries = _Pieces(app, who, run, seen)
            if read:
                source = _Entries(app, who, view, seen, whole)
            return StreamingResponse(
                _follow(announcer, source, view["company_id"]),
                media_type=EVENT_STREAM,
                headers={"X-Accel-Buffering": "no"},
            )
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
        who = caller(request)
        done = await app.gate(who, runs.cancel, run=run, reason=reason or "")
        view = await app.gate(Caller(who.token), runs.show, run=done["id"])
        return reply({**view, "kept": app.kept.of(view)})

    return routes


class _Pieces:
    """Source of a run's raw output."""

    def __init__(self, app: App, who: Caller, run: str, seen: int) -> None:
        self._app, self._who, self._run, self._seen = app, who, run, seen

    async def more(self) -> tuple[list[View], str | None]:
        """Return new pieces of the log, and the run's final status once nothing more comes."""
        answer = await self._app.gate(
            self._who, runs.log, run=self._run, after=self._seen, limit=PAGE
        )
        pieces: list[View] = answer["pieces"]
        if pieces:
            self._seen = pieces[-1]["number"]
        return pieces, None if pieces or answer["live"] else answer["status"]


class _Entries:
    """Source of a run's transcript. It is read from the beginning even when a client resumes,
    because the meaning of a line depends on those before it."""

    def __init__(self, app: App, who: Caller, run: View, seen: int, whole: bool) -> None:
        self._app, self._who, self._run = app, who, run["id"]
        self._reading = transcripts.Reading(run)
        self._seen, self._whole = seen, whole
        self._status: str | None = None

    async def more(self) -> tuple[list[View], str | None]:
        if self._status is not None:
            return [], self._status
        entries: list[transcripts.Numbered] = []
        while not any(number > self._seen for number, _ in entries[-1:]):
            after = self._reading.seen
            answer = await self._app.gate(
                self._who, runs.log, run=self._run, after=after, limit=PAGE
            )
            for piece in answer["pieces"]:
                entries += self._reading.add(piece)
            if not answer["pieces"]:
                break
        if not answer["pieces"] and not answer["live"]:
            self._status = answer["status"]
            ended = await self._app.gate(self._who, runs.show, run=self._run)
            entries += self._reading.end(ended)
        new = [(number, entry) for number, entry in entries if number > self._seen]
        rows = [transcript.view(number, entry, whole=self._whole) for number, entry in new]
        return rows, None if rows else self._status


async def _follow(
    announcer: Announcer, source: _Pieces | _Entries, company: str
) -> AsyncIterator[bytes]:
    """Stream a source as server-sent events. Each poll is authorised like any call, so a reader who
    lost the right gets no more."""
    with announcer.subscribe(company) as grown:
        yield b": connected\n\n"
        quiet = 0.0
        while not announcer.closing:
            grown.clear()
            try:
                rows, ended = await source.more()
            except RemitError as error:
                yield message("end", {"error": error.sentence, "code": error.reason})
                return
            if rows:
                yield b"".join(message(None, camel(row), row["number"]) for row in rows)
                quiet = 0.0
                continue
            if ended is not None:
                yield message("end", {"status": ended})
                return
            quiet += await waited_in_vain(grown, LOOK_SECONDS)
            if quiet >= KEEP_ALIVE_SECONDS:
                yield b": still here\n\n"
                quiet = 0.0
