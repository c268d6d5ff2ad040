"""Child processes: each starts in a session of its own, and ends with all that it started."""

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
    """Start a program whose output is read; `held` are descriptors that it keeps open.

    Input that is known is a file: a pipe is filled when the event loop comes to it, and programs
    give up on an empty one after a few seconds, which a busy machine may take.
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
    """A file without a name; in memory, if the system has that."""
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
        # Else the program could keep in it whatever fits into the memory of the machine.
        sealed = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, sealed)


async def end_child(process: asyncio.subprocess.Process) -> None:
    """Kill it with its session, let go of its pipes, and wait for its end.

    The event loop calls a child over only when its pipes are closed. Nobody reads them any longer,
    so they may be full for ever, and what got out of the session may hold them.
    """
    kill_session(process)
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]
    for number in range(3):
        pipe = transport.get_pipe_transport(number)
        if pipe is not None:
            pipe.close()
    await process.wait()


def kill_session(process: asyncio.subprocess.Process) -> None:
    """With whatever it started; at once, for later its number may be that of another."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
