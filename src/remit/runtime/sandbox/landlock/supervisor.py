"""Supervisor: runs a program under Landlock, and ends it with all processes it started.

    python -I -S -c '…' POLICY PROGRAM ARGUMENT…

The policy `null` restricts nothing: the program is only ended with all processes it started.

The keeper exits with the code of the program, or 128 plus the number of the signal that killed it.
The order matters: the worker's death kills the keeper, the keeper's death is signalled to the
guard, and the guard kills all its descendants with one signal. No descendant can signal, trace or
stop keeper or guard. After SIGTERM, the keeper exits when all descendants have ended.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from types import FrameType

from remit.runtime.sandbox.landlock import calls, rules
from remit.runtime.sandbox.landlock.syscall_broker import Favours

_DIE_WITH_PARENT, _ADOPT, _NO_NEW_RIGHTS, _DROP_BOUND, _AMBIENT = 1, 36, 38, 24, 47
_CLEAR_ALL = 4
_CAPABILITIES = 0x20080522
_KEEPER_GONE = signal.SIGUSR1
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
_CANNOT_START = 126
#: Exit code of the keeper if the sandbox could not be set up.
NOT_HELD = 125
#: Readable files of /proc that are about the machine and not about a process.
_OF_THE_KERNEL = (
    *("/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat"),
    *("/proc/uptime", "/proc/version", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/pid_max"),
    *("/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Policy:
    """The rights of the sandboxed program."""

    readable: list[str]
    writable: list[str]
    cwd: str
    #: Writable files of the worker, each with the path of a symlink inside that leads to it.
    lent: dict[str, str]
    #: Resource limits, by the number of the resource.
    limits: dict[str, int]
    #: Whether it may open network sockets.
    network: bool = True

    def encode(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    fields, argv = json.loads(sys.argv[1]), sys.argv[2:]
    policy = None if fields is None else Policy(**fields)
    try:
        _prctl(_NO_NEW_RIGHTS, 1)
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if policy is not None:
            _drop_rights()
        signal_only_below()
        keeper = os.getpid()
        guard = os.fork()
        if guard == 0:
            os._exit(_guard(keeper, policy, argv))
    except OSError as error:
        sys.stderr.write(f"The program cannot be held: {error}\n")
        sys.stderr.flush()
        os._exit(NOT_HELD)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(guard, _KEEPER_GONE))
    _be_silent()
    code = wait(guard)
    end_all()
    os._exit(code)


def _guard(keeper: int, policy: Policy | None, argv: list[str]) -> int:
    over = False

    def hear(number: int, _: FrameType | None) -> None:
        nonlocal over
        over = over or number == _KEEPER_GONE

    os.setsid()
    # The worker signals the whole sandbox to end; the guard stays until the others have ended.
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    bell, rung = os.pipe()
    os.set_blocking(rung, False)
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(rung, warn_on_full_buffer=False)
    signal.signal(_KEEPER_GONE, hear)
    signal.signal(signal.SIGCHLD, hear)
    _prctl(_DIE_WITH_PARENT, _KEEPER_GONE)
    if os.getppid() != keeper:
        return NOT_HELD
    _prctl(_ADOPT, 1)
    signal_only_below()
    ours, theirs = socket.socketpair()
    program = os.fork()
    if program == 0:
        ours.close()
        os._exit(_program(theirs, policy, argv))
    theirs.close()
    try:
        # Held open, because rules apply to these inodes of /proc only while they are in use.
        held = [os.open(path, os.O_PATH) for path in (f"/proc/{program}", *_existing_facts())]
        ours.sendall(b"!")
        _, listeners, _, _ = socket.recv_fds(ours, 1, 1)
        favours = None
        if policy is not None and listeners:
            writable = [*policy.writable, *policy.lent]
            favours = Favours(listeners[0], writable=writable, readable=policy.readable)
        _be_silent()
        os.chdir("/")
        code = _attend(program, bell, favours, lambda: over)
        del held
    except OSError as error:
        sys.stderr.write(f"The program cannot be held: {error}\n")
        code = NOT_HELD
    end_all()
    wait(None)
    return code


def _program(guard: socket.socket, policy: Policy | None, argv: list[str]) -> int:
    """Replace this process by the program; returns only if that fails."""
    try:
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (*_IGNORED, signal.SIGXFSZ, signal.SIGCHLD, _KEEPER_GONE):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        if not guard.recv(1):
            return NOT_HELD
        if policy is not None:
            _confine(guard, policy)
        guard.close()
    except OSError as error:
        sys.stderr.write(f"The program cannot be held: {error}\n")
        sys.stderr.flush()
        return NOT_HELD
    try:
        os.environ["PWD"] = os.getcwd()
        os.execvp(argv[0], argv)  # noqa: S606  that is what it is for
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
    return _CANNOT_START


def _confine(guard: socket.socket, policy: Policy) -> None:
    for limit, most in policy.limits.items():
        _, hard = resource.getrlimit(int(limit))
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(int(limit), (bound, bound))
    rules.confine(
        [
            *((path, rules.READ) for path in policy.readable),
            *((path, rules.WRITE) for path in (*policy.writable, *policy.lent, *_DEVICES)),
            *((path, rules.READ) for path in ("/proc/self", *_existing_facts())),
        ]
    )
    # Linked after the restriction, so that links left by the program lead nowhere else.
    for file, place in policy.lent.items():
        _link(place, file)
    os.chdir(policy.cwd)
    # Git would find the machine's settings, have no right to read them, and fail.
    os.environ.setdefault("GIT_CONFIG_NOSYSTEM", "1")
    listener = calls.install(network=policy.network)
    socket.send_fds(guard, [b"!"], [listener])
    os.close(listener)


def _attend(program: int, bell: int, favours: Favours | None, is_over: Callable[[], bool]) -> int:
    """Broker system calls until the program or the keeper has ended."""
    waiting = select.poll()
    if favours is not None:
        waiting.register(favours.listener, select.POLLIN)
    waiting.register(bell, select.POLLIN)
    while not is_over():
        for descriptor, event in waiting.poll():
            if descriptor == bell:
                os.read(bell, 4096)
            elif event & select.POLLIN and favours is not None:
                favours.answer()
            else:
                waiting.unregister(descriptor)  # no process with the filter is left
        code = reap(program)
        if code is not None:
            return code
    return 128 + signal.SIGKILL


def _drop_rights() -> None:
    """Drop all capabilities, also those of root."""
    for capability in range(64):
        _libc.prctl(_DROP_BOUND, capability, 0, 0, 0)
    _libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    if _libc.capset(struct.pack("=Ii", _CAPABILITIES, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


def _link(place: str, file: str) -> None:
    try:
        os.unlink(place)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(place), exist_ok=True)
    os.symlink(file, place)


def _existing_facts() -> list[str]:
    return [path for path in _OF_THE_KERNEL if os.path.exists(path)]


def _be_silent() -> None:
    """Replace the standard streams by /dev/null: readers of the program's pipes wait until every
    copy is closed."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# ── descendants, in whichever session ─────────────────────────────────────────────────────────────


def reap(program: int) -> int | None:
    """Collect ended processes, orphans included; return the program's exit code, None before."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return NOT_HELD
        if pid == 0:
            return None
        if pid == program and (code := _code(status)) is not None:
            return code


def wait(program: int | None) -> int:
    """Wait for a program and return its exit code; None waits for all processes."""
    while True:
        try:
            pid, status = os.waitpid(-1 if program is None else program, 0)
        except ChildProcessError:
            return NOT_HELD
        if pid == program and (code := _code(status)) is not None:
            return code


def _code(status: int) -> int | None:
    """Return an exit code; None for a program that only stopped, as a traced one can."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else None


def end_all() -> None:
    """Kill every process that may be signalled: by the rules, exactly all descendants.

    The kernel signals all of them atomically, while no process can be made, so none escapes.
    """
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)


def signal_only_below() -> None:
    """Restrict signals to descendants, and test that: otherwise `end_all` would kill every process
    of this user."""
    ours, theirs = os.pipe()
    beside = os.fork()
    if beside == 0:
        os.close(theirs)
        os.read(ours, 1)
        os._exit(0)
    os.close(ours)
    try:
        rules.forbid_signals()
        try:
            os.kill(beside, 0)
        except PermissionError:
            return
        raise OSError("Landlock does not keep signals in")
    finally:
        os.close(theirs)
        os.waitpid(beside, 0)
