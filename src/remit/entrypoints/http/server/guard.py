"""Middleware of every request: host, token, size, headers, and unexpected errors.

No route receives a body before the token that came with it was looked up, since only the guard
hands bodies out. Plain ASGI, because each request pays for it.
"""

import logging
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from remit.entrypoints import bodies
from remit.entrypoints.arrival import LOOPBACK, host_name
from remit.entrypoints.bodies import Incoming, Room
from remit.entrypoints.http.server.strangers import Strangers, is_try, source_of
from remit.entrypoints.http.wire import error_answers
from remit.entrypoints.http.wire.caller import presented
from remit.entrypoints.http.wire.problems import Malformed, WrongHost
from remit.errors import RemitError, Stopped, TooMany
from remit.ids import token_digest
from remit.services.identity import Caller

log = logging.getLogger(__name__)

#: Room for the JSON around the largest file in a body.
ALLOWANCE: Final = 64 * 1024
#: Cache lifetime of a checked token, for small bodies; the verb checks it in any case.
RECENT_SECONDS: Final = 60.0
MOST_RECENT: Final = 10_000
#: Prefixes of paths whose requests the guard does not authenticate: sign-in, and posts of channels,
#: some with the token of a binding, and of forges. Their routes do that, and accept little.
_OPEN: Final = ("/login", "/api/channels/", "/api/hooks/")
#: Has a limit of its own.
_UNLIMITED: Final = "/api/companies/import"
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
#: Least time between two log lines about refused tokens.
EVERY_SECONDS: Final = 60.0
_LONGEST_PATH: Final = 100
_CLOSE: Final = (b"connection", b"close")


class Hosts:
    """The host names of this instance. Any other may come from DNS rebinding."""

    def __init__(self, bound: str, more: Iterable[str] = ()) -> None:
        self._everywhere = bound in _EVERYWHERE
        own = [socket.gethostname()] if self._everywhere else [bound]
        self.names = frozenset(name.lower() for name in (*LOOPBACK, *own, *more))
        self.allows = lru_cache(maxsize=256)(self._allows)

    def _allows(self, header: str) -> bool:
        name = host_name(header)
        if name in self.names:
            return True
        # DNS rebinding needs a name; an IP address cannot be rebound.
        return self._everywhere and _is_address(name)


class Guard:
    """ASGI middleware around the whole application. `check` refuses a caller with a bad token."""

    def __init__(
        self,
        inner: ASGIApp,
        hosts: Hosts,
        largest_file: int,
        check: Callable[[Caller], Awaitable[None]],
    ) -> None:
        self._inner = inner
        self._hosts = hosts
        self._largest = largest_file + ALLOWANCE
        self._check = check
        self._room = Room()
        self._recent: OrderedDict[str, float] = OrderedDict()
        #: Answers by the first digit of their status.
        self.answered: Counter[int] = Counter()
        self.refusals = Refusals()
        self.strangers = Strangers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False
        incoming: Incoming | None = None
        large = replaced = False

        async def guarded_send(message: Message) -> None:
            nonlocal started, replaced
            if replaced:
                return  # another answer took the place of this one
            if message["type"] == "http.response.start":
                started = True
                if message["status"] == 401 and is_try(scope):
                    self.refusals.note(scope)
                    again = await self.strangers.hold(scope)
                    if again:
                        await too_many(again)(scope, receive, guarded_send)
                        replaced = True
                        return
                self.answered[message["status"] // 100] += 1
                headers = message["headers"] = list(message.get("headers", ()))
                present = {name for name, _ in headers}
                headers.extend(header for header in _HEADERS if header[0] not in present)
                if large and (incoming is None or not incoming.complete):
                    headers.append(_CLOSE)  # the rest of the body stays unread
            await send(message)

        try:
            declared = bodies.declared_size(scope)
            large = declared is None or declared > bodies.SMALL
            self._check_host(scope)
            if declared != 0:
                incoming = self._admit(scope, receive, declared)
                scope[bodies.INCOMING] = incoming
                await self._inner(scope, incoming.receive, guarded_send)
            else:
                await self._inner(scope, receive, guarded_send)
        except ClientDisconnect:
            return
        except RemitError as error:
            if not started:
                await error_answers.answer(error)(scope, receive, guarded_send)
        except Exception as error:
            # A response that has started was started by the handler of this very error.
            if not started:
                await error_answers.internal(error)(scope, receive, guarded_send)
        finally:
            if incoming is not None:
                incoming.release()

    def _check_host(self, scope: Scope) -> None:
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1:
            several = "several hosts" if named else "no host"
            raise Malformed(
                f"The request names {several}.", "Send one Host header, as HTTP/1.1 demands."
            )
        host = named[0].decode("latin-1")
        if not self._hosts.allows(host):
            raise WrongHost(f"This instance is not called {host_name(host)[:100]!r}.")

    def _admit(self, scope: Scope, receive: Receive, declared: int | None) -> Incoming:
        """Return the body of a request; refuse one that is declared too large."""
        path = scope["path"]
        largest = 1 << 62 if path == _UNLIMITED else self._largest
        if declared is not None and declared > largest:
            raise bodies.too_large(largest)
        small = declared is not None and declared <= bodies.SMALL
        if path.startswith(_OPEN):
            return Incoming(receive, _nobody, self._room, largest)
        return Incoming(receive, lambda: self._know(scope, small), self._room, largest)

    async def _know(self, scope: Scope, small: bool) -> str:
        """Return the digest of the request's token, once checked; a recent check holds for small
        bodies."""
        token, _ = presented(Request(scope))
        digest = token_digest(token)
        now = time.monotonic()
        if small and self._recent.get(digest, 0.0) > now:
            return digest
        with suppress(Stopped):  # a good token that is halted; each call answers that by itself
            await self._check(Caller(token))
        self._recent[digest] = now + RECENT_SECONDS
        self._recent.move_to_end(digest)
        if len(self._recent) > MOST_RECENT:
            self._recent.popitem(last=False)
        return digest


def too_many(seconds: float) -> Response:
    """Return the answer to a stranger who tries too often."""
    wait = max(1, round(seconds))
    error = TooMany(
        "There were too many wrong tokens from your address.",
        f"Wait for {wait} seconds. A right token is answered at any time.",
    )
    return error_answers.answer(error, {"Retry-After": str(wait), "Connection": "close"})


async def _nobody() -> str:
    return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Refusals:
    """Counts refused tokens, and logs the count now and then, so that nobody can flood the log."""

    def __init__(self) -> None:
        self.count = 0
        self._told = 0
        self._at = -EVERY_SECONDS

    def note(self, scope: Scope) -> None:
        """Count a refused token, link or secret."""
        self.count += 1
        now = time.monotonic()
        if now - self._at < EVERY_SECONDS:
            return
        who = source_of(scope) or "somebody"
        before = self.count - self._told - 1
        more = f", and {before} times before that since it was last said" if before else ""
        path = scope["path"][:_LONGEST_PATH]
        # Most are of runs that have just ended; guessing shows in the number.
        log.info("a token was refused: a request from %s to %s%s", who, path, more)
        self._at, self._told = now, self.count
