"""Sandbox policy: what a program of a run can see and do, enforced by the operating system.

A program has its workspace, its home and the programs of the system, and nothing of Remit: no
database, no blobs, no tokens, no other run, no other process. When the run ends or the worker dies,
all its processes end. Bubblewrap gives it a mount namespace without anything else; where that does
not work, Landlock denies the rest; where neither works, the program is not started.
"""

import os
import re
import resource
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from remit.errors import Unsupported
from remit.runtime.sandbox import bubblewrap, cgroups
from remit.runtime.sandbox.bubblewrap import Bubblewrap
from remit.runtime.sandbox.landlock import backend as landlock
from remit.runtime.sandbox.landlock.backend import Landlock
from remit.runtime.sandbox.mounts import NOTHING_MORE, Given, View, parts_of

#: Limit of the address space, of which programs reserve far more than they use.
MOST_MEMORY = 32 << 30
MOST_PROCESSES = 1024
LARGEST_FILE = 8 << 30
_LIMITS = {
    resource.RLIMIT_AS: MOST_MEMORY,
    resource.RLIMIT_NPROC: MOST_PROCESSES,
    resource.RLIMIT_FSIZE: LARGEST_FILE,
    resource.RLIMIT_CORE: 0,
}
_STEERING = re.compile(
    "LD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*"
    "|ENV|BASH_ENV|BASH_FUNC.*|BASHOPTS|SHELLOPTS|PS4|IFS",
    re.DOTALL,
)
_ENV = "/usr/bin/env"
#: Files named in a refusal.
_MOST_NAMED = 3


@dataclass(frozen=True)
class Found:
    """The sandbox of this machine, and the restrictions that it can enforce."""

    sandbox: Bubblewrap | Landlock | None
    #: Why it is not bubblewrap, or why there is none at all.
    reason: str = ""
    prlimit: str | None = None

    @property
    def usable(self) -> bool:
        return self.sandbox is not None

    @property
    def name(self) -> str:
        """The sandbox here, for a person."""
        if isinstance(self.sandbox, Landlock):
            return f"Landlock {self.sandbox.version}, because {self.reason},"
        return self.sandbox.program if self.sandbox else "nothing"

    @property
    def enforced(self) -> list[str]:
        """The restrictions on runs here, for a person."""
        if self.sandbox is None:
            return []
        held = [
            "files: its workspace and home, the system read only, nothing else",
            "processes: it sees and signals only its own, and they end with it",
            "environment: nothing is inherited",
            "rights: no capabilities",
        ]
        if isinstance(self.sandbox, Landlock):
            held[1] = "processes: it signals only its own, reads of itself, and they end with it"
            held.append("sockets: it cannot connect to Unix sockets of others")
        elif self.sandbox.scoped:
            held.append("sockets: it cannot connect to Unix sockets of others, nor abstract ones")
        if isinstance(self.sandbox, Landlock) or "--disable-userns" in self.sandbox.user_namespace:
            held.append("namespaces: it cannot make new ones")
        if isinstance(self.sandbox, Landlock) or self.sandbox.filter:
            held.append("kernel: mounts, modules, keyrings, bpf and io_uring are refused")
        if self._has_limits:
            held.append("limits: address space, size of a file, no core dumps")
        if self._bounds_processes:
            held.append("limits: number of processes")
        if cgroups.MEMORY in cgroups.look().bound:
            held.append("memory: of all its processes together, if memoryMb is set")
        return held

    @property
    def _has_limits(self) -> bool:
        return isinstance(self.sandbox, Landlock) or self.prlimit is not None

    @property
    def _bounds_processes(self) -> bool:
        """Return whether a cgroup, or a limit that spares root, bounds the number of processes."""
        by_limit = self._has_limits and os.geteuid() != 0
        return by_limit or cgroups.PROCESSES in cgroups.look().bound

    @property
    def not_enforced(self) -> list[str]:
        """The gaps in the sandbox here, for a person."""
        if self.sandbox is None:
            return ["everything: a program would have what the worker's user has"]
        free = [
            "network: it reaches what the worker reaches, this machine's ports included",
            "processor time: its processes share the machine with all others",
        ]
        if isinstance(self.sandbox, Landlock):
            free += [
                "names: with the path of a file elsewhere it can look up its owner and its size",
                "numbers: it can find out which process ids are in use, but not by whom",
            ]
        if cgroups.MEMORY not in cgroups.look().bound:
            free.append("memory of all its processes together: there is no cgroup for it")
        if isinstance(self.sandbox, Bubblewrap) and not self.sandbox.scoped:
            free.append("sockets: it can connect to abstract Unix sockets of this machine")
        if isinstance(self.sandbox, Bubblewrap) and not self.sandbox.filter:
            free.append("kernel: system calls that need no privileges are not filtered")
        if not self._has_limits:
            free.append("limits: prlimit is not installed")
        if not self._bounds_processes:
            free.append("number of processes: no cgroup, and the limit does not bind root")
        return free


@lru_cache(maxsize=1)
def look() -> Found:
    """Find the sandbox that works here, by trying."""
    first = bubblewrap.look()
    if isinstance(first, Bubblewrap):
        return Found(first, prlimit=shutil.which("prlimit"))
    second = landlock.look()
    if isinstance(second, Landlock):
        return Found(second, first)
    return Found(None, f"{first}, and {second}")


def wrap(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    workspace: Path,
    home: Path,
    cwd: Path,
    hidden: Sequence[Path] = (),
    lent: Mapping[Path, Path] | None = None,
    view: View = NOTHING_MORE,
) -> list[str]:
    """Return the command that runs `argv` in the sandbox; refuses where there is none.

    `hidden` folders are not visible even inside visible ones. `lent` are single files, each with
    its path inside. `view` adds folders, and may take the network away. The command is to be
    started with `outer(env)`.
    """
    trial = look()
    if trial.sandbox is None:
        raise Unsupported(
            f"Programs of agents cannot be held in a sandbox here: {trial.reason}.",
            "Install bubblewrap, or give the agent full_access and set sandbox to full.",
            code="no_sandbox",
        )
    shown = parts_of(argv[0], env.get("PATH", os.defpath))
    argv = [*_steered(env), *argv]
    access = Given((workspace, home), cwd, hidden, lent or {}, view)
    refuse_to_cover(view.covered)
    if isinstance(trial.sandbox, Landlock):
        return trial.sandbox.wrap(argv, shown, access, limits=_LIMITS)
    command = trial.sandbox.wrap(limits(argv), shown, access)
    # The launcher is bound to its parent only after Python has started.
    return tie_to_parent(command) if trial.sandbox.scoped else command


def can_cover() -> bool:
    """Return whether files in a writable folder can be hidden here. Landlock allows a folder with
    everything in it: otherwise files that are made there could not be read."""
    return not isinstance(look().sandbox, Landlock)


def refuse_to_cover(paths: Sequence[Path]) -> None:
    """Refuse a program from which files would have to be hidden, where that is not possible."""
    if paths and not can_cover():
        names = ", ".join(str(path) for path in paths[:_MOST_NAMED])
        more = len(paths) - _MOST_NAMED
        raise Unsupported(
            f"Files with keys cannot be hidden on this machine: {names}"
            f"{f' and {more} more' if more > 0 else ''}.",
            "Install bubblewrap on the worker, or keep these files outside of the folder.",
            code="keys_not_hidden",
        )


def outer(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with which to start a command of `wrap`.

    Variables that loaders and shells obey are set only for the program inside: the sandbox's own
    program starts outside, and must not load files that an agent left in its home.
    """
    return {name: value for name, value in env.items() if not _STEERING.fullmatch(name)}


def _steered(env: Mapping[str, str]) -> list[str]:
    """Return a command prefix that sets the variables which `outer` leaves out."""
    rest = [f"{name}={value}" for name, value in env.items() if _STEERING.fullmatch(name)]
    return [_ENV, *rest] if rest else []


def limits(argv: Sequence[str]) -> list[str]:
    """Return the command with resource limits; unchanged where `prlimit` is not installed."""
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
    """Return the command, killed when this process dies; for programs outside a sandbox."""
    program = shutil.which("setpriv")
    return list(argv) if program is None else [program, "--pdeathsig", "KILL", "--", *argv]


def end_together(argv: Sequence[str]) -> list[str]:
    """Return the command without restrictions, but so that its children die with it, and it dies
    with this process; only the latter where no sandbox works. For programs that are not an
    agent's."""
    if (together := bubblewrap.together()) is not None:
        return [*together, "--", *argv]
    if (together := landlock.together()) is not None:
        return [*together, *argv]
    return tie_to_parent(argv)
