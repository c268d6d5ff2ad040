"""Seccomp filter: the system calls that a program in the sandbox cannot make.

A deny list and not an allow list, because the programs of agents are many and unknown. It has the
kernel interfaces that no such program needs and that sandboxes were escaped through before: mounts,
namespaces, modules, keyrings, bpf, io_uring. Namespaces restrict the rest, or, without them, the
steps that `landlock.calls` adds to this filter.
"""

import errno
import os
import platform
import struct
from collections.abc import Sequence
from functools import lru_cache

#: One BPF instruction: the operation, the jumps if its condition is true and if false, the operand.
Step = tuple[int, int, int, int]

#: Denied calls by name, with their numbers on x86_64 and aarch64.
_DENIED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
#: By machine: the column above, the kernel's constant for the architecture, the number of `clone`.
MACHINES = {"x86_64": (0, 0xC000003E, 56), "aarch64": (1, 0xC00000B7, 220)}
_CLONE3 = 435
_NEW_USER_NAMESPACE = 0x10000000
#: Numbers from here on are the x32 ABI, a second way to make the same calls on x86_64.
_X32 = 0x40000000

LOAD, EQUALS, _AT_LEAST, _HAS_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
ALLOW, _KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000


def program(machine: str, more: Sequence[Step] = ()) -> bytes | None:
    """Return the filter in the kernel's format; None for an unknown architecture.

    The steps of `more` begin and end with the number of the call in the accumulator.
    """
    if machine not in MACHINES:
        return None
    column, architecture, clone = MACHINES[machine]
    refused = (RETURN, 0, 0, ERROR | errno.EPERM)
    unknown = (RETURN, 0, 0, ERROR | errno.ENOSYS)
    steps: list[Step] = [
        (LOAD, 0, 0, _ARCHITECTURE),
        (EQUALS, 1, 0, architecture),
        (RETURN, 0, 0, _KILL),
        (LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        unknown,
        # The flags of clone3 are in memory, which a filter cannot read; libraries then use clone.
        (EQUALS, 0, 1, _CLONE3),
        unknown,
    ]
    for numbers in _DENIED.values():
        steps += [(EQUALS, 0, 1, numbers[column]), refused]
    steps += [
        *more,
        (EQUALS, 0, 3, clone),
        (LOAD, 0, 0, _FIRST_ARGUMENT),
        (_HAS_BITS, 0, 1, _NEW_USER_NAMESPACE),
        refused,
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


@lru_cache(maxsize=1)
def file() -> str | None:
    """Return a path under which child processes can open the filter; None without one."""
    filter_ = program(platform.machine())
    if filter_ is None or not hasattr(os, "memfd_create"):
        return None
    try:
        held = os.memfd_create("remit-seccomp")
        os.write(held, filter_)
    except OSError:
        return None
    return f"/proc/{os.getpid()}/fd/{held}"
