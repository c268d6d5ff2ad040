"""HTTP sessions for the libraries of chat systems, which connect through aiohttp.

Names are resolved and checked by `guarded_http`, and the addresses that were checked are the ones
that are connected to. A server that the operator configured may be in a private network. As in
`guarded_http`, no redirect is followed and no proxy is used: either would take the request, with
the token of the channel, to an address that nobody configured.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import (
    ClientError,
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult

from remit.adapters import guarded_http
from remit.channels.contract import Connection

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class LedElsewhere(ClientError):
    """A request that would go on to an address that nobody configured."""


class _Resolver(AbstractResolver):
    def __init__(self, *, private: bool) -> None:
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in await guarded_http.addresses(host, port, private=self._private)
        ]

    async def close(self) -> None:
        pass


def connector_settings(connection: Connection) -> dict[str, Any]:
    """Return the settings of a connector that connects to checked addresses alone."""
    private = connection.private or connection.server is not None

    def new_socket(place: Any) -> socket.socket:
        # An address in place of a name is not resolved, so it is checked here.
        family, kind, protocol, _, (address, *_) = place
        guarded_http.require_allowed(address, address, private=private)
        return socket.socket(family, kind, protocol)

    return {
        "resolver": _Resolver(private=private),
        "use_dns_cache": False,
        "socket_factory": new_socket,
    }


async def direct(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
    """Send a request to the address of its URL alone; a middleware of sessions."""
    if request.proxy is not None:
        raise LedElsewhere("a proxy is set, which is not used")
    answer = await send(request)
    if answer.status in _REDIRECTS:
        answer.close()
        raise LedElsewhere(f"it answered with a redirect ({answer.status}), which is not followed")
    return answer


#: Settings of a session beside its connector.
SETTINGS: Final[Mapping[str, Any]] = {"middlewares": (direct,), "trust_env": False}


def session(connection: Connection, **settings: Any) -> ClientSession:
    """Return a session that sends to checked addresses alone."""
    connector = TCPConnector(**connector_settings(connection))
    return ClientSession(connector=connector, **SETTINGS, **settings)
