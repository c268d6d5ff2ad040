"""Runs commands of `remit` in processes that are forked, not started.

A process that has imported the command line forks one child for each command, so that a command
costs what it does and not what Python takes to import it. Each is a process of its own, with its
own arguments, environment, input and output. Starting is tested elsewhere, with real starts.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

_LENGTH = 8


class CommandTimedOut(Exception):
    """A command did not end."""


class Forks:
    """The process that forks; one for each process that runs tests."""

    def __init__(self) -> None:
        self._here, there = socket.socketpair()
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", __name__, str(there.fileno())],
                pass_fds=[there.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=Path(__file__).parent.parent,
            )
        atexit.register(self.close)

    def close(self) -> None:
        self._here.close()
        self._process.wait(10)

    def run(
        self, arguments: list[str], environment: Mapping[str, str], stdin: bytes, seconds: float
    ) -> tuple[int, bytes, bytes]:
        """The exit code, and what was written to standard output and standard error."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin)
            given.seek(0)
            self._here.settimeout(seconds)
            asked = {"arguments": arguments, "environment": dict(environment), "cwd": os.getcwd()}
            text = json.dumps(asked).encode("utf-8", "surrogateescape")
            fds = [given.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(self._here, [len(text).to_bytes(_LENGTH, "big")], fds)
            self._here.sendall(text)
            try:
                answer = json.loads(_read(self._here))
            except TimeoutError:
                self._process.kill()
                raise CommandTimedOut(" ".join(arguments)) from None
            out.seek(0)
            err.seek(0)
            return answer["code"], out.read(), err.read()


def _read(connection: socket.socket) -> bytes:
    length = int.from_bytes(_exactly(connection, _LENGTH), "big")
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


# ── in the process that forks ───────────────────────────────────────────────────────────────────


def serve(connection: socket.socket) -> None:
    while True:
        try:
            head, fds, _, _ = socket.recv_fds(connection, _LENGTH, 3)
            if not head:
                return
            text = _exactly(connection, int.from_bytes(head, "big"))
        except (EOFError, ConnectionError):
            return
        asked = json.loads(text.decode("utf-8", "surrogateescape"))
        child = os.fork()
        if child == 0:
            connection.close()
            _become(asked, fds)
        for fd in fds:
            os.close(fd)
        _, status = os.waitpid(child, 0)
        answer = json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode()
        connection.sendall(len(answer).to_bytes(_LENGTH, "big") + answer)


def _become(asked: dict[str, Any], fds: list[int]) -> NoReturn:
    """Be a process that was started with these arguments, environment and files."""
    code = 70
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["cwd"])
        sys.argv = ["remit", *asked["arguments"]]
        plain: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape"}
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), **plain)  # noqa: SIM115
        sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), **plain)  # noqa: SIM115
        sys.stderr = io.TextIOWrapper(
            open(2, "wb", closefd=False),  # noqa: SIM115
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        code = _run()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run() -> int:
    from remit.entrypoints.cli.main import main

    try:
        main()
    except SystemExit as end:
        if end.code is None:
            return 0
        if isinstance(end.code, int):
            return end.code
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _import_everything() -> None:
    """Whatever any command needs."""
    from remit.entrypoints.cli import main

    for entries in main.COMMANDS.values():
        for entry in entries.values():
            import_module(f"remit.entrypoints.cli.commands.{entry.module}")


if __name__ == "__main__":
    _import_everything()
    with socket.socket(fileno=int(sys.argv[1])) as parent:
        serve(parent)
