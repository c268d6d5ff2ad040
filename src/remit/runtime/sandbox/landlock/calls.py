"""Additions to a program's seccomp filter in a sandbox without namespaces.

Landlock checks opening, making, moving and removing files, signals and tracing. All other calls
that reach files or processes of the same user are refused here, or brokered by the guard.
"""

import ctypes
import errno
import platform
import struct

from remit.runtime.sandbox import seccomp
from remit.runtime.sandbox.landlock.rules import checked
from remit.runtime.sandbox.seccomp import ALLOW, EQUALS, ERROR, LOAD, MACHINES, RETURN, Step

#: Numbers of a call on x86_64 and on aarch64, which lacks the older calls.
_Numbers = tuple[int | None, int | None]

#: Brokered calls: the guard checks their file, and performs or refuses them.
FAVOURS: dict[str, _Numbers] = {
    "chmod": (90, None),
    "chown": (92, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "inotify_add_watch": (254, 27),
    "lchown": (94, None),
    "uname": (63, 160),
    "utimensat": (280, 88),
}
#: Calls refused as if the file system or the kernel did not support them.
_ABSENT: dict[str, tuple[int, _Numbers]] = {
    "file_setattr": (errno.ENOSYS, (469, 469)),
    "fremovexattr": (errno.EOPNOTSUPP, (199, 16)),
    "fsetxattr": (errno.EOPNOTSUPP, (190, 7)),
    "futimesat": (errno.ENOSYS, (261, None)),
    "lremovexattr": (errno.EOPNOTSUPP, (198, 15)),
    "lsetxattr": (errno.EOPNOTSUPP, (189, 6)),
    "removexattr": (errno.EOPNOTSUPP, (197, 14)),
    "removexattrat": (errno.ENOSYS, (466, 466)),
    "setxattr": (errno.EOPNOTSUPP, (188, 5)),
    "setxattrat": (errno.ENOSYS, (463, 463)),
    "utime": (errno.ENOSYS, (132, None)),
    "utimes": (errno.ENOSYS, (235, None)),
}
#: Calls on IPC objects that a user's processes share (memory, semaphores, queues), and on watching
#: whole file systems.
_REFUSED: dict[str, _Numbers] = {
    "fanotify_init": (300, 262),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
}
#: Calls allowed on the caller itself only, else a program could slow the worker down, or set a
#: limit at which the kernel kills it.
_ON_ONESELF: dict[str, tuple[dict[int, int], _Numbers]] = {
    "ioprio_set": ({0: 1, 1: 0}, (251, 30)),
    "prlimit64": ({0: 0}, (302, 261)),
    "sched_setaffinity": ({0: 0}, (203, 122)),
    "sched_setattr": ({0: 0}, (314, 274)),
    "sched_setparam": ({0: 0}, (142, 118)),
    "sched_setscheduler": ({0: 0}, (144, 119)),
    "setpriority": ({0: 0, 1: 0}, (141, 140)),
}
_SOCKET: _Numbers = (41, 198)
_SOCKETPAIR: _Numbers = (53, 199)
_PRCTL: _Numbers = (157, 167)
_IOCTL: _Numbers = (16, 29)
_LOCAL, _STREAM, _PACKETS = 1, 1, 5
_SET_DUMPABLE = 4
#: ioctls that change flags, encryption and verity of a file even through a read-only descriptor.
_ON_FILES = (0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685, 0x800C6613)

_AND = 0x54
_ASK = 0x7FC00000
_SET_FILTER, _NEW_LISTENER = 1, 8
_SECCOMP = {"x86_64": 317, "aarch64": 277}


def program(machine: str, *, network: bool = True) -> bytes | None:
    """Return the whole filter, or None for an unknown architecture."""
    if machine not in MACHINES:
        return None
    column = MACHINES[machine][0]
    steps: list[Step] = []

    def on(numbers: _Numbers, *then: Step) -> None:
        number = numbers[column]
        if number is not None:
            steps.extend([(EQUALS, 0, len(then), number), *then])

    for numbers in FAVOURS.values():
        on(numbers, (RETURN, 0, 0, _ASK))
    for error, numbers in _ABSENT.values():
        on(numbers, _fails(error))
    for numbers in _REFUSED.values():
        on(numbers, _fails(errno.EPERM))
    for wanted, numbers in _ON_ONESELF.values():
        on(numbers, *_only_if(wanted))
    # Local sockets are refused: those of a desktop or of containers obey any process that connects.
    socket = (_argument(0), (EQUALS, 0, 1, _LOCAL), _fails(errno.EACCES), _ALLOWED)
    on(_SOCKET, *(socket if network else (_fails(errno.EACCES),)))
    # Socket pairs are allowed except for datagrams, which could be connected to another socket.
    on(
        _SOCKETPAIR,
        *(_argument(0), (EQUALS, 0, 5, _LOCAL)),
        *(_argument(1), (_AND, 0, 0, 0xF), (EQUALS, 2, 0, _STREAM), (EQUALS, 1, 0, _PACKETS)),
        *(_fails(errno.EACCES), _ALLOWED),
    )
    # A program that is not dumpable cannot be brokered by the guard, so the call only pretends.
    on(_PRCTL, _argument(0), (EQUALS, 0, 1, _SET_DUMPABLE), _fails(0), _ALLOWED)
    refused = [(EQUALS, len(_ON_FILES) - at, 0, request) for at, request in enumerate(_ON_FILES)]
    on(_IOCTL, _argument(1), *refused, _ALLOWED, _fails(errno.ENOTTY))
    return seccomp.program(machine, steps)


def install(*, network: bool = True) -> int:
    """Install the filter for this process; returns the listener descriptor of brokered calls."""
    machine = platform.machine()
    filter_ = program(machine, network=network)
    if filter_ is None:
        raise OSError(errno.ENOSYS, f"the calls of {machine} are not known")
    held = ctypes.create_string_buffer(filter_, len(filter_))
    sock_fprog = struct.pack("@HP", len(filter_) // 8, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    return checked(libc.syscall(_SECCOMP[machine], _SET_FILTER, _NEW_LISTENER, sock_fprog))


def name_of(number: int) -> str:
    """The name of a brokered system call."""
    column = MACHINES[platform.machine()][0]
    return next(name for name, numbers in FAVOURS.items() if numbers[column] == number)


def _only_if(wanted: dict[int, int]) -> list[Step]:
    """Return steps that allow a call only with these values of its arguments."""
    steps: list[Step] = [_ALLOWED]
    for argument, value in reversed(wanted.items()):
        steps = [_argument(argument), (EQUALS, 0, len(steps), value), *steps]
    return [*steps, _fails(errno.EPERM)]


def _argument(number: int) -> Step:
    return (LOAD, 0, 0, 16 + 8 * number)


def _fails(error: int) -> Step:
    return (RETURN, 0, 0, ERROR | error)


_ALLOWED: Step = (RETURN, 0, 0, ALLOW)
