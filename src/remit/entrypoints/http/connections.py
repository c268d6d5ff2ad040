"""Connections that do not get on: heads without end, and requests that never come to one.

The server reads whatever a connection sends before it has a request for us, so this is the only
place where that can be bounded.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: The request line and all headers; what one read brings besides may be in it.
LARGEST_HEAD: Final = 64 * 1024
#: From the first byte of a request, or from the connection on, to the end of its headers.
HEAD_SECONDS: Final = 20.0
#: Between two pieces of a body that we are waiting for.
SILENT_SECONDS: Final = 60.0

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain\r\ncontent-length: 29\r\nconnection: close\r\n\r\n"
    b"The headers are far too many."
)


class Impatient(HttpToolsProtocol):
    """HTTP/1.1 as before, with an end to waiting."""

    head_seconds = HEAD_SECONDS
    silent_seconds = SILENT_SECONDS

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = False
        self._in_body = False
        self._head_size = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.head_seconds, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        fresh = not self._in_head
        super().data_received(data)
        if self._in_head:
            self._head_size = len(data) if fresh else self._head_size + len(data)
            if self._head_size > LARGEST_HEAD:
                self._forget()
                self.transport.write(_TOO_LARGE)
                self.transport.close()
            elif fresh and self._timer is None:
                # Not begun anew by each byte: those who send one now and then are meant.
                self._timer = self.loop.call_later(self.head_seconds, self._give_up)
        elif self._in_body or self._timer is not None:
            self._forget()
            if self._in_body:
                self._timer = self.loop.call_later(self.silent_seconds, self._give_up)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._in_body and self.flow.read_paused:  # it is we who are not listening
            self._timer = self.loop.call_later(self.silent_seconds, self._give_up)
            return
        self.transport.close()
