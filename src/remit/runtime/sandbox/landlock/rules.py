"""Landlock: restrictions on the files, signals and sockets of a process and its descendants.

Restrictions can only be added, never removed. Rules apply to files and not to names, so links lead
to no further files.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

#: The first version that restricts signals; with an older one, a program could kill the worker.
OLDEST = 6

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every machine
_TELL_VERSION = 1
_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_EVERYTHING = (1 << 16) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = _EVERYTHING & ~_MAKE_DEVICES

_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the version of Landlock in the kernel; 0 for none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _TELL_VERSION)))


def forbid_signals() -> None:
    """Restrict this process's signals to processes that it starts from now on."""
    _enforce(_ruleset(0, _SIGNALS))


def forbid_abstract_sockets() -> None:
    """Restrict this process's connections to abstract Unix sockets of those that it starts from now
    on, and of itself."""
    _enforce(_ruleset(0, _ABSTRACT_SOCKETS))


def confine(allowed: Iterable[tuple[str | os.PathLike[str], int]]) -> None:
    """Restrict this process to these files, and its signals to processes it starts from now on."""
    ruleset = _ruleset(_EVERYTHING, _SIGNALS | _ABSTRACT_SOCKETS)
    for path, rights in allowed:
        _allow(ruleset, path, rights)
    _enforce(ruleset)


def _ruleset(files: int, scopes: int) -> int:
    wanted = struct.pack("=QQQ", files, 0, scopes)
    return checked(_libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0))


def _allow(ruleset: int, path: str | os.PathLike[str], rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, place)
        checked(_libc.syscall(_ADD_RULE, ruleset, _BENEATH, rule, 0))
    finally:
        os.close(place)


def _enforce(ruleset: int) -> None:
    try:
        checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def checked(answer: int) -> int:
    """Return the result of a system call; raises `OSError` if the call failed."""
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
