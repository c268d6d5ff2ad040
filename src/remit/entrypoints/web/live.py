"""Event stream that makes open pages refresh when a record grows.

One stream per browser for all companies of a person. It carries positions of the record, and no
contents: what a page may show is decided when it is requested, as ever. A page knows the position
at which it was rendered, so that no change is missed between its rendering and the stream, nor
while it was disconnected.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from remit.app import App
from remit.entrypoints.http.server.stream import (
    EVENT_STREAM,
    KEEP_ALIVE_SECONDS,
    Announcer,
    message,
)
from remit.entrypoints.http.wire.caller import caller
from remit.errors import RemitError
from remit.model.organisation.user import UserRole
from remit.services.identity import Caller
from remit.services.people import companies

MOST_COMPANIES: Final = 100


def routes(app: App, announcer: Announcer) -> list[Route]:
    async def live(request: Request) -> Response:
        who = caller(request)
        rows = await app.gate(who, companies.listing, limit=MOST_COMPANIES)
        deciding = {company["id"]: company.get("role") == UserRole.BOARD for company in rows}
        return StreamingResponse(
            _follow(app, announcer, who, deciding),
            media_type=EVENT_STREAM,
            headers={"X-Accel-Buffering": "no"},
        )

    return [Route("/live", live, methods=["GET"])]


def position(positions: dict[str, int]) -> int:
    """Return one number for all companies of a person, which changes when a record grows."""
    return sum(positions.values())


async def _follow(
    app: App, announcer: Announcer, who: Caller, deciding: dict[str, bool]
) -> AsyncIterator[bytes]:
    with contextlib.ExitStack() as stack:
        grown = [stack.enter_context(announcer.subscribe(company)) for company in deciding]
        for company, may_decide in deciding.items():
            stack.enter_context(announcer.attend(company, may_decide))
        seen = await app.gate(who, companies.positions)
        yield message("hello", {"position": position(seen)})
        quiet = 0.0
        while not announcer.closing:
            waited = announcer.poll or KEEP_ALIVE_SECONDS
            await _first(grown, waited)
            for event in grown:
                event.clear()  # before the query: a later event is in its result or ends the wait
            try:
                now = await app.gate(who, companies.positions)
            except RemitError:
                yield message("end", {})  # signed out
                return
            changed, seen = now != seen, now
            quiet = 0.0 if changed else quiet + waited
            if changed:
                yield message("changed", {"position": position(now)})
            elif quiet >= KEEP_ALIVE_SECONDS:
                yield b": still here\n\n"
                quiet = 0.0


async def _first(grown: list[asyncio.Event], seconds: float) -> None:
    """Wait until one of the events is set, or for `seconds`."""
    waits = [asyncio.ensure_future(event.wait()) for event in grown]
    try:
        if waits:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(seconds)
    finally:
        for wait in waits:
            wait.cancel()
