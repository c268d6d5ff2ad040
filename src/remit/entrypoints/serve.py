"""The whole instance in one process: lock, server, worker, orderly shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final, NamedTuple

import uvicorn

from remit import threads, version
from remit.adapters.registry import best_adapter
from remit.app import App, InstanceLock
from remit.clock import Clock
from remit.entrypoints.arrival import Outside, refuse_plain_http
from remit.entrypoints.http.server.asgi import Instance, build_asgi
from remit.entrypoints.http.server.logs import keep_logs
from remit.entrypoints.http.server.protocol import Impatient
from remit.errors import BadInput, Conflict, RemitError, Unavailable
from remit.runtime.deadlines import Deadline, within
from remit.runtime.jobs import Jobs
from remit.runtime.runs.worker import Worker
from remit.settings import DEFAULT_HOST, DEFAULT_SLOTS, Settings

if TYPE_CHECKING:
    from remit.entrypoints.http.server.asgi import Endpoint

log = logging.getLogger(__name__)

#: Grace of requests in progress when the instance is stopped.
GRACE_SECONDS: Final = 2
#: Grace of the lifespan's end, above all of other MCP servers.
LEAVE_SECONDS: Final = 3.0
KEEP_ALIVE_SECONDS: Final = 75
BACKLOG: Final = 2048
#: Switch interval of the interpreter lock. The event loop needs several turns for an answer, and
#: each may wait behind every thread that parses or stores.
SWITCH_SECONDS: Final = 0.001
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  where to find it


def run(
    settings: Settings,
    *,
    host: str,
    port: int,
    slots: int = DEFAULT_SLOTS,
    ready: Callable[[str], None] | None = None,
    log_to_stderr: bool = True,
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code.

    `slots` agents run at once; with 0 there is no worker. `ready` is called with the address once
    the server answers. Errors of the start are raised; nothing is created before the port is bound.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    outside = Outside.of(settings)
    with (
        listen(settings, host, port) as listening,
        InstanceLock(settings) as lock,
        keep_logs(settings.log_folder, stderr=log_to_stderr),
        Deadline() as deadline,
    ):
        url = address(host, listening.getsockname()[1])
        app = App(settings)

        def announce() -> None:
            lock.describe((url, *outside.addresses), app.restored)
            log.info("serving at %s", url)
            # Loaded modules stay. Collecting garbage among them blocks the event loop for 150 ms,
            # and happens whenever a request brings many values.
            gc.freeze()
            if ready is not None:
                ready(url)

        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            serving = Serving(app, host, listening, url, announce, deadline)
            runner.run(_serve(serving, slots))
            deadline.put_away()  # the runner waits for every task that is left
    return 0


def address(host: str, port: int) -> str:
    reached = _EVERYWHERE.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


class Serving(NamedTuple):
    """The place where an application serves, and the callbacks of its start and end."""

    app: App
    host: str
    listening: socket.socket
    url: str
    ready: Callable[[], None]
    deadline: Deadline


async def _serve(serving: Serving, slots: int) -> None:
    async with serving.app as app:
        # Before a request can create an agent without naming its adapter.
        app.gate.usable_adapter = await threads.CHECKS.run(best_adapter)
        if is_shared(app.settings):
            await app.library.check_place()
        await app.first_start(alone=not is_shared(app.settings))
        app.start_housekeeping()
        await serve_and_work(serving, slots)


async def serve_and_work(serving: Serving, slots: int, name: str = "local") -> None:
    """Serve until a signal and, with slots, run agents that have work."""
    app, host, listening, url, ready, deadline = serving
    workers: list[Worker | Jobs] = []
    if slots:
        workers += [Worker(app, url, name=name, slots=slots), Jobs(app, name=name)]

    async def stop_working() -> None:
        await asyncio.gather(*(worker.stop() for worker in workers))

    app.places.strict = True
    server = _server(app, host, ready, stop_working, deadline=deadline, owns_process=True)
    for worker in workers:
        worker.start()
    try:
        await server.serve([listening])
    finally:
        await stop_working()
    if not server.started:
        raise Unavailable("The instance could not start.", "See the log above.")


async def _nothing() -> None:
    """Callback without effect."""


def is_shared(settings: Settings) -> bool:
    """Return whether other processes may use the same database."""
    return not settings.database_url.startswith("sqlite:")


def _server(
    app: App,
    host: str,
    ready: Callable[[], None],
    stopping: Callable[[], Awaitable[None]] = _nothing,
    *,
    deadline: Deadline,
    owns_process: bool = False,
) -> Server:
    instance = build_asgi(app, host=host, load_mcp=lambda: _load_mcp(app, instance, owns_process))
    config = uvicorn.Config(
        instance,
        lifespan="on",
        http=Impatient,
        access_log=False,
        log_config=None,
        proxy_headers=False,  # see `Arrivals`: the connection's own end has to be known, too
        server_header=False,
        ws="none",
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return Server(config, instance, ready, stopping, deadline)


class Server(uvicorn.Server):
    """uvicorn's server with a callback once it answers, and an end of event streams at its stop."""

    def __init__(
        self,
        config: uvicorn.Config,
        instance: Instance,
        ready: Callable[[], None],
        stopping: Callable[[], Awaitable[None]] = _nothing,
        deadline: Deadline | None = None,
    ) -> None:
        super().__init__(config)
        self._instance = instance
        self._deadline = deadline or Deadline()
        self._ready = ready
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._instance.end_streams()
        # Agents end while the server still answers: a call without an answer would delay their end.
        await self._stopping()
        await within(GRACE_SECONDS + LEAVE_SECONDS, super().shutdown(sockets), "some connection")

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let a signal end the serving, not the process: the caller has to clean up."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread gets signals
            return
        before = {
            number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self.should_exit:
            # Second signal. Acknowledged changes are on the disk, and programs end with this
            # process.
            self._deadline.at_once(128 + number)
        self.should_exit = True
        self._deadline.begin()


def listen(settings: Settings, host: str, port: int) -> socket.socket:
    """Bind and listen at once: a bound socket that does not listen does not reserve the port."""
    if not 0 <= port <= 65_535:
        raise BadInput(f"{port} is not a port.", "Choose one up to 65535, or 0 for any.")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, OverflowError, UnicodeError) as error:
        raise BadInput(
            f"{host!r} is not an address of this machine.", "Try --host 127.0.0.1."
        ) from error
    refuse_plain_http(settings, host, str(place[0]))
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. Without, each answer may wait 40 ms for an acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listening.bind(place)
        except OSError:
            # The port may be, or have been until now, this home's own instance's.
            _check_own_instance(settings)
            listening.bind(place)
        listening.listen(BACKLOG)
    except RemitError:
        listening.close()
        raise
    except OSError as error:
        listening.close()
        raise Conflict(
            f"Port {port} on {host} cannot be used ({error.strerror}).",
            "Stop what uses it, or choose another with --port.",
        ) from error
    listening.setblocking(False)
    return listening


def _check_own_instance(settings: Settings) -> None:
    """Raise the lock's error if an instance of this home runs; create no lock file if there is
    none."""
    if (settings.run_folder / "instance.lock").exists():
        with InstanceLock(settings):
            return


def _load_mcp(app: App, instance: Instance, owns_process: bool) -> Endpoint:
    """Build the MCP endpoint; called in a thread, because the import takes a second."""
    from remit.entrypoints.mcp.endpoint import build_endpoint
    from remit.entrypoints.mcp.repetition import CallWatch
    from remit.entrypoints.mcp.tools.listing import build_listed, build_tools
    from remit.entrypoints.mcp.tools.proxy_tools import ProxyTools
    from remit.entrypoints.mcp.upstream import Pool
    from remit.services.identity import Caller

    tools = build_tools(app, instance.announcer.attached)
    pool = Pool(app)
    others = ProxyTools(app, pool)
    if owns_process:
        gc.freeze()  # these modules, too
    return build_endpoint(
        tools=tools,
        listed=build_listed(app, tools, others.listed),
        find=others.find,
        watch=CallWatch(app),
        needs=pool,
        authenticate=lambda token: app.gate.check(Caller(token)),
        version=version.current(),
    )


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class Running(NamedTuple):
    """An instance inside a program with other work."""

    app: App
    url: str
    #: Done once a signal has told the process to stop.
    stopped: asyncio.Task[None]


@contextlib.asynccontextmanager
async def running(settings: Settings, *, clock: Clock | None = None) -> AsyncIterator[Running]:
    """Context manager: an instance inside a program with other work, until a signal or its end."""
    host = DEFAULT_HOST
    with (
        listen(settings, host, 0) as listening,
        InstanceLock(settings) as lock,
        Deadline() as deadline,
    ):
        url = address(host, listening.getsockname()[1])
        lock.describe([url])
        async with App(settings, clock=clock) as app:
            await app.first_start()
            server = _server(app, host, ready=lambda: None, deadline=deadline)
            serving = asyncio.create_task(server.serve([listening]))
            try:
                yield Running(app, url, serving)
            finally:
                server.should_exit = True
                await serving
