"""Processes that start agents, made to be killed, stopped and continued.

A stage has everything imported and forks a worker whenever it is told to, so that one costs
milliseconds.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from remit.app import App
from remit.clock import SECOND
from remit.runtime.jobs import Jobs
from remit.runtime.worker import Worker
from tests.company import settings

ROOT = Path(__file__).parent.parent


@dataclass
class Life:
    """One process: an instance of its own, or one worker among others."""

    url: str
    home: str
    name: str = "local"
    alone: bool = True
    lease_seconds: float = 10.0
    slots: int = 4


class Stage:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime_stage"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._born: list[int] = []

    def begin(self, life: Life) -> int:
        """Fork; answers the process once it works."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(life)) + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline().split()
        assert said[:1] == ["ready"], said
        self._born.append(int(said[1]))
        return int(said[1])

    def close(self) -> None:
        for pid in self._born:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@contextlib.contextmanager
def opened() -> Iterator[Stage]:
    stage = Stage()
    try:
        yield stage
    finally:
        stage.close()


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    for order in sys.stdin:
        if os.fork():
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        code = 1
        try:
            asyncio.run(_live(Life(**json.loads(order))))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)


async def _live(life: Life) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with App(settings(life.url, Path(life.home))) as app:
        await app.first_start(alone=life.alone)
        worker = Worker(
            app,
            "http://127.0.0.1:9",
            name=life.name,
            slots=life.slots,
            lease=int(life.lease_seconds * SECOND),
        )
        carrier = Jobs(app, name=life.name, lease=int(life.lease_seconds * SECOND))
        worker.start()
        carrier.start()
        os.write(1, f"ready {os.getpid()}\n".encode())
        await stopped.wait()
        await carrier.stop()
        await worker.stop()


if __name__ == "__main__":
    main()
