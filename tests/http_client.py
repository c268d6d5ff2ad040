"""An instance to talk to, in a thread or in a process of its own, and a client to do it with."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from remit.app import App
from remit.clock import Clock
from remit.entrypoints.http.server import strangers
from remit.entrypoints.http.server.asgi import Endpoint, Instance, build_asgi
from remit.entrypoints.http.server.protocol import Impatient
from remit.entrypoints.serve import Server
from remit.runtime.tries import Pace, Tries
from remit.services.knowledge.file_contents import LARGEST_FILE
from remit.settings import Settings, load
from tests import cli_forks, description
from tests.templates import lay_tables

SOURCE = Path(__file__).parent.parent / "src"
SECONDS = 30
#: A connection that nothing was sent on for so long is not used again.
KEPT_SECONDS = 2

_CHILD = """
import sys
from remit.entrypoints.serve import run
from remit.errors import RemitError
from remit.settings import load
try:
    port = int(sys.argv[1])
    code = run(load(), host="127.0.0.1", port=port, ready=lambda url: print(url, flush=True))
except RemitError as error:
    print(error.as_text(), file=sys.stderr)
    code = 1
sys.exit(code)
"""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> Any:
        """The code of an error, which has the shape that every error has."""
        document = self.json
        assert {"error", "code", "nextStep"} <= set(document), document
        return document["code"]


@dataclass
class Client:
    """One connection; says who it is with every request."""

    url: str
    token: str | None = None
    _connection: http.client.HTTPConnection = field(init=False, repr=False)
    _used: float = field(init=False, repr=False, default=0.0)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=SECONDS)
        # Tests make clients by the dozen. Of a client in a cycle the socket might go first, and
        # warn, if this were `__del__`.
        weakref.finalize(self, self._connection.close)

    def as_(self, token: str | None) -> Client:
        return Client(self.url, token)

    def __call__(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        response = self.open(method, path, document, body=body, headers=headers)
        answer = Answer(response.status, response.headers, response.read())
        kind = answer.headers["Content-Type"] or ""
        if method != "HEAD" and answer.status != 405:  # for no operation, so that nothing says it
            description.check(self.url, method, path, answer.status, kind, answer.body)
        return answer

    def open(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        sent: dict[str, str] = {}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        if document is not None:
            body, sent["Content-Type"] = json.dumps(document).encode(), "application/json"
        sent.update(headers or {})
        if time.monotonic() - self._used > KEPT_SECONDS:
            self._connection.close()  # the instance may be closing it just now
        self._used = time.monotonic()
        self._connection.request(method, path, body, sent)
        return self._connection.getresponse()

    def must(self, method: str, path: str, document: Any = None, **more: Any) -> Any:
        """The JSON of an answer that must be a good one."""
        answer = self(method, path, document, **more)
        assert answer.status < 300, (answer.status, answer.body)
        return answer.json

    def close(self) -> None:
        self._connection.close()


#: For servers that hold nothing back.
UNHURRIED = Pace(free=1 << 30, first=0.0, longest=0.0)
#: As they are outside of tests.
USUAL = strangers.SOURCE, strangers.TARGET


@dataclass
class Running:
    """An instance in a thread."""

    url: str
    app: App
    instance: Instance
    board: Client

    def client(self, token: str | None = None) -> Client:
        return Client(self.url, token)


@contextlib.contextmanager
def serving(
    home: Path,
    database_url: str | None = None,
    *,
    clock: Clock | None = None,
    largest_file: int = LARGEST_FILE,
    load_mcp: Callable[[], Endpoint] | None = None,
    slows: bool = False,
) -> Iterator[Running]:
    """A real server on loopback, in a thread, until the block ends. It holds wrong tokens back only
    if it `slows`: many tests try many of them."""
    settings = settings_for(home, database_url)
    lay_tables(settings.database_url)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    ready = threading.Event()
    started: list[tuple[App, Instance, Server]] = []
    failed: list[BaseException] = []

    async def main() -> None:
        async with App(settings, clock, largest_file=largest_file) as app:
            await app.first_start()
            instance = build_asgi(app, load_mcp=load_mcp)
            if slows:
                instance.strangers.tries = Tries(*USUAL)
            config = uvicorn.Config(
                instance,
                lifespan="on",
                http=Impatient,
                log_config=None,
                access_log=False,
                proxy_headers=False,
                ws="none",
            )
            server = Server(config, instance, ready.set)
            started.append((app, instance, server))
            await server.serve([listening])

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(SECONDS)
    if failed:
        raise failed[0]
    app, instance, server = started[0]
    board = Client(url, settings.board_token_file.read_text().strip())
    try:
        yield Running(url, app, instance, board)
    finally:
        board.close()
        server.should_exit = True
        thread.join(SECONDS)
        listening.close()
    assert not failed, failed


def settings_for(home: Path, database_url: str | None = None) -> Settings:
    return load({"REMIT_HOME": str(home), "REMIT_DATABASE_URL": database_url or ""})


class Child:
    """An instance in a process of its own."""

    def __init__(self, home: Path, port: int = 0, **environment: str) -> None:
        self.home = home
        self.process = cli_forks.instances().open(
            [str(port)],
            {**os.environ, "PYTHONPATH": str(SOURCE), "REMIT_HOME": str(home), **environment},
            errors=True,
            script=_CHILD,
        )

    def wait_until_ready(self) -> Client:
        assert self.process.stdout is not None
        url = self.process.stdout.readline().decode().strip()
        assert url, self.errors()
        return Client(url, (self.home / "board.token").read_text().strip())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def errors(self) -> str:
        """What it wrote to stderr, once it has ended."""
        self.process.wait(SECONDS)
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close()


def server_sent(response: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    """The events of a stream, as they come."""
    event: dict[str, str] = {}
    while line := response.readline():
        name, colon, value = line.decode().rstrip("\n").partition(": ")
        if colon and name:
            event[name] = value
        elif not name and event:
            yield event
            event = {}
