"""A model that follows a script: the Anthropic messages API on loopback.

A script is a list of steps. Which step is due follows from the conversation alone, namely from
how many answers of the assistant it already holds, so a client may retry or resume.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal

#: Claude Code puts notes of its own behind a tool's result.
_ADDED_BY_CLIENT = re.compile(r"\n*<system-reminder>.*?</system-reminder>\n*", re.DOTALL)


_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


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


class FakeAnthropic:
    """Serves one script while it is entered."""

    def __init__(
        self, script: Sequence[Step], *, fault: int | Literal["cut"] | None = None
    ) -> None:
        self.script = list(script)
        #: Answer everything with this status, or cut the stream in the middle.
        self.fault = fault
        #: So long an answer takes, at most until the fake is left.
        self.delay_seconds = 0.0
        self.left = threading.Event()
        #: Bodies of the requests, oldest first.
        self.requests: list[dict[str, Any]] = []
        #: What went wrong in the script itself, such as an input that could not be computed.
        self.failures: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeAnthropic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.left.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def results(self) -> list[ToolResult]:
        """Every tool result that the model got to see, in order."""
        return _tool_results(self.requests[-1]["messages"]) if self.requests else []

    def tools(self) -> list[str]:
        """The tools that the client offered with its last request."""
        return [tool["name"] for tool in self.requests[-1].get("tools", [])]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The content block that is due."""
        self.requests.append(request)
        messages = request["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn >= len(self.script):
            return {"type": "text", "text": "The script has ended."}
        step = self.script[turn]
        if isinstance(step, Say):
            return {"type": "text", "text": step.text}
        given = step.input(_tool_results(messages)[-1]) if callable(step.input) else step.input
        block = {"type": "tool_use", "id": f"toolu_{turn:04}", "name": step.name}
        return {**block, "input": dict(given)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(_Handler):
            owner = fake

        return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ClassVar[FakeAnthropic]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.split("?")[0] != "/v1/messages":
            return self._send(404, b"{}", "application/json")
        request = json.loads(body)
        if self.owner.delay_seconds:
            self.owner.left.wait(self.owner.delay_seconds)
        if isinstance(self.owner.fault, int):
            self.owner.requests.append(request)
            kind = _ERRORS.get(self.owner.fault, "api_error")
            said = {"type": "error", "error": {"type": kind, "message": "as the test wants it"}}
            return self._send(self.owner.fault, json.dumps(said).encode(), "application/json")
        try:
            block = self.owner.answer(request)
        except Exception as error:
            self.owner.failures.append(repr(error))
            refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": "!"}}
            return self._send(400, json.dumps(refusal).encode(), "application/json")
        # A client joins answers that share an id into one.
        identity = {"id": f"msg_{len(self.owner.requests)}", "model": request.get("model", "")}
        events = "".join(_stream(identity, block))
        if self.owner.fault == "cut":
            self.close_connection = True
            return self._send(200, events.encode()[:-200], "text/event-stream", len(events) + 1)
        return self._send(200, events.encode(), "text/event-stream")

    def do_HEAD(self) -> None:
        self._send(200, b"", "application/json")

    def _send(self, status: int, body: bytes, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        return


def _stream(identity: dict[str, str], block: dict[str, Any]) -> Iterator[str]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: dict[str, Any] = {**identity, "type": "message", "role": "assistant"}
    message |= {"content": [], "usage": usage}
    message |= {"stop_reason": None, "stop_sequence": None}
    started: dict[str, Any]
    yield _event("message_start", message=message)
    if block["type"] == "text":
        started = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
        stop = "end_turn"
    else:
        started = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        stop = "tool_use"
    yield _event("content_block_start", index=0, content_block=started)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    ending = {"stop_reason": stop, "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage={"output_tokens": 5})
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def _tool_results(messages: Sequence[Mapping[str, Any]]) -> list[ToolResult]:
    results: list[ToolResult] = []
    for message in messages:
        content = message["content"]
        if message["role"] != "user" or isinstance(content, str):
            continue
        results.extend(
            ToolResult(_text(block["content"]), block.get("is_error", False))
            for block in content
            if block.get("type") == "tool_result"
        )
    return results


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if not isinstance(content, str):
        content = "\n".join(block["text"] for block in content if block.get("type") == "text")
    return _ADDED_BY_CLIENT.sub("", content)
