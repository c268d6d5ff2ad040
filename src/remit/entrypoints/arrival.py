"""How the instance is reached from outside, and how one request reached it.

Cookies, links, the checks of Host and Origin, downloads of backups and limits by address all take
their answer from here. Only proxies that the settings name are believed. Their X-Forwarded-For and
X-Forwarded-Proto are read by uvicorn's middleware. It does not know `Forwarded` (RFC 7239), which
no proxy sends unless it is told to: here that header only shows that there is a proxy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address, ip_network
from typing import Any, Final, NamedTuple, Self, cast
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from remit.errors import BadInput
from remit.settings import Settings

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Key of a scope with its request's `Arrival`.
ARRIVAL: Final = "remit.arrival"
_NAMED: Final = frozenset("@/\\?# \t")
_USUAL_PORTS: Final = {"http": 80, "https": 443}
#: Headers that a proxy adds, and no browser.
_FORWARDING: Final = (
    *(b"forwarded", b"via", b"x-real-ip"),
    *(b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port"),
)


@dataclass(frozen=True)
class Outside:
    """The addresses of the instance as others see them, and the proxies that are believed."""

    addresses: tuple[str, ...] = ()
    #: None if nothing was said about proxies.
    proxies: tuple[str, ...] | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Refuse addresses at which the instance could not work."""
        for address in settings.urls:
            _check(address)
        return cls(tuple(url.rstrip("/") for url in settings.urls), settings.proxies)

    @property
    def canonical(self) -> str | None:
        """The address for links."""
        return self.addresses[0] if self.addresses else None

    @property
    def names(self) -> list[str]:
        return [urlsplit(address).hostname or "" for address in self.addresses]

    def named(self, host: str) -> str | None:
        """Return the address that a Host header names; a proxy may have left out the port."""
        for address in self.addresses:
            if urlsplit(address).netloc.lower() == host.lower():
                return address
        name = host_name(host)
        return next((each for each in self.addresses if urlsplit(each).hostname == name), None)

    def believes(self, address: str) -> bool:
        """Return whether a proxy has this address."""
        try:
            peer = ip_address(address)
        except ValueError:
            return False
        return any(peer in ip_network(network) for network in self.proxies or ())


def refuse_plain_http(settings: Settings, host: str, address: str) -> None:
    """Refuse to listen at an address that other machines reach without TLS, unless that is what
    somebody asked for, or a declared proxy adds TLS."""
    if settings.plain_http or settings.proxies or ip_address(_plain(address)).is_loopback:
        return
    raise BadInput(
        f"On {host or address} other machines reach Remit over plain HTTP, and whoever is on the "
        "way reads tokens.",
        "Name the TLS proxy in front with REMIT_PROXIES, listen on 127.0.0.1, or add --plain-http "
        'if you want that (plain_http = "yes" in remit.toml).',
    )


class Doubt(NamedTuple):
    """Why somebody on the way might read an answer, and what to do about it."""

    sentence: str
    next_step: str


class Arrival:
    """How one request reached the instance."""

    def __init__(self, outside: Outside, scope: Scope) -> None:
        self.outside = outside
        #: The other end of the connection, as the kernel knows it: a client, or a proxy.
        self.peer: Any = scope.get("client")
        self._scope = scope

    @property
    def client(self) -> str:
        """The address of the client, if the proxies on the way are believed."""
        return str((self._scope.get("client") or ("",))[0])

    @cached_property
    def host(self) -> str:
        return self._header(b"host")

    @property
    def is_encrypted(self) -> bool:
        """Whether a believed proxy says that the client used TLS."""
        return bool(self._scope["scheme"] == "https")

    @cached_property
    def expects_https(self) -> bool:
        """Whether the browser uses TLS, by what the proxy says or the settings: for cookies."""
        address = self.outside.named(self.host) or self.outside.canonical or ""
        return self.is_encrypted or address.startswith("https:")

    @property
    def link_base(self) -> str:
        """The address for links: that of the settings, or else of the request."""
        scheme = "https" if self.is_encrypted else "http"
        return self.outside.canonical or f"{scheme}://{self.host}"

    def is_own(self, origin: str) -> bool:
        """Return whether an Origin header names a page of this instance."""
        place = _place(origin)
        if place is None:
            return False
        if place in (_place(address) for address in self.outside.addresses):
            return True
        named = self.outside.named(self.host) or ""
        https = self.is_encrypted or named.startswith("https:")
        if https and place.scheme != "https":
            return False  # whoever is on the way can write a page of that address
        return place == _place(f"{place.scheme}://{self.host}")

    @property
    def is_from_near(self) -> bool:
        """Whether no page sent the request, or a page of this instance or of the visitor's own
        machine, where clients with pages run."""
        origin = self._header(b"origin")
        place = _place(origin)
        return not origin or self.is_own(origin) or (place is not None and place.name in LOOPBACK)

    @cached_property
    def doubt(self) -> Doubt | None:
        """Why somebody on the way might read the answer; None if nobody can.

        Nobody can, over TLS up to a believed proxy, and on this machine alone. That a request comes
        from this machine is no proof: it may be a proxy's, which need not show. So it counts only
        where the settings say that there is no such proxy, and nothing contradicts them.
        """
        if self.is_encrypted:
            return None
        peer = "" if self.peer is None else self.peer[0]
        if self.outside.believes(_plain(peer)):
            if self._header(b"x-forwarded-proto"):
                return Doubt("The request came over plain HTTP.", "Use https.")
            return Doubt(
                "The proxy in front does not say whether TLS was used.",
                "Let it send X-Forwarded-Proto; see docs/operating.md.",
            )
        if _is_loopback(peer):
            return self._doubt_here(peer)
        if self.is_forwarded:
            return _not_believed(peer)
        return Doubt("The request came over plain HTTP.", "Put a TLS proxy in front; use https.")

    def _doubt_here(self, peer: str) -> Doubt | None:
        if self.is_forwarded or self._seems_forwarded:
            return _not_believed(peer)
        if self.outside.proxies is None:
            return Doubt(
                "Whether a proxy stands in front of the instance is not known.",
                "Set REMIT_PROXIES to the address of the proxy, or to none if there is none.",
            )
        return None

    @property
    def is_forwarded(self) -> bool:
        """Whether a header shows that a proxy sent the request."""
        return any(name in _FORWARDING for name, _ in self._scope["headers"])

    @property
    def _seems_forwarded(self) -> bool:
        """Whether a request from this machine shows that its client called another address."""
        pages = [self._header(name) for name in (b"origin", b"referer")]
        places = [_place(page) for page in pages if page]
        names = [host_name(self.host), *(place and place.name for place in places)]
        # nginx speaks HTTP/1.0 unless it is told otherwise, and no browser does.
        return self._scope.get("http_version") == "1.0" or not LOOPBACK.issuperset(names)

    def _header(self, wanted: bytes) -> str:
        for name, value in self._scope["headers"]:
            if name == wanted:
                return str(value.decode("latin-1"))
        return ""


def of(connection: HTTPConnection | Scope) -> Arrival:
    scope = connection.scope if isinstance(connection, HTTPConnection) else connection
    arrival: Arrival = scope[ARRIVAL]
    return arrival


class Arrivals:
    """ASGI middleware: gives each request its `Arrival`, and the client that proxies name."""

    def __init__(self, inner: ASGIApp, outside: Outside) -> None:
        self._outside = outside
        proxies = list(outside.proxies or ())
        #: uvicorn's types of ASGI are not Starlette's.
        self._inner: Any = ProxyHeadersMiddleware(cast(Any, inner), proxies) if proxies else inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[ARRIVAL] = Arrival(self._outside, scope)
            if client := scope.get("client"):
                scope["client"] = (_plain(client[0]), client[1])
        await self._inner(scope, receive, send)


def host_name(header: str) -> str:
    """Return the name in a Host header, without port and brackets; empty if it is invalid."""
    if not _NAMED.isdisjoint(header):
        return ""  # parsed as an address, it would yield another name
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _check(address: str) -> None:
    try:
        parts = urlsplit(address)
        good = parts.scheme in _USUAL_PORTS and parts.hostname and parts.port != 0
    except ValueError:
        good = None
    if not good or "@" in address or not address.isascii() or not address.isprintable():
        raise BadInput(
            f"REMIT_URL names {address[:200]!r}, which is not an address.",
            "Write it like https://remit.example.org.",
            code="bad_setting",
        )
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise BadInput(
            f"REMIT_URL names {address[:200]!r}, and Remit cannot be served below a path.",
            f"Give it a name of its own, and set REMIT_URL to {parts.scheme}://{parts.netloc}.",
            code="bad_setting",
        )


class _Place(NamedTuple):
    """Where a page comes from: an origin, as browsers compare them."""

    scheme: str
    name: str
    port: int | None


def _place(address: str) -> _Place | None:
    try:
        parts = urlsplit(address)
        port = parts.port or _USUAL_PORTS.get(parts.scheme)
    except ValueError:
        return None
    return _Place(parts.scheme, parts.hostname, port) if parts.hostname else None


def _not_believed(peer: str) -> Doubt:
    return Doubt(
        f"The request came through a proxy at {_plain(peer)} that is not believed.",
        f"Set REMIT_PROXIES to {_plain(peer)} if that is your own.",
    )


def _is_loopback(address: str) -> bool:
    return _plain(address) in LOOPBACK


def _plain(address: str) -> str:
    """Return an IPv4 address for one that was mapped into IPv6."""
    return address.removeprefix("::ffff:") if "." in address else address
