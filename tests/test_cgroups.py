"""Groups of processes in the newer interface of the kernel, one tree for everything.

Joining, killing and removing are tried on a real tree, which a machine has beside the older ones.
The bounds are not: their controllers belong to the older trees here, or to the machine's manager.
They are tried on a folder that fills itself as the kernel fills one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PosixPath
from typing import Any

import pytest

from remit.ids import Ids
from remit.runtime.sandbox import cgroups
from tests.working import processes_with

# ── on the real tree ────────────────────────────────────────────────────────────────────────────

#: A child that left its session, its parent and its environment.
RUNAWAY = 'env -i setsid sh -c \'while :; do date >"$0"; sleep 0.05; done\' "$PWD/beat" & sleep 600'


@pytest.fixture
def tree() -> Iterator[Path]:
    """Our own folder in the real tree, with a place of its own for these tests."""
    own = cgroups._own_folder("")
    if own is None:
        pytest.skip("THE ONE TREE OF CGROUPS IS NOT TESTED: it is not mounted")
    folder = own / f"remit-tests-{os.getpid()}-{time.monotonic_ns()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"THE ONE TREE OF CGROUPS IS NOT TESTED: {error.strerror}")
    yield folder
    for left in folder.iterdir():
        if left.is_dir():
            cgroups.Group([left]).end()
    folder.rmdir()


@pytest.fixture
def ids() -> Ids:
    return Ids()


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def begin(group: cgroups.Group, cwd: Path) -> subprocess.Popen[bytes]:
    started = subprocess.Popen(group.join(["/bin/sh", "-c", RUNAWAY]), cwd=cwd)
    until((cwd / "beat").exists)
    return started


def members(folder: Path) -> list[str]:
    return (folder / "cgroup.procs").read_text().split()


def test_all_processes_of_a_group_are_in_it_and_end_with_it(tree: Path, tmp_path: Path) -> None:
    folder = tree / "one"
    folder.mkdir()
    group = cgroups.Group([folder])
    with begin(group, tmp_path) as started:
        assert str(started.pid) in members(folder)
        assert len(members(folder)) >= 2
        group.end()
        assert not folder.exists()
        assert started.wait(timeout=20) == -9
    # A folder of the tree goes only when nobody is in it; and nobody left it for another one.
    assert processes_with(str(tmp_path)) == []
    group.end()  # there is nothing left to do


def test_groups_that_were_left_are_found_by_their_run(
    tree: Path, tmp_path: Path, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = cgroups.Places({cgroups.PROCESSES: tree, cgroups.MEMORY: tree}, unified=True)
    monkeypatch.setattr(cgroups, "look", lambda: places)
    mine, other = ids.new(), ids.new()
    for run in (mine, other):
        (tree / f"remit-{run}").mkdir()
    (tree / "somebody-elses").mkdir()
    with begin(cgroups.leftovers()[mine], tmp_path) as started:
        assert set(cgroups.leftovers()) == {mine, other}
        cgroups.end_groups_of({mine})
        assert started.wait(timeout=20) == -9
    assert set(cgroups.leftovers()) == {other}
    assert (tree / "somebody-elses").exists()


def test_a_tree_without_the_bounds_is_not_used_for_them(tree: Path) -> None:
    """As it is where the older trees have them."""
    if {cgroups.PROCESSES, cgroups.MEMORY} <= set(
        (tree / "cgroup.controllers").read_text().split()
    ):
        pytest.skip("the tree has them here")
    assert not cgroups._can_be_used(tree, (cgroups.PROCESSES, cgroups.MEMORY))
    assert [one for one in tree.iterdir() if one.is_dir()] == []
    assert not cgroups.look().unified


# ── on a folder that behaves like one ───────────────────────────────────────────────────────────

BOUNDS = {
    "pids": {"pids.max": "max", "pids.events": "max 0"},
    "memory": {
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.oom.group": "0",
        "memory.events": "low 0\noom 0\noom_kill 0",
    },
}


class Kernel(PosixPath):
    """A folder of groups: each has its files at once, and those that its parent passes on."""

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        super().mkdir(mode, parents, exist_ok)
        for name in ("cgroup.procs", "cgroup.kill", "cgroup.subtree_control"):
            Path(self, name).touch()
        self._receive(Path(self.parent, "cgroup.subtree_control"))

    def rmdir(self) -> None:
        for file in Path(self).iterdir():
            file.unlink()
        super().rmdir()

    def write_text(self, data: str, *_: Any, **__: Any) -> int:
        if not Path(self).exists():
            raise PermissionError("the kernel makes its files, and nobody else")
        if self.name == "cgroup.subtree_control":
            if Path(self.parent, "cgroup.procs").read_text():
                raise OSError(16, "it has processes of its own")
            Path(self).write_text(data.replace("+", ""))
            for child in Path(self.parent).iterdir():
                if child.is_dir():
                    Kernel(child)._receive(Path(self))
            return len(data)
        return Path(self).write_text(data)

    def _receive(self, control: Path) -> None:
        passed_on = control.read_text().split() if control.exists() else []
        for kind in passed_on:
            for name, value in BOUNDS[kind].items():
                Path(self, name).write_text(value)


@pytest.fixture
def service(tmp_path: Path) -> Kernel:
    """What a manager gives a service as its own, with the service in a part of it."""
    top = Kernel(tmp_path / "service")
    top.mkdir()
    Kernel(top / "main").mkdir()
    Path(top, "main", "cgroup.procs").write_text("4711")
    return top


def delegate(folder: Path) -> None:
    try:
        os.setxattr(folder, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"DELEGATION IS NOT TESTED: {error.strerror}")


def own(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(cgroups, "_own_folder", lambda kind: None if kind else folder)
    cgroups.look.cache_clear()


@pytest.fixture(autouse=True)
def looked_anew() -> Iterator[None]:
    yield
    with contextlib.suppress(AttributeError):
        cgroups.look.cache_clear()


def test_groups_are_made_beside_us_in_what_was_given_to_us(
    service: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(monkeypatch, service / "main")
    assert cgroups.look() == cgroups.Places({})  # it has processes, and above it is not ours
    delegate(service)
    own(monkeypatch, service / "main")
    found = cgroups.look()
    assert found.unified
    assert found.bound == {"pids", "memory"}
    assert set(found.folders.values()) == {service}
    assert Path(service, "cgroup.subtree_control").read_text() == "pids memory"


def test_a_group_has_its_bounds_before_anybody_is_in_it(
    service: Kernel, monkeypatch: pytest.MonkeyPatch, ids: Ids
) -> None:
    delegate(service)
    own(monkeypatch, service / "main")
    run = ids.new()
    group = cgroups.create(run, processes=7, memory=64 << 20)
    assert group is not None
    folder = Path(service, f"remit-{run}")
    said = {file.name: file.read_text() for file in folder.iterdir()}
    assert said["pids.max"] == "7"
    assert said["memory.max"] == str(64 << 20)
    assert said["memory.swap.max"] == "0"
    assert said["memory.oom.group"] == "1"
    assert group.join(["true"])[-2:] == [str(folder), "true"]
    assert set(cgroups.leftovers()) == {run}
    group.end()
    assert not folder.exists()


def test_without_swap_there_is_nothing_to_bound_it(
    service: Kernel, monkeypatch: pytest.MonkeyPatch, ids: Ids
) -> None:
    delegate(service)
    monkeypatch.delitem(BOUNDS["memory"], "memory.swap.max")
    own(monkeypatch, service / "main")
    assert cgroups.create(ids.new(), processes=7, memory=1 << 20) is not None


def test_a_group_says_why_its_processes_were_ended(
    service: Kernel, monkeypatch: pytest.MonkeyPatch, ids: Ids
) -> None:
    delegate(service)
    own(monkeypatch, service / "main")
    run = ids.new()
    group = cgroups.create(run, processes=7)
    assert group is not None
    folder = Path(service, f"remit-{run}")
    assert (folder / "memory.max").read_text() == "max"
    assert not group.ran_out_of_memory()
    assert not group.had_too_many_processes()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    (folder / "pids.events").write_text("max 3\n")
    assert group.ran_out_of_memory()
    assert group.had_too_many_processes()


def test_a_bound_that_the_kernel_does_not_take_leaves_nothing_behind(
    service: Kernel, monkeypatch: pytest.MonkeyPatch, ids: Ids
) -> None:
    delegate(service)
    own(monkeypatch, service / "main")
    assert cgroups.look().unified
    monkeypatch.delitem(BOUNDS["memory"], "memory.oom.group")
    assert cgroups.create(ids.new(), processes=7, memory=1 << 20) is None
    assert cgroups.leftovers() == {}
