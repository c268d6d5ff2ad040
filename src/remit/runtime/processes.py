"""Programs of runs: started, listened to, and ended with everything they started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from remit.adapters.running import Child
from remit.errors import NotFound, Unavailable

#: A line longer than this is cut where a program should have ended it.
LONGEST_LINE = 1 << 20
#: Between asking a program to end and ending it.
GRACE_SECONDS = 5.0
_PIECE = 64 * 1024


class ChildProcess(Child):
    """A program in a session of its own."""

    def __init__(
        self, process: asyncio.subprocess.Process, log: Callable[[str, str], None]
    ) -> None:
        self._process = process
        self.pid = process.pid
        self._log = log
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(maxsize=10_000)
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            asyncio.create_task(self._read(process.stdout, "stdout")),
            asyncio.create_task(self._read(process.stderr, "stderr")),
        ]

    @classmethod
    async def begin(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: bytes,
        log: Callable[[str, str], None],
    ) -> ChildProcess:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
                close_fds=True,
            )
        except FileNotFoundError as error:
            raise NotFound(
                f"The program {argv[0]!r} is not there.", "Correct the agent's configuration."
            ) from error
        except OSError as error:
            raise Unavailable(
                f"The program {argv[0]!r} cannot be started ({error.strerror}).",
                "See to what the machine lacks; it is tried again.",
            ) from error
        child = cls(process, log)
        if stdin:
            child._readers.append(asyncio.create_task(child._feed(stdin)))
        return child

    async def lines(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line

    async def wait(self) -> int:
        code = await self._process.wait()
        # Somebody it started may hold the pipes open; what was printed is read, no more.
        _, late = await asyncio.wait(self._readers, timeout=GRACE_SECONDS)
        for reader in late:
            reader.cancel()
        return code

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def end(self) -> None:
        """Ask it to end, then end it, with everything in its session."""
        if not self.ended:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._process.wait(), GRACE_SECONDS)
        self._signal(signal.SIGKILL)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._process.wait(), GRACE_SECONDS)
        for reader in self._readers:
            reader.cancel()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _read(self, stream: asyncio.StreamReader, name: str) -> None:
        pending = b""
        try:
            while piece := await stream.read(_PIECE):
                *whole, pending = (pending + piece).split(b"\n")
                if len(pending) > LONGEST_LINE:
                    whole, pending = [*whole, pending], b""
                for line in whole:
                    await self._keep(line, name)
            if pending:
                await self._keep(pending, name)
        finally:
            if name == "stdout":
                with contextlib.suppress(asyncio.QueueFull):
                    self._lines.put_nowait(None)

    async def _keep(self, line: bytes, name: str) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self._log(text + "\n", name)
        if name == "stdout":
            await self._lines.put(text)

    async def _feed(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        self._process.stdin.close()


def end_leftovers(run_ids: set[str]) -> int:
    """Kill what is left of runs that are over, also from before we started; answers how many.

    A program that left its session is still known by the run in its environment.
    """
    killed = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            environment = Path(entry.path, "environ").read_bytes().split(b"\0")
            of = next((v[10:] for v in environment if v.startswith(b"REMIT_RUN=")), b"").decode()
            if of in run_ids:
                os.kill(int(entry.name), signal.SIGKILL)
                killed += 1
    return killed
