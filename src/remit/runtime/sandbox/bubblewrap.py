"""Bubblewrap: a view of the machine for one program, with namespaces of its own."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from remit.runtime.sandbox import seccomp
from remit.runtime.sandbox.landlock import backend as landlock
from remit.runtime.sandbox.landlock.launcher import FILTER_FD
from remit.runtime.sandbox.mounts import (
    SYSTEM,
    SYSTEM_FILES,
    Given,
    Parts,
    inside,
    of_system,
    remove_link,
)

_EMPTY = Path(__file__).with_name("empty")
_NAMESPACES = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"),
    *("--hostname", "remit", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
#: The first set of options that works here is used. Only root can do without a user namespace.
_USER_NAMESPACES = (("--unshare-user", "--disable-userns"), ("--unshare-user",), ())
#: Bubblewrap reads the filter from a descriptor, which the launcher or a shell opens for it.
_WITH_FILTER = ("/bin/sh", "-c", f'exec "$@" {FILTER_FD}<"$0"')


@dataclass(frozen=True)
class Bubblewrap:
    """A working installation of bubblewrap, and the options that work here."""

    program: str
    user_namespace: tuple[str, ...] = ()
    filter: str | None = None
    #: Whether Landlock keeps programs from abstract Unix sockets, which belong to the network.
    scoped: bool = False

    def wrap(self, argv: Sequence[str], shown: Parts, access: Given) -> list[str]:
        """Return the command that runs `argv` in the sandbox."""
        net = "--share-net" if access.view.network else "--unshare-net"
        command = [*self.beginning(), net, *_system()]
        command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
        command += _shown(shown, access.hidden)
        for secret in access.hidden:
            if secret.is_dir() and (of_system(secret) or shown.places.intersection(secret.parents)):
                command += ["--tmpfs", str(secret)]
        for folder, without in access.view.read.items():
            command += ["--ro-bind", str(folder), str(folder)]
            for path in without:
                cover = ("--tmpfs",) if path.is_dir() else ("--ro-bind", "/dev/null")
                command += [*cover, str(path)]
        for own in access.writable:
            command += ["--bind", str(own), str(own)]
        for path in access.view.covered:
            command += _cover(path)
        for file, place in access.lent.items():
            remove_link(access.home, place)
            command += ["--bind", str(file), str(place)]
        return [*command, "--remount-ro", "/", "--chdir", str(access.cwd), "--", *argv]

    def beginning(self) -> list[str]:
        command = [self.program, *self.user_namespace, *_NAMESPACES]
        if self.filter is not None:
            command += ["--seccomp", str(FILTER_FD)]
        if self.scoped:
            return [*landlock.launcher(), self.filter or "", *command]
        return command if self.filter is None else [*_WITH_FILTER, self.filter, *command]


def look() -> Bubblewrap | str:
    """Try the options of bubblewrap; return what works here, or why nothing does."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    reason = "no reason"
    filters = [seccomp.file(), None] if seccomp.file() else [None]
    scopes = [True, False] if landlock.launcher() else [False]
    for user, filter_, scoped in itertools.product(_USER_NAMESPACES, filters, scopes):
        sandbox = Bubblewrap(program, user, filter_, scoped)
        command = [*sandbox.beginning(), *_system(), "--", "/usr/bin/true"]
        try:
            tried = subprocess.run(
                command, capture_output=True, timeout=10, check=False, env={}, cwd="/"
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap does not start ({type(error).__name__})"
        if tried.returncode == 0:
            return sandbox
        reason = (tried.stderr.decode(errors="replace").strip().splitlines() or [reason])[-1]
    return f"bubblewrap does not work here ({reason})"


@lru_cache(maxsize=1)
def together() -> tuple[str, ...] | None:
    """Return a command prefix without restrictions, under which a program's children die with it;
    None if it does not work here."""
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


def _system() -> list[str]:
    command: list[str] = []
    for path in SYSTEM:
        if os.path.islink(path):
            command += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            command += ["--ro-bind", path, path]
    for path in SYSTEM_FILES:
        if os.path.exists(path):
            command += ["--ro-bind", path, path]
    return command


def _cover(path: Path) -> list[str]:
    """Return the mount of something empty; of a file, because programs fail where they find a
    device."""
    if path.is_dir():
        return ["--tmpfs", str(path), "--remount-ro", str(path)]
    return ["--ro-bind", str(_EMPTY), str(path)]


def _shown(parts: Parts, hidden: Sequence[Path]) -> list[str]:
    """Return mounts for the parts of a program outside the system's folders, never hidden ones."""
    command: list[str] = []
    for place in parts.outermost():
        if not of_system(place) and not inside(place, hidden):
            command += ["--ro-bind", str(place), str(place)]
    for link, target in parts.loose_links().items():
        if not of_system(link) and not inside(link, hidden):
            command += ["--symlink", target, str(link)]
    return command
