"""Somebody who serves models, on loopback: what it is asked, and answers as a test wants."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, Self


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class ModelServer:
    """Lists its models, and answers in the name of whichever it is asked for."""

    def __init__(self, *models: str) -> None:
        self.models = list(models)
        #: Answered instead, if it is not 200.
        self.status = 200
        self.says: Any = None
        self.silent = False
        #: Lists nothing, as many gateways do.
        self.without_list = False
        self.asked: list[Asked] = []
        self.left = threading.Event()
        owner = self

        class Handler(_Handler):
            server_of_models = owner

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.left.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server_of_models: ClassVar[ModelServer]

    def do_GET(self) -> None:
        owner = self._note(None)
        listed = {"data": [{"id": name} for name in owner.models]}
        is_list = self.path.partition("?")[0].endswith("/models") and not owner.without_list
        self._answer(listed if is_list else None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        owner = self._note(body)
        model = body.get("model")
        self._answer({"model": f"{model}-2026"} if model in owner.models else None)

    def _note(self, body: Any) -> ModelServer:
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner = self.server_of_models
        owner.asked.append(Asked(self.command, self.path, headers, body))
        if owner.silent:
            owner.left.wait(10)
        return owner

    def _answer(self, good: Any) -> None:
        owner = self.server_of_models
        status = owner.status if owner.status != 200 else 200 if good is not None else 404
        answer = owner.says if owner.says is not None else good or {"error": {"message": "no"}}
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if 300 <= status < 400:
            self.send_header("Location", f"{owner.url}/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name
        return
