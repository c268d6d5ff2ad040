"""An agent without a model, which calls tools over MCP from a script."""

import http.client
import json
from typing import Any, Self
from urllib.parse import urlsplit

_PROTOCOL = "2025-06-18"
_TIMEOUT_SECONDS = 60


class ToolRefused(Exception):
    """A tool answered with an error; `code` is the stable part of it."""

    def __init__(self, text: str, details: dict[str, Any]) -> None:
        super().__init__(text)
        self.code = text.partition(":")[0]
        self.details = details


class ScriptedAgent:
    """One agent's (or run's) connection to the MCP endpoint of an instance."""

    def __init__(self, url: str, token: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(
            place.hostname or "127.0.0.1", place.port or 80, timeout=_TIMEOUT_SECONDS
        )
        self._token = token
        self._last_id = 0

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self._request("tools/list", {})["tools"]]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; returns the structured result, or raises ToolRefused."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            blocks = [block["text"] for block in result["content"]]
            details = json.loads(blocks[1]) if len(blocks) > 1 else {}
            raise ToolRefused(blocks[0], details)
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": _PROTOCOL,
        }
        self._connection.request("POST", "/mcp", json.dumps(message), headers)
        response = self._connection.getresponse()
        body = response.read()
        answer = json.loads(body) if body else {}
        if "result" not in answer:
            raise ConnectionError(f"{method} was answered with {response.status}: {answer}")
        result: dict[str, Any] = answer["result"]
        return result
