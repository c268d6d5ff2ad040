"""Programs of runs: started, listened to, and ended with everything they started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from remit.adapters.running import Child
from remit.errors import NotFound, Unavailable
from remit.runtime.child_process import start_child
from remit.runtime.sandbox.cgroups import end_groups_of

#: A line longer than this is cut where a program should have ended it. The last words of a model
#: are one line, and may be some megabytes.
LONGEST_LINE = 8 << 20
#: Between asking a program to end and ending it.
GRACE_SECONDS = 3.0
#: How long what was printed is waited for once the program is gone.
DRAIN_SECONDS = 1.0
#: Somebody may hold the pipes of a program that is gone, so its end is looked for, too.
_LOOK_SECONDS = 0.5
#: Between two looks whether killed processes are gone.
_GONE_SECONDS = 0.02
_PIECE = 64 * 1024
#: Pieces that were read and not looked at yet; a program that prints more has to wait.
_MOST_AHEAD = 16
_ROUNDS = 5


class ChildProcess(Child):
    """A program in a session of its own."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        log: Callable[[str, str], None],
        *,
        sandboxed: bool = False,
    ) -> None:
        self._process = process
        self.pid = process.pid
        #: Inside a sandbox all ends with the sandbox, and outside of it signals do not get in.
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
        self._lines.put_nowait(None)  # whoever asks again is told again

    async def wait(self) -> int:
        await asyncio.shield(self._over)
        assert self._process.returncode is not None
        return self._process.returncode

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def end(self) -> None:
        """Ask it to end, then end it, with everything that it started."""
        self._unwanted = True
        with contextlib.suppress(asyncio.QueueEmpty):
            while True:
                self._lines.get_nowait()
        if not self.ended:
            self._ask_to_end()
            await asyncio.wait([self._over], timeout=GRACE_SECONDS)
        below = [] if self.ended else descendants(self.pid)
        if not self.ended and self.sandboxed:
            # It ends when everything in it has; killed, it would leave that to others.
            _signal(self.pid, signal.SIGTERM)
            await asyncio.wait([self._over], timeout=GRACE_SECONDS)
        if not self.ended:
            below = descendants(self.pid)
            self._kill(below)
        await asyncio.wait([self._over], timeout=GRACE_SECONDS)
        await _wait_until_gone(below)

    def _ask_to_end(self) -> None:
        inside = descendants(self.pid) if self.sandboxed else []
        if inside:
            # The sandbox itself would end at once, and what is in it without a warning.
            for pid in inside:
                _signal(pid, signal.SIGTERM)
        else:
            self._signal_group(signal.SIGTERM)

    def _kill(self, below: Sequence[int]) -> None:
        self._signal_group(signal.SIGKILL)
        for pid in below:
            _signal(pid, signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _see_out(self) -> None:
        """Wait for the end, then see to it that nothing of it is left, and that all is read."""
        gone = asyncio.ensure_future(self._process.wait())
        while not gone.done() and not self.ended:
            await asyncio.wait([gone], timeout=_LOOK_SECONDS)
        # At once: later the number of the group may be that of another.
        self._signal_group(signal.SIGKILL)
        _, late = await asyncio.wait(self._readers, timeout=DRAIN_SECONDS)
        for task in (*late, gone):
            task.cancel()
        if late:
            # Somebody who got away holds the other end; we let go of ours.
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
    """A killed process is there until the kernel has torn it down, which takes a moment."""
    for _ in range(round(GRACE_SECONDS / _GONE_SECONDS)):
        if not any(map(_is_there, pids)):
            break
        await asyncio.sleep(_GONE_SECONDS)


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def descendants(pid: int) -> list[int]:
    """The processes below a process; not those that left for another parent."""
    children: dict[int, list[int]] = {}
    for other in _processes():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in parentheses may hold anything.
            parent = int(Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(other)
    found, pending = [], [pid]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def end_leftovers(run_ids: set[str]) -> int:
    """Kill what is left of runs that are over; answers how many.

    A program that left its session is still known by the run in its environment.
    """
    killed = _end_those(lambda told: told.get("REMIT_RUN") in run_ids) if run_ids else 0
    end_groups_of(run_ids)
    return killed


def runs_with_programs(workspaces: Path) -> set[str]:
    """The runs that have a folder here, or had one, and a program that is alive."""
    root = f"{workspaces}{os.sep}"
    found = set()
    for pid in _processes():
        with contextlib.suppress(OSError):
            told = _told(pid)
            if told.get("REMIT_WORKSPACE", "").startswith(root) and "REMIT_RUN" in told:
                found.add(told["REMIT_RUN"])
    return found


def end_leftovers_of_jobs(jobs: Path, living: Collection[str] = ()) -> int:
    """Kill what is left of background jobs that had a folder here, except those that are living.

    Their programs are told nothing of Remit, but where their home is.
    """
    root = f"{jobs}{os.sep}"

    def is_leftover(told: Mapping[str, str]) -> bool:
        homes = [told[name] for name in ("HOME", "TMPDIR") if told.get(name, "").startswith(root)]
        return any(one.removeprefix(root).partition(os.sep)[0] not in living for one in homes)

    return _end_those(is_leftover)


def _end_those(is_leftover: Callable[[Mapping[str, str]], bool]) -> int:
    killed = 0
    for _ in range(_ROUNDS):
        found = 0
        for pid in _processes():
            with contextlib.suppress(OSError):
                found += _end_if(pid, is_leftover)
        if not found:
            break  # what was being started meanwhile is found in the next round
        killed += found
    return killed


def _end_if(pid: int, is_leftover: Callable[[Mapping[str, str]], bool]) -> bool:
    handle = os.pidfd_open(pid)  # so that it is still the same one when it is killed
    try:
        if not is_leftover(_told(pid)):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
    return True


def _told(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
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
