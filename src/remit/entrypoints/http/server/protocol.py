"""HTTP/1.1 with limits on connections: endless heads, requests that never complete, bodies that
stay unread, and too many connections.

The server reads from a connection before there is a request to guard, so only its protocol can
bound that. Its own refusals have the form of every other error.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from weakref import WeakKeyDictionary

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from remit.runtime.sandbox.places import Peer

log = logging.getLogger(__name__)

#: The request line and all headers, with whatever else the same read brought.
LARGEST_HEAD: Final = 64 * 1024
LONGEST_ADDRESS: Final = 16 * 1024
#: From the first byte of a request, or from the connection on, to the end of its headers.
HEAD_SECONDS: Final = 20.0
#: Longest silence within a body that is awaited.
SILENT_SECONDS: Final = 60.0
#: Lingering close, after a response that did not wait for the body: its sender gets to read it.
LINGER_SECONDS: Final = 2.0
LINGER_BYTES: Final = 8 * 1024 * 1024
#: Most connections, whatever the system allows.
MOST_CONNECTIONS: Final = 10_000
#: Least time between two log lines about it.
_TELL_SECONDS: Final = 60.0


def most_connections() -> int:
    """Return half of this process's file descriptors, or `MOST_CONNECTIONS` if that is less: the
    rest is for its files, databases, programs and calls, which strangers must not use up."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if most == resource.RLIM_INFINITY else min(most // 2, MOST_CONNECTIONS)


def _refusal(status: HTTPStatus, code: str, error: str, next_step: str) -> bytes:
    body = orjson.dumps({"error": error, "code": code, "nextStep": next_step})
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


_MALFORMED: Final = _refusal(
    HTTPStatus.BAD_REQUEST,
    "malformed",
    "This is not a request in HTTP/1.1.",
    "Send one; see /openapi.json.",
)
_LONG_ADDRESS: Final = _refusal(
    HTTPStatus.REQUEST_URI_TOO_LONG,
    "address_too_long",
    f"The address is longer than {LONGEST_ADDRESS >> 10} KiB.",
    "Send what is long in a body.",
)
_LARGE_HEAD: Final = _refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "head_too_large",
    f"The headers are larger than {LARGEST_HEAD >> 10} KiB.",
    "Send fewer or shorter ones.",
)


class _Idle:
    """Connections of one server without a request in progress, the longest idle first."""

    def __init__(self) -> None:
        self._waiting: dict[Impatient, None] = {}
        self._told = -_TELL_SECONDS

    def add(self, connection: Impatient) -> None:
        self._waiting[connection] = None

    def remove(self, connection: Impatient) -> None:
        self._waiting.pop(connection, None)

    def close_one(self, now: float) -> None:
        """Close the connection that is idle longest; the newest, if all others are at work."""
        connection = next(iter(self._waiting))
        self.remove(connection)
        connection.transport.abort()
        if now - self._told >= _TELL_SECONDS:
            self._told = now
            log.warning("too many connections: those that nothing is asked on are closed")


_idle: WeakKeyDictionary[ServerState, _Idle] = WeakKeyDictionary()


class Impatient(HttpToolsProtocol):
    """HTTP/1.1 protocol of the server with timeouts and limits."""

    most = most_connections()
    head_seconds = HEAD_SECONDS
    silent_seconds = SILENT_SECONDS
    linger_seconds = LINGER_SECONDS

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = False
        self._in_body = False
        self._head_size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._refused = _MALFORMED
        self._refusing = False
        #: Bytes still accepted after the last response; None while there may be another.
        self._left: int | None = None
        self._idle = _idle.setdefault(self.server_state, _Idle())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = _Parting(transport, self._linger)
        if self.client is not None:
            self.client = Peer(self.client)
        self._timer = self.loop.call_later(self.head_seconds, self._give_up)
        self._idle.add(self)
        if len(self.connections) > self.most:
            self._idle.close_one(self.loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._idle.remove(self)
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        at_work = bool(self.pipeline)
        super().on_response_complete()
        if not at_work and not self.transport.is_closing():
            self._idle.add(self)

    def data_received(self, data: bytes) -> None:
        if self._is_over():
            self._discard(data)
            return
        fresh = not self._in_head
        super().data_received(data)
        if self._is_over():
            return  # refused while it was parsed
        if self._in_head:
            self._head_size = len(data) if fresh else self._head_size + len(data)
            if self._head_size > LARGEST_HEAD:
                self._refuse(_LARGE_HEAD)
            elif fresh and self._timer is None:
                # Not restarted by each byte, or a slow sender could go on for ever.
                self._timer = self.loop.call_later(self.head_seconds, self._give_up)
        elif self._in_body or self._timer is not None:
            self._forget()
            if self._in_body:
                self._timer = self.loop.call_later(self.silent_seconds, self._give_up)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  the server's own words
        self._refuse(self._refused)

    def on_message_begin(self) -> None:
        self._in_head = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LONGEST_ADDRESS:
            self._refused = _LONG_ADDRESS
            raise ValueError("the address is too long")  # ends the parsing; see above

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        self._idle.remove(self)
        if not self.url.startswith(b"/"):
            self._prefer_named_host()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def _prefer_named_host(self) -> None:
        """Let a host in the address override the Host header (RFC 9112, 3.2.2)."""
        address = httptools.parse_url(self.url)
        hosts = [at for at, (name, _) in enumerate(self.headers) if name == b"host"]
        if address.host and len(hosts) == 1:
            port = f":{address.port}".encode() if address.port else b""
            host = b"[%b]" % address.host if b":" in address.host else address.host
            self.headers[hosts[0]] = (b"host", host + port)

    def _linger(self) -> bool:
        """Begin a lingering close if the client is still sending, and return whether it did.
        Closing with unread input would reset the connection, and the client would lose the
        response."""
        if not (self._in_body or self._refusing) or self._left is not None:
            return False
        self._forget()
        self._left = LINGER_BYTES
        self.flow.resume_reading()
        self._timer = self.loop.call_later(self.linger_seconds, self._give_up)
        return True

    def _is_over(self) -> bool:
        return self._left is not None

    def _discard(self, data: bytes) -> None:
        self._left = (self._left or 0) - len(data)
        if self._left <= 0:
            self.transport.abort()

    def _refuse(self, answer: bytes) -> None:
        self._refusing = True
        self._forget()
        self.transport.write(answer)
        self.transport.close()

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._left is None and self._in_body and self.flow.read_paused:
            # This side has paused reading, so the client is not slow.
            self._timer = self.loop.call_later(self.silent_seconds, self._give_up)
            return
        self._left = 0
        self.transport.close()


class _Parting(asyncio.Transport):
    """Transport that is first closed for writing only, if `linger` returns true."""

    def __init__(self, inner: asyncio.Transport, linger: Callable[[], bool]) -> None:
        super().__init__()
        self._inner = inner
        self._linger = linger
        self._parting = False

    def close(self) -> None:
        if not self._inner.is_closing() and self._inner.can_write_eof() and self._linger():
            self._parting = True
            self._inner.write_eof()
            return
        self._inner.close()

    def is_closing(self) -> bool:
        return self._parting or self._inner.is_closing()

    def abort(self) -> None:
        self._inner.abort()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._inner.write(data)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)
