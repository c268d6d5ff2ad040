"""Reaper: ends whatever a process started, however far it went, and sees it out."""

import contextlib
import os
import signal

from remit.runtime.sandbox.landlock import rules

#: Exit code of the keeper if it could not do its work.
NOT_HELD = 125


def reap(program: int) -> int | None:
    """See out whoever has ended, among them those whose parents went before them."""
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
    """The code of a program that has ended, or wait for all."""
    while True:
        try:
            pid, status = os.waitpid(-1 if program is None else program, 0)
        except ChildProcessError:
            return NOT_HELD
        if pid == program and (code := _code(status)) is not None:
            return code


def _code(status: int) -> int | None:
    """None for a program that only stopped: one can make its parent its tracer."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else None


def end_all() -> None:
    """Everybody whom we can signal, at once: by the rules those are all below us and nobody else.

    The kernel goes through all processes while none can be made, so nobody gets away.
    """
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)


def signal_only_below() -> None:
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
