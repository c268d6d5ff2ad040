"""What a program of a run can see and do, with the means of the operating system.

Bubblewrap gives it a view of the machine in which there is its workspace, its home, the programs
of the system, and nothing of ours: no database, no blobs, no tokens, no other run, no other
process. When the run ends, or the worker dies, everything in it ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from remit.errors import Unsupported

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
MOST_MEMORY = 8 << 30
MOST_PROCESSES = 1024
LARGEST_FILE = 8 << 30


@dataclass(frozen=True)
class Found:
    """What this machine can enforce."""

    bubblewrap: str | None
    reason: str

    @property
    def usable(self) -> bool:
        return self.bubblewrap is not None


@lru_cache(maxsize=1)
def look() -> Found:
    """Whether a sandbox works here; tried, not guessed."""
    program = shutil.which("bwrap")
    if program is None:
        return Found(None, "bubblewrap (bwrap) is not installed")
    try:
        tried = subprocess.run(  # a fixed command
            [program, *_namespaces(), "--ro-bind", "/usr", "/usr", *_links(), "/usr/bin/true"],
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Found(None, f"bubblewrap does not start ({type(error).__name__})")
    if tried.returncode != 0:
        said = tried.stderr.decode(errors="replace").strip().splitlines()
        return Found(None, f"bubblewrap does not work here ({said[-1] if said else 'no reason'})")
    return Found(program, "bubblewrap")


def wrap(
    argv: Sequence[str],
    *,
    workspace: Path,
    home: Path,
    cwd: Path,
    readable: Sequence[Path] = (),
) -> list[str]:
    """The command that runs `argv` inside; refuses when nothing would hold it."""
    found = look()
    if found.bubblewrap is None:
        raise Unsupported(
            f"Programs of agents cannot be held in a sandbox here: {found.reason}.",
            "Install bubblewrap, or give the agent full_access and set sandbox to full.",
            code="no_sandbox",
        )
    command = [found.bubblewrap, *_namespaces(), "--share-net"]
    for path in _SYSTEM:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            command += ["--ro-bind", path, path]
    for path in _SYSTEM_FILES:
        if os.path.exists(path):
            command += ["--ro-bind", path, path]
    for extra in readable:
        command += ["--ro-bind", str(extra), str(extra)]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    for own in (workspace, home):
        command += ["--bind", str(own), str(own)]
    return [*command, "--chdir", str(cwd), "--", *argv]


def limits(argv: Sequence[str]) -> list[str]:
    """The same command with bounds on what it can take from the machine."""
    program = shutil.which("prlimit")
    if program is None:
        return list(argv)
    return [
        program,
        f"--as={MOST_MEMORY * 4}",
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


def _namespaces() -> list[str]:
    return [
        "--unshare-user-try",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]


def _links() -> list[str]:
    made: list[str] = []
    for path in ("/bin", "/lib", "/lib64", "/sbin"):
        if os.path.islink(path):
            made += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            made += ["--ro-bind", path, path]
    return made
