"""Launcher: replaces itself by bubblewrap, which cannot connect to abstract Unix sockets of others.

    python -I -S -c '…' FILTER PROGRAM ARGUMENT…

FILTER, unless it is empty, is opened as descriptor 9 for the program. Landlock restricts
connections alone, so that bubblewrap can still mount.
"""

import ctypes
import os
import signal
import sys

from remit.runtime.sandbox.landlock import rules

FILTER_FD = 9
_DIE_WITH_PARENT, _NO_NEW_RIGHTS = 1, 38

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    filter_, *argv = sys.argv[1:]
    rules.checked(_libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0))
    if filter_:
        opened = os.open(filter_, os.O_RDONLY)
        os.dup2(opened, FILTER_FD)
    rules.checked(_libc.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0))
    rules.forbid_abstract_sockets()
    # Python ignores these signals and may set a locale; the program is to have neither.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execve(argv[0], argv, _environment())  # noqa: S606  that is what it is for


def _environment() -> dict[bytes, bytes]:
    """Return the environment that this process was started with."""
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
