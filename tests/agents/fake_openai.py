"""OpenAI's Responses and chat APIs, spoken by a model that follows a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.agents.fake_model import (
    Body,
    Calls,
    Due,
    FakeModel,
    Request,
    Say,
    ToolResult,
    Use,
    event,
    stream,
)

__all__ = ["FakeOpenAI", "Say", "ToolResult", "Use"]

TOKENS_IN, TOKENS_CACHED, TOKENS_OUT = 100, 40, 5
_RESPONSES, _CHAT = "/v1/responses", "/v1/chat/completions"
#: The ways of Codex to tools that it does not list: code that calls them, and a search for them.
_OWN: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "exec": lambda arguments: {
        "type": "custom_tool_call",
        "name": "exec",
        "input": arguments["code"],
    },
    "tool_search": lambda arguments: {
        "type": "tool_search_call",
        "execution": "client",
        "status": "completed",
        "arguments": arguments,
    },
}
_CALLS = ("function_call", "custom_tool_call", "tool_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")


class FakeOpenAI(FakeModel):
    root = "/v1"

    def serves(self, path: str) -> bool:
        return path in (_RESPONSES, _CHAT)

    def answers_in(self, request: Request) -> int:
        return _answers(request)

    def results_in(self, request: Request) -> list[ToolResult]:
        return _tool_results(request)

    def answered(self, path: str, request: Request, due: Due) -> Body:
        number = len(self.requests)
        if path == _CHAT:
            return Body(json.dumps(_completion(number, due, request)).encode())
        return stream(list(_stream(number, due)))

    def refused(self, status: int, sentence: str) -> dict[str, Any]:
        return {"error": {"message": sentence, "type": "fake", "code": None}}


def _stream(number: int, due: Due) -> Iterator[str]:
    response: dict[str, Any] = {"id": f"resp_{number}", "object": "response", "output": []}
    yield event("response.created", response={**response, "status": "in_progress"})
    item: dict[str, Any]
    if isinstance(due, Calls) and due.name in _OWN:
        item = {"id": f"own_{number}", "call_id": f"call_{number}", **_OWN[due.name](due.input)}
    elif isinstance(due, Calls):
        server, _, tool = due.name.removeprefix("mcp__").partition("__")
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        item |= {"name": tool, "namespace": f"mcp__{server}", "arguments": json.dumps(due.input)}
        if not tool:
            item |= {"name": due.name, "namespace": None}
    else:
        part = {"type": "output_text", "text": due.text, "annotations": []}
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [part]}
    yield event("response.output_item.added", output_index=0, item=item)
    if isinstance(due, Say):
        yield event("response.output_text.delta", item_id=item["id"], delta=due.text)
    yield event("response.output_item.done", output_index=0, item=item)
    usage = {
        "input_tokens": TOKENS_IN,
        "input_tokens_details": {"cached_tokens": TOKENS_CACHED},
        "output_tokens": TOKENS_OUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": TOKENS_IN + TOKENS_OUT,
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield event("response.completed", response=done)


def _completion(number: int, due: Due, request: Request) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(due, Calls):
        function = {"name": due.name, "arguments": json.dumps(due.input)}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    else:
        message["content"] = due.text
    reason = "tool_calls" if isinstance(due, Calls) else "stop"
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


def _answers(request: Request) -> int:
    """How many steps the conversation holds already."""
    if "messages" in request:
        return sum(message["role"] == "assistant" for message in request["messages"])
    return sum(
        entry.get("type") in _CALLS or entry.get("role") == "assistant"
        for entry in request["input"]
    )


def _tool_results(request: Request) -> list[ToolResult]:
    if "messages" in request:
        return [ToolResult(_text(m["content"])) for m in request["messages"] if m["role"] == "tool"]
    return [
        ToolResult(_text(entry.get("output", entry.get("tools"))))
        for entry in request["input"]
        if entry.get("type") in _OUTPUTS
    ]


def _text(content: Any) -> str:
    """The words of a result; Codex puts a header of its own before them."""
    if not isinstance(content, str):
        content = "\n".join(part.get("text") or json.dumps(part) for part in content)
    if content.startswith(("Wall time:", "Script completed")) and "\nOutput:\n" in content:
        content = content.partition("\nOutput:\n")[2].lstrip()
    return str(content)
