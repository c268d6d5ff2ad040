"""HTTP client of a simulated company: routes and pages, without a network.

A request passes the whole ASGI application, from the guard to the answer. The door stays valid
across crashes of the instance behind it, as an address does.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from remit.app import App
from remit.entrypoints.http.server.asgi import build_asgi

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Door:
    def __init__(self, current: Callable[[], App]) -> None:
        """`current` returns the present instance."""
        self._instance = build_asgi(cast(App, _Behind(current)), host=HOST)

    async def request(
        self,
        method: str,
        address: str,
        *,
        token: str | None = None,
        body: object = None,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """`body` is sent as JSON, `form` as a page would send it."""
        content, kind = b"", ""
        if form is not None:
            content, kind = urlencode(form).encode(), "application/x-www-form-urlencoded"
        elif body is not None:
            content, kind = json.dumps(body).encode(), "application/json"
        sent = {"host": HOST, "content-length": str(len(content)), **(headers or {})}
        if kind:
            sent["content-type"] = kind
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        return await self._exchange(method, address, sent, content)

    async def _exchange(
        self, method: str, address: str, headers: Mapping[str, str], content: bytes
    ) -> Response:
        parts = urlsplit(address)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
            "client": (HOST, 1),
            "server": (HOST, 80),
        }
        status, told, pieces = 0, {}, []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                told.update({name.decode(): text.decode() for name, text in message["headers"]})
            else:
                pieces.append(message.get("body", b""))

        await self._instance(scope, receive, send)
        return Response(status, told, b"".join(pieces))


class _Behind:
    """Proxy of the present instance, which changes with each crash."""

    def __init__(self, current: Callable[[], App]) -> None:
        self._current = current

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current(), name)
