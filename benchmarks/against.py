"""Requests to this checkout against the same requests to an earlier revision, in turns.

    python -m benchmarks.against REVISION [--rounds 20]

Both instances run beside each other, with the same dependencies, each on the code of its own
revision. What is compared is the processor time of the instance for each request, which other
programs of the machine change little, and the number of letters that many senders get through.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.harness import KIB_4, Row, shown
from benchmarks.instance import ROOT, Instance, started
from benchmarks.mail import Asked, Send
from benchmarks.wire import EARLIER, Script, ToolWrite, Wire, http, load, tool_call

#: Requests of one kind to one instance before the other one's turn.
BLOCK = 20
SENDERS = 16
SECONDS = 3.0


@dataclass
class Side:
    """One of the two instances, and what was measured of it."""

    instance: Instance
    wires: Mapping[str, Wire]
    #: Seconds of its processor for a request, by the name of the request, one of each block.
    taken: dict[str, list[float]] = field(default_factory=dict)
    letters: list[float] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("revision", help="commit, branch or tag of this repository")
    parser.add_argument("--rounds", type=int, default=20, help="blocks of each kind of request")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="remit-bench-")))
        before = extracted(given.revision, folder / "source")
        print(harness.machine(folder))
        sides = [
            stack.enter_context(opened(source, folder / name))
            for name, source in (("before", before), ("now", ROOT))
        ]
        for _ in range(given.rounds):
            for name in sides[0].wires:
                for side in sides:
                    side.taken.setdefault(name, []).append(_block(side, name))
        for _ in range(max(given.rounds // 7, 1)):
            for side in sides:
                side.letters.append(_letters(side.instance))
        harness.print_heading(f"against {given.revision}: processor time of a request")
        for row in rows(*sides):
            harness.print_row(row)
    return 0


def extracted(revision: str, folder: Path) -> Path:
    """Write the files of a revision to a folder."""
    archive = folder.with_suffix(".tar")
    command = ["git", "archive", "--output", str(archive), revision, "src", "benchmarks"]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        raise SystemExit(f"git has no revision {revision!r}")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder


@contextlib.contextmanager
def opened(source: Path, home: Path) -> Iterator[Side]:
    """An instance that runs the code of a folder, and a connection for each kind of request."""
    with started(home, source=source) as instance:
        found = {name: Wire(instance.url, script) for name, script in _requests(instance).items()}
        yield Side(instance, found)
        for wire in found.values():
            wire.close()


def _block(side: Side, name: str) -> float:
    wire, began = side.wires[name], processor_time(side.instance.pid)
    for _ in range(BLOCK):
        wire.exchange()
    return (processor_time(side.instance.pid) - began) / BLOCK


def processor_time(pid: int) -> float:
    """Seconds that a process has computed, all its threads together."""
    total = 0
    for thread in Path("/proc", str(pid), "task").iterdir():
        with contextlib.suppress(OSError):  # a thread may end meanwhile
            total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def rows(before: Side, now: Side) -> Iterator[Row]:
    for name, taken in now.taken.items():
        mine, theirs = statistics.median(taken), statistics.median(before.taken[name])
        yield Row(name, shown(mine), f"before: {shown(theirs)}", mine / theirs)
    mine, theirs = statistics.median(now.letters), statistics.median(before.letters)
    yield Row(
        f"letters a second, {SENDERS} senders",
        f"{mine:,.0f}",
        f"before: {theirs:,.0f}",
        mine / theirs,
    )


def _letters(instance: Instance) -> float:
    receiver = instance.ask("GET", f"/api/companies/{instance.company}/agents")[0]["id"]
    senders: list[Script] = [Send(instance, [receiver], number) for number in range(SENDERS)]
    return load(instance.url, senders, SECONDS).per_second


def _requests(instance: Instance) -> dict[str, Script]:
    """Requests that every revision knows."""
    company, board = f"/api/companies/{instance.company}", instance.board
    key, numbers = instance.agent("measured"), count()
    me = instance.ask("GET", "/api/agents/me", token=key)["id"]
    lead = instance.ask("GET", f"{company}/agents")[0]["id"]
    chief = instance.ask("POST", f"/api/agents/{lead}/keys")["token"]
    file = instance.file(key, KIB_4)
    letter = {"to": f"agent:{me}", "body": "Have a look at this.", "subject": "Measured"}
    part = {"title": "A part", "parentId": lead}
    hires = Hires(lambda: f"hired-{next(numbers)}", f"{company}/agent-hires", chief)

    def get(path: str, token: str = board) -> Asked:
        return Asked(lambda: http("GET", path, token))

    def post(path: str, document: Mapping[str, Any]) -> Asked:
        return Asked(lambda: posted(path, document, board))

    def tool(name: str, **arguments: Any) -> Asked:
        return Asked(lambda: tool_call(EARLIER, key, name, **arguments))

    return {
        "who am I": get("/api/agents/me", key),
        "list agents": get(f"{company}/agents"),
        "list events": get(f"{company}/events"),
        "list grants": get(f"{company}/grants"),
        "letter": post(f"{company}/messages", letter),
        "letter over MCP": tool("mail_send", **letter),
        "inbox": get("/api/inbox", key),
        "inbox over MCP": tool("mail_inbox"),
        "outcome": post(f"{company}/outcomes", part),
        "hire": hires,
        "approve": Asked(
            lambda: posted(f"/api/approvals/{hires.waiting.pop()}/approve", {}, board)
        ),
        "read a file over MCP": tool("kb_read", id=file["id"]),
        "write a file over MCP": ToolWrite(EARLIER, key, file, KIB_4.decode()),
    }


class Hires:
    """Hires by an agent, each of which waits for approval."""

    def __init__(self, name: Callable[[], str], path: str, token: str) -> None:
        self._name, self._path, self._token = name, path, token
        self.waiting: list[str] = []

    def request(self) -> bytes:
        return posted(self._path, {"name": self._name(), "adapterType": "scripted"}, self._token)

    def take(self, _head: bytes, body: bytes, /) -> None:
        self.waiting.append(json.loads(body)["approval"]["id"])


def posted(path: str, document: Mapping[str, Any], token: str) -> bytes:
    kind = {"Content-Type": "application/json"}
    return http("POST", path, token, json.dumps(document).encode(), kind)


if __name__ == "__main__":
    sys.exit(main())
