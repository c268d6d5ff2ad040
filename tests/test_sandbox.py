"""What a run's program can reach: tried by a hostile one, inside and, as a control, outside."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from remit.errors import Unsupported
from remit.runtime.runs.processes import ChildProcess
from remit.runtime.sandbox import bubblewrap, sandbox_policy, seccomp
from remit.runtime.sandbox.landlock import backend as landlock
from remit.runtime.sandbox.landlock import calls, rules
from remit.runtime.sandbox.mounts import Given, parts_of
from tests.sandbox_attempts import attempts
from tests.working import processes_with

DRIVER = Path(__file__).with_name("sandbox_driver.py")
ATTEMPTS = Path(__file__).with_name("sandbox_attempts.py")
SOURCE = Path(sandbox_policy.__file__).parents[3]
NOBODY = 65534
NAMES = list(attempts({"pid": 0}))
#: What a user who is not root cannot do anywhere, so there is nothing to be held from.
NEEDS_ROOT = {
    "read a secret of the system",
    "mount",
    "change the root",
    "make a device",
    "change a mode of the system",
    "have rights of root",
}
#: What the kernel may have closed to everybody.
OFTEN_CLOSED = {
    "attach to a process of the host",
    "change an attribute of a file",
    "hard link a file from outside",
    "make a user namespace",
    "clone into a user namespace",
    "use bpf",
    "use io_uring",
    "use a keyring",
    "start many processes",
}
#: The limit of processes does not bind root; the group of a run does, see test_misbehaving.py.
NOT_HELD_AS_ROOT = {"start many processes"}

#: A file that is not shown is not there, or cannot be read.
REFUSED = re.compile("FileNotFoundError|PermissionError")

Attempts = dict[str, dict[str, bool]]
KINDS = ["bubblewrap", "landlock"]


@lru_cache
def found(kind: str) -> sandbox_policy.Found:
    """One of the two, whatever else is there; or skip, and say so."""
    second = bubblewrap.look() if kind == "bubblewrap" else landlock.look()
    if isinstance(second, str):
        pytest.skip(f"THE SANDBOX {kind.upper()} IS NOT TESTED: {second}")
    return sandbox_policy.Found(second, "it was asked for", shutil.which("prlimit"))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    chosen = found(request.param)
    monkeypatch.setattr(sandbox_policy, "look", lambda: chosen)
    return str(request.param)


@pytest.fixture(
    scope="module",
    params=[(kind, who) for kind in KINDS for who in ("as we are", "as another user")],
    ids=", ".join,
)
def tried(request: pytest.FixtureRequest) -> Attempts:
    kind, who = request.param
    found(kind)
    if who == "as we are":
        return {**driven([sys.executable], DRIVER, SOURCE, kind), "root": {"root": True}}
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    change = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    start = ["/usr/bin/setpriv", *change, "/usr/bin/python3"]
    # The checkout may be where others cannot look, as in the home of root.
    with tempfile.TemporaryDirectory(prefix="remit-driver-") as name:
        place = Path(name)
        shutil.copytree(SOURCE / "remit", place / "remit")
        for file in (DRIVER, ATTEMPTS):
            shutil.copy(file, place)
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        return {**driven(start, place / DRIVER.name, place, kind), "root": {"root": False}}


def driven(start: Sequence[str], driver: Path, source: Path, kind: str) -> Attempts:
    done = subprocess.run(
        [*start, str(driver)],
        env={
            # Where there is no bubblewrap, or where there is.
            "PATH": "/usr/bin:/bin" if kind == "bubblewrap" else "/nowhere",
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOST_SECRET": "canary",
        },
        cwd="/",
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    answer: Attempts = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("attempt", NAMES)
def test_a_hostile_program_does_not_get_out(tried: Attempts, attempt: str) -> None:
    root = os.geteuid() == 0 and tried["root"]["root"]
    if not (root and attempt in NOT_HELD_AS_ROOT):
        assert tried["inside"][attempt] is False
    closed = OFTEN_CLOSED if root else OFTEN_CLOSED | NEEDS_ROOT
    if attempt not in closed:
        assert tried["outside"][attempt] is True, "the control shows nothing: it fails outside too"


def test_the_controls_are_strong_enough(tried: Attempts) -> None:
    assert sum(tried["outside"].values()) >= 18


# ── what is shown ───────────────────────────────────────────────────────────────────────────────


class Place:
    """A workspace and a home, and a way to run something in them."""

    def __init__(self, root: Path) -> None:
        self.remit = root / "remit"
        self.workspace = self.remit / "run" / "workspaces" / "one"
        self.home = self.remit / "agents" / "one"
        self.workspace.mkdir(parents=True)
        self.home.mkdir(parents=True)
        (self.remit / "board.token").write_text("canary")

    def command(self, *argv: str, path: str = "/usr/bin:/bin") -> list[str]:
        return sandbox_policy.wrap(
            argv,
            env={"PATH": path},
            workspace=self.workspace,
            home=self.home,
            cwd=self.workspace,
            hidden=[self.remit],
        )

    def run(self, *argv: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*argv, path=path),
            env={"PATH": path, "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def place(tmp_path: Path, kind: str) -> Place:
    return Place(tmp_path)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_program_of_the_system_runs(place: Place) -> None:
    done = place.run("echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_only_workspace_home_and_tmp_can_be_written(place: Place, kind: str) -> None:
    for folder, writable in (
        (place.workspace, True),
        (place.home, True),
        (Path("/tmp"), kind == "bubblewrap"),  # the other one's is in the workspace
        (Path("/"), False),
        (Path("/usr"), False),
        (Path("/etc"), False),
    ):
        done = place.run("touch", str(folder / "remit-was-here"))
        assert (done.returncode == 0) is writable, folder
    assert not Path("/tmp/remit-was-here").exists()


def test_a_python_environment_is_shown_whole_and_nothing_beside_it(
    place: Place, tmp_path: Path
) -> None:
    there = tmp_path / "project"
    venv.create(there / ".venv", with_pip=False, symlinks=True)
    (there / "secret").write_text("canary")
    (there / ".venv" / "lib").mkdir(exist_ok=True)
    code = f"import sys; print(sys.prefix); print(open({str(there / 'secret')!r}).read())"
    done = place.run(str(there / ".venv" / "bin" / "python"), "-c", code)
    assert done.stdout == f"{there / '.venv'}\n"
    assert REFUSED.search(done.stderr)


def test_a_script_brings_its_interpreter(place: Place, tmp_path: Path) -> None:
    venv.create(tmp_path / "v", with_pip=False, symlinks=True)
    program = script(tmp_path / "bin" / "agent", f"#!{tmp_path}/v/bin/python\nprint('hello')\n")
    (program.parent / "secret").write_text("canary")
    assert place.run(str(program)).stdout == "hello\n"
    assert not place.run("cat", str(program.parent / "secret")).stdout


def test_a_link_into_a_package_of_node_works(place: Place, tmp_path: Path) -> None:
    modules = tmp_path / "agents" / "node_modules"
    script(modules / "agent" / "bin" / "agent.sh", '#!/bin/sh\ncat "$(dirname "$0")/../data"\n')
    script(modules / "agent" / "data", "the package's own data\n")
    (modules / ".bin").mkdir()
    (modules / ".bin" / "agent").symlink_to("../agent/bin/agent.sh")
    outside = tmp_path / "local" / "agent"
    outside.parent.mkdir()
    outside.symlink_to(modules / ".bin" / "agent")
    done = place.run("sh", "-c", f"exec {modules}/agent/bin/agent.sh")
    assert done.returncode != 0, "it is shown only to those who are started from it"
    for command in (modules / ".bin" / "agent", outside):
        done = place.run(str(command))
        # Its own name is that of the link, so it looks for its data beside the link.
        assert done.returncode == 1
        assert "data" in done.stderr
    done = place.run(str(modules / "agent" / "bin" / "agent.sh"))
    assert done.stdout == "the package's own data\n"


def test_a_link_between_folders_is_made_again(place: Place, tmp_path: Path) -> None:
    script(tmp_path / "versions" / "1.2" / "agent", "#!/bin/sh\necho one two\n")
    (tmp_path / "current").symlink_to("versions/1.2")
    assert place.run(str(tmp_path / "current" / "agent")).stdout == "one two\n"
    assert "current" in str(next(iter(parts_of(f"{tmp_path}/current/agent", "").links)))


def test_what_is_remits_own_is_not_shown_as_a_program(place: Place) -> None:
    token = place.remit / "board.token"
    token.chmod(0o700)
    (place.remit / "agent").symlink_to("board.token")
    for command in (token, place.remit / "agent"):
        done = place.run(str(command))
        assert done.returncode != 0
        assert "canary" not in done.stdout + done.stderr
        assert str(token) not in place.command(str(command))[:-1]


def test_what_is_remits_own_is_hidden_in_a_folder_that_is_shown(tmp_path: Path, kind: str) -> None:
    venv.create(tmp_path / "v", with_pip=False, symlinks=True)
    place = Place(tmp_path / "v")
    python = str(tmp_path / "v" / "bin" / "python")
    done = place.run(python, "-c", f"print(open({str(place.remit / 'board.token')!r}).read())")
    assert REFUSED.search(done.stderr)
    assert place.run(python, "-c", "open('here', 'w'); print('ok')").stdout == "ok\n"


def test_a_loop_of_links_is_no_loop_for_us(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert parts_of(str(tmp_path / "a"), "").places == set()


# ── when there is no sandbox ────────────────────────────────────────────────────────────────────


@pytest.fixture
def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox_policy.look.cache_clear()
    yield
    sandbox_policy.look.cache_clear()


def test_nothing_runs_without_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_bubblewrap: None
) -> None:
    monkeypatch.setattr(rules, "version", lambda: 0)
    with pytest.raises(Unsupported) as refused:
        Place(tmp_path).command("true")
    assert refused.value.reason == "no_sandbox"
    assert "full_access" in refused.value.step
    assert sandbox_policy.look().enforced == []
    assert sandbox_policy.look().not_enforced


def test_a_bubblewrap_that_fails_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, without_bubblewrap: None
) -> None:
    script(tmp_path / "bwrap", "#!/bin/sh\necho no permissions for you >&2\nexit 1\n")
    assert not isinstance(sandbox_policy.look().sandbox, bubblewrap.Bubblewrap)
    assert "no permissions for you" in sandbox_policy.look().reason


def test_landlock_holds_programs_where_there_is_no_bubblewrap(
    tmp_path: Path, without_bubblewrap: None
) -> None:
    found("landlock")
    assert isinstance(sandbox_policy.look().sandbox, landlock.Landlock)
    assert Place(tmp_path).run("echo", "hello").stdout == "hello\n"
    assert "Landlock" in sandbox_policy.look().name
    assert "bubblewrap (bwrap) is not installed" in sandbox_policy.look().name
    assert any("cannot connect to Unix sockets" in one for one in sandbox_policy.look().enforced)
    assert any("its owner and its size" in one for one in sandbox_policy.look().not_enforced)


@pytest.mark.parametrize(
    ("version", "reason"), [(0, "no Landlock"), (5, "does not keep signals in")]
)
def test_a_kernel_without_all_that_landlock_needs_has_none(
    monkeypatch: pytest.MonkeyPatch, version: int, reason: str
) -> None:
    monkeypatch.setattr(rules, "version", lambda: version)
    assert reason in str(landlock.look())


def test_a_machine_whose_calls_are_not_known_has_no_landlock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "version", lambda: 7)
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    assert "pdp11" in str(landlock.look())


def test_a_landlock_that_does_not_hold_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "version", lambda: 7)

    def loosely(
        _: object, argv: Sequence[str], shown: object, given: Given, **_more: object
    ) -> object:
        return loose(argv, given.cwd)

    monkeypatch.setattr(landlock.Landlock, "wrap", loosely)
    assert "reads what it must not" in str(landlock.look())


def loose(argv: Sequence[str], cwd: Path) -> list[str]:
    return ["/usr/bin/env", "-C", str(cwd), *argv]


def test_the_filter_is_known_for_the_usual_machines() -> None:
    for machine in ("x86_64", "aarch64"):
        for made in (seccomp.program(machine), calls.program(machine)):
            assert made is not None
            assert len(made) % 8 == 0
    assert seccomp.program("pdp11") is None
    assert calls.program("pdp11") is None


# ── everything ends with the run ────────────────────────────────────────────────────────────────

STUBBORN = """
trap '' TERM HUP INT
setsid sh -c 'trap "" TERM HUP
while :; do date >beat; sleep 0.05; done' "$0" </dev/null >/dev/null 2>&1 &
while :; do sleep 0.05; done
"""


def at_it(place: Place) -> list[int]:
    """Who is still there of those that were told which workspace is theirs."""
    return processes_with(str(place.workspace))


def until(condition: object, seconds: float = 10) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def test_children_that_left_their_session_end_with_the_run(place: Place) -> None:
    async def story() -> None:
        child = await ChildProcess.begin(
            place.command("sh", "-c", STUBBORN, str(place.workspace)),
            env={"PATH": "/usr/bin:/bin"},
            cwd=place.workspace,
            stdin=b"",
            log=lambda *_: None,
            sandboxed=True,
        )
        await asyncio.to_thread(until, (place.workspace / "beat").exists)
        await child.end()

    asyncio.run(story())
    assert at_it(place) == []


def test_everything_ends_when_the_worker_is_killed(place: Place) -> None:
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.run(sys.argv[1:], env={'PATH': '/usr/bin:/bin'})",
            # The filter is the worker's own; here another process stands for the worker.
            *place.command("sh", "-c", STUBBORN, str(place.workspace)),
        ],
        cwd=place.workspace,
        start_new_session=True,
    )
    try:
        until((place.workspace / "beat").exists)
        assert len(at_it(place)) >= 3
    finally:
        worker.kill()
        worker.wait()
    until(lambda: not at_it(place))
