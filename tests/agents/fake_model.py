"""A model that follows a script, on loopback; who speaks which protocol is said elsewhere.

A script is a list of steps. Which step is due follows from the conversation alone, namely from
how many answers of the assistant it already holds, so a client may retry or resume. A model that
is started several times chooses its script by what it is told.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal, Self

Request = Mapping[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """What the client sent back for the previous tool call."""

    text: str
    is_error: bool = False

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Use:
    """Call a tool. The input may be computed from the result of the call before."""

    name: str
    input: Mapping[str, Any] | Callable[[ToolResult], Mapping[str, Any]]


@dataclass(frozen=True)
class Say:
    """Answer with text, and end the turn."""

    text: str


Step = Use | Say
Script = Sequence[Step] | Callable[[Request], Sequence[Step]]


@dataclass(frozen=True)
class Calls:
    """A tool to be called, with the input as it is now known."""

    name: str
    input: dict[str, Any]


Due = Say | Calls


@dataclass(frozen=True)
class Body:
    """What is sent."""

    data: bytes
    kind: str = "application/json"


class FakeModel(ABC):
    """Serves one script while it is entered."""

    #: What comes behind the address of the server in the URL that clients are given.
    root = ""
    #: How many bytes are missing from an answer that is cut.
    cut_off = 300

    def __init__(
        self, script: Script, *, fault: int | Literal["cut", "torso"] | None = None
    ) -> None:
        self.script = script
        #: Answer everything with this status, or cut each answer in the middle: as a connection
        #: that breaks does, or as a server that takes the torso for all of it.
        self.fault = fault
        #: What a refusal says about when to come back, in seconds.
        self.retry_after: int | None = None
        #: So long an answer takes, at most until the fake is left.
        self.delay_seconds = 0.0
        self.left = threading.Event()
        #: How often the list of models was asked for, which costs nothing.
        self.listed = 0
        #: Answer that whatever the fault, like a provider whose models alone are overloaded.
        self.lists = False
        #: Bodies of the requests, oldest first.
        self.requests: list[dict[str, Any]] = []
        #: What went wrong in the script itself, such as an input that could not be computed.
        self.failures: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.root}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.left.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def results(self) -> list[ToolResult]:
        """Every tool result that the model got to see, in order."""
        return self.results_in(self.requests[-1]) if self.requests else []

    def due(self, request: Request) -> Due:
        """The text or the call that is next in this conversation."""
        turn = self.answers_in(request)
        script = self.script(request) if callable(self.script) else self.script
        if turn >= len(script):
            return Say("The script has ended.")
        step = script[turn]
        if isinstance(step, Say):
            return step
        arguments = step.input(self.results_in(request)[-1]) if callable(step.input) else step.input
        return Calls(step.name, dict(arguments))

    # What a protocol says.

    @abstractmethod
    def serves(self, path: str) -> bool: ...

    @abstractmethod
    def answers_in(self, request: Request) -> int:
        """How many steps the conversation holds already."""

    @abstractmethod
    def results_in(self, request: Request) -> list[ToolResult]: ...

    @abstractmethod
    def answered(self, path: str, request: Request, due: Due) -> Body: ...

    @abstractmethod
    def refused(self, status: int, sentence: str) -> dict[str, Any]: ...

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(_Handler):
            owner = fake

        return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ClassVar[FakeModel]

    def do_GET(self) -> None:
        if not self.path.partition("?")[0].endswith("/models"):
            return self._refuse(404, "no such path")
        self.owner.listed += 1
        if isinstance(self.owner.fault, int) and not self.owner.lists:
            return self._refuse(self.owner.fault, "as the test wants it")
        models = json.dumps({"data": [{"id": "a-model"}]}).encode()
        return self._send(200, models, "application/json", len(models))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        if not self.owner.serves(path):
            return self._refuse(404, "no such path")
        request = json.loads(body)
        if self.owner.delay_seconds:
            self.owner.left.wait(self.owner.delay_seconds)
        self.owner.requests.append(request)
        if isinstance(self.owner.fault, int):
            number = len(self.owner.requests)
            # As providers do, no two refusals are alike.
            told = f"as the test wants it (request req_{number:012x}, try again in {number}.5s)"
            if self.owner.retry_after is not None:
                told = "as the test wants it"
            return self._refuse(self.owner.fault, told)
        try:
            answer = self.owner.answered(path, request, self.owner.due(request))
        except Exception as error:
            self.owner.failures.append(repr(error))
            return self._refuse(400, "the script failed")
        sent = answer.data
        if self.owner.fault == "torso":
            return self._break_off(sent[: -min(self.owner.cut_off, len(sent) // 2)], answer.kind)
        if self.owner.fault == "cut":
            # Whether streamed or whole: the connection ends before the answer does.
            self.close_connection = True
            sent = sent[: -min(self.owner.cut_off, len(sent) // 2)]
        return self._send(200, sent, answer.kind, len(answer.data))

    def _break_off(self, sent: bytes, kind: str) -> None:
        """A stream whose chunks end too early, piece by piece as a model writes."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in sent.split(b"\n\n"):
            whole = piece + b"\n\n"
            self.wfile.write(f"{len(whole):x}\r\n".encode() + whole + b"\r\n")
            self.wfile.flush()

    def do_HEAD(self) -> None:
        self._send(200, b"", "application/json", 0)

    def _refuse(self, status: int, sentence: str) -> None:
        body = json.dumps(self.owner.refused(status, sentence)).encode()
        self._send(status, body, "application/json", len(body))

    def _send(self, status: int, body: bytes, kind: str, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        if status == 429 and self.owner.retry_after is not None:
            self.send_header("Retry-After", str(self.owner.retry_after))
        with suppress(ConnectionError):  # a program that was ended meanwhile has hung up
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        return


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def stream(events: Sequence[str]) -> Body:
    return Body("".join(events).encode(), "text/event-stream")
