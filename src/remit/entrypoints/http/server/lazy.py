"""Lazily loaded endpoint: its import would delay the start, so the first requests wait for it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from starlette.types import Receive, Scope, Send

from remit.errors import Unavailable

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
