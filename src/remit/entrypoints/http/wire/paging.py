"""Lists in pages: `?limit` and an opaque `?cursor`, and a Link to what follows."""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from remit.entrypoints.http.wire.json_document import JSON, camel, reply, write
from remit.errors import BadInput
from remit.ids import END_OF_IDS, is_id

MOST: Final = 1000
#: Most rows that are serialised in one go.
AT_ONCE: Final = 100
PIECE: Final = 256 * 1024
DEFAULT: Final = 100
#: A number that every database can compare with.
LARGEST: Final = 2**62

View = dict[str, Any]


class Page:
    """The requested part of a list."""

    def __init__(
        self,
        request: Request,
        limit: Annotated[int, Query(ge=1, le=MOST)] = DEFAULT,
        cursor: Annotated[
            str | None, Query(max_length=200, description="From the Link of the page before.")
        ] = None,
    ) -> None:
        self._request = request
        self.limit = limit
        self.cursor = None if cursor is None else _decode(cursor)

    def after_id(self, start: str = "") -> str:
        """Return the cursor, the id that the page before ended with; `start` without one."""
        if self.cursor is None:
            return start
        if not is_id(self.cursor):
            raise _not_ours()
        return self.cursor

    def before_id(self) -> str:
        """Like `after_id`, for lists that begin with the newest."""
        return self.after_id(END_OF_IDS)

    def before_number(self, start: int) -> int:
        if self.cursor is None:
            return start
        if not self.cursor.isdecimal() or not self.cursor.isascii():
            raise _not_ours()
        return min(int(self.cursor[:20]), LARGEST)

    def reply(self, rows: list[View], key: Callable[[View], object] | None) -> Response:
        """Respond with the rows; `key` makes the next cursor of the last row, None means no next
        page."""
        return self.go_on(rows, None if key is None or len(rows) < self.limit else key(rows[-1]))

    def go_on(self, rows: list[View], following: object) -> Response:
        """Respond with the rows, and a Link with the next cursor; None if nothing follows."""
        if following is None:
            return _listed(rows)
        following = base64.urlsafe_b64encode(str(following).encode()).decode().rstrip("=")
        kept = [
            (name, value)
            for name, value in self._request.query_params.multi_items()
            if name != "cursor"
        ]
        query = urlencode([*kept, ("cursor", following)])
        path = quote(self._request.url.path, safe="/:")
        return _listed(rows, {"Link": f'<{path}?{query}>; rel="next"'})

    def cut(self, rows: list[View]) -> Response:
        """Respond with a page of a complete list, sorted by id."""
        after = self.after_id()
        return self.reply([row for row in rows if row["id"] > after][: self.limit], by_id)

    def after(self, rows: list[View], key: Callable[[View], str]) -> Response:
        """Respond with a page of a complete list, in the order of `key`."""
        last = self.cursor or ""
        left = sorted((row for row in rows if key(row) > last), key=key)
        return self.reply(left[: self.limit], key)


Paged = Annotated[Page, Depends()]


def _listed(rows: list[View], headers: Mapping[str, str] | None = None) -> Response:
    """Respond with an array. A long one is serialised piece by piece, so that the event loop is not
    blocked."""
    if len(rows) <= AT_ONCE:
        return reply(rows, headers=headers)
    return StreamingResponse(_pieces(rows), headers=headers, media_type=JSON)


async def _pieces(rows: list[View]) -> AsyncIterator[bytes]:
    piece = bytearray(b"[")
    for number, row in enumerate(rows):
        piece += (b"," if number else b"") + write(camel(row))
        if len(piece) >= PIECE:
            yield bytes(piece)
            piece.clear()
            await asyncio.sleep(0)
    yield bytes(piece + b"]")


def by_id(row: View) -> object:
    return row["id"]


def _decode(cursor: str) -> str:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return base64.b64decode(padded, b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise _not_ours() from None


def _not_ours() -> BadInput:
    return BadInput("cursor: is not one from an earlier page.", "Use the Link header of that page.")
