"""What a program of a run can see and do, with the means of the operating system.

Bubblewrap gives it a view of the machine in which there is its workspace, its home, the programs
of the system, and nothing of ours: no database, no blobs, no tokens, no other run, no other
process. When the run ends, or the worker dies, everything in it ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from remit.errors import Unsupported
from remit.runtime import cgroups, seccomp
from remit.runtime.programs import Parts, parts_of

#: What programs need of the system; read only.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
_SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
)
#: Address space; programs reserve far more of it than they use.
MOST_MEMORY = 32 << 30
MOST_PROCESSES = 1024
LARGEST_FILE = 8 << 30

_NAMESPACES = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "remit", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
#: The first that works here is taken. Root can do without a user namespace, others cannot.
_USER_NAMESPACES = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())
_FILTER_FD = "9"
#: Bubblewrap reads the filter from a descriptor, which a child is given only by a shell.
_WITH_FILTER = ("/bin/sh", "-c", f'exec "$@" {_FILTER_FD}<"$0"')


@dataclass(frozen=True)
class Found:
    """What this machine can enforce."""

    bubblewrap: str | None
    reason: str
    user_namespace: tuple[str, ...] = ()
    filter: str | None = None
    prlimit: str | None = None

    @property
    def usable(self) -> bool:
        return self.bubblewrap is not None

    @property
    def enforced(self) -> list[str]:
        """For a person: what holds a run here."""
        if not self.usable:
            return []
        held = [
            "files: its workspace and home, the system read only, nothing else",
            "processes: it sees and signals only its own, and they end with it",
            "environment: nothing is inherited",
            "rights: no capabilities",
        ]
        if "--disable-userns" in self.user_namespace:
            held.append("namespaces: it cannot make new ones")
        if self.filter:
            held.append("kernel: mounts, modules, keyrings, bpf and io_uring are refused")
        if self.prlimit:
            held.append("limits: address space, size of a file, no core dumps")
        if self._bounds_processes:
            held.append("limits: number of processes")
        if cgroups.MEMORY in cgroups.look().bound:
            held.append("memory: of all its processes together, if memoryMb is set")
        return held

    @property
    def _bounds_processes(self) -> bool:
        """By its group; or by a limit, which does not bind root."""
        by_limit = self.prlimit is not None and os.geteuid() != 0
        return by_limit or cgroups.PROCESSES in cgroups.look().bound

    @property
    def not_enforced(self) -> list[str]:
        """For a person: what a run can do here all the same."""
        if not self.usable:
            return ["everything: a program would have what the worker's user has"]
        free = [
            "network: it reaches what the worker reaches, this machine's ports included",
            "processor time: its processes share the machine with all others",
        ]
        if cgroups.MEMORY not in cgroups.look().bound:
            free.append("memory of all its processes together: there is no cgroup for it")
        if not self.filter:
            free.append("kernel: all calls are open that need no rights")
        if not self.prlimit:
            free.append("limits: prlimit is not installed")
        if not self._bounds_processes:
            free.append("number of processes: no cgroup, and the limit does not bind root")
        return free


@lru_cache(maxsize=1)
def look() -> Found:
    """Whether a sandbox works here; tried, not guessed."""
    program = shutil.which("bwrap")
    if program is None:
        return Found(None, "bubblewrap (bwrap) is not installed")
    said = "no reason"
    filters = [seccomp.file(), None] if seccomp.file() else [None]
    for user in _USER_NAMESPACES:
        for filter_ in filters:
            found = Found(program, "bubblewrap", user, filter_, shutil.which("prlimit"))
            command = [*_beginning(found), *_system(), "--", "/usr/bin/true"]
            try:
                tried = subprocess.run(
                    command, capture_output=True, timeout=10, check=False, env={}, cwd="/"
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return Found(None, f"bubblewrap does not start ({type(error).__name__})")
            if tried.returncode == 0:
                return found
            said = (tried.stderr.decode(errors="replace").strip().splitlines() or [said])[-1]
    return Found(None, f"bubblewrap does not work here ({said})")


def wrap(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    workspace: Path,
    home: Path,
    cwd: Path,
    hidden: Sequence[Path] = (),
    lent: Mapping[Path, Path] | None = None,
) -> list[str]:
    """The command that runs `argv` inside; refuses when nothing would hold it.

    `hidden` is not shown even where it lies in something that is. `lent` are single files, each
    with its place inside.
    """
    found = look()
    if not found.usable:
        raise Unsupported(
            f"Programs of agents cannot be held in a sandbox here: {found.reason}.",
            "Install bubblewrap, or give the agent full_access and set sandbox to full.",
            code="no_sandbox",
        )
    command = [*_beginning(found), "--share-net", *_system()]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    shown = parts_of(argv[0], env.get("PATH", os.defpath))
    command += _shown(shown, hidden)
    for secret in hidden:
        if secret.is_dir() and (_of_system(secret) or shown.places.intersection(secret.parents)):
            command += ["--tmpfs", str(secret)]
    for own in (workspace, home):
        command += ["--bind", str(own), str(own)]
    for file, place in (lent or {}).items():
        command += ["--bind", str(file), str(place)]
    return [*command, "--remount-ro", "/", "--chdir", str(cwd), "--", *limits(argv)]


def limits(argv: Sequence[str]) -> list[str]:
    """The same command with bounds on what it can take from the machine."""
    program = shutil.which("prlimit")
    if program is None:
        return list(argv)
    return [
        program,
        f"--as={MOST_MEMORY}",
        f"--nproc={MOST_PROCESSES}",
        f"--fsize={LARGEST_FILE}",
        "--core=0",
        "--",
        *argv,
    ]


def tie_to_parent(argv: Sequence[str]) -> list[str]:
    """The same command, killed when we die; for programs that no sandbox holds."""
    program = shutil.which("setpriv")
    return list(argv) if program is None else [program, "--pdeathsig", "KILL", "--", *argv]


def end_together(argv: Sequence[str]) -> list[str]:
    """The same command, which sees the machine as we do, but whatever it starts ends with it; and
    it ends with us. For programs that are not an agent's."""
    together = _together()
    return tie_to_parent(argv) if together is None else [*together, "--", *argv]


@lru_cache(maxsize=1)
def _together() -> tuple[str, ...] | None:
    program = shutil.which("bwrap")
    if program is None:
        return None
    alike = ("--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent")
    for user in ((), ("--unshare-user",)) if os.geteuid() == 0 else (("--unshare-user",),):
        command = (program, *user, *alike)
        try:
            tried = subprocess.run(
                [*command, "--", "/bin/true"], capture_output=True, timeout=10, check=False, env={}
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if tried.returncode == 0:
            return command
    return None


def _beginning(found: Found) -> list[str]:
    assert found.bubblewrap is not None
    command = [found.bubblewrap, *found.user_namespace, *_NAMESPACES]
    if found.filter is None:
        return command
    return [*_WITH_FILTER, found.filter, *command, "--seccomp", _FILTER_FD]


def _system() -> list[str]:
    command: list[str] = []
    for path in _SYSTEM:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            command += ["--ro-bind", path, path]
    for path in _SYSTEM_FILES:
        if os.path.exists(path):
            command += ["--ro-bind", path, path]
    return command


def _shown(parts: Parts, hidden: Sequence[Path]) -> list[str]:
    """A program that is not part of the system; never something that is to be hidden."""
    command: list[str] = []
    for place in parts.outermost():
        if not _of_system(place) and not _inside(place, hidden):
            command += ["--ro-bind", str(place), str(place)]
    for link, target in parts.loose_links().items():
        if not _of_system(link) and not _inside(link, hidden):
            command += ["--symlink", target, str(link)]
    return command


def _of_system(path: Path) -> bool:
    return _inside(path, [Path(one) for one in _SYSTEM])


def _inside(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == one or one in path.parents for one in folders)
