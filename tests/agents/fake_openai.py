"""A model that follows a script: OpenAI's Responses and chat APIs on loopback.

The same scripts as for Claude's model. Which step is due follows from the conversation alone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal

from tests.agents.fake_anthropic import Say, Step, ToolResult, Use

__all__ = ["FakeOpenAI", "Say", "ToolResult", "Use"]

TOKENS_IN, TOKENS_CACHED, TOKENS_OUT = 100, 40, 5


class FakeOpenAI:
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
        #: What went wrong in the script itself.
        self.failures: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> FakeOpenAI:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.left.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def results(self) -> list[ToolResult]:
        """Every tool result that the model got to see, in order."""
        return _tool_results(self.requests[-1]) if self.requests else []

    def answer(self, request: dict[str, Any]) -> Step | tuple[str, dict[str, Any]]:
        """The text or the call that is due."""
        self.requests.append(request)
        turn = _answers(request)
        if turn >= len(self.script):
            return Say("The script has ended.")
        step = self.script[turn]
        if isinstance(step, Say):
            return step
        given = step.input(_tool_results(request)[-1]) if callable(step.input) else step.input
        return step.name, dict(given)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(_Handler):
            owner = fake

        return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ClassVar[FakeOpenAI]

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.owner.delay_seconds:
            self.owner.left.wait(self.owner.delay_seconds)
        if isinstance(self.owner.fault, int):
            self.owner.requests.append(request)
            return self._refuse(self.owner.fault, "as the test wants it")
        try:
            due = self.owner.answer(request)
        except Exception as error:
            self.owner.failures.append(repr(error))
            return self._refuse(400, "the script failed")
        number = len(self.owner.requests)
        if self.path == "/v1/chat/completions":
            body = json.dumps(_completion(number, due, request)).encode()
            return self._send(200, body, "application/json")
        if self.path != "/v1/responses":
            return self._refuse(404, "no such path")
        events = "".join(_stream(number, due)).encode()
        if self.owner.fault == "cut":
            self.close_connection = True
            return self._send(200, events[:-300], "text/event-stream", len(events))
        return self._send(200, events, "text/event-stream")

    def _refuse(self, status: int, sentence: str) -> None:
        body = json.dumps({"error": {"message": sentence, "type": "fake", "code": None}})
        self._send(status, body.encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        return


def _stream(number: int, due: Step | tuple[str, dict[str, Any]]) -> Iterator[str]:
    response: dict[str, Any] = {"id": f"resp_{number}", "object": "response", "output": []}
    yield _event("response.created", response={**response, "status": "in_progress"})
    item: dict[str, Any]
    if isinstance(due, tuple):
        server, _, tool = due[0].removeprefix("mcp__").partition("__")
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        item |= {"name": tool, "namespace": f"mcp__{server}", "arguments": json.dumps(due[1])}
        if not tool:
            item |= {"name": due[0], "namespace": None}
    else:
        assert isinstance(due, Say)
        part = {"type": "output_text", "text": due.text, "annotations": []}
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part]}
    yield _event("response.output_item.added", output_index=0, item=item)
    if isinstance(due, Say):
        yield _event("response.output_text.delta", item_id=item["id"], delta=due.text)
    yield _event("response.output_item.done", output_index=0, item=item)
    usage = {
        "input_tokens": TOKENS_IN,
        "input_tokens_details": {"cached_tokens": TOKENS_CACHED},
        "output_tokens": TOKENS_OUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": TOKENS_IN + TOKENS_OUT,
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield _event("response.completed", response=done)


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def _completion(
    number: int, due: Step | tuple[str, dict[str, Any]], request: Mapping[str, Any]
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(due, tuple):
        function = {"name": due[0], "arguments": json.dumps(due[1])}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    else:
        assert isinstance(due, Say)
        message["content"] = due.text
    reason = "tool_calls" if isinstance(due, tuple) else "stop"
    return {
        "id": f"chat_{number}",
        "object": "chat.completion",
        "created": 1,
        "model": request.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": TOKENS_IN,
            "completion_tokens": TOKENS_OUT,
            "total_tokens": TOKENS_IN + TOKENS_OUT,
            "prompt_tokens_details": {"cached_tokens": TOKENS_CACHED},
        },
    }


def _answers(request: Mapping[str, Any]) -> int:
    """How many steps the conversation holds already."""
    if "messages" in request:
        return sum(one["role"] == "assistant" for one in request["messages"])
    return sum(
        one.get("type") == "function_call" or one.get("role") == "assistant"
        for one in request["input"]
    )


def _tool_results(request: Mapping[str, Any]) -> list[ToolResult]:
    if "messages" in request:
        return [ToolResult(_text(m["content"])) for m in request["messages"] if m["role"] == "tool"]
    return [
        ToolResult(_text(one["output"]))
        for one in request["input"]
        if one.get("type") == "function_call_output"
    ]


def _text(content: Any) -> str:
    """The words of a result; Codex puts a header of its own before them."""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    if content.startswith("Wall time:") and "\nOutput:\n" in content:
        content = content.partition("\nOutput:\n")[2]
    return str(content)
