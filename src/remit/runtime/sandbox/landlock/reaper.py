"""Reaper: kills all descendants of a process, in whichever session, and collects their exits."""

import contextlib
import os
import signal

from remit.runtime.sandbox.landlock import rules

#: Exit code of the keeper if the sandbox could not be set up.
NOT_HELD = 125


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
