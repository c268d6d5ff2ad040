"""The other side of a channel: a real server that takes messages, or does not."""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from remit.clock import Micros
from remit.ids import token_digest
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.outbox import Outbox
from remit.services.connections import bindings
from remit.services.connections.channels import receive
from remit.services.identity import as_system
from tests.company import Answer, Company, Member


@dataclass(frozen=True)
class Got:
    """One request."""

    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    def is_signed_with(self, key: str) -> bool:
        """As a receiver would look."""
        signed = self.headers["remit-timestamp"].encode() + b"." + self.body
        right = hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()
        return hmac.compare_digest(f"v1={right}", self.headers["remit-signature"])


@dataclass
class Receiver:
    url: str = ""
    got: list[Got] = field(default_factory=list)
    #: What to answer, one after the other; then 200.
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    said: bytes = b"{}"
    #: Called before anything is answered.
    before: Callable[[Got], None] | None = None

    @property
    def bodies(self) -> list[str]:
        return [post.document["body"] for post in self.got]

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        size = int(handler.headers.get("content-length", 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        post = Got(headers, handler.rfile.read(size))
        self.got.append(post)
        if self.before is not None:
            self.before(post)
        handler.send_response(self.answers.pop(0) if self.answers else 200)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(self.said)))
        handler.end_headers()
        handler.wfile.write(self.said)


@contextmanager
def receiving(encrypted: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                receiver(self)
            except OSError:
                self.close_connection = True  # whoever sent it is gone

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who hangs up may
    if encrypted is not None:
        server.socket = encrypted.wrap_socket(server.socket, server_side=True)
    scheme = "http" if encrypted is None else "https"
    receiver.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def bind(company: Company, member: Member, url: str | None = None, **more: Any) -> Answer:
    config = {**({} if url is None else {"url": url}), **more.pop("config", {})}
    return company.call(
        company.board,
        bindings.add,
        company=company.id,
        agent=member.id,
        kind="webhook",
        config=config,
        **more,
    )


def outbox(company: Company, *, private: bool = True, **more: Any) -> Outbox:
    app = company.app
    return Outbox(app.gate, Connector(app.vault.value, private), **more)


def deliver(company: Company, backoff: tuple[Micros, ...] | None = None, **more: Any) -> int:
    """Let what can go out go out; answers how many attempts were made."""
    loop = outbox(company, **more)
    if backoff is not None:
        loop.backoff = backoff
    return company.wait(loop.tick())


def arrive(company: Company, token: str, /, body: Any = "Hello?", **more: Any) -> Answer:
    """A message from outside."""
    message = {"outside": "m-1", "conversation": "room-7", **more}
    return company.call(
        as_system(), receive, kind="webhook", digest=token_digest(token), body=body, **message
    )
