"""The filters of the sandbox, interpreted as the kernel does, on both machines.

The numbers are written down a second time, from the kernel's tables, so that one that is missing or
wrong in the filter is noticed on a machine where nothing else would show it.
"""

import errno
import struct

import pytest

from remit.runtime.sandbox import seccomp
from remit.runtime.sandbox.landlock import calls

X86, ARM = "x86_64", "aarch64"
ARCHITECTURE = {X86: 0xC000003E, ARM: 0xC00000B7}
#: Other ways into the same kernel: i386 and 32-bit ARM.
OTHERS = {X86: 0x40000003, ARM: 0x40000028}
#: On x86_64 and on aarch64.
DENIED = {
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
CLONE = {X86: 56, ARM: 220}
CLONE3 = 435
#: A few that every program makes.
USUAL = {
    X86: {"read": 0, "write": 1, "mmap": 9, "execve": 59, "exit": 60, "openat": 257, "wait4": 61},
    ARM: {"read": 63, "write": 64, "mmap": 222, "execve": 221, "exit": 93, "openat": 56},
}
NEW_NAMESPACES = {
    "user": 0x10000000,
    "user, with a signal": 0x10000000 | 17,
    "user and pid": 0x10000000 | 0x20000000,
}
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
#: The one machine has numbers of its own for the same calls from here on.
X32 = 0x40000000


def judged(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What the kernel answers: classic BPF over `struct seccomp_data`."""
    given = [*arguments, *([0] * (6 - len(arguments)))]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *given)
    steps = list(struct.iter_unpack("=HBBI", program))
    at = held = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:  # load a word
                (held,) = struct.unpack_from("=I", data, value)
            case 0x15:  # equal
                at += yes if held == value else no
            case 0x35:  # greater or equal
                at += yes if held >= value else no
            case 0x25:  # greater
                at += yes if held > value else no
            case 0x45:  # has one of these bits
                at += yes if held & value else no
            case 0x05:  # go on elsewhere
                at += value
            case 0x54:  # only these bits
                held &= value
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"step {at - 1} is {code:#x}")


def refused(code: int) -> int:
    return ERROR | code


def filters(machine: str) -> dict[str, bytes]:
    """The one beside namespaces, and the longer one where there are none."""
    found = {"bubblewrap": seccomp.program(machine), "landlock": calls.program(machine)}
    assert None not in found.values()
    return {name: program for name, program in found.items() if program is not None}


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("machine", [X86, ARM])
def test_every_call_is_judged_as_the_documents_say(machine: str, kind: str) -> None:
    program, architecture = filters(machine)[kind], ARCHITECTURE[machine]
    for name, numbers in DENIED.items():
        number = numbers[(X86, ARM).index(machine)]
        assert judged(program, architecture, number) == refused(errno.EPERM), name
        # The same call under another number, and from another architecture.
        assert judged(program, architecture, number | X32) == refused(errno.ENOSYS), name
        for other in (OTHERS[machine], ARCHITECTURE[ARM if machine == X86 else X86], 0):
            assert judged(program, other, number) == KILL, name
    for name, number in USUAL[machine].items():
        assert judged(program, architecture, number) == ALLOW, name
        assert judged(program, architecture, number | X32) == refused(errno.ENOSYS), name
        assert judged(program, OTHERS[machine], number) == KILL, name
    # What a child shares is in a register for `clone`, and in memory for `clone3`.
    assert judged(program, architecture, CLONE3) == refused(errno.ENOSYS)
    for name, flags in NEW_NAMESPACES.items():
        assert judged(program, architecture, CLONE[machine], flags) == refused(errno.EPERM), name
    for flags in (17, 0x01200011, 0x003D0F00):  # a child, a child of libc, a thread
        assert judged(program, architecture, CLONE[machine], flags) == ALLOW


@pytest.mark.parametrize("machine", [X86, ARM])
def test_beside_namespaces_nothing_else_is_refused(machine: str) -> None:
    """A list of what is denied: programs of agents are many and unknown."""
    program, architecture = filters(machine)["bubblewrap"], ARCHITECTURE[machine]
    denied = {numbers[(X86, ARM).index(machine)] for numbers in DENIED.values()}
    for number in range(600):
        if number not in denied | {CLONE3}:
            assert judged(program, architecture, number) == ALLOW, number


#: What the processes of a user share by number, on x86_64 and on aarch64.
SHARED = {
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
#: A call about a process: with these arguments it is about oneself.
ON_ONESELF = {
    "ioprio_set": ((251, 30), (1, 0)),
    "prlimit64": ((302, 261), (0,)),
    "sched_setaffinity": ((203, 122), (0,)),
    "sched_setattr": ((314, 274), (0,)),
    "sched_setparam": ((142, 118), (0,)),
    "sched_setscheduler": ((144, 119), (0,)),
    "setpriority": ((141, 140), (0, 0)),
}
SOCKET, PAIR = (41, 198), (53, 199)
LOCAL, INTERNET, STREAM, DATAGRAMS = 1, 2, 1, 2


@pytest.mark.parametrize("machine", [X86, ARM])
def test_without_namespaces_no_other_process_of_the_user_is_reached(machine: str) -> None:
    program, architecture = filters(machine)["landlock"], ARCHITECTURE[machine]
    column = (X86, ARM).index(machine)

    def answer(numbers: tuple[int, int], *arguments: int) -> int:
        return judged(program, architecture, numbers[column], *arguments)

    for name, numbers in SHARED.items():
        assert answer(numbers) == refused(errno.EPERM), name
    for name, (numbers, own) in ON_ONESELF.items():
        assert answer(numbers, *own) == ALLOW, name
        for at in range(len(own)):
            others = [*own]
            others[at] += 4711
            assert answer(numbers, *others) == refused(errno.EPERM), name
    # The sockets of a desktop or of containers are files; the network is not the filter's.
    assert answer(SOCKET, LOCAL, STREAM) == refused(errno.EACCES)
    assert answer(SOCKET, INTERNET, STREAM) == ALLOW
    assert answer(PAIR, LOCAL, STREAM) == ALLOW
    assert answer(PAIR, LOCAL, DATAGRAMS) == refused(errno.EACCES)
    assert answer(PAIR, LOCAL, DATAGRAMS | 0o2000000) == refused(errno.EACCES)
