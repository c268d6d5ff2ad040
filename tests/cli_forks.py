"""Runs commands of `remit`, and whole instances, in processes that are forked, not started.

A process that has imported what they need forks one child for each, so that it costs what it does
and not what Python takes to import it. Each is a process of its own, with its own arguments,
environment, input and output; it gets real signals, and can be killed. Starting is tested
elsewhere, with real starts. All workers of a test run share the processes that fork.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

from tests import run_folder
from tests.run_folder import RunFolder

_LENGTH = 8
#: A script for `start`: what the command line does with its arguments.
COMMAND_LINE = "from remit.entrypoints.cli.main import main\nmain()"


class CommandTimedOut(Exception):
    """A command did not end."""


class Forks:
    """The process that forks, seen from a process that runs tests; there is one of each kind."""

    def __init__(self, kind: str = "commands") -> None:
        self._here = _connected(kind, run_folder.current())
        atexit.register(self._here.close)

    def run(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        stdin: bytes = b"",
        seconds: float = 60,
        **more: Any,
    ) -> tuple[int, bytes, bytes]:
        """The exit code, and what was written to standard output and standard error."""
        with (
            tempfile.TemporaryFile() as source,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            source.write(stdin)
            source.seek(0)
            fds = source.fileno(), out.fileno(), err.fileno()
            with self.start(arguments, environment, fds, **more) as child:
                try:
                    code = child.wait(seconds)
                except subprocess.TimeoutExpired:
                    raise CommandTimedOut(" ".join(arguments)) from None
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def start(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        files: tuple[int | None, int | None, int | None] = (None, None, None),
        *,
        script: str = COMMAND_LINE,
        new_session: bool = False,
    ) -> Forked:
        """Start a process; input, output and errors are nothing where no file is given."""
        order = {
            "arguments": arguments,
            "environment": dict(environment),
            "cwd": os.getcwd(),
            "script": script,
            "new_session": new_session,
        }
        text = json.dumps(order).encode("utf-8", "surrogateescape")
        told, tells = socket.socketpair()
        with tells, open(os.devnull, "r+b", buffering=0) as nothing:
            fds = [nothing.fileno() if fd is None else fd for fd in files]
            head = len(text).to_bytes(_LENGTH, "big")
            socket.send_fds(self._here, [head], [*fds, tells.fileno()])
            self._here.sendall(text)
        return Forked(told)

    def open(
        self, arguments: list[str], environment: Mapping[str, str], *, errors: bool, **more: Any
    ) -> Forked:
        """Start a process whose output, and errors if they are wanted, are read as they come."""
        with contextlib.ExitStack() as ours:
            out, out_there = _pipe(ours)
            err, err_there = _pipe(ours) if errors else (None, None)
            process = self.start(arguments, environment, (None, out_there, err_there), **more)
        process.stdout, process.stderr = out, err
        return process

    def told(self, module: str) -> Forked:
        """Start the `main` of a module, which is told line by line what to do; its errors are
        ours."""
        script = f"import gc\nfrom {module} import main\ngc.freeze()\nmain()"
        with contextlib.ExitStack() as ours:
            out, out_there = _pipe(ours)
            in_there, in_here = os.pipe()
            ours.callback(os.close, in_there)
            process = self.start([], os.environ, (in_there, out_there, 2), script=script)
        process.stdin, process.stdout = os.fdopen(in_here, "wb"), out
        return process


def _connected(kind: str, run: RunFolder) -> socket.socket:
    """A connection to the process of this run that forks; whoever asks first starts it."""
    place = str(run.path / f"forks-{kind}")
    with run.locked(f"forks-{kind}"):
        if not os.path.exists(place):
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(place)
                listening.listen()
                _start(kind, listening.fileno(), run.owner)
    here = socket.socket(socket.AF_UNIX)
    here.connect(place)
    return here


def _start(kind: str, listening: int, owner: int) -> None:
    """Nobody's child: it ends when the run does, not when the worker does that happened to ask."""
    module = [sys.executable, "-W", "error", "-m", __name__, kind, str(listening), str(owner)]
    subprocess.run(
        ["setsid", "--fork", *module],
        pass_fds=[listening],
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parent.parent,
        check=True,
    )


@cache
def commands() -> Forks:
    """Forks what only talks to an instance."""
    return Forks("commands")


@cache
def instances() -> Forks:
    """Forks what is an instance, or starts one in the background, or forks others itself."""
    return Forks("instances")


def _pipe(ours: contextlib.ExitStack) -> tuple[IO[bytes], int]:
    here, there = os.pipe()
    ours.callback(os.close, there)
    return os.fdopen(here, "rb"), there


class Forked:
    """A process that was forked: much like subprocess.Popen."""

    def __init__(self, told: socket.socket) -> None:
        self._told = told
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self.pid: int = self._hear()

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, seconds: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], seconds)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), seconds or 0)
            self.returncode = self._hear()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Kill it if it is still there."""
        self.kill()
        self.wait()
        self._told.close()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hear(self) -> int:
        return int.from_bytes(_exactly(self._told, _LENGTH), "big", signed=True)


def _number(number: int) -> bytes:
    return number.to_bytes(_LENGTH, "big", signed=True)


def _exactly(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        piece = connection.recv(count - len(content))
        if not piece:
            raise EOFError
        content += piece
    return content


# ── in the process that forks ───────────────────────────────────────────────────────────────────


def serve(listening: socket.socket, owner: int) -> None:
    """Fork what is asked for, until the process that began the run is gone."""
    connections: dict[int, socket.socket] = {}
    #: By the descriptor that tells of a child's end: its number, and where to tell of it.
    children: dict[int, tuple[int, int]] = {}
    try:
        over = os.pidfd_open(owner)
    except ProcessLookupError:
        return
    while True:
        ready, _, _ = select.select([over, listening.fileno(), *connections, *children], [], [])
        if over in ready:
            for child, _ in children.values():
                os.kill(child, signal.SIGKILL)
            return
        for descriptor in ready:
            if descriptor in children:
                _tell_of_end(descriptor, *children.pop(descriptor))
            elif descriptor in connections:
                if not _fork_as_asked(connections[descriptor], children):
                    connections.pop(descriptor).close()
            else:
                connection, _ = listening.accept()
                connections[connection.fileno()] = connection


def _fork_as_asked(connection: socket.socket, children: dict[int, tuple[int, int]]) -> bool:
    """Whether anything was asked for; otherwise whoever asked is gone."""
    try:
        head, fds, _, _ = socket.recv_fds(connection, _LENGTH, 4)
        if not head:
            return False
        text = _exactly(connection, int.from_bytes(head, "big"))
    except (EOFError, ConnectionError):
        return False
    *files, told = fds
    child = os.fork()
    if child == 0:
        _become(json.loads(text.decode("utf-8", "surrogateescape")), files)
    for fd in files:
        os.close(fd)
    children[os.pidfd_open(child)] = child, told
    with contextlib.suppress(OSError):  # nobody may want to know
        os.write(told, _number(child))
    return True


def _tell_of_end(descriptor: int, child: int, told: int) -> None:
    os.close(descriptor)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):  # nobody may want to know
        os.write(told, _number(os.waitstatus_to_exitcode(status)))
    os.close(told)


def _become(order: dict[str, Any], files: list[int]) -> NoReturn:
    """Be a process that was started with these arguments, environment and files."""

    def prepare() -> None:
        if order["new_session"]:
            os.setsid()
        os.environ.clear()
        os.environ.update(order["environment"])
        tempfile.tempdir = None
        os.chdir(order["cwd"])
        _start_in_background_by_forking()

    _be(["remit", *order["arguments"]], files, prepare, order["script"])


def _be(
    arguments: list[str], files: list[int], prepare: Callable[[], None], script: str
) -> NoReturn:
    code = 70
    try:
        for number, fd in enumerate(files):
            os.dup2(fd, number)
        os.closerange(3, 1 << 16)
        prepare()
        sys.argv = arguments
        plain: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape"}
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), **plain)  # noqa: SIM115
        sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), **plain)  # noqa: SIM115
        sys.stderr = io.TextIOWrapper(
            open(2, "wb", closefd=False),  # noqa: SIM115
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        code = _run(script)
        # What Python does at its end, and a forked process does not.
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(script: str) -> int:
    try:
        exec(script, {"__name__": "__main__"})  # noqa: S102  it is a test's
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


class _Background:
    """Stands for subprocess.Popen where `up --detach` starts the instance."""

    def __init__(self, command: list[str], **streams: Any) -> None:
        assert command[1:4] == ["-P", "-m", "remit.entrypoints.cli.main"], command
        assert streams.pop("start_new_session") is True
        assert set(streams) == {"stdin", "stdout", "stderr"}, streams
        assert streams["stdin"] == subprocess.DEVNULL
        self.returncode: int | None = None
        with open(os.devnull, "rb", buffering=0) as nothing:
            files = [nothing.fileno(), streams["stdout"].fileno(), streams["stderr"].fileno()]
            self.pid = os.fork()
            if self.pid == 0:
                _be(["remit", *command[4:]], files, os.setsid, COMMAND_LINE)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


class _Starting:
    DEVNULL = subprocess.DEVNULL
    Popen = _Background


def _start_in_background_by_forking() -> None:
    from remit.entrypoints.cli import detach

    if "uvicorn" in sys.modules:  # else there is nothing to be gained
        vars(detach)["subprocess"] = _Starting


def _import_everything(kind: str) -> None:
    """Whatever any command needs; and what an instance needs, also later."""
    from remit.entrypoints.cli import overview

    import_module("remit.entrypoints.cli.main")
    for entries in overview.COMMANDS.values():
        for entry in entries.values():
            import_module(f"remit.entrypoints.cli.commands.{entry.module}")
    if kind == "instances":
        from tests.warming import warm_up

        warm_up()
    gc.freeze()


if __name__ == "__main__":
    _import_everything(sys.argv[1])
    with socket.socket(fileno=int(sys.argv[2])) as listening:
        serve(listening, int(sys.argv[3]))
