"""The command that bubblewrap is started with: each part of it holds something shut.

Some of it another layer repeats, or needs a terminal or a kernel to show; so it is read here.
"""

import os
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from remit.runtime.sandbox import bubblewrap, sandbox_policy
from remit.runtime.sandbox.bubblewrap import Bubblewrap
from remit.runtime.sandbox.landlock import backend as landlock
from remit.runtime.sandbox.landlock import rules
from remit.runtime.sandbox.mounts import Given, Parts


def wrapped(tmp_path: Path) -> list[str]:
    place = {name: tmp_path / name for name in ("workspace", "home", "hidden")}
    for folder in place.values():
        folder.mkdir()
    program = Bubblewrap("/usr/bin/bwrap", ("--unshare-user", "--disable-userns"), "/filter")
    return program.wrap(
        ["/usr/bin/true"],
        Parts(places={tmp_path}),
        Given((place["workspace"], place["home"]), place["workspace"], [place["hidden"]]),
    )


def has(command: list[str], *words: str) -> bool:
    return any(tuple(command[at : at + len(words)]) == words for at in range(len(command)))


@pytest.mark.parametrize(
    "words",
    [
        ("--unshare-user",),
        ("--disable-userns",),
        ("--unshare-ipc",),
        ("--unshare-pid",),
        ("--unshare-uts",),
        ("--hostname", "remit"),
        ("--unshare-cgroup-try",),
        ("--new-session",),
        ("--die-with-parent",),
        ("--cap-drop", "ALL"),
        ("--seccomp", "9"),
        ("--proc", "/proc"),
        ("--dev", "/dev"),
        ("--tmpfs", "/tmp"),
    ],
    ids=" ".join,
)
def test_a_program_is_held_by_all_of_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert has(wrapped(tmp_path), *words)


def test_only_its_own_folders_can_be_written_and_what_is_hidden_stays_so(tmp_path: Path) -> None:
    command = wrapped(tmp_path)
    own = {str(tmp_path / "workspace"), str(tmp_path / "home")}
    bound = {command[at + 2] for at, word in enumerate(command) if word == "--bind"}
    assert bound == own
    assert not {"--dev-bind", "--bind-try"} & set(command)
    # After everything that was put there, the root itself is closed; then the program begins.
    end = command.index("--remount-ro")
    assert command[end + 1] == "/"
    assert end > max(at for at, word in enumerate(command) if word in ("--bind", "--ro-bind"))
    shown = command.index(str(tmp_path))
    assert has(command[shown:], "--tmpfs", str(tmp_path / "hidden"))
    assert command[-2:] == ["--", "/usr/bin/true"]
    # The filter is opened by the shell that becomes bubblewrap.
    assert command[:4] == [*bubblewrap._WITH_FILTER, "/filter"]
    assert command[2].endswith('9<"$0"')


# ── abstract sockets ────────────────────────────────────────────────────────────────────────────

CONNECT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as own, socket.socket(socket.AF_UNIX) as client:
    own.bind(chr(0) + "own")
    own.listen()
    client.connect(chr(0) + "own")
with socket.socket(socket.AF_UNIX) as client:
    client.connect(chr(0) + sys.argv[1])
"""


def launched(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program as the launcher starts bubblewrap."""
    if not landlock.launcher():
        pytest.skip(f"ABSTRACT SOCKETS ARE NOT TESTED: this kernel's Landlock is {rules.version()}")
    return subprocess.run(
        [*landlock.launcher(), "", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"ONE": "1"},
    )


def test_abstract_sockets_are_those_of_the_program_alone() -> None:
    name = f"remit-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        python = ["/usr/bin/python3", "-c", CONNECT, name]
        assert subprocess.run(python, check=False, timeout=60).returncode == 0, "the control fails"
        inside = launched(*python)
    assert "PermissionError" in inside.stderr
    assert "line 8" in inside.stderr, "its own socket is refused, too"


def test_the_launcher_leaves_signals_and_environment_as_they_are() -> None:
    status = launched("/bin/cat", "/proc/self/status").stdout
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn"))
    assert int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0
    assert launched("/usr/bin/env").stdout == "ONE=1\n"


def test_the_launcher_opens_the_filter_for_bubblewrap() -> None:
    program = Bubblewrap("/usr/bin/bwrap", (), "/filter", scoped=True)
    start = landlock.launcher()
    assert program.beginning()[: len(start) + 2] == [*start, "/filter", "/usr/bin/bwrap"]
    assert has(program.beginning(), "--seccomp", "9")
    without = replace(program, filter=None).beginning()
    assert without[: len(start) + 2] == [*start, "", "/usr/bin/bwrap"]
    assert "--seccomp" not in without


def test_a_kernel_that_cannot_hold_abstract_sockets_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "version", lambda: 5)
    sandbox = bubblewrap.look()
    if isinstance(sandbox, str):
        pytest.skip(f"BUBBLEWRAP IS NOT TESTED: {sandbox}")
    assert not sandbox.scoped
    assert any("abstract" in gap for gap in sandbox_policy.Found(sandbox).not_enforced)
    assert not any("abstract" in gap for gap in sandbox_policy.Found(sandbox).enforced)


def test_it_says_that_abstract_sockets_are_held() -> None:
    scoped = sandbox_policy.Found(Bubblewrap("/usr/bin/bwrap", scoped=True))
    assert any("abstract" in held for held in scoped.enforced)
    assert not any("abstract" in gap for gap in scoped.not_enforced)
