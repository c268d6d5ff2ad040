"""Programs such as MCP servers that Remit talks to line by line for an agent.

They are configured by operators, so they run without a sandbox, but separated from agents: with
their own folder, environment and processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from remit import threads
from remit.errors import TooLarge, Unavailable
from remit.ids import random_name
from remit.runtime.child_process import kill_session, start_child
from remit.runtime.runs.processes import descendants
from remit.runtime.sandbox.sandbox_policy import end_together

#: Variables of this process's environment that a program inherits; all others are withheld.
INHERITED = (
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER"),
    *("SSL_CERT_DIR", "SSL_CERT_FILE"),
)
LONGEST_LINE = 8 << 20
#: Most bytes of output since the last request.
MOST_UNASKED = 64 << 20
#: Between the end of its input and the end of the program.
GRACE_SECONDS = 2.0
#: Between the last output of a program and its end.
_SETTLE_SECONDS = 1.0
_LOOK_SECONDS = 0.02
_PIECE = 64 * 1024
_KEPT_OF_COMPLAINTS = 2000


class Program:
    """A program with which messages are exchanged, one line each."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._heard = 0
        self._complaints: deque[str] = deque()
        assert process.stderr is not None
        self._listener = asyncio.create_task(self._listen(process.stderr))

    @classmethod
    async def begin(
        cls,
        argv: Sequence[str],
        variables: Mapping[str, str],
        *,
        folders: Path,
        run: str | None = None,
        workspace: str | None = None,
    ) -> Program:
        """Start a program with these variables, in a new folder below `folders`."""
        folder = folders / random_name()
        folder.mkdir(mode=0o700, parents=True)
        told = {name: os.environ[name] for name in INHERITED if os.environ.get(name)}
        told |= {"TMPDIR": str(folder), **variables}
        if run is not None:
            # These identify leftover programs of a run.
            told |= {"REMIT_RUN": run, "REMIT_WORKSPACE": workspace or ""}
        program = shutil.which(argv[0], path=told.get("PATH", os.defpath))
        try:
            if program is None:
                raise FileNotFoundError
            command = await threads.CHECKS.run(end_together, [program, *argv[1:]])
            process = await start_child(command, told, folder, stdin=asyncio.subprocess.PIPE)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, FileNotFoundError):
                raise Unavailable(f"the program {argv[0]!r} is not there") from None
            if isinstance(error, OSError | ValueError):
                raise Unavailable(f"{argv[0]!r} cannot be started ({error})"[:300]) from None
            raise
        return cls(process, folder)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def complaint(self) -> str:
        """The tail of its error output."""
        return "".join(self._complaints).strip()[-_KEPT_OF_COMPLAINTS:]

    def asked(self) -> None:
        """Note that output from now on answers a request."""
        self._heard = 0

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of output until its end; raises `TooLarge` beyond the limits."""
        assert self._process.stdout is not None
        pending: list[bytes] = []
        size = 0
        while piece := await self._process.stdout.read(_PIECE):
            self._heard += len(piece)
            *whole, rest = piece.split(b"\n")
            for line in whole:
                yield b"".join([*pending, line])
                pending, size = [], 0
            pending.append(rest)
            size += len(rest)
            if size > LONGEST_LINE or self._heard > MOST_UNASKED:
                raise TooLarge("its output exceeds the limit, of one line or without a request")

    async def say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        await self._process.stdin.drain()

    async def last_words(self) -> str:
        """Return a phrase about how the program ended, after its output has ended."""
        if not await self._gone(_SETTLE_SECONDS):
            return "it closed its output"
        return f"it ended with {self._process.returncode}"

    async def _gone(self, seconds: float) -> bool:
        """Return whether the program ends in this time, even if other processes hold its pipes."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._process.returncode is None:  # noqa: ASYNC110  nothing tells us surely
                    await asyncio.sleep(_LOOK_SECONDS)
        return self._process.returncode is not None

    async def end(self) -> None:
        """Close the program's input, then kill it, with all processes that it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        below: list[int] = []
        try:
            if not await self._gone(GRACE_SECONDS):
                below = await threads.ENDINGS.run(descendants, self.pid)
        except asyncio.CancelledError:
            below = descendants(self.pid)
            raise
        finally:
            self._kill(below)  # also after a cancellation
        await self._gone(GRACE_SECONDS)
        self._listener.cancel()
        self._process._transport.close()  # type: ignore[attr-defined]  # what got away may hold it
        await threads.FILES.run(shutil.rmtree, self._folder, True)

    def _kill(self, below: Sequence[int]) -> None:
        alive = [] if self._process.returncode is not None else [self.pid]
        for pid in (*alive, *below):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        # Its session may outlive it; without delay, because its id may be reused.
        kill_session(self._process)

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        """Keep the tail of the error output; drain the pipe so that the program never blocks."""
        while piece := await stream.read(_PIECE):
            self._complaints.append(piece.decode(errors="replace")[-_KEPT_OF_COMPLAINTS:])
            while len(self._complaints) > 1 and sum(map(len, self._complaints)) > (
                2 * _KEPT_OF_COMPLAINTS
            ):
                self._complaints.popleft()
