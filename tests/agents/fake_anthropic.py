"""The Anthropic messages API, spoken by a model that follows a script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.agents.fake_model import (
    Body,
    Due,
    FakeModel,
    Request,
    Say,
    Step,
    ToolResult,
    Use,
    event,
    stream,
)

__all__ = ["FakeAnthropic", "Say", "Step", "ToolResult", "Use"]

#: Claude Code puts notes of its own behind a tool's result.
_ADDED_BY_CLIENT = re.compile(r"\n*<system-reminder>.*?</system-reminder>\n*", re.DOTALL)

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class FakeAnthropic(FakeModel):
    cut_off = 200

    def tools(self) -> list[str]:
        """The tools that the client offered with its last request."""
        return [tool["name"] for tool in self.requests[-1].get("tools", [])]

    def serves(self, path: str) -> bool:
        return path == "/v1/messages"

    def answers_in(self, request: Request) -> int:
        return sum(message["role"] == "assistant" for message in request["messages"])

    def results_in(self, request: Request) -> list[ToolResult]:
        return _tool_results(request["messages"])

    def answered(self, path: str, request: Request, due: Due) -> Body:
        # A client joins answers that share an id into one.
        identity = {"id": f"msg_{len(self.requests)}", "model": request.get("model", "")}
        turn = self.answers_in(request)
        return stream(list(_stream(identity, _block(due, turn))))

    def refused(self, status: int, sentence: str) -> dict[str, Any]:
        kind = _ERRORS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": sentence}}


def _block(due: Due, turn: int) -> dict[str, Any]:
    if isinstance(due, Say):
        return {"type": "text", "text": due.text}
    return {"type": "tool_use", "id": f"toolu_{turn:04}", "name": due.name, "input": due.input}


def _stream(identity: dict[str, str], block: dict[str, Any]) -> Iterator[str]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    usage |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: dict[str, Any] = {**identity, "type": "message", "role": "assistant"}
    message |= {"content": [], "usage": usage}
    message |= {"stop_reason": None, "stop_sequence": None}
    started: dict[str, Any]
    yield event("message_start", message=message)
    if block["type"] == "text":
        started = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
        stop = "end_turn"
    else:
        started = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        stop = "tool_use"
    yield event("content_block_start", index=0, content_block=started)
    yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    ending = {"stop_reason": stop, "stop_sequence": None}
    yield event("message_delta", delta=ending, usage={"output_tokens": 5})
    yield event("message_stop")


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
