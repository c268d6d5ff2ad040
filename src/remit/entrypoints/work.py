"""A worker process: it starts agents, and serves them on this machine only."""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator

from remit import threads
from remit.adapters.registry import best_adapter
from remit.app import App, InstanceLock
from remit.entrypoints.arrival import Outside
from remit.entrypoints.http.server.logs import keep_logs
from remit.entrypoints.serve import (
    Serving,
    address,
    is_shared,
    listen,
    loop_factory,
    serve_and_work,
)
from remit.errors import Conflict, Unavailable
from remit.runtime.deadlines import Deadline
from remit.runtime.runs.lifecycle import tidy_up
from remit.services.identity import as_system
from remit.services.people import instance
from remit.settings import DEFAULT_HOST, Settings, prepare_home

log = logging.getLogger(__name__)


def default_name() -> str:
    return f"{socket.gethostname().partition('.')[0] or 'worker'}-{os.getpid()}"


def run(
    settings: Settings,
    *,
    name: str,
    slots: int,
    ready: Callable[[str], None] | None = None,
    log_to_stderr: bool = True,
) -> int:
    """Start agents until SIGTERM or SIGINT; return the exit code.

    Its agents call back here: the address is a loopback one, picked by the system.
    """
    Outside.of(settings)
    prepare_home(settings)
    with (
        _held(settings) as describe,
        listen(settings, DEFAULT_HOST, 0) as listening,
        keep_logs(settings.log_folder, stderr=log_to_stderr, name=f"worker-{name}.log"),
        Deadline() as deadline,
    ):
        url = address(DEFAULT_HOST, listening.getsockname()[1])

        def announce() -> None:
            describe(url)
            log.info("worker %s starts agents, which call %s", name, url)
            if ready is not None:
                ready(url)

        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            serving = Serving(App(settings), DEFAULT_HOST, listening, url, announce, deadline)
            runner.run(_work(serving, name, slots))
            deadline.put_away()  # the runner waits for every task that is left
    return 0


async def _work(serving: Serving, name: str, slots: int) -> None:
    async with serving.app as app:
        if await app.gate(as_system(), instance.is_empty):
            raise Unavailable(
                "There is no company in this database yet.",
                "Start `remit serve` first; it makes one.",
            )
        app.gate.usable_adapter = await threads.CHECKS.run(best_adapter)
        if is_shared(app.settings):
            await app.library.check_place()
            await tidy_up(app.gate, app.settings.workspaces, app.kept)
            app.start_tidying()
        else:
            await app.first_start()
            app.start_housekeeping()  # no other process does it
        await serve_and_work(serving, slots, name)


@contextlib.contextmanager
def _held(settings: Settings) -> Iterator[Callable[[str], None]]:
    """Context manager: hold the instance's lock if the database is for one process only."""
    if is_shared(settings):
        yield lambda _: None
        return
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context(InstanceLock(settings))
        except Conflict:
            raise Conflict(
                "An instance uses this SQLite database, and SQLite is for one process.",
                "Use `remit up`, which has a worker, or PostgreSQL (REMIT_DATABASE_URL).",
            ) from None
        yield lambda url: lock.describe([url])
