"""Landlock as a sandbox: a check that it works here, and the command that runs a program in it."""

import contextlib
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from remit.runtime.sandbox.landlock import calls, rules
from remit.runtime.sandbox.landlock.supervisor import Policy
from remit.runtime.sandbox.mounts import SYSTEM, SYSTEM_FILES, Given, Parts, of_system

_SOURCE = Path(__file__).parents[4]
#: Code of our programs; started in isolated mode, without environment, site packages or cwd.
_MAIN = (
    f"import sys; sys.path.insert(0, {str(_SOURCE)!r}); "
    "from remit.runtime.sandbox.landlock.MODULE import main; main()"
)
#: Start-up files of shells: without a mount namespace a shell finds them, so it may read them, too,
#: instead of being refused.
_ALSO = ("/etc/bash.bashrc", "/etc/bashrc", "/etc/inputrc", "/etc/profile", "/etc/profile.d")
#: A program that tests the restrictions. If one of them fails, the sandbox is not used.
_TRIAL = """
chmod 700 inside && echo x >inside || exit 1
cat ../outside >&2 && exit 2
chmod 777 ../outside && exit 3
kill -0 "$1" && exit 4
ls /proc >&2 && exit 5
exit 0
"""
_SAID = {
    1: "it cannot use its own folder",
    2: "it reads what it must not",
    3: "it changes what it must not",
    4: "it signals whom it must not",
    5: "it sees the processes of others",
}


@dataclass(frozen=True)
class Landlock:
    """A working Landlock of this kernel."""

    version: int

    def wrap(
        self, argv: Sequence[str], shown: Parts, access: Given, *, limits: Mapping[int, int]
    ) -> list[str]:
        """Return the command that runs `argv` in the sandbox."""
        hidden = [path.resolve() for path in access.hidden]
        places = [Path(path) for path in (*SYSTEM, *SYSTEM_FILES, *_ALSO) if os.path.exists(path)]
        places += [path for path in shown.outermost() if not of_system(path)]
        policy = Policy(
            readable=[
                str(part)
                for place in dict.fromkeys(path.resolve() for path in places)
                for part in around(place, hidden)
            ]
            + [
                str(part)
                for folder, without in access.view.read.items()
                for part in around(folder, without)
            ],
            writable=[str(path.resolve()) for path in access.writable],
            cwd=str(access.cwd),
            lent={str(file.resolve()): str(place) for file, place in access.lent.items()},
            limits={str(number): most for number, most in limits.items()},
            network=access.view.network,
        )
        return [*_keeper(), policy.encode(), *argv]


def look() -> Landlock | str:
    """Try Landlock with a test program; return what works here, or why it does not."""
    version = rules.version()
    if version == 0:
        return "this kernel has no Landlock"
    if version < rules.OLDEST:
        return f"this kernel's Landlock ({version}) does not keep signals in ({rules.OLDEST} does)"
    if calls.program(platform.machine()) is None:
        return f"the calls of {platform.machine()} are not known"
    if not sys.executable:
        return "it is not known where Python is"
    sandbox = Landlock(version)
    with tempfile.TemporaryDirectory(prefix="remit-try-") as folder:
        try:
            return _tried(sandbox, Path(folder)) or sandbox
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"Landlock could not be tried ({type(error).__name__})"


@lru_cache(maxsize=1)
def together() -> tuple[str, ...] | None:
    """Return a command prefix without restrictions, under which a program's children die with it;
    None if it does not work here."""
    if rules.version() < rules.OLDEST or not sys.executable:
        return None
    command = (*_keeper(), "null")
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        tried = subprocess.run(
            [*command, "/bin/true"], capture_output=True, timeout=20, check=False, env={}
        )
        return command if tried.returncode == 0 else None
    return None


def launcher() -> list[str]:
    """Return the beginning of the command of a launcher, before its filter and its program; empty
    where Landlock cannot restrict connections."""
    if rules.version() < rules.OLDEST or not sys.executable:
        return []
    return _python("launcher")


def _keeper() -> list[str]:
    return _python("supervisor")


def _python(module: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", _MAIN.replace("MODULE", module)]


def around(place: Path, hidden: Iterable[Path]) -> Iterator[Path]:
    """Yield the paths to allow in place of a folder, if some of its contents are hidden.

    A rule includes everything below its folder, without exceptions further down.
    """
    hidden = list(hidden)
    if any(place == path or path in place.parents for path in hidden):
        return
    if not any(place in path.parents for path in hidden):
        yield place
        return
    for child in sorted(place.iterdir()):
        if not child.is_symlink():
            yield from around(child, hidden)


def _tried(sandbox: Landlock, root: Path) -> str | None:
    inside = root / "workspace"
    inside.mkdir()
    (root / "outside").write_text("outside")
    (inside / "inside").touch()
    command = sandbox.wrap(
        ["/bin/sh", "-c", _TRIAL, "sh", str(os.getpid())],
        Parts(),
        Given((inside,), inside),
        limits={resource.RLIMIT_CORE: 0},
    )
    tried = subprocess.run(
        command, capture_output=True, timeout=20, check=False, env={"PATH": os.defpath}, cwd="/"
    )
    if tried.returncode == 0:
        return None
    complaint = (tried.stderr.decode(errors="replace").strip().splitlines() or ["no reason"])[-1]
    return f"Landlock does not hold programs here ({_SAID.get(tried.returncode, complaint)})"
