"""An instance in a process of its own, as `remit up` runs it, plus one tool that does nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from remit.app import App
    from remit.entrypoints.mcp.registry import Tool

    Build = Callable[..., dict[str, Tool]]

ROOT = Path(__file__).resolve().parent.parent
NOOP = "noop"
#: File in the home of a watched instance: the longest hold of its event loop since the file was
#: removed.
WAITED = "waited"


@dataclass(frozen=True)
class Instance:
    url: str
    board: str
    company: str
    pid: int

    def ask(self, method: str, path: str, document: Any = None, *, token: str | None = None) -> Any:
        place = urlsplit(self.url)
        connection = HTTPConnection(place.hostname or "", place.port, timeout=30)
        headers = {"Authorization": f"Bearer {token or self.board}"}
        body = None
        if document is not None:
            body, headers["Content-Type"] = json.dumps(document), "application/json"
        headers["Accept"] = "application/json, text/event-stream"
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise AssertionError(f"{method} {path}: {response.status} {answer[:500]!r}")
        return json.loads(answer)

    def agent(self, name: str) -> str:
        """Create an agent, and return its key."""
        path = f"/api/companies/{self.company}/agents"
        made = self.ask("POST", path, {"name": name, "adapterType": "scripted"})
        key: str = self.ask("POST", f"/api/agents/{made['id']}/keys")["token"]
        return key

    def file(self, token: str, content: bytes) -> dict[str, Any]:
        """A new file; what a writer has to know of it."""
        path = f"/api/companies/{self.company}/files"
        document = {"description": "Measured", "content": content.decode()}
        made = self.ask("POST", path, document, token=token)
        return {name: made[name] for name in ("id", "version", "hash")}


def environment(home: Path, source: Path = ROOT) -> dict[str, str]:
    """This process's, with nothing in it that points to another instance."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
    path = os.pathsep.join([str(source / "src"), str(source)])
    return {**kept, "REMIT_HOME": str(home), "PYTHONPATH": path}


@contextlib.contextmanager
def started(
    home: Path, *, slots: int = 0, watched: bool = False, source: Path = ROOT
) -> Iterator[Instance]:
    """An instance in its own process; it starts no agents unless it is given slots for them. It
    runs the code of the folder `source`."""
    wanted = [str(slots), *([WAITED] if watched else [])]
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.instance", *wanted],
        env=environment(home, source),
        cwd=source,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url:
                raise AssertionError("the instance did not start")
            board = (home / "board.token").read_text().strip()
            bare = Instance(url, board, "", process.pid)
            company = bare.ask("GET", "/api/companies")[0]["id"]
            yield Instance(url, board, company, process.pid)
        finally:
            process.terminate()


def main() -> int:
    from remit.entrypoints import serve
    from remit.entrypoints.mcp.tools import listing as tools
    from remit.settings import load

    # The endpoint imports it when it is built.
    tools.build_tools = _with_noop(tools.build_tools)
    return serve.run(
        load(),
        host="127.0.0.1",
        port=0,
        slots=int(sys.argv[1]),
        ready=_announce,
        log_to_stderr=False,
    )


def _announce(url: str) -> None:
    if WAITED in sys.argv:  # it looks 500 times a second, which nobody else should pay for
        asyncio.get_running_loop().create_task(_watch(Path(os.environ["REMIT_HOME"], WAITED)))
    print(url, flush=True)


async def _watch(told: Path) -> None:
    """Write down how long the event loop kept others waiting at most, in seconds of this process's
    own computing: what other programs take of the machine does not count."""
    longest = 0.0
    while True:
        began = time.process_time()
        await asyncio.sleep(0)
        await asyncio.sleep(0.002)
        longest = _noted(told, longest, time.process_time() - began)


def _noted(told: Path, before: float, took: float) -> float:
    if told.exists() and took <= before:
        return before
    fresh = told.with_suffix(".new")
    fresh.write_text(f"{took:.6f}")
    fresh.replace(told)
    return took


def _with_noop(build: Build) -> Build:
    """With a tool that does nothing but find out who calls, which every tool does."""
    from remit.entrypoints.mcp.arguments import Arguments
    from remit.entrypoints.mcp.registry import Tool
    from remit.services.identity import Caller

    def build_with_noop(app: App, *more: Any) -> dict[str, Tool]:
        async def noop(caller: Caller, _arguments: Arguments) -> dict[str, Any]:
            await app.gate.check(caller)
            return {}

        return {**build(app, *more), NOOP: Tool(NOOP, "Do nothing.", Arguments, noop)}

    return build_with_noop


if __name__ == "__main__":
    sys.exit(main())
