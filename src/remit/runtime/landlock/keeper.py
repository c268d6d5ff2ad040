"""The program that runs a program under Landlock, and ends it with everything it started.

    python -I -S -c '…' POLICY PROGRAM ARGUMENT…

Ends as the program does, with 128 and the number of the signal if one ended it. The order counts:
the worker's death kills the keeper, the keeper's death is told to the guard, and the guard sends
one signal to everybody below itself. Nobody below can signal, trace or stop either of them. Asked
to end (SIGTERM) the keeper does so when everybody below has.
"""

from __future__ import annotations

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

from remit.runtime.landlock import calls, rules
from remit.runtime.landlock.favours import Favours

_DIE_WITH_PARENT, _ADOPT, _NO_NEW_RIGHTS, _DROP_BOUND, _AMBIENT = 1, 36, 38, 24, 47
_CLEAR_ALL = 4
_CAPABILITIES = 0x20080522
_KEEPER_GONE = signal.SIGUSR1
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
_CANNOT_START, _NOT_HELD = 126, 125
#: What says something about the machine and nothing about anybody's process.
_OF_THE_KERNEL = (
    *("/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat"),
    *("/proc/uptime", "/proc/version", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/pid_max"),
    *("/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Policy:
    """What the program may have."""

    readable: list[str]
    writable: list[str]
    cwd: str
    #: Files of the worker that are written to, each with a place inside that leads to it.
    lent: dict[str, str]
    #: By the number of the limit.
    limits: dict[str, int]

    def encode(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    policy, argv = Policy(**json.loads(sys.argv[1])), sys.argv[2:]
    try:
        _prctl(_NO_NEW_RIGHTS, 1)
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        _drop_rights()
        _signal_only_below()
        keeper = os.getpid()
        guard = os.fork()
        if guard == 0:
            os._exit(_guard(keeper, policy, argv))
    except OSError as error:
        sys.stderr.write(f"The program cannot be held: {error}\n")
        sys.stderr.flush()
        os._exit(_NOT_HELD)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(guard, _KEEPER_GONE))
    _be_silent()
    code = _wait(guard)
    _end_all()
    os._exit(code)


def _guard(keeper: int, policy: Policy, argv: list[str]) -> int:
    over = False

    def hear(number: int, _: FrameType | None) -> None:
        nonlocal over
        over = over or number == _KEEPER_GONE

    os.setsid()
    # The worker asks everybody to end; the guard stays until they have.
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
        return _NOT_HELD
    _prctl(_ADOPT, 1)
    _signal_only_below()
    ours, theirs = socket.socketpair()
    program = os.fork()
    if program == 0:
        ours.close()
        os._exit(_program(theirs, policy, argv))
    theirs.close()
    try:
        # Rules are about what a name means while somebody holds it.
        held = [os.open(one, os.O_PATH) for one in (f"/proc/{program}", *_existing_facts())]
        ours.sendall(b"!")
        _, listeners, _, _ = socket.recv_fds(ours, 1, 1)
        if not listeners:
            code = _wait(program)
        else:
            _be_silent()
            os.chdir("/")
            favours = Favours(
                listeners[0],
                writable=[*policy.writable, *policy.lent],
                readable=[*policy.readable],
            )
            code = _attend(program, listeners[0], bell, favours, lambda: over)
        del held
    except OSError as error:
        sys.stderr.write(f"The program cannot be held: {error}\n")
        code = _NOT_HELD
    _end_all()
    _wait(None)
    return code


def _program(guard: socket.socket, policy: Policy, argv: list[str]) -> int:
    """Become the program; answers only if that fails."""
    try:
        _prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (*_IGNORED, signal.SIGCHLD, _KEEPER_GONE):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        if not guard.recv(1):
            return _NOT_HELD
        for limit, most in policy.limits.items():
            _, hard = resource.getrlimit(int(limit))
            bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(int(limit), (bound, bound))
        rules.confine(
            [
                *((one, rules.READ) for one in policy.readable),
                *((one, rules.WRITE) for one in (*policy.writable, *policy.lent, *_DEVICES)),
                *((one, rules.READ) for one in ("/proc/self", *_existing_facts())),
            ]
        )
        # Confined already: whatever the program left in its folders leads nowhere else.
        for file, place in policy.lent.items():
            _link(place, file)
        os.chdir(policy.cwd)
        listener = calls.install()
        socket.send_fds(guard, [b"!"], [listener])
        os.close(listener)
        guard.close()
    except OSError as error:
        sys.stderr.write(f"The program cannot be held: {error}\n")
        sys.stderr.flush()
        return _NOT_HELD
    try:
        os.execvp(argv[0], argv)  # noqa: S606  that is what it is for
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
    return _CANNOT_START


def _attend(
    program: int, listener: int, bell: int, favours: Favours, is_over: Callable[[], bool]
) -> int:
    """Do favours until the program has ended, or the keeper has."""
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    waiting.register(bell, select.POLLIN)
    while not is_over():
        for descriptor, event in waiting.poll():
            if descriptor == bell:
                os.read(bell, 4096)
            elif event & select.POLLIN:
                favours.answer()
            else:
                waiting.unregister(listener)  # nobody is left who could ask
        code = _reap(program)
        if code is not None:
            return code
    return 128 + signal.SIGKILL


def _reap(program: int) -> int | None:
    """See out whoever has ended, among them those whose parents went before them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return _NOT_HELD
        if pid == 0:
            return None
        if pid == program and (code := _code(status)) is not None:
            return code


def _wait(program: int | None) -> int:
    """The code of a program that has ended, or wait for all."""
    while True:
        try:
            pid, status = os.waitpid(-1 if program is None else program, 0)
        except ChildProcessError:
            return _NOT_HELD
        if pid == program and (code := _code(status)) is not None:
            return code


def _code(status: int) -> int | None:
    """None for a program that only stopped: one can make its parent its tracer."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else None


def _end_all() -> None:
    """Everybody whom we can signal, at once: by the rules those are all below us and nobody else.

    The kernel goes through all processes while none can be made, so nobody gets away.
    """
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)


def _signal_only_below() -> None:
    """Tried, not believed: what comes later would otherwise end every process of this user."""
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


def _drop_rights() -> None:
    """Nothing of root but the name."""
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
    return [one for one in _OF_THE_KERNEL if os.path.exists(one)]


def _be_silent() -> None:
    """The pipes are the program's; who reads them waits until the last has let go."""
    nothing = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
