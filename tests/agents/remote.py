"""An agent elsewhere, for the adapter http: a server on loopback that answers as it is told."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class Remote:
    """An agent elsewhere: answers at once, or later with the token of the run."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.left = Event()
        self.delay_seconds = 0.0
        self.status = 200
        self.answer: dict[str, Any] = {"text": "done", "usage": {"tokensIn": 7, "tokensOut": 2}}
        remote = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                remote.calls.append((self.path, body))
                if self.path == "/run" and remote.delay_seconds:
                    remote.left.wait(remote.delay_seconds)
                said = json.dumps(remote.answer).encode()
                self.send_response(remote.status)
                if remote.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.calls]

    def __enter__(self) -> Remote:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.left.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
