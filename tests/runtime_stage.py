"""Processes that start agents, made to be killed, stopped and continued.

A stage has everything imported and forks a process whenever it is told to, so that one costs
milliseconds. What a process then does is what `remit up`, `serve` and `worker` do; or it is a
worker alone, for programs that do not call Remit.
"""

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import remit.app
import remit.runtime.runs.worker
from remit.app import App
from remit.clock import SECOND
from remit.entrypoints import serve, work
from remit.runtime.jobs import Jobs
from remit.runtime.runs.worker import Worker
from remit.runtime.sandbox import sandbox_policy
from remit.services.execution import run_endings
from tests import cli_forks
from tests.company import settings
from tests.mail_stage import arm


@dataclass
class Life:
    """One process: an instance of its own, or one worker among others."""

    url: str
    home: str
    name: str = "local"
    alone: bool = True
    lease_seconds: float = 10.0
    slots: int = 4
    #: "bare" is a worker that nobody can call; the others are the commands of that name.
    kind: str = "bare"
    port: int = 0
    #: Of what goes to chats and comes from them; None is as it is.
    chat_lease_seconds: float | None = None
    #: How long an agent waits after a failure; None is as it is.
    pause_seconds: float | None = None
    #: As if on another machine: it cannot end what others left on this one.
    elsewhere: bool = False
    #: Where it ends by its own hand: verb, moment, and which of the calls.
    crash: tuple[str, str, int] | None = None
    environ: dict[str, str] = field(default_factory=dict)


class Stage:
    """The process that forks the others, seen from the test."""

    def __init__(self, module: str = "tests.runtime_stage") -> None:
        self._process = cli_forks.instances().told(module)
        self._born: list[int] = []
        self._ready: set[int] = set()
        self._buffer = b""

    def begin(self, life: Any, *, wait: bool = True) -> int:
        """Fork; answers the process, once it works if that is waited for."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(life)).encode() + b"\n")
        self._process.stdin.flush()
        before = len(self._born)
        while len(self._born) == before:
            self._hear()
        pid = self._born[-1]
        while wait and pid not in self._ready:
            assert _exists(pid), "it ended before it worked"
            self._hear()
        return pid

    def _hear(self) -> None:
        """What a process said, if it said something within a moment."""
        assert self._process.stdout is not None
        place = self._process.stdout.fileno()
        if b"\n" not in self._buffer and select.select([place], [], [], 0.1)[0]:
            arrived = os.read(place, 1 << 16)
            assert arrived, "the stage is gone"
            self._buffer += arrived
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return
        self._buffer = rest
        word, pid = line.decode().split()
        if word == "born":
            self._born.append(int(pid))
        else:
            self._ready.add(int(pid))

    def close(self) -> None:
        for pid in self._born:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.close()


@contextlib.contextmanager
def opened(module: str = "tests.runtime_stage") -> Iterator[Stage]:
    stage = Stage(module)
    try:
        yield stage
    finally:
        stage.close()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    # Once, and not by each process: what is imported late, and whether there is a sandbox.
    import_module("remit.adapters.process")
    serve.loop_factory()
    sandbox_policy.look()
    fork_on_order(lambda order: _be(Life(**order)))


def fork_on_order(be: Callable[[dict[str, Any]], None]) -> None:
    """One process for each line that comes in; it is what the line says until it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    for order in sys.stdin:
        pid = os.fork()
        if pid:
            os.write(1, f"born {pid}\n".encode())
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        code = 1
        try:
            be(json.loads(order))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)


def _be(life: Life) -> None:
    os.environ.update(life.environ)
    if life.crash is not None:
        arm(*life.crash)
    if life.pause_seconds is not None:
        pause = int(life.pause_seconds * SECOND)
        _put(run_endings, "pause_after", lambda failures: pause if failures else 0)
    if life.elsewhere:
        _put(remit.runtime.runs.worker, "end_leftovers", lambda runs: 0)
    if life.kind == "bare":
        asyncio.run(_live(life))
        return
    _put(serve, "Worker", partial(Worker, lease=int(life.lease_seconds * SECOND)))
    if life.chat_lease_seconds is not None:
        lease = int(life.chat_lease_seconds * SECOND)
        for name in ("Outbox", "Posts", "IntakeLoop", "Receivers"):
            _put(remit.app, name, partial(getattr(remit.app, name), lease=lease))
    where = settings(life.url, Path(life.home))
    if life.kind == "worker":
        work.run(where, name=life.name, slots=life.slots, ready=_ready, log_to_stderr=False)
    else:
        slots = life.slots if life.kind == "up" else 0
        options: dict[str, Any] = {"host": "127.0.0.1", "port": life.port, "slots": slots}
        serve.run(where, ready=_ready, log_to_stderr=False, **options)


def _put(module: object, name: str, value: object) -> None:
    """Times that fit a test; what happens in them stays the same."""
    setattr(module, name, value)


def _ready(_: str = "") -> None:
    os.write(1, f"ready {os.getpid()}\n".encode())


async def _live(life: Life) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with App(settings(life.url, Path(life.home))) as app:
        await app.first_start(alone=life.alone)
        worker = Worker(
            app,
            "http://127.0.0.1:9",
            name=life.name,
            slots=life.slots,
            lease=int(life.lease_seconds * SECOND),
        )
        carrier = Jobs(app, name=life.name, lease=int(life.lease_seconds * SECOND))
        worker.start()
        carrier.start()
        _ready()
        await stopped.wait()
        await carrier.stop()
        await worker.stop()
