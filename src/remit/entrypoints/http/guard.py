"""What every request passes, whatever it is for: host, size, headers, and a last resort.

Plain ASGI, because each request pays for it.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remit.entrypoints.http import answers
from remit.entrypoints.http.problems import WrongHost
from remit.errors import RemitError, TooLarge

#: What a body may have besides the largest file: the JSON around it.
ALLOWANCE: Final = 64 * 1024
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NAMED: Final = frozenset("@/\\?# \t")
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  compared with, not bound
_HEADERS: Final = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
            b"frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Hosts:
    """The names under which we may be reached. Any other may be a rebound one."""

    def __init__(self, bound: str, more: Iterable[str] = ()) -> None:
        self._everywhere = bound in _EVERYWHERE
        own = [socket.gethostname()] if self._everywhere else [bound]
        self.names = frozenset(name.lower() for name in (*_LOOPBACK, *own, *more))
        self.allows = lru_cache(maxsize=256)(self._allows)

    def _allows(self, header: str) -> bool:
        name = host_name(header)
        if name in self.names:
            return True
        # Rebinding takes a name; an address in its place is what it says.
        return self._everywhere and _is_address(name)


class Guard:
    """Wraps the whole application."""

    def __init__(self, inner: ASGIApp, hosts: Hosts, largest_file: int) -> None:
        self._inner = inner
        self._hosts = hosts
        self._largest = largest_file + ALLOWANCE
        #: Answers by the first digit of their status.
        self.answered: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def guarded_send(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self.answered[message["status"] // 100] += 1
                headers = message["headers"] = list(message.get("headers", ()))
                present = {name for name, _ in headers}
                headers.extend(header for header in _HEADERS if header[0] not in present)
            await send(message)

        try:
            await self._inner(scope, self._admit(scope, receive), guarded_send)
        except ClientDisconnect:
            return
        except RemitError as error:
            if not started:
                await answers.answer(error)(scope, receive, guarded_send)
        except Exception as error:
            # An answer that was begun was begun by the handler of this very error.
            if not started:
                await answers.internal(error)(scope, receive, guarded_send)

    def _admit(self, scope: Scope, receive: Receive) -> Receive:
        """How to receive the body, unless the request is refused outright."""
        host, declared, chunked, hosts = "", "", False, 0
        for name, value in scope["headers"]:
            if name == b"host":
                host, hosts = value.decode("latin-1"), hosts + 1
            elif name == b"content-length":
                declared = value.decode("latin-1")
            elif name == b"transfer-encoding":
                chunked = True
        if hosts > 1:
            raise WrongHost("The request names several hosts.")
        if not self._hosts.allows(host):
            raise WrongHost(f"This instance is not called {host_name(host)[:100]!r}.")
        if scope["path"] in ("/mcp", "/mcp/", "/api/companies/import"):
            return receive  # has a limit of its own
        if declared.isdecimal() and int(declared[:20]) > self._largest:
            raise self._too_large()
        return self._counted(receive) if chunked else receive

    def _counted(self, receive: Receive) -> Receive:
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._largest:
                raise self._too_large()
            return message

        return counted

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The request is larger than {self._largest // 1024**2} MiB.")


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets."""
    if not _NAMED.isdisjoint(header):
        return ""  # an address, in which the name would not be where it seems
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
