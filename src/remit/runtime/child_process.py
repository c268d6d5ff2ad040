"""Child processes: each starts in its own session, and is killed together with it."""

import asyncio
import contextlib
import fcntl
import os
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path


async def start_child(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    *,
    stdin: bytes | int = DEVNULL,
    stderr: int = PIPE,
    held: Sequence[int] = (),
) -> asyncio.subprocess.Process:
    """Start a program with its output in pipes; `held` are descriptors that it inherits.

    Input of known content is a file and not a pipe: the event loop of a busy machine may take
    seconds to fill a pipe, and some programs give up on an empty one by then.
    """
    with contextlib.ExitStack() as opened:
        if isinstance(stdin, bytes):
            whole, stdin = stdin, _new_file()
            opened.callback(os.close, stdin)
            _fill(stdin, whole)
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=stdin,
            stdout=PIPE,
            stderr=stderr,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=tuple(held),
        )


def _new_file() -> int:
    """Open an anonymous file, in memory where the system supports that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _fill(file: int, whole: bytes) -> None:
    rest = memoryview(whole)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.lseek(file, 0, os.SEEK_SET)
    if hasattr(os, "memfd_create"):
        # Without seals the program could fill the machine's memory through it.
        sealed = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, sealed)


async def end_child(process: asyncio.subprocess.Process) -> None:
    """Kill a child with its session, close its pipes, and wait for its end.

    The event loop reports the end of a child only after its pipes are closed. They may stay full,
    because their reader is gone, and a process that left the session may hold them open.
    """
    kill_session(process)
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]
    for number in range(3):
        pipe = transport.get_pipe_transport(number)
        if pipe is not None:
            pipe.close()
    await process.wait()


def kill_session(process: asyncio.subprocess.Process) -> None:
    """Kill a child with its session; without delay, because its process id may be reused."""
    signal_group(process.pid, signal.SIGKILL)


def signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
