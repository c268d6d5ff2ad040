"""Tools of other MCP servers, proxied through Remit's: `<server>__<tool>`.

    agent ─ its token ─► /mcp ─ may it? ─ recorded ─► the server, with its secrets ─► the answer

The agent never connects to the server, so the server's secrets cannot be got from the agent.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from remit.app import App
from remit.entrypoints.mcp.offer import Offered
from remit.entrypoints.mcp.registry import Call, Tool
from remit.entrypoints.mcp.upstream import Pool
from remit.errors import BadInput, NotFound, RemitError, TooLarge
from remit.model.connections.mcp_server import SEPARATOR, server_name
from remit.services.connections import mcp_servers
from remit.services.connections.mcp_servers import Seat
from remit.services.identity import Caller

log = logging.getLogger(__name__)

#: Clients wait no longer for a list of tools; a slow server's are in the next list.
LIST_SECONDS: Final = 15.0
LARGEST_ARGUMENTS: Final = 1 << 20
_LONGEST_SHOWN: Final = 100


class ProxyTools:
    def __init__(self, app: App, pool: Pool) -> None:
        self._app = app
        self._pool = pool

    async def listed(self, token: str) -> Sequence[Tool]:
        """Tools of the servers that the bearer may use."""
        seats = await self._app.gate(Caller(token), mcp_servers.usable)
        if not seats:
            return ()
        offers = await asyncio.gather(*map(self._offered, seats))
        return [
            Tool(tool.name, tool.description, None, self._call(tool.name), True, schema=tool.schema)
            for offer in offers
            for tool in offer
        ]

    async def find(self, token: str, name: str) -> Tool | None:
        """Return a proxy for a name that may be another server's tool; None for other names."""
        del token  # the right is checked by the call
        server, separator, tool = name.partition(SEPARATOR)
        if not separator or not tool:
            return None
        try:
            server_name(server)
        except BadInput:
            return None
        return Tool(name, "", None, self._call(name), True, schema={"type": "object"})

    async def _offered(self, seat: Seat) -> list[Offered]:
        """Return a server's tools; none if it cannot be used, so that the others are still
        listed."""
        asking = asyncio.ensure_future(self._pool.tools(seat))
        asking.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.wait_for(asyncio.shield(asking), LIST_SECONDS)
        except (TimeoutError, RemitError) as error:
            why = error.sentence if isinstance(error, RemitError) else "it is not ready yet"
            log.warning("the tools of the MCP server %s are not listed: %s", seat.server.name, why)
            return []

    def _call(self, name: str) -> Call:
        async def call(caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
            return await self._carry_out(caller, name, arguments)

        return call

    async def _carry_out(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        if len(json.dumps(arguments)) > LARGEST_ARGUMENTS:
            raise TooLarge(f"The arguments are larger than {LARGEST_ARGUMENTS // 1024**2} MiB.")
        server, _, tool = name.partition(SEPARATOR)
        seats = await self._app.gate(caller, mcp_servers.usable)
        seat = next((seat for seat in seats if seat.server.name == server), None)
        original = _shown(tool)
        if seat is not None:
            original = await self._original(seat, name)
        # Authorised and recorded here, with the tool's original name.
        seat = await self._app.gate(
            caller, mcp_servers.use, server=server, tool=original, arguments=dict(arguments)
        )
        return await self._pool.call(seat, original, arguments)

    async def _original(self, seat: Seat, name: str) -> str:
        for tool in await self._pool.tools(seat):
            if tool.name == name:
                return tool.original
        raise NotFound(
            f"The MCP server {seat.server.name} has no tool {_shown(name)!r}.",
            "List the tools and choose one.",
        )


def _shown(text: str) -> str:
    plain = "".join(char if char.isprintable() else "?" for char in text)
    return plain.encode(errors="replace").decode()[:_LONGEST_SHOWN]
