"""Delay of other callers while strangers and agents send the largest bodies that are accepted, and
while agents wait in tools that never answer.

What counts is what the instance itself computes between two turns of its event loop, so that the
figure means the same on a busy machine. What /health takes is beside it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.harness import Plan, Row, cost, shown
from benchmarks.instance import WAITED, Instance, started
from benchmarks.wire import EARLIER, LATER, http, mcp
from remit.entrypoints.bodies import LARGEST_DOCUMENT, MOST_VALUES
from remit.entrypoints.mcp import endpoint

SENDERS = 8
MOST_WAIT = 0.1
MOST_GROWTH = 400 << 20
#: Connections kept open without an answer; closing them would release their callers.
_held: list[socket.socket] = []


def bodies(size: int, values: int) -> list[bytes]:
    """Bodies that are the most expensive to check: as many values as allowed, one string of
    escapes, and a text that seems to have many values."""
    room = size - 100
    return [
        b'{"junk":[' + b"[1]," * (room // 4) + b"1]}",
        b'{"junk":[' + b"[1]," * (values // 2 - 10) + b"1]}",
        b'{"description":"d","content":"' + b"\\u0041" * (room // 6) + b'"}',
        b'{"description":"d","content":"' + b'a,\\"' * (room // 4) + b'"}',
    ]


def measure(plan: Plan) -> Iterator[Row]:
    home, seconds = plan.home("door"), plan.seconds(10)
    with started(home, slots=SENDERS, watched=True) as instance, _stuck() as never:
        keys = [instance.agent(f"sender-{number}") for number in range(SENDERS)]
        wrong = "rmt_agent_" + "x" * 43
        calls = [[*_tools(EARLIER, key), *_tools(LATER, key)] for key in (wrong, *keys)]
        for request in (*_api(instance, keys[0]), *calls[1]):  # what only the first one waits for
            _answered(instance, request)
        for name, scripts in (
            ("nobody sends", []),
            (f"{SENDERS} strangers over HTTP", [_api(instance, wrong)] * SENDERS),
            (f"{SENDERS} strangers over MCP", calls[:1] * SENDERS),
            (f"{SENDERS} agents over HTTP", [_api(instance, key) for key in keys]),
            (f"{SENDERS} agents over MCP", calls[1:]),
        ):
            yield _row(name, instance, scripts, seconds, home)
        _get_stuck(instance, never)
        name = f"{SENDERS} strangers over HTTP and {SENDERS} agents in stuck tools"
        yield _row(name, instance, [_api(instance, wrong)] * SENDERS, seconds, home)


@contextlib.contextmanager
def _stuck() -> Iterator[socket.socket]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        listening.settimeout(60)
        yield listening


def _get_stuck(instance: Instance, never: socket.socket) -> None:
    """Have agents call a tool of a server that never answers, all at once."""
    company = f"/api/companies/{instance.company}"
    url = f"http://127.0.0.1:{never.getsockname()[1]}"
    instance.ask("POST", f"{company}/mcp-servers", {"name": "never", "url": url})
    script = {"script": [{"tool": "never__anything"}]}
    for number in range(SENDERS):
        wanted = {"name": f"stuck-{number}", "adapterType": "scripted", "adapterConfig": script}
        agent = instance.ask("POST", f"{company}/agents", wanted)["id"]
        right = {"to": agent, "resource": "mcp_server:never", "level": "use"}
        instance.ask("POST", f"{company}/grants", right)
        letter = {"to": f"agent:stuck-{number}", "body": "Call it."}
        instance.ask("POST", f"{company}/messages", letter)
    _held.extend(never.accept()[0] for _ in range(SENDERS))


def _api(instance: Instance, token: str) -> list[bytes]:
    path = f"/api/companies/{instance.company}"
    kind = {"Content-Type": "application/json"}
    return [
        http("POST", f"{path}/{'files' if b'content' in body else 'agents'}", token, body, kind)
        for body in bodies(LARGEST_DOCUMENT, MOST_VALUES)
    ]


def _tools(protocol: str, token: str) -> Iterator[bytes]:
    """Calls with such arguments; these are put in where a word stands."""
    whole = mcp(protocol, token, "tools/call", {"name": "kb_create", "arguments": "PLACE"})
    head, _, message = whole.partition(b"\r\n\r\n")
    lines = [one for one in head.split(b"\r\n") if not one.startswith(b"Content-Length")]
    for body in bodies(endpoint.LARGEST_BODY - len(message), endpoint.MOST_VALUES):
        sent = message.replace(b'"PLACE"', body, 1)
        yield b"\r\n".join([*lines, b"Content-Length: %d\r\n\r\n" % len(sent)]) + sent


def _row(
    name: str, instance: Instance, scripts: list[list[bytes]], seconds: float, home: Path
) -> Row:
    before = _resident(instance.pid)
    (home / WAITED).unlink(missing_ok=True)
    waits, peak, answers = _under_load(instance, scripts, seconds)
    held = float((home / WAITED).read_text())
    grown = peak - before
    return Row(
        f"{name}: others wait {shown(held)} at most",
        f"/health {cost(waits)}",
        f"{answers} answers, {grown >> 20} MiB more",
        None,
        f"< {shown(MOST_WAIT)}",
        held < MOST_WAIT and grown < MOST_GROWTH,
    )


def _under_load(
    instance: Instance, scripts: list[list[bytes]], seconds: float
) -> tuple[list[float], int, int]:
    end = time.monotonic() + seconds
    answers = [0] * len(scripts)

    def send(number: int) -> None:
        while time.monotonic() < end:
            for request in scripts[number]:
                answers[number] += _answered(instance, request)

    senders = [threading.Thread(target=send, args=(number,)) for number in range(len(scripts))]
    for sender in senders:
        sender.start()
    waits: list[float] = []
    peak = 0
    ask = _asking(instance)
    while time.monotonic() < end:
        began = time.perf_counter()
        ask()
        waits.append(time.perf_counter() - began)
        peak = max(peak, _resident(instance.pid))
        time.sleep(0.01)
    for sender in senders:
        sender.join()
    return waits, peak, sum(answers)


def _asking(instance: Instance) -> Callable[[], object]:
    place = urlsplit(instance.url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=60)

    def ask() -> bytes:
        connection.request("GET", "/health")
        return connection.getresponse().read()

    return ask


def _answered(instance: Instance, request: bytes) -> bool:
    """Send as much as the instance takes; whether there was an answer."""
    place = urlsplit(instance.url)
    with socket.create_connection((place.hostname, place.port), 60) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request)
        with contextlib.suppress(ConnectionError):
            return connection.recv(100).startswith(b"HTTP/1.1 ")
    return False


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    return 0
