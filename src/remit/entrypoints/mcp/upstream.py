"""Connections to other MCP servers, one for each server and run.

A connection belongs to one version of one server and to one run, so that a server's state never
leaks between agents. It opens on first use, and closes with the run, with the right to use it, when
it is idle, or with this process. A broken one is reopened by the next call; the failed call is not
retried, because it may have been carried out.
"""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from mcp.client.session import ClientSession
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
)
from pydantic import ValidationError

from remit import version
from remit.app import App
from remit.entrypoints.mcp.offer import MOST_TOOLS, Offered, offer
from remit.entrypoints.mcp.transport import Streams, over_http, over_pipes
from remit.errors import RemitError, TooLarge, Unavailable
from remit.model.connections.mcp_server import McpServer, Transport
from remit.model.connections.secret import filled, named_in
from remit.runtime.deadlines import within
from remit.runtime.runs.upstream import Program
from remit.services.connections import mcp_servers
from remit.services.connections.mcp_servers import Seat
from remit.services.identity import as_system
from remit.services.redaction import Known

log = logging.getLogger(__name__)

#: Largest result that an agent is given.
LARGEST_RESULT: Final = 1 << 20
MOST_CONNECTIONS: Final = 64
#: Grace of an orderly close; and then again for a cancelled one.
CLOSE_SECONDS: Final = 3.0
_MOST_PAGES: Final = 20
_LONGEST_REASON: Final = 300


@dataclass(frozen=True)
class Patience:
    """Timeouts and intervals, in seconds."""

    start: float = 60.0
    call: float = 120.0
    #: Idle time after which a server is ended.
    idle: float = 600.0
    #: Pause before a failed start is retried.
    retry: float = 5.0
    #: Interval of the check for connections that are no longer needed.
    look: float = 1.0
    #: Cache lifetime of a server's list of tools.
    offers: float = 300.0


class Broken(Exception):
    """A server cannot be used; the text is a reason that may be shown."""


class Upstream:
    """One connection. It is entered and left in one task, as the SDK demands."""

    def __init__(self, app: App, seat: Seat, patience: Patience) -> None:
        self.seat = seat
        self._app = app
        self._patience = patience
        self._stop = asyncio.Event()
        self._session: ClientSession | None = None
        self._program: Program | None = None
        self.known = Known()
        #: Reason of an end that was not asked for.
        self._why = ""
        self.used_at = _now()
        self.calls = 0
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live())

    @property
    def was_ready(self) -> bool:
        return self._session is not None

    @property
    def ended(self) -> bool:
        """Whether the connection is unusable: ended or ending."""
        return self._task.done() or self._stop.is_set()

    async def ready(self) -> None:
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        self._why = self._why or "it was ended"
        self._stop.set()
        await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        if not self._task.done():
            self._task.cancel()  # the server does not react to the close
            await within(CLOSE_SECONDS, self._task, f"the MCP server {self.seat.server.name}")

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Context manager: count a call, from before the connection is ready."""
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1
            self.used_at = _now()

    async def tools(self) -> list[Offered]:
        await self.ready()
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            params = PaginatedRequestParams(cursor=cursor)
            page = await self._ask(ListToolsRequest(params=params), ListToolsResult)
            tools += page.get("tools", ())
            cursor = page.get("nextCursor")
            if cursor is None or len(tools) > MOST_TOOLS:
                break
        return offer(self.seat.server.name, self.known.out_of_all(tools))

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the server's answer as it is, with its secrets redacted."""
        await self.ready()
        params = CallToolRequestParams(name=tool, arguments=dict(arguments))
        result = await self._ask(CallToolRequest(params=params), CallToolResult)
        if len(json.dumps(result)) > LARGEST_RESULT:
            raise TooLarge(
                f"The MCP server {self.seat.server.name} answered with more than "
                f"{LARGEST_RESULT // 1024**2} MiB.",
                "Ask it for less.",
            )
        answer: dict[str, Any] = self.known.out_of_all(result)
        return answer

    async def _ask(self, request: Any, answer: Any) -> dict[str, Any]:
        assert self._session is not None
        if self._program is not None:
            self._program.asked()
        asking = asyncio.create_task(self._session.send_request(request, answer))
        try:
            async with asyncio.timeout(self._patience.call):
                # Whichever comes first: the answer, or the end of the connection.
                await asyncio.wait([asking, self._task], return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    raise Broken(self._why or "it was ended meanwhile")
                answered = await asking
        except TimeoutError:
            if self.calls == 1:
                self._stop.set()  # it may be stuck, and no other call waits for it
            raise Broken(f"it did not answer within {self._patience.call:.0f} seconds") from None
        except Exception as error:
            raise self._broken(error) from None
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        plain: dict[str, Any] = answered.model_dump(mode="json", by_alias=True, exclude_none=True)
        return plain

    async def _live(self) -> None:
        try:
            async with (
                self._connected() as (incoming, outgoing),
                ClientSession(
                    incoming,
                    outgoing,
                    client_info=Implementation(name="remit", version=version.current()),
                ) as session,
            ):
                async with asyncio.timeout(self._patience.start):
                    await session.initialize()
                self._session = session
                if not self._ready.done():
                    self._ready.set_result(None)
                await self._stop.wait()
        except TimeoutError:
            self._failed(Broken(f"it was not ready within {self._patience.start:.0f} seconds"))
        except RemitError as error:
            self._failed(error)
        except Exception as error:
            self._failed(self._broken(error))
        finally:
            self._failed(Broken("it was ended"))
            if self._program is not None:
                await _to_the_end(self._program)

    def _failed(self, error: Exception) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            self._ready.exception()  # mark as retrieved: there may be no waiter

    def _broken(self, error: Exception) -> Exception:
        """Return an error that may be shown: the server's own words, with its secrets redacted."""
        if isinstance(error, Broken | RemitError):
            return error
        while isinstance(error, BaseExceptionGroup) and error.exceptions:
            error = error.exceptions[0]  # type: ignore[assignment]
        words = self._why or f"{type(error).__name__}: {error}"
        if isinstance(error, ValidationError):
            words = "its answer is not what the protocol says"
        return Broken(" ".join(self.known.out_of(words).split())[:_LONGEST_REASON])

    @property
    def complaint(self) -> str:
        """Error output of the server, for the operator of this instance."""
        return self.known.out_of(self._program.complaint) if self._program is not None else ""

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[Streams]:
        server = self.seat.server
        # Only the secrets of this server, and only at first use.
        names = named_in(server.templates.values())
        values = await self._app.vault.values(self.seat.company_id, names)
        settings = {name: filled(text, values) for name, text in server.templates.items()}
        self.known = Known((*values.values(), *settings.values()))
        settings = {**server.settings, **settings}
        if server.transport is Transport.HTTP:
            assert server.url is not None
            async with over_http(server.url, _as_headers(settings), self._patience.call) as streams:
                yield streams
            return
        self._program = await Program.begin(
            server.argv,
            settings,
            folders=self._app.settings.run_folder / "servers",
            run=self.seat.run_id,
            workspace=self.seat.workspace,
        )
        async with over_pipes(self._program, self._ended) as streams:
            yield streams

    def _ended(self, why: str) -> None:
        """Fail and stop the connection of a program that ended by itself."""
        self._why = why
        self._failed(Broken(why))
        self._stop.set()


async def _to_the_end(program: Program) -> None:
    """End a program completely, even if the caller is cancelled meanwhile."""
    ending = asyncio.ensure_future(program.end())
    while not ending.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(ending)


def _as_headers(settings: Mapping[str, str]) -> dict[str, str]:
    for name, value in settings.items():
        if not value.isascii() or any(ord(char) < 32 for char in value):
            raise Broken(f"what was to be sent as {name} cannot stand in a header")
    return dict(settings)


def _now() -> float:
    return asyncio.get_running_loop().time()


Key = tuple[str, int, str]


class Pool:
    """All connections of this process; enter it while they may be used."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._patience = Patience()
        self._open: dict[Key, Upstream] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._refused: dict[Key, tuple[float, RemitError]] = {}
        #: Cached tools by server and version, with the time of the list.
        self._offers: dict[tuple[str, int], tuple[float, list[Offered]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._closed = True

    async def __aenter__(self) -> Self:
        self._closed = False
        self._looking = asyncio.create_task(self._look_after())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        for key in list(self._open):
            self._let_go(key)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def tools(self, seat: Seat) -> list[Offered]:
        """Return the tools of a server, from the cache while it is fresh."""
        which = (seat.server.id, seat.server.version)
        known = self._offers.get(which)
        if known is not None and _now() - known[0] < self._patience.offers:
            return known[1]
        tools: list[Offered] = await self._asked(seat, lambda upstream: upstream.tools())
        self._offers[which] = (_now(), tools)
        return tools

    async def call(self, seat: Seat, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = await self._asked(
            seat, lambda upstream: upstream.call(tool, arguments)
        )
        return answer

    async def _asked(self, seat: Seat, ask: Any) -> Any:
        key = _key(seat)
        upstream = self._connection(key, seat)
        try:
            with upstream.in_use():
                return await ask(upstream)
        except (Broken, RemitError) as error:
            if isinstance(error, TooLarge):
                raise
            refusal = _refusal(seat.server, error)
            if upstream.complaint:
                log.info("the MCP server %s complained: %s", seat.server.name, upstream.complaint)
            if upstream.ended and self._open.get(key) is upstream:
                self._let_go(key)
            if not upstream.was_ready:
                self._refused[key] = (_now(), refusal)
            raise refusal from None

    def _connection(self, key: Key, seat: Seat) -> Upstream:
        if self._closed:
            raise Unavailable("Remit is being stopped.")
        known = self._open.get(key)
        if known is not None and not known.ended:
            return known
        refused = self._refused.get(key)
        if refused is not None and _now() - refused[0] < self._patience.retry:
            raise refused[1]
        self._refused.pop(key, None)
        if known is not None:
            self._let_go(key)
        if len(self._open) >= MOST_CONNECTIONS:
            raise Unavailable("Too many MCP servers are in use here.", "Try again in a while.")
        self._open[key] = upstream = Upstream(self._app, seat, self._patience)
        return upstream

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(self._patience.look)
            try:
                await self._end_unneeded()
            except Exception:
                log.exception("MCP servers that nobody needs are looked for again")

    async def _end_unneeded(self) -> None:
        late = _now() - self._patience.retry
        self._refused = {
            key: refused for key, refused in self._refused.items() if refused[0] > late
        }
        if not self._open:
            return
        idle = _now() - self._patience.idle
        seats = [upstream.seat for upstream in self._open.values()]
        vacated = {
            _key(seat)
            for seat in await self._app.gate(as_system(), mcp_servers.vacated, seats=seats)
        }
        for key, upstream in list(self._open.items()):
            unused = upstream.calls == 0 and upstream.used_at < idle
            if key in vacated or unused or upstream.ended:
                self._let_go(key)

    def _let_go(self, key: Key) -> None:
        """Close a connection in the background; leaving the pool waits for it."""
        closing = asyncio.create_task(self._open.pop(key).close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def _key(seat: Seat) -> Key:
    return (seat.server.id, seat.server.version, seat.run_id or f"agent:{seat.agent_id}")


def _refusal(server: McpServer, error: Exception) -> RemitError:
    if isinstance(error, RemitError):
        why = error.sentence if error.reason == "secret" else error.sentence.rstrip(".")
    else:
        why = str(error)
    return Unavailable(
        f"The MCP server {server.name} cannot be used: {why.rstrip('.')}.",
        "Go on without it, and tell your boss; or try again later.",
        code="mcp_server",
    )


async def try_out(app: App, server: McpServer, patience: Patience | None = None) -> dict[str, Any]:
    """Start a server outside of any run, list its tools and end it, as a test."""
    seat = Seat(server.company_id, "", None, None, server)
    upstream = Upstream(app, seat, patience or Patience())
    try:
        with upstream.in_use():
            tools = await upstream.tools()
    except (Broken, RemitError) as error:
        refusal = _refusal(server, error)
        complaint = upstream.complaint[-500:]
        return {"usable": False, "error": refusal.sentence, "complaint": complaint, "tools": []}
    finally:
        await upstream.close()
    shown = [{"name": tool.name, "description": tool.description} for tool in tools]
    return {"usable": True, "error": None, "complaint": "", "tools": shown}
