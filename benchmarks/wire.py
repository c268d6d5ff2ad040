"""The cheapest possible client: prepared bytes over kept connections."""

from __future__ import annotations

import json
import multiprocessing
import re
import selectors
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from benchmarks.harness import Cost, cost

EARLIER = "2025-06-18"
LATER = "2026-07-28"
#: Enough to keep an instance busy, and few enough to leave it a core.
PROCESSES = 2

_LAST_CHUNK = b"\r\n0\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TAG = re.compile(rb'\r\netag: *("[^"]+")', re.IGNORECASE)
_LONGEST_WAIT = 30.0
_HEAD_START = 0.8


class Script(Protocol):
    """What a client sends next, and what it learns from the answer."""

    def request(self) -> bytes: ...

    def take(self, head: bytes, body: bytes, /) -> None: ...


class Wire:
    """One kept connection that follows a script."""

    def __init__(self, url: str, script: Script) -> None:
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port), _LONGEST_WAIT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._script = script
        self._buffer = b""
        self.began = 0.0

    def exchange(self) -> None:
        self.send()
        while not self.receive():
            pass

    def send(self) -> None:
        request = self._script.request()
        self.began = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Read available bytes; return whether the response is complete."""
        arrived = self.socket.recv(1 << 20)
        if not arrived:
            raise ConnectionError("the instance closed a connection")
        self._buffer += arrived
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or not self._complete(end):
            return False
        head, body = self._buffer[: end + 2], self._buffer[end + 4 :]
        self._buffer = b""
        if head[9:10] != b"2":
            raise AssertionError(f"{head!r} {body[:500]!r}")
        self._script.take(head, body)
        return True

    def _complete(self, end: int) -> bool:
        """Whether the body behind such a head is there; a long list comes in chunks."""
        length = _LENGTH.search(self._buffer, 0, end + 1)
        if length is None:
            return self._buffer.endswith(_LAST_CHUNK)
        return len(self._buffer) >= end + 4 + int(length[1])

    def close(self) -> None:
        self.socket.close()


class Load(NamedTuple):
    per_second: float
    cost: Cost


def load(url: str, scripts: Sequence[Script], seconds: float) -> Load:
    """Run all scripts at once from processes of their own, each as fast as it is answered."""
    processes = min(PROCESSES, len(scripts))
    start = time.monotonic() + _HEAD_START
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned) as pool:
        shares = [scripts[number::processes] for number in range(processes)]
        parts = [pool.submit(_drive, url, share, start, seconds) for share in shares]
        taken = [sample for part in parts for sample in part.result()]
    return Load(len(taken) / seconds, cost(taken))


def _drive(url: str, scripts: Sequence[Script], start: float, seconds: float) -> list[float]:
    wires = [Wire(url, script) for script in scripts]
    for wire in wires:
        wire.exchange()
    taken: list[float] = []
    with selectors.DefaultSelector() as selector:
        for wire in wires:
            selector.register(wire.socket, selectors.EVENT_READ, wire)
        time.sleep(max(0.0, start - time.monotonic()))
        end = time.monotonic() + seconds
        for wire in wires:
            wire.send()
        waiting = len(wires)
        while waiting:
            for key, _ in selector.select(_LONGEST_WAIT):
                wire = key.data
                if not wire.receive():
                    continue
                if time.monotonic() < end:
                    taken.append(time.perf_counter() - wire.began)
                    wire.send()
                else:
                    waiting -= 1
    for wire in wires:
        wire.close()
    return taken


class Fixed:
    """The same request again and again."""

    def __init__(self, request: bytes) -> None:
        self._request = request

    def request(self) -> bytes:
        return self._request

    def take(self, _head: bytes, body: bytes, /) -> None:
        if b'"isError":true' in body[:5000]:
            raise AssertionError(body[:500])


class Put:
    """New contents for one file, each on top of the last."""

    def __init__(self, file: str, token: str, tag: str, content: bytes) -> None:
        self._file, self._token, self._tag = file, token, tag.encode()
        self._content = bytearray(content)
        self._number = 0

    def request(self) -> bytes:
        self._number += 1
        self._content[:8] = b"%08d" % self._number
        tag = {"If-Match": self._tag.decode()}
        return http("PUT", f"/api/files/{self._file}/content", self._token, self._content, tag)

    def take(self, head: bytes, _body: bytes, /) -> None:
        found = _TAG.search(head)
        assert found is not None, head
        self._tag = found[1]


class ToolWrite:
    """The same through MCP."""

    def __init__(self, protocol: str, token: str, file: dict[str, Any], content: str) -> None:
        self._protocol, self._token, self._file, self._content = protocol, token, file, content
        self._number = 0

    def request(self) -> bytes:
        self._number += 1
        content = f"{self._number:08}{self._content[8:]}"
        return tool_call(self._protocol, self._token, "kb_write", **self._file, content=content)

    def take(self, _head: bytes, body: bytes, /) -> None:
        self._file = json.loads(body)["result"]["structuredContent"]


def http(
    method: str,
    path: str,
    token: str,
    body: bytes | bytearray = b"",
    headers: dict[str, str] | None = None,
) -> bytes:
    sent = {"Host": "127.0.0.1", "Authorization": f"Bearer {token}", **(headers or {})}
    if method != "GET":
        sent["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def tool_call(protocol: str, token: str, tool: str, /, **arguments: Any) -> bytes:
    return mcp(protocol, token, "tools/call", {"name": tool, "arguments": arguments})


def mcp(protocol: str, token: str, method: str, params: dict[str, Any]) -> bytes:
    """A message of either protocol generation."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": protocol,
    }
    if protocol == LATER:
        headers["Mcp-Method"] = method
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        params = {
            **params,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": LATER,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return http("POST", "/mcp", token, json.dumps(message).encode(), headers)
