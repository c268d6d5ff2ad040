"""Programs of runs: started, read, and ended with every process they started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from remit.adapters.running import Child
from remit.errors import NotFound, Unavailable
from remit.runtime.child_process import signal_group, start_child
from remit.runtime.sandbox.cgroups import end_groups_of

#: A longer line is cut here. The final answer of a model is one line and may have some megabytes.
LONGEST_LINE = 8 << 20
#: Between SIGTERM and SIGKILL.
GRACE_SECONDS = 3.0
#: How long a sandbox may take to end when it is asked, which kills all in it at once. Together with
#: the grace before it, it has to fit into the time that a worker has to stop.
SANDBOX_SECONDS = 1.0
#: How long the rest of the output is awaited after the program has ended.
DRAIN_SECONDS = 1.0
#: How often the end of a program is polled, because other processes may hold its pipes open.
_LOOK_SECONDS = 0.5
#: Between two checks whether killed processes are gone.
_GONE_SECONDS = 0.02
_PIECE = 64 * 1024
#: Most unread pieces of output; a program that prints more has to wait (backpressure).
_MOST_AHEAD = 16
_ROUNDS = 5


class ChildProcess(Child):
    """A program of a run, in its own session."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        log: Callable[[str, str], None],
        *,
        sandboxed: bool = False,
    ) -> None:
        self._process = process
        self.pid = process.pid
        #: The end of a sandbox ends all processes inside; signals to its group do not reach them.
        self.sandboxed = sandboxed
        self._log = log
        self._lines: asyncio.Queue[list[str] | None] = asyncio.Queue(maxsize=_MOST_AHEAD)
        self._unwanted = False
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            asyncio.create_task(self._read(process.stdout, "stdout")),
            asyncio.create_task(self._read(process.stderr, "stderr")),
        ]
        self._over = asyncio.create_task(self._see_out())

    @classmethod
    async def begin(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: bytes,
        log: Callable[[str, str], None],
        sandboxed: bool = False,
    ) -> ChildProcess:
        try:
            process = await start_child(argv, env, cwd, stdin=stdin)
        except FileNotFoundError as error:
            raise NotFound(
                f"The program {argv[0]!r} is not there.",
                "Correct the agent's configuration.",
                code="program",
            ) from error
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise Unavailable(
                f"The program {argv[0]!r} cannot be started ({reason}).",
                "See to what the machine lacks; it is tried again.",
            ) from error
        return cls(process, log, sandboxed=sandboxed)

    async def lines(self) -> AsyncIterator[str]:
        while (some := await self._lines.get()) is not None:
            for line in some:
                yield line
        self._lines.put_nowait(None)  # the end marker stays for further readers

    async def wait(self) -> int:
        await asyncio.shield(self._over)
        assert self._process.returncode is not None
        return self._process.returncode

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def end(self) -> None:
        """Ask the program to end, then kill it, with all processes that it started."""
        self._unwanted = True
        with contextlib.suppress(asyncio.QueueEmpty):
            while True:
                self._lines.get_nowait()
        if not self.ended:
            self._ask_to_end()
            await asyncio.wait([self._over], timeout=GRACE_SECONDS)
        below = [] if self.ended else descendants(self.pid)
        if not self.ended and self.sandboxed:
            # The sandbox ends after everything in it has; killed, it could leave processes behind.
            _signal(self.pid, signal.SIGTERM)
            await asyncio.wait([self._over], timeout=SANDBOX_SECONDS)
        if not self.ended:
            below = descendants(self.pid)
            signal_group(self.pid, signal.SIGKILL)
            for pid in below:
                _signal(pid, signal.SIGKILL)
        await asyncio.wait([self._over], timeout=GRACE_SECONDS)
        await _wait_until_gone(below)

    def _ask_to_end(self) -> None:
        inside = descendants(self.pid) if self.sandboxed else []
        if inside:
            # Signalled itself, the sandbox would end at once and kill its processes unwarned.
            for pid in inside:
                _signal(pid, signal.SIGTERM)
        else:
            signal_group(self.pid, signal.SIGTERM)

    async def _see_out(self) -> None:
        """Wait for the end, kill what is left of the session, and read the remaining output."""
        gone = asyncio.ensure_future(self._process.wait())
        while not gone.done() and not self.ended:
            await asyncio.wait([gone], timeout=_LOOK_SECONDS)
        # At once, because the group's id may be reused later.
        signal_group(self.pid, signal.SIGKILL)
        _, late = await asyncio.wait(self._readers, timeout=DRAIN_SECONDS)
        for task in (*late, gone):
            task.cancel()
        if late:
            # An escaped process holds the other end of a pipe; close this end.
            self._process._transport.close()  # type: ignore[attr-defined]
        if self._unwanted:
            return
        if late:
            with contextlib.suppress(asyncio.QueueEmpty):
                while self._lines.full():
                    self._lines.get_nowait()
        await self._lines.put(None)

    async def _read(self, stream: asyncio.StreamReader, name: str) -> None:
        pending = bytearray()
        while piece := await stream.read(_PIECE):
            whole, newline, rest = piece.rpartition(b"\n")
            if newline:
                await self._keep(bytes(pending) + whole, name)
                pending = bytearray(rest)
            else:
                pending += piece
            if len(pending) > LONGEST_LINE:
                await self._keep(bytes(pending), name)
                pending.clear()
        if pending:
            await self._keep(bytes(pending), name)

    async def _keep(self, lines: bytes, name: str) -> None:
        text = lines.decode(errors="replace").replace("\r\n", "\n").rstrip("\r")
        self._log(text + "\n", name)
        if name == "stdout" and not self._unwanted:
            await self._lines.put(text.split("\n"))


async def _wait_until_gone(pids: Sequence[int]) -> None:
    """Wait until the kernel has removed killed processes, which takes a moment."""
    for _ in range(round(GRACE_SECONDS / _GONE_SECONDS)):
        if not any(map(_is_there, pids)):
            break
        await asyncio.sleep(_GONE_SECONDS)


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process, without those that have another parent by now."""
    children: dict[int, list[int]] = {}
    for other in _processes():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in parentheses may contain any characters.
            parent = int(Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(other)
    pids, pending = [], [pid]
    while pending:
        below = children.get(pending.pop(), [])
        pids += below
        pending += below
    return pids


def end_leftovers(run_ids: set[str]) -> int:
    """Kill the leftover programs of ended runs; returns their number.

    A program that left its session is recognised by the run's id in its environment.
    """
    killed = _end_those(lambda told: told.get("REMIT_RUN") in run_ids) if run_ids else 0
    end_groups_of(run_ids)
    return killed


def runs_with_programs(workspaces: Path) -> set[str]:
    """Return the runs of these workspaces, existing or not, that have a living program."""
    root = f"{workspaces}{os.sep}"
    runs = set()
    for pid in _processes():
        with contextlib.suppress(OSError):
            variables = _told(pid)
            if variables.get("REMIT_WORKSPACE", "").startswith(root) and "REMIT_RUN" in variables:
                runs.add(variables["REMIT_RUN"])
    return runs


def end_leftovers_of_jobs(jobs: Path, living: Collection[str] = ()) -> int:
    """Kill the leftover programs of background jobs with a folder here, except living jobs.

    Their environment has no variables of Remit, so they are recognised by their home.
    """
    root = f"{jobs}{os.sep}"

    def is_leftover(told: Mapping[str, str]) -> bool:
        homes = [told[name] for name in ("HOME", "TMPDIR") if told.get(name, "").startswith(root)]
        return any(home.removeprefix(root).partition(os.sep)[0] not in living for home in homes)

    return _end_those(is_leftover)


def _end_those(is_leftover: Callable[[Mapping[str, str]], bool]) -> int:
    killed = 0
    for _ in range(_ROUNDS):
        count = 0
        for pid in _processes():
            with contextlib.suppress(OSError):
                count += _end_if(pid, is_leftover)
        if not count:
            break  # a program that was being started meanwhile is found in the next round
        killed += count
    return killed


def _end_if(pid: int, is_leftover: Callable[[Mapping[str, str]], bool]) -> bool:
    handle = os.pidfd_open(pid)  # so that no other process with a reused id is killed
    try:
        if not is_leftover(_told(pid)):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
    return True


def _told(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started."""
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    pairs = (entry.decode(errors="replace").partition("=") for entry in environment.split(b"\0"))
    return {name: value for name, _, value in pairs}


def _processes() -> Iterator[int]:
    me = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != me:
            yield int(name)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
