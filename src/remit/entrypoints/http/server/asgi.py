"""The whole instance as one ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from remit import threads, version
from remit.adapters import registry
from remit.app import App
from remit.entrypoints import arrival
from remit.entrypoints.arrival import Arrivals, Outside
from remit.entrypoints.http import declared_routes
from remit.entrypoints.http.routes import (
    agents,
    approvals,
    channels,
    companies,
    connections,
    events,
    files,
    mail,
    org,
    outcomes,
    overview,
    runs,
)
from remit.entrypoints.http.routes.files import ContentRoutes
from remit.entrypoints.http.server import health, instance
from remit.entrypoints.http.server.guard import Guard, Hosts
from remit.entrypoints.http.server.places import Places
from remit.entrypoints.http.server.stream import Announcer
from remit.entrypoints.http.wire import error_answers, openapi
from remit.entrypoints.http.wire.caller import run_tokens
from remit.entrypoints.http.wire.problems import CrossSite
from remit.entrypoints.web import routes as web
from remit.errors import RemitError, Unavailable
from remit.ids import token_digest
from remit.runtime.sandbox.places import outside
from remit.services.execution import run_queue
from remit.services.identity import as_system
from remit.settings import DEFAULT_HOST

MCP_PATHS = ("/mcp", "/mcp/")


def build_asgi(
    app: App, *, host: str = DEFAULT_HOST, load_mcp: Callable[[], Endpoint] | None = None
) -> Instance:
    """`host` is where the server is bound; `load_mcp` is called in a thread, once it serves."""
    return Instance(app, host, Outside.of(app.settings), load_mcp)


def _head_of(send: Send) -> Send:
    """Wrap `send` for HEAD: pass on the head of GET's response, and end its body at once."""
    ended = False

    async def head(message: Message) -> None:
        nonlocal ended
        if message["type"] == "http.response.start":
            await send(message)
        elif not ended:
            ended = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return head


class Instance:
    """Pages, API and MCP behind one guard."""

    def __init__(
        self, app: App, host: str, outside: Outside, load_mcp: Callable[[], Endpoint] | None
    ) -> None:
        self.announcer = Announcer(app)
        self._load_mcp = load_mcp
        self._mcp: LazyEndpoint | None = None
        self._content = ContentRoutes(app)
        self._app = app
        self._guard = Guard(
            self._dispatch,
            Hosts(host, outside.names),
            app.library.largest,
            lambda who: app.gate.check(who),
        )
        self.strangers = self._guard.strangers
        self._arrivals = Arrivals(self._guard, outside)
        self.api = self._build(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._arrivals(scope, receive, send)

    def end_streams(self) -> None:
        """End all streams and waits; an open one would delay the server's stop to the limit."""
        self.announcer.close()
        self.strangers.close()

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        for token in run_tokens(scope):
            await check_origin(self._app, token, scope)
        if self._mcp is not None and scope.get("path") in MCP_PATHS:
            if not arrival.of(scope).is_from_near:
                raise CrossSite("The request did not come from a page of this instance.")
            endpoint = self._mcp.endpoint or await self._mcp.settled()
            await endpoint(scope, receive, send)
            return
        if scope.get("method") == "HEAD":
            scope, send = {**scope, "method": "GET"}, _head_of(send)
        short = self._content.shortcut(scope) if scope["type"] == "http" else None
        await (short or self.api)(scope, receive, send)

    def _build(self, app: App) -> FastAPI:
        api = FastAPI(
            title="Remit",
            version=version.current(),
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            lifespan=self._lifespan,
            exception_handlers={
                RemitError: error_answers.on_remit_error,
                RequestValidationError: error_answers.on_invalid,
                HTTPException: error_answers.on_http_error,
                Exception: error_answers.on_unexpected,
            },
        )
        api.router.routes.extend(self._content.routes)
        for router in (
            health.router(app, self._guard, lambda: self.announcer.open_streams),
            instance.router(app),
            companies.router(app),
            companies.archive(app),
            companies.declaration(app),
            companies.login_links(app),
            agents.router(app),
            agents.hiring_router(app),
            approvals.router(app),
            files.router(app),
            outcomes.router(app),
            org.router(app),
            overview.router(app),
            mail.router(app),
            runs.router(app, self.announcer),
            events.router(app, self.announcer),
            connections.secret_router(app),
            connections.mcp_server_router(app),
            connections.repo_router(app),
            connections.hooks(app),
            channels.router(app),
            channels.trials(app),
        ):
            api.router.routes.extend(router.routes)  # flat: `Places` sorts them
        api.router.routes.extend(declared_routes.routes(app))
        api.router.routes.sort(key=declared_routes.words_first)
        api.router.routes.extend(web.build(app, self.announcer))
        openapi.describe(api)
        api.router.middleware_stack = Places(api.router)
        return api

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        if self._load_mcp is None:
            yield
            return
        self._mcp = LazyEndpoint(self._load_mcp)
        async with self._mcp.lifespan():
            yield


async def check_origin(app: App, token: str, scope: Scope) -> None:
    """Refuse a run's token that comes from outside its run, before any other code accepts it."""
    place = app.places.of(token)
    if place is not None:
        other, own = arrival.of(scope).peer, scope.get("server")
        if other is None or own is None:
            raise outside(place.run)
        await app.places.check(place, other, own)
    elif app.places.strict:
        # The run may belong to another worker; only those of remote adapters call from elsewhere.
        run = await app.gate(as_system(), run_queue.bound, digest=token_digest(token))
        if run is not None and not await threads.CHECKS.run(_is_remote, run.adapter_type):
            raise outside(run.id)


def _is_remote(adapter: str) -> bool:
    try:
        return registry.get(adapter).remote
    except RemitError:
        return False


log = logging.getLogger(__name__)


class Endpoint(Protocol):
    """An ASGI app whose lifespan is entered before it serves."""

    def lifespan(self) -> AbstractAsyncContextManager[None]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class LazyEndpoint:
    def __init__(self, load: Callable[[], Endpoint]) -> None:
        self._load = load
        #: None while it does not serve.
        self.endpoint: Endpoint | None = None
        self._settled = asyncio.Event()
        self._stop = asyncio.Event()

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Load in the background while the rest of the instance serves already."""
        task = asyncio.create_task(self._live())
        try:
            yield
        finally:
            self._stop.set()
            await task

    async def settled(self) -> Endpoint:
        """Wait until the endpoint is loaded, and return it."""
        await self._settled.wait()
        if self.endpoint is None:
            raise Unavailable("The MCP endpoint could not be started.", "See the instance's log.")
        return self.endpoint

    async def _live(self) -> None:
        """Enter and leave the lifespan in one task, as the endpoint's own tasks demand."""
        try:
            endpoint = await asyncio.to_thread(self._load)
            async with endpoint.lifespan():
                self.endpoint = endpoint
                self._settled.set()
                await self._stop.wait()
        except Exception:
            log.exception("the MCP endpoint cannot serve")
        finally:
            self.endpoint = None
            self._settled.set()
