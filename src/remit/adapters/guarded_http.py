"""Connections to configured addresses, protected against server-side request forgery.

A name is resolved once, its addresses are checked, and exactly these are connected to, so that DNS
cannot answer differently the second time. `request` sends an HTTP request in this way, `connected`
returns a socket for other protocols, and `remit.channels.guarded_session` is for libraries on
aiohttp. No redirect is followed and no proxy of the environment is used. Addresses of machines' own
services, such as a cloud's credential service, are never called.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit, urlunsplit

CONNECT_SECONDS = 10.0

_ADDRESS = IPv4Address | IPv6Address
#: Metadata services of some clouds, outside the link-local range.
_METADATA = tuple(
    ip_network(text)
    for text in ("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32")
)
_TRANSLATED = ip_network("64:ff9b::/96")


class NotAllowed(OSError):
    """A forbidden address; a retry does not help."""


class BadAnswer(OSError):
    """A server answered in a way that is not acceptable."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(address: _ADDRESS, *, private: bool) -> str | None:
    """Return why an address is forbidden, or None; `private` allows private networks."""
    inner = _inner(address)
    if inner is not None and (why := refusal(inner, private=private)) is not None:
        return why
    if address.is_link_local or any(address in network for network in _METADATA):
        return "belongs to the machine's own services"
    if address.is_multicast or address.is_unspecified or _is_broadcast(address):
        return "is nobody's address"
    if not private and inner is None and not address.is_global:
        return "lies in a private network"
    return None


def _inner(address: _ADDRESS) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address embeds or translates to, if any."""
    if isinstance(address, IPv4Address):
        return None
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.teredo is not None:
        inner = address.teredo[1]
    if inner is None and address in _TRANSLATED:
        inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    return inner


def _is_broadcast(address: _ADDRESS) -> bool:
    return isinstance(address, IPv4Address) and (
        address == IPv4Address("255.255.255.255") or address in ip_network("0.0.0.0/8")
    )


def literal(host: str) -> _ADDRESS | None:
    """Parse a host as an IP address; None for a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


async def addresses(host: str, port: int, *, private: bool) -> list[str]:
    """Resolve a host; raises `NotAllowed` if one of its addresses is forbidden."""
    loop = asyncio.get_running_loop()
    try:
        places = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise OSError(f"{host[:100]} is not known ({why})") from error
    names = list(dict.fromkeys(str(place[4][0]) for place in places))
    for name in names:
        require_allowed(host, name, private=private)
    return names


def require_allowed(host: str, address: str, *, private: bool) -> None:
    """Refuse a forbidden address of a host."""
    why = refusal(ip_address(address.partition("%")[0]), private=private)
    if why is not None:
        raise NotAllowed(f"{host[:100]} is not called: {address} {why}")


async def connected(host: str, port: int, *, private: bool, seconds: float) -> socket.socket:
    """Return a socket that is connected to a checked address of a host; raises OSError, or
    `NotAllowed` for a forbidden address."""
    loop = asyncio.get_running_loop()
    failed: OSError = OSError(f"{host[:100]} has no address")
    for address in await addresses(host, port, private=private):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        wire = socket.socket(family, socket.SOCK_STREAM)
        wire.setblocking(False)
        try:
            async with asyncio.timeout(min(CONNECT_SECONDS, seconds)):
                await loop.sock_connect(wire, (address, port))
            return wire
        except OSError as error:  # a timeout as well
            wire.close()
            failed = error
        except BaseException:
            wire.close()
            raise
    raise failed


async def post(url: str, **told: Any) -> Answer:
    return await request("POST", url, **told)


async def request(
    method: str,
    url: str,
    *,
    content: bytes = b"",
    headers: Mapping[str, str],
    seconds: float,
    largest: int,
    private: bool,
    trusts: ssl.SSLContext | None = None,
    tail: bool = False,
) -> Answer:
    """Send a request and return the answer; raises OSError, or NotAllowed for a forbidden address.
    With `tail`, an answer that is too large is cut to its end."""
    import httpx2

    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    trusts = _public_authorities() if trusts is None else trusts
    patience = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    extensions: dict[str, Any] = {} if literal(host) else {"sni_hostname": host}
    failed: OSError = OSError(f"{host} has no address")
    for address in await addresses(host, port, private=private):
        shown = f"[{address}]" if ":" in address else address
        place = urlunsplit(parts._replace(netloc=f"{shown}:{port}", fragment=""))
        told = {"host": parts.netloc.rpartition("@")[2], "accept-encoding": "identity"}
        told |= {name.lower(): value for name, value in headers.items()}
        try:
            async with (
                httpx2.AsyncClient(
                    follow_redirects=False, trust_env=False, timeout=patience, verify=trusts
                ) as client,
                client.stream(
                    method, place, content=content, headers=told, extensions=extensions
                ) as response,
            ):
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise BadAnswer("its answer is packed, which was not asked for")
                body = b""
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > largest and tail:
                        body = body[-largest:]
                    elif len(body) > largest:
                        raise BadAnswer("its answer is too large")
                return Answer(response.status_code, body, dict(response.headers))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            # Nothing was sent, so another address can be tried.
            failed = OSError(f"{type(error).__name__}: {error}"[:300])
        except httpx2.ReadTimeout as error:
            raise BadAnswer(f"it did not answer within {seconds:g} seconds") from error
        except httpx2.HTTPError as error:
            raise OSError(f"{type(error).__name__}: {error}"[:300]) from error
    raise failed


@cache  # reading them takes 30 ms of processor time, more than all the rest of a call
def _public_authorities() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)
