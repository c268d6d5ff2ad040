"""Server-sent events: the record as it grows.

Each page is authorised like any other call, so that a token which lost its right ends the stream.
Each event has its sequence number as id, so that a reader neither misses nor repeats one.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from remit.app import App
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.json_document import camel, write
from remit.errors import BadInput, RemitError
from remit.model.organisation.user import UserRole
from remit.services.people import companies
from remit.services.record import events

EVENT_STREAM: Final = "text/event-stream"
KEEP_ALIVE_SECONDS: Final = 15.0
#: Polled on PostgreSQL only, where another process may have written unnoticed.
POLL_SECONDS: Final = 1.0
PAGE: Final = 500
#: More digits than a sequence number can have.
LONGEST_ID: Final = 18
#: Returns new rows, and the final status once no more come.
More = Callable[[], Awaitable[tuple[list[dict[str, Any]], str | None]]]


class Announcer:
    """Wakes the streams that wait for a company's record to grow."""

    def __init__(self, app: App) -> None:
        self.closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._attached: Counter[str] = Counter()
        self.poll = POLL_SECONDS if app.database.dialect.name == "postgresql" else None
        self._listeners = app.gate.listeners

    @property
    def open_streams(self) -> int:
        return sum(len(waiting) for waiting in self._waiting.values())

    @contextlib.contextmanager
    def subscribe(self, company: str) -> Iterator[asyncio.Event]:
        self._loop = asyncio.get_running_loop()
        grown = asyncio.Event()
        if not self._waiting:
            self._listeners.append(self._announce)
        waiting = self._waiting.setdefault(company, set())
        waiting.add(grown)
        try:
            yield grown
        finally:
            waiting.discard(grown)
            if not waiting:
                self._waiting.pop(company, None)
            if not self._waiting:
                self._listeners.remove(self._announce)

    @contextlib.contextmanager
    def attend(self, company: str, present: bool) -> Iterator[None]:
        """Context manager: count a connected reader who may decide."""
        self._attached[company] += present
        try:
            yield
        finally:
            self._attached[company] -= present
            if not self._attached[company]:
                del self._attached[company]

    def attached(self, company: str) -> int:
        """Return the number of connected readers who may decide in a company."""
        return 0 if self.closing else self._attached[company]

    def close(self) -> None:
        """Let every stream end."""
        self.closing = True
        for waiting in self._waiting.values():
            for grown in waiting:
                grown.set()

    def _announce(self, company: str) -> None:
        """Wake the company's streams; called in the thread that committed a command."""
        if self._loop is not None and company in self._waiting:
            with contextlib.suppress(RuntimeError):  # the loop may be gone by now
                self._loop.call_soon_threadsafe(self._wake, company)

    def _wake(self, company: str) -> None:
        for grown in self._waiting.get(company, ()):
            grown.set()


async def stream_events(
    app: App, announcer: Announcer, request: Request, company: str, after: int | None
) -> Response:
    who = caller(request)
    shown = await app.gate(who, companies.show, company=company)
    company_id, deciding = shown["id"], shown.get("role") == UserRole.BOARD
    seen = resume_at(request.headers.get("last-event-id"), after)
    if seen is None:
        newest = await app.gate(who, events.listing, company=company_id, limit=1)
        seen = newest[0]["seq"] if newest else 0
    else:
        await app.gate(who, events.listing, company=company_id, after=seen, limit=1)

    async def more() -> tuple[list[dict[str, Any]], None]:
        nonlocal seen
        page = await app.gate(who, events.listing, company=company_id, after=seen, limit=PAGE)
        seen = page[-1]["seq"] if page else seen
        return page, None

    wait = announcer.poll or KEEP_ALIVE_SECONDS
    return follow(announcer, company_id, more, "seq", wait, deciding=deciding)


def follow(
    announcer: Announcer,
    company: str,
    more: More,
    number: str,
    wait: float,
    *,
    deciding: bool = False,
) -> Response:
    """Stream rows as server-sent events, each with its `number` as id. `more` is called when the
    company's record grows, or after `wait` seconds. Each call is authorised like any other, so a
    reader who lost the right gets no more."""
    return StreamingResponse(
        _follow(announcer, company, more, number, wait, deciding),
        media_type=EVENT_STREAM,
        headers={"X-Accel-Buffering": "no"},
    )


async def _follow(
    announcer: Announcer,
    company: str,
    more: More,
    number: str,
    wait: float,
    deciding: bool,
) -> AsyncIterator[bytes]:
    with announcer.subscribe(company) as grown, announcer.attend(company, deciding):
        yield b": connected\n\n"
        quiet = 0.0
        while not announcer.closing:
            grown.clear()  # before the query: a later event is in its result or ends the wait
            try:
                rows, ended = await more()
            except RemitError as error:
                yield message("end", {"error": error.sentence, "code": error.reason})
                return
            if rows:
                yield b"".join(message(None, camel(row), row[number]) for row in rows)
                quiet = 0.0
                continue
            if ended is not None:
                yield message("end", {"status": ended})
                return
            quiet += await waited_in_vain(grown, min(wait, KEEP_ALIVE_SECONDS - quiet))
            if quiet >= KEEP_ALIVE_SECONDS:
                yield b": still here\n\n"
                quiet = 0.0


async def waited_in_vain(grown: asyncio.Event, seconds: float) -> float:
    """Wait for an event; return `seconds` if it did not come, else 0."""
    try:
        await asyncio.wait_for(grown.wait(), seconds)
    except TimeoutError:
        return seconds
    return 0.0


def message(kind: str | None, data: Any, seq: int | None = None) -> bytes:
    """One server-sent event."""
    head = b"" if seq is None else b"id: %d\n" % seq
    if kind is not None:
        head += b"event: %s\n" % kind.encode()
    return head + b"data: " + write(data) + b"\n\n"


def resume_at(last: str | None, after: int | None) -> int | None:
    """Return the number to resume after: of Last-Event-ID, or else of the query."""
    if last is None or not last.strip():
        return after
    if not last.isascii() or not last.isdecimal() or len(last) > LONGEST_ID:
        raise BadInput("Last-Event-ID: is not the id of an event.", "Send the last id you saw.")
    return int(last)
