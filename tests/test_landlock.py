"""The sandbox without namespaces: what it does for programs, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from remit.runtime.runs.processes import descendants
from remit.runtime.sandbox import sandbox_policy
from remit.runtime.sandbox.bubblewrap import Bubblewrap
from remit.runtime.sandbox.bubblewrap import look as look_for_bubblewrap
from remit.runtime.sandbox.landlock import backend
from tests.agent_stage import stage

FOUND = backend.look()
pytestmark = pytest.mark.skipif(
    isinstance(FOUND, str), reason=f"THE SANDBOX LANDLOCK IS NOT TESTED: {FOUND}"
)
ENV = {"PATH": "/usr/bin:/bin"}


class Place:
    """Folders of a run, and a way to run something in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.workspace, self.home = root / "workspace", root / "home"
        self.workspace.mkdir(parents=True)
        self.home.mkdir()

    def command(self, *argv: str, lent: Mapping[Path, Path] | None = None) -> list[str]:
        return sandbox_policy.wrap(
            argv, env=ENV, workspace=self.workspace, home=self.home, cwd=self.workspace, lent=lent
        )

    def run(
        self, *argv: str, lent: Mapping[Path, Path] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*argv, lent=lent),
            env=ENV,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def python(self, code: str) -> str:
        done = self.run("/usr/bin/python3", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def begun(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(
            self.command(*argv), env=ENV, start_new_session=True, stdin=subprocess.DEVNULL
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    assert isinstance(FOUND, backend.Landlock)
    found = sandbox_policy.Found(FOUND, "it was asked for")
    monkeypatch.setattr(sandbox_policy, "look", lambda: found)
    return Place(tmp_path / "here")


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


# ── what it is like inside ──────────────────────────────────────────────────────────────────────


def test_a_program_ends_with_its_own_code(place: Place) -> None:
    assert place.run("sh", "-c", "exit 7").returncode == 7
    assert place.run("sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL


def test_a_program_that_is_not_there_is_said(place: Place) -> None:
    done = place.run("no-such-program")
    assert done.returncode == 126
    assert "no-such-program: No such file or directory" in done.stderr


def test_input_output_and_errors_are_the_programs(place: Place) -> None:
    done = subprocess.run(
        place.command("sh", "-c", "cat; echo wrong >/dev/stderr; pwd; echo $PWD"),
        env=ENV,
        input=b"said\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    here = os.fsencode(place.workspace)
    assert (done.stdout, done.stderr) == (b"said\n" + here + b"\n" + here + b"\n", b"wrong\n")


def test_in_its_own_folders_a_program_changes_what_it_likes(place: Place) -> None:
    said = place.python(
        """
import ctypes, os, shutil, stat, tempfile
libc = ctypes.CDLL(None, use_errno=True)
def mode(path): return oct(os.stat(path).st_mode & 0o7777)
open("a", "w").write("x"); os.chmod("a", 0o640); print(mode("a"))
os.chmod(os.path.abspath("a"), 0o641); print(mode("a"))
with open("a") as file: os.fchmod(file.fileno(), 0o642)
print(mode("a"))
folder = os.open(".", os.O_RDONLY); os.chmod("a", 0o643, dir_fd=folder); print(mode("a"))
named = os.open("a", os.O_PATH); os.chmod(f"/proc/self/fd/{named}", 0o644); print(mode("a"))
os.symlink("a", "link"); os.chmod("link", 0o645); print(mode("a"))
os.chown("a", os.getuid(), -1); os.lchown("link", -1, os.getgid())
with open("a") as file: os.fchown(file.fileno(), os.getuid(), os.getgid())
os.utime("a", (1, 2)); print(int(os.stat("a").st_mtime))
os.utime("link", (3, 4), follow_symlinks=False); print(int(os.lstat("link").st_mtime))
with open("a") as file: os.utime(file.fileno(), (5, 6))
print(int(os.stat("a").st_mtime))
os.utime("a"); print(os.stat("a").st_mtime > 1e9)
shutil.copy2("a", "b"); print(mode("b"))
with tempfile.TemporaryFile(dir=".") as file: os.fchmod(file.fileno(), 0o600)
os.fchmod(os.memfd_create("x"), 0o600)
reader, writer = os.pipe(); os.fchmod(reader, 0o600)
print(libc.inotify_add_watch(libc.inotify_init1(0), b".", 0x100) > 0)
print(os.uname().nodename, os.uname().release == open("/proc/sys/kernel/osrelease").read().strip())
"""
    )
    modes = ["0o640", "0o641", "0o642", "0o643", "0o644", "0o645"]
    assert said.split() == [*modes, "2", "4", "6", "True", "0o645", "True", "remit", "True"]


def test_whatever_is_wrong_with_a_call_is_answered_as_the_kernel_would(place: Place) -> None:
    said = place.python(
        """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(answer): return errno.errorcode[ctypes.get_errno()] if answer else "done"
print(tried(libc.chmod(b"nothing", 0o600)))
print(tried(libc.chmod(b"", 0o600)))
print(tried(libc.chmod(ctypes.c_void_p(8), 0o600)))
print(tried(libc.chmod(b"x" * 5000, 0o600)))
print(tried(libc.fchmod(999, 0o600)))
print(tried(libc.fchmod(-1, 0o600)))
print(tried(libc.uname(ctypes.c_void_p(8))))
print(tried(libc.inotify_add_watch(1, b".", 0x100) < 0))
"""
    )
    assert said.split() == [
        *("ENOENT", "ENOENT", "EFAULT", "ENAMETOOLONG", "EBADF", "EBADF", "EFAULT", "EINVAL")
    ]


def test_what_lies_elsewhere_is_not_changed_by_any_name_for_it(place: Place) -> None:
    outside = place.root / "outside"
    outside.write_text("canary")
    outside.chmod(0o600)
    beside = place.root / "workspace-2"
    beside.mkdir(mode=0o700)
    said = place.python(
        f"""
import ctypes, os
outside, parent = {str(outside)!r}, {str(place.root)!r}
os.symlink(outside, "link"); os.symlink(parent, "folder")
def tried(work):
    try: work()
    except PermissionError: return "refused"
    return "done"
above = os.open("..", os.O_PATH)
named = os.open(outside, os.O_PATH)
for work in (
    lambda: os.chmod(outside, 0o777),
    lambda: os.chmod("../outside", 0o777),
    lambda: os.chmod("link", 0o777),
    lambda: os.chmod("folder/outside", 0o777),
    lambda: os.chmod("folder/workspace-2", 0o777),
    lambda: os.chmod("outside", 0o777, dir_fd=above),
    lambda: os.chmod(f"/proc/self/fd/{{named}}", 0o777),
    lambda: os.chmod(f"/proc/{{os.getppid()}}/cwd", 0o777),
    lambda: os.chmod("/proc/self/../self/cwd/..", 0o777),
    lambda: os.chown(outside, os.getuid(), os.getgid()),
    lambda: os.lchown(outside, os.getuid(), os.getgid()),
    lambda: os.utime(outside, (1, 1)),
    lambda: os.utime(f"/proc/self/fd/{{named}}", (1, 1)),
    lambda: os.utime("/usr/bin/env", (1, 1)),
): print(tried(work))
"""
    )
    assert said.split() == ["refused"] * 14
    assert outside.stat().st_mode & 0o777 == 0o600
    assert outside.stat().st_mtime > 1
    assert beside.stat().st_mode & 0o777 == 0o700


def test_a_path_that_changes_while_it_is_looked_at_leads_nowhere_else(place: Place) -> None:
    outside = place.root / "outside"
    outside.write_text("canary")
    outside.chmod(0o600)
    (place.workspace / "own").touch()
    place.python(
        f"""
import ctypes, os, threading
libc = ctypes.CDLL(None)
own, outside = b"own".ljust(200, b"\\0"), {str(outside)!r}.encode().ljust(200, b"\\0")
name = ctypes.create_string_buffer(own, 200)
over = False
def change():
    while not over:
        for text in (own, outside): ctypes.memmove(name, text, 200)
        for to in ("own", {str(outside)!r}):
            os.symlink(to, "new"); os.rename("new", "link")
thread = threading.Thread(target=change); thread.start()
for _ in range(1000):
    libc.chmod(name, 0o777); libc.chmod(b"link", 0o777)
over = True; thread.join()
"""
    )
    assert outside.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_lent_is_read_and_written_at_its_place(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = place.root / "login"
    login.write_text("old")
    there = place.home / ".tool" / "login"
    for _ in range(2):
        done = place.run("sh", "-c", f"cat {there}; echo new >{there}", lent={login: there})
        assert done.returncode == 0, done.stderr
    assert done.stdout == "new\n"
    assert login.read_text() == "new\n"
    # Who is not lent it finds a link that leads nowhere; and bubblewrap copes with that.
    assert place.run("cat", str(there)).returncode == 1
    found = look_for_bubblewrap()
    if isinstance(found, Bubblewrap):
        monkeypatch.setattr(sandbox_policy, "look", lambda: sandbox_policy.Found(found))
        assert place.run("cat", str(there), lent={login: there}).stdout == "new\n"


def test_a_place_to_lend_at_cannot_lead_out(place: Place) -> None:
    login = place.root / "login"
    login.write_text("old")
    (place.home / ".tool").symlink_to(place.root)
    victim = place.root / "victim"
    victim.write_text("canary")
    done = place.run("true", lent={login: place.home / ".tool" / "victim"})
    assert done.returncode == 125
    assert victim.read_text() == "canary"
    assert not victim.is_symlink()


def test_what_is_hidden_is_cut_out_of_what_is_allowed(tmp_path: Path) -> None:
    for folder in ("a/hidden/deep", "a/b", "c"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to("hidden")
    found = set(backend.around(tmp_path, [tmp_path / "a" / "hidden"]))
    assert found == {tmp_path / "a" / "b", tmp_path / "c"}
    assert list(backend.around(tmp_path / "c", [tmp_path / "a"])) == [tmp_path / "c"]
    assert list(backend.around(tmp_path / "a" / "hidden" / "deep", [tmp_path / "a"])) == []


# ── a worker without bubblewrap ─────────────────────────────────────────────────────────────────

STORY = """
echo "on $(uname -n), in $PWD, $(cat THE-TOKEN 2>&1)"
echo x >/tmp/remit-was-here-$REMIT_RUN && echo ESCAPED
echo x >"$TMPDIR/note" && mkdir -p "$HOME/kept" && cat "$TMPDIR/note" >"$HOME/kept/note"
setsid sh -c 'while :; do date >"$HOME/beat"; sleep 0.05; done' </dev/null >/dev/null 2>&1 &
echo "that is all"
"""


def test_a_worker_without_bubblewrap_runs_a_whole_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(without_bubblewrap(tmp_path / "bin")))
    sandbox_policy.look.cache_clear()
    home = tmp_path / "home"

    async def story() -> None:
        async with stage(home) as at:
            code = STORY.replace("THE-TOKEN", str(home / "board.token"))
            await at.cast("process", {"command": "/bin/sh", "args": ["-c", code]})
            await at.send("Do it.")
            (run,) = await at.over()
            said = await at.log(run)
            assert run["status"] == "completed", (run["error"], said)
            assert "on remit, in" in said
            assert "board.token: Permission denied" in said
            assert "ESCAPED" not in said
            assert "that is all" in said
            own = next((home / "agents").glob("*/kept/note")).parents[1]
            assert (own / "kept" / "note").read_text() == "x\n"
            before = (own / "beat").stat().st_mtime_ns if (own / "beat").exists() else 0
            await asyncio.sleep(0.3)
            after = (own / "beat").stat().st_mtime_ns if (own / "beat").exists() else 0
            assert before == after, "what it started goes on"

    try:
        assert isinstance(sandbox_policy.look().sandbox, backend.Landlock)
        asyncio.run(story())
    finally:
        sandbox_policy.look.cache_clear()


def test_doctor_says_who_holds_programs_and_what_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(without_bubblewrap(tmp_path / "bin")))
    done = subprocess.run(
        [str(Path(sys.executable).with_name("remit")), "doctor", "--json"],
        env={**os.environ, "REMIT_HOME": str(tmp_path / "home")},
        capture_output=True,
        timeout=100,
        check=False,
    )
    findings = [(one["check"], one["found"]) for one in json.loads(done.stdout)]
    (who,) = [found for check, found in findings if check == "sandbox"]
    assert who.startswith("Landlock")
    assert "because bubblewrap (bwrap) is not installed" in who
    free = [found for check, found in findings if check == "sandbox does not hold"]
    assert any(one.startswith("names:") for one in free)
    assert any(one.startswith("numbers:") for one in free)


def without_bubblewrap(folder: Path) -> Path:
    """The programs of the system, but for one."""
    folder.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name != "bwrap":
            (folder / program.name).symlink_to(program)
    return folder


@pytest.mark.parametrize("sort", ["bubblewrap", "landlock"])
def test_what_steers_a_loader_is_for_the_program_and_not_for_who_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    """Otherwise whoever may set a variable of an agent could run something outside."""
    found = look_for_bubblewrap() if sort == "bubblewrap" else FOUND
    if isinstance(found, str):
        pytest.skip(f"THE SANDBOX {sort.upper()} IS NOT TESTED: {found}")
    monkeypatch.setattr(
        sandbox_policy, "look", lambda: sandbox_policy.Found(found, "it was asked for")
    )

    async def story() -> None:
        async with stage(tmp_path / "home") as at:
            for told in (str(tmp_path / "mark"), "said"):
                config = {"command": "/bin/sh", "args": ["-c", "true; ls"]}
                # The loader writes into this file whatever it does, before anything else.
                config["env"] = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": told}  # type: ignore[assignment]
                await at.cast("process", config)
                await at.send("Do it.")
                runs = await at.over(1 if told != "said" else 2)
            assert [run["status"] for run in runs] == ["completed"] * 2
            assert "said." in await at.log(runs[-1]), "a control: inside it is obeyed"

    asyncio.run(story())
    assert list(tmp_path.glob("mark*")) == []


# ── how it ends ─────────────────────────────────────────────────────────────────────────────────

#: Always another process, in another session, with nothing in its environment.
RUNNER = """
import os, sys, time
if os.fork() == 0:
    while True:
        os.setsid()
        with open("beat", "a") as beat: beat.write("x")
        os.environ.clear()
        if os.fork(): os._exit(0)
time.sleep(600)
"""


def beats(place: Place) -> bool:
    before = written(place)
    time.sleep(0.3)
    return written(place) != before


def written(place: Place) -> int:
    beat = place.workspace / "beat"
    return beat.stat().st_size if beat.exists() else 0


def guard_of(keeper: int) -> int:
    """The keeper starts one process; the guard is it once it has one below it."""
    until(lambda: len(descendants(keeper)) >= 2)
    return descendants(keeper)[0]


@pytest.mark.parametrize("ended", ["the keeper", "the guard", "the program", "asked"])
def test_whoever_ends_nobody_gets_away(place: Place, ended: str) -> None:
    with place.begun("/usr/bin/python3", "-c", RUNNER) as keeper:
        until(lambda: written(place) > 10)
        guard = guard_of(keeper.pid)
        if ended == "the keeper":
            keeper.kill()
        elif ended == "the guard":
            os.kill(guard, signal.SIGKILL)
        elif ended == "the program":
            program = descendants(guard)[0]
            until(lambda: RUNNER.encode() in Path(f"/proc/{program}/cmdline").read_bytes())
            os.kill(program, signal.SIGKILL)
        else:
            keeper.terminate()
        keeper.wait(timeout=20)
        if ended in ("the program", "asked"):
            assert not beats(place), "the keeper ends after everybody else"
    until(lambda: not beats(place))


def test_a_program_cannot_stop_its_guard(place: Place) -> None:
    said = place.python(
        """
import ctypes, os, signal
def tried(work):
    try: work()
    except PermissionError: return "refused"
    return "done"
guard = os.getppid()
print(tried(lambda: os.kill(guard, signal.SIGSTOP)))
print(tried(lambda: open(f"/proc/{guard}/mem", "rb")))
libc = ctypes.CDLL(None, use_errno=True)
print("refused" if libc.ptrace(16, guard, 0, 0) else "done")
print(tried(lambda: os.kill(-1, signal.SIGTERM)), flush=True)
"""
    )
    # The last of them reaches only its own processes: there are none but itself.
    assert said.split()[:3] == ["refused"] * 3


def test_a_program_that_makes_the_guard_its_tracer_ends_all_the_same(place: Place) -> None:
    code = """
import ctypes, os, signal
ctypes.CDLL(None).ptrace(0, 0, 0, 0)
open("traced", "w").close()
os.kill(os.getpid(), signal.SIGUSR2)
"""
    with place.begun("/usr/bin/python3", "-c", code) as keeper:
        until((place.workspace / "traced").exists)
        assert keeper.poll() is None
        keeper.terminate()
        assert keeper.wait(timeout=20) == 128 + signal.SIGKILL


def test_programs_that_are_not_held_end_together_too(tmp_path: Path) -> None:
    together = backend.together()
    assert together is not None
    starter = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    # As the worker would start it; and the worker is killed.
    command = [sys.executable, "-c", starter, *together, "/usr/bin/python3", "-c", RUNNER]
    place = Place(tmp_path / "here")
    with subprocess.Popen(command, cwd=place.workspace, start_new_session=True) as worker:
        try:
            until(lambda: written(place) > 10)
        finally:
            worker.kill()
    until(lambda: not beats(place))
