"""Broker of system calls that neither Landlock nor a seccomp filter can judge.

Calls that change the owner, mode or times of a file, or watch it, name the file by a path in the
memory of the program, which a filter cannot read. The guard opens the path, checks where the file
really is, and performs the call on the open file, or refuses it. The program's own call is never
executed, so a later change of its memory has no effect.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Iterator, Sequence

from remit.runtime.sandbox.landlock import calls
from remit.runtime.sandbox.landlock.rules import checked

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_HERE = -100
_NO_FOLLOW, _EMPTY_PATH = 0x100, 0x1000
_WATCH_NO_FOLLOW = 0x02000000
_PIDFD_GETFD = 438
_LONGEST_PATH = 4096
_TIMES = 32
_FIELD = 65
#: The host name inside.
_NAME = b"remit"

_libc = ctypes.CDLL(None, use_errno=True)


class Favours:
    """Performs or refuses the calls that the filter hands over."""

    def __init__(self, listener: int, *, writable: Sequence[str], readable: Sequence[str]) -> None:
        self.listener = listener
        self._writable = [os.fsencode(folder) for folder in writable]
        self._readable = [os.fsencode(folder) for folder in readable] + self._writable

    def answer(self) -> None:
        """Perform or refuse one call; its caller may have ended meanwhile."""
        request = bytearray(80)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, request)
        except OSError:
            return
        id_, pid, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", request)
        value, error = 0, 0
        caller = _Caller(self.listener, id_, pid)
        try:
            value = self._carry_out(calls.name_of(number), caller, arguments)
        except OSError as failed:
            error = failed.errno or errno.EPERM
        except (ValueError, OverflowError):
            error = errno.EINVAL
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.listener, _SEND, struct.pack("=QqiI", id_, value, -error, 0))

    def _carry_out(self, call: str, caller: _Caller, arguments: Sequence[int]) -> int:
        first, second, third, fourth, fifth = arguments[:5]
        match call:
            case "uname":
                return caller.write(first, _names())
            case "inotify_add_watch":
                return self._watch(caller, _signed(first), second, third & 0xFFFFFFFF)
            case "chmod":
                return self._chmod(caller.named(_HERE, first), second)
            case "fchmod":
                return self._chmod(caller.held(_signed(first)), second)
            case "fchmodat":
                return self._chmod(caller.named(_signed(first), second), third)
            case "fchmodat2":
                return self._chmod(caller.named(_signed(first), second, fourth), third)
            case "chown":
                return self._chown(caller.named(_HERE, first), second, third)
            case "lchown":
                return self._chown(caller.named(_HERE, first, _NO_FOLLOW), second, third)
            case "fchown":
                return self._chown(caller.held(_signed(first)), second, third)
            case "fchownat":
                return self._chown(caller.named(_signed(first), second, fifth), third, fourth)
            case _:
                return self._utime(caller, _signed(first), second, third, fourth)

    def _chmod(self, file: int, mode: int) -> int:
        with _Opened(file):
            _require(file, self._writable)
            os.chmod(_by_descriptor(file), mode & 0o7777)
        return 0

    def _chown(self, file: int, user: int, group: int) -> int:
        with _Opened(file):
            _require(file, self._writable)
            os.chown(_by_descriptor(file), _signed(user), _signed(group))
        return 0

    def _utime(self, caller: _Caller, folder: int, path: int, times: int, flags: int) -> int:
        file = caller.named(folder, path, flags) if path else caller.held(folder)
        with _Opened(file):
            timespecs = caller.read(times, _TIMES) if times else None
            _require(file, self._writable)
            checked(_libc.utimensat(_HERE, _by_descriptor(file).encode(), timespecs, 0))
        return 0

    def _watch(self, caller: _Caller, watcher: int, path: int, mask: int) -> int:
        file = caller.named(_HERE, path, _NO_FOLLOW if mask & _WATCH_NO_FOLLOW else 0)
        with _Opened(file):
            _require(file, self._readable)
            with _Opened(caller.copy(watcher)) as theirs:
                named = _by_descriptor(file).encode()
                return checked(
                    _libc.inotify_add_watch(theirs, named, ctypes.c_uint(mask & ~_WATCH_NO_FOLLOW))
                )


class _Caller:
    """The process that made a call and waits for its result."""

    def __init__(self, listener: int, id_: int, pid: int) -> None:
        self._listener, self._id, self._pid = listener, id_, pid

    def held(self, number: int) -> int:
        """Open the file behind a descriptor of the program."""
        if number < 0:
            raise OSError(errno.EBADF, "no such descriptor")
        try:
            return self._open(f"/proc/{self._pid}/fd/{number}", os.O_PATH)
        except FileNotFoundError:
            raise OSError(errno.EBADF, "no such descriptor") from None

    def named(self, folder: int, address: int, flags: int = 0) -> int:
        """Open the file at a path in the program's memory, relative to one of its folders."""
        path = self._path(address)
        if not path and flags & _EMPTY_PATH and folder != _HERE:
            return self.held(folder)
        how = os.O_PATH | (os.O_NOFOLLOW if flags & _NO_FOLLOW else 0)
        if path.startswith(b"/"):
            return self._open(self._as_theirs(path), how)
        if not path:
            raise OSError(errno.ENOENT, "no path")
        there = f"/proc/{self._pid}/cwd" if folder == _HERE else f"/proc/{self._pid}/fd/{folder}"
        with _Opened(self._open(there, os.O_PATH)) as base:
            return os.open(path, how | os.O_CLOEXEC, dir_fd=base)

    def read(self, address: int, size: int) -> bytes:
        with self._memory(os.O_RDONLY) as memory:
            content = os.pread(memory, size, address)
            if len(content) != size:
                raise OSError(errno.EIO, "not its memory")
        return content

    def write(self, address: int, data: bytes) -> int:
        with self._memory(os.O_WRONLY) as memory:
            if os.pwrite(memory, data, address) != len(data):
                raise OSError(errno.EIO, "not its memory")
        return 0

    def copy(self, number: int) -> int:
        """Duplicate a descriptor of the program into this process."""
        with open(f"/proc/{self._pid}/status", encoding="ascii", errors="replace") as status:
            leader = next(line.split()[1] for line in status if line.startswith("Tgid:"))
        with _Opened(os.pidfd_open(int(leader))) as process:
            self._still_there()
            return checked(_libc.syscall(_PIDFD_GETFD, process, number, 0))

    def _path(self, address: int) -> bytes:
        with self._memory(os.O_RDONLY) as memory:
            path, end, _ = os.pread(memory, _LONGEST_PATH, address).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "the path does not end")
        return path

    @contextlib.contextmanager
    def _memory(self, how: int) -> Iterator[int]:
        with _Opened(self._open(f"/proc/{self._pid}/mem", how)) as memory:
            try:
                yield memory
            except (OSError, OverflowError):
                raise OSError(errno.EFAULT, "not its memory") from None

    def _as_theirs(self, path: bytes) -> bytes:
        """Replace /proc/self and /dev/fd, which would be this process's, by the caller's."""
        for own in (b"/proc/self/", b"/proc/thread-self/"):
            if path.startswith(own):
                return b"/proc/%d/%s" % (self._pid, path[len(own) :])
        if path.startswith(b"/dev/fd/"):
            return b"/proc/%d/fd/%s" % (self._pid, path[len(b"/dev/fd/") :])
        return path

    def _open(self, path: str | bytes, how: int) -> int:
        opened = os.open(path, how | os.O_CLOEXEC)
        try:
            self._still_there()  # else the process id may belong to another by now
        except BaseException:
            os.close(opened)
            raise
        return opened

    def _still_there(self) -> None:
        fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", self._id))


class _Opened:
    """Context manager that closes a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _require(file: int, roots: Sequence[bytes]) -> None:
    """Refuse a file outside these folders; pipes, sockets and memory files without a path are
    allowed."""
    status, where = os.fstat(file), os.readlink(os.fsencode(_by_descriptor(file)))
    pipe = stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode)
    memory = status.st_nlink == 0 and where.startswith(b"/memfd:")
    if memory or (pipe and not where.startswith(b"/")):
        return
    if not any(where == root or where.startswith(root + b"/") for root in roots):
        raise OSError(errno.EPERM, "not in the sandbox")


def _by_descriptor(file: int) -> str:
    return f"/proc/self/fd/{file}"


def _signed(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def _names() -> bytes:
    kernel = os.uname()
    fields = [kernel.sysname, kernel.release, kernel.version, kernel.machine]
    system, *rest = (os.fsencode(field) for field in fields)
    return b"".join(
        field[: _FIELD - 1].ljust(_FIELD, b"\0") for field in (system, _NAME, *rest, b"")
    )
