"""A hostile program: tries to get out of where it is, and says what it got at.

Started with the path of a JSON file that tells where things are on the host; prints one JSON
object, attempt by attempt, true where it succeeded. Only the standard library: it is run as is.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import resource
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
ARM = platform.machine() == "aarch64"
CLONE_NEWUSER = 0x10000000
MS_BIND = 4096
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
PR_GET_NO_NEW_PRIVS = 39


def call(x86: int, arm: int, *arguments: Any) -> int:
    return int(LIBC.syscall(ctypes.c_long(arm if ARM else x86), *arguments))


def can_read(path: str) -> bool:
    return b"canary" in Path(path).read_bytes()


def can_write(path: str) -> bool:
    Path(path).write_text("I was here")
    return True


def through_link(target: str) -> bool:
    link = Path("link-out")
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    return can_read(str(link))


def hard_link(target: str) -> bool:
    link = Path("hard-link")
    link.unlink(missing_ok=True)
    os.link(target, link)
    return can_read(str(link))


def signals(pid: int) -> bool:
    os.kill(pid, 0)
    return True


def attaches(pid: int) -> bool:
    if LIBC.ptrace(PTRACE_ATTACH, pid, 0, 0) != 0:
        return False
    os.waitpid(pid, 0x40000000)
    LIBC.ptrace(PTRACE_DETACH, pid, 0, 0)
    return True


def connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    return True


def sends(path: str) -> bool:
    """By a socket that it did not ask for as such."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        return ours.sendto(b"x", path) == 1


def changes_mode(path: str) -> bool:
    os.chmod(path, 0o604)
    return True


def changes_mode_by_descriptor(path: str) -> bool:
    """Not opened to read or write, only to be named."""
    opened = os.open(path, os.O_PATH)
    os.chmod(f"/proc/self/fd/{opened}", 0o604)
    os.close(opened)
    return True


def changes_mode_by_link(path: str) -> bool:
    link = Path("mode-link")
    link.unlink(missing_ok=True)
    link.symlink_to(path)
    return changes_mode(str(link))


def changes_owner(path: str) -> bool:
    os.chown(path, os.getuid(), os.getgid())
    return True


def changes_time(path: str) -> bool:
    os.utime(path, (1, 1))
    return True


def changes_attribute(path: str) -> bool:
    os.setxattr(path, "user.remit", b"x")
    return True


def changes_mode_of_system() -> bool:
    """What it may read, and may have open; as it is, should it succeed."""
    with open("/usr/bin/env", "rb") as program:
        os.fchmod(program.fileno(), os.fstat(program.fileno()).st_mode)
    return True


def watches(path: str) -> bool:
    watcher = LIBC.inotify_init1(0)
    return bool(LIBC.inotify_add_watch(watcher, path.encode(), 0x100) >= 0)


def limits(pid: int) -> bool:
    resource.prlimit(pid, resource.RLIMIT_CPU, resource.prlimit(pid, resource.RLIMIT_CPU))
    return True


def slows(pid: int) -> bool:
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
    return True


def has_rights() -> bool:
    header = ctypes.create_string_buffer((0x20080522).to_bytes(4, "little"), 8)
    rights = ctypes.create_string_buffer(24)
    assert LIBC.capget(header, rights) == 0
    return any(rights.raw)


def in_child(work: Callable[[], bool]) -> bool:
    """In a process of its own, because it cannot be undone."""
    child = os.fork()
    if child == 0:
        try:
            done = work()
        except BaseException:
            done = False
        os._exit(0 if done else 1)
    return os.waitpid(child, 0)[1] == 0


def mounts() -> bool:
    return in_child(
        lambda: (
            LIBC.unshare(0x00020000) == 0 and LIBC.mount(b"/", b"/mnt", None, MS_BIND, None) == 0
        )
    )


def own_namespace() -> bool:
    return in_child(lambda: LIBC.unshare(CLONE_NEWUSER) == 0)


def clones_namespace() -> bool:
    """The same by another call, past what looks only at unshare."""
    child = call(56, 220, CLONE_NEWUSER | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return child > 0 and os.waitpid(child, 0)[1] == 0


def changes_root() -> bool:
    return in_child(lambda: LIBC.chroot(b".") == 0)


def makes_device() -> bool:
    place = Path("device")
    place.unlink(missing_ok=True)
    os.mknod(place, 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    place.unlink()
    return True


def keyring() -> bool:
    return call(248, 217, b"user", b"remit-test", b"x", 1, ctypes.c_int(-3)) > 0


def bpf_map() -> bool:
    attributes = ctypes.create_string_buffer(
        (2).to_bytes(4, "little") + b"\4\0\0\0" * 2 + b"\1\0\0\0", 128
    )
    fd = call(321, 280, 0, attributes, 128)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def io_uring() -> bool:
    fd = call(425, 425, 4, ctypes.create_string_buffer(256))
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def much_memory() -> bool:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    mmap.mmap(-1, 40 << 30, flags=flags).close()
    return True


def large_file() -> bool:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("large", "wb") as file:
        file.truncate(9 << 30)
    os.unlink("large")
    return True


def many_processes() -> bool:
    children = []
    try:
        for _ in range(1100):
            child = os.fork()
            if child == 0:
                os.read(0, 1)  # until the end of its input, which does not come
                os._exit(0)
            children.append(child)
        return True
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)


def attempts(host: dict[str, Any]) -> dict[str, Callable[[], bool]]:
    pid = host["pid"]
    return {
        "read the database": lambda: can_read(host["database"]),
        "read a blob": lambda: can_read(host["blob"]),
        "read the board's token": lambda: can_read(host["token"]),
        "read another run's workspace": lambda: can_read(host["other_workspace"]),
        "read another agent's home": lambda: can_read(host["other_home"]),
        "read a secret of the system": lambda: bool(Path("/etc/shadow").read_bytes()),
        "list the instance's folder": lambda: "remit.db" in os.listdir(host["home"]),
        "follow a symlink out": lambda: through_link(host["token"]),
        "hard link a file from outside": lambda: hard_link(host["token"]),
        "write outside": lambda: can_write(host["outside"]),
        "see a process of the host": lambda: (
            str(pid) in os.listdir("/proc")
            and b"host-process" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ),
        "read the environment of a process": lambda: can_read(f"/proc/{pid}/environ"),
        "go through the root of a process": lambda: can_read(f"/proc/{pid}/root{host['token']}"),
        "read the environment of the worker": lambda: can_read(f"/proc/{host['worker']}/environ"),
        "signal a process of the host": lambda: signals(pid),
        "attach to a process of the host": lambda: attaches(pid),
        "inherit a variable": lambda: "canary" in os.environ.get("HOST_SECRET", ""),
        "connect to a socket of the host": lambda: connects(host["socket"]),
        "send to a socket of the host": lambda: sends(host["datagrams"]),
        "connect to an abstract socket of the host": lambda: connects("\0" + host["abstract"]),
        "send to an abstract socket of the host": lambda: sends("\0" + host["letters"]),
        "change the mode of a file": lambda: changes_mode(host["changed"]),
        "change a mode by descriptor": lambda: changes_mode_by_descriptor(host["changed"]),
        "change a mode through a symlink": lambda: changes_mode_by_link(host["changed"]),
        "change a mode of the system": changes_mode_of_system,
        "change the owner of a file": lambda: changes_owner(host["changed"]),
        "change the time of a file": lambda: changes_time(host["changed"]),
        "change an attribute of a file": lambda: changes_attribute(host["changed"]),
        "watch a folder of the host": lambda: watches(str(Path(host["blob"]).parent)),
        "limit a process of the host": lambda: limits(pid),
        "slow a process of the host": lambda: slows(pid),
        "limit the worker": lambda: limits(host["worker"]),
        "use memory of the host": lambda: LIBC.shmget(host["memory"], 0, 0) >= 0,
        "have rights of root": has_rights,
        "know the name of the host": lambda: os.uname().nodename == host["name"],
        "gain rights by a program": lambda: LIBC.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0,
        "mount": mounts,
        "make a user namespace": own_namespace,
        "clone into a user namespace": clones_namespace,
        "change the root": changes_root,
        "make a device": makes_device,
        "use a keyring": keyring,
        "use bpf": bpf_map,
        "use io_uring": io_uring,
        "take much memory": much_memory,
        "write a large file": large_file,
        "start many processes": many_processes,
    }


def main() -> None:
    host = json.loads(Path(sys.argv[1]).read_text())
    outcomes: dict[str, bool] = {}
    for name, attempt in attempts(host).items():
        try:
            outcomes[name] = bool(attempt())
        except (OSError, ValueError, MemoryError):
            outcomes[name] = False
    Path("workspace-is-writable").write_text("yes")
    (Path(os.environ["HOME"]) / "home-is-writable").write_text("yes")
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main()
