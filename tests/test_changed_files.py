"""Files that a run changed: how they are told apart, and that they count as progress."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.runtime.runs import changed_files
from remit.runtime.runs.changed_files import digest_since, look
from tests.agent_stage import stage
from tests.agents.fake_model import Say, Use
from tests.company import Company, Member, opened
from tests.mailing import send
from tests.real_programs import command, config, model, surroundings
from tests.working import at_work, lease, over, program, statuses

__all__ = ["surroundings"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "deep" / "er").mkdir(parents=True)
    (place / "kept.txt").write_text("kept")
    (place / "deep" / "er" / "old.txt").write_text("old")
    return place


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Company]:
    """With the clock on the wall, for workers."""
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        yield company


def test_without_a_change_there_is_no_digest(folder: Path) -> None:
    assert digest_since(look([folder])) is None
    assert digest_since(look([folder / "missing"])) is None


def test_the_same_change_has_the_same_digest_in_whatever_folder(
    folder: Path, tmp_path: Path
) -> None:
    digests = []
    for name in ("one", "two", "three"):
        place = tmp_path / name
        place.mkdir()
        before = look([place])
        (place / "new.txt").write_text("three" if name == "three" else "the same")
        digests.append(digest_since(before))
    assert digests[0] is not None
    assert digests[0] == digests[1] != digests[2]


def test_added_changed_and_removed_files_are_changes(folder: Path) -> None:
    digests = set()
    for change in (
        lambda: (folder / "new.txt").write_text("new"),
        lambda: (folder / "kept.txt").write_text("changed"),
        lambda: (folder / "deep" / "er" / "old.txt").unlink(),
    ):
        before = look([folder])
        change()
        digests.add(digest_since(before))
    assert len(digests - {None}) == 3


def test_caches_and_what_remit_puts_there_are_no_change(folder: Path) -> None:
    before = look([folder])
    for name in (".tmp", ".kb", "__pycache__", "node_modules", ".pytest_cache"):
        (folder / name).mkdir()
        (folder / name / "file").write_text("x")
    assert digest_since(before) is None


def test_a_commit_is_a_change_and_gits_own_files_are_none(folder: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    git("init")
    git("add", ".")
    before = look([folder])
    git("status")
    assert digest_since(before) is None
    git("commit", "-m", "First")
    assert digest_since(before) is not None


def test_links_pipes_and_devices_are_neither_followed_nor_read(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "file-link").symlink_to(tmp_path / "outside" / "a")
    os.mkfifo(folder / "pipe")
    before = look([folder])
    (tmp_path / "outside" / "a").write_text("a")
    assert digest_since(before) is None
    assert changed_files._read(folder / "pipe", 100) == b""
    assert changed_files._read(folder / "file-link", 100) == b""


def test_of_too_many_files_only_those_seen_both_times_are_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_files, "MOST_FILES", 3)
    many = folder / "many"
    many.mkdir()
    for number in range(10):
        (many / str(number)).write_text("x")
    before = look([many])
    assert len(before.states) == 3
    assert not before.whole
    assert digest_since(before) is None
    for number in range(10):
        (many / str(number)).write_text("changed")
    assert digest_since(before) is not None


def test_a_folder_in_another_one_is_looked_at_once(folder: Path) -> None:
    assert look([folder, folder / "deep", folder]).states == look([folder]).states


CUT = """cat > /dev/null; {does}; echo '{{"ok": false, "fault": "turns", "error": "Cut."}}'"""


@pytest.mark.requirement("FX-64")
@pytest.mark.parametrize(
    ("does", "runs", "failures"),
    [("echo $REMIT_RUN > result.txt", 4, 0), ("echo the same > result.txt", 2, 1), (":", 1, 1)],
)
def test_a_program_that_is_cut_goes_on_at_once_while_it_changes_files(
    real: Company, does: str, runs: int, failures: int
) -> None:
    dev = program(real, "dev", CUT.format(does=does))
    send(real, real.board, "agent:dev", "Build it.")
    at_work(real, over(real, dev, runs))
    states = statuses(real, dev)
    assert len(states) >= runs
    if len(states) == runs:  # it may have begun another one before the worker stopped
        assert failures_of(real, dev) == failures


def failures_of(company: Company, member: Member) -> int:
    now = lease(company, member)
    assert now is not None
    return now.failures


@pytest.mark.requirement("FX-64")
def test_the_real_claude_codes_on_after_two_cuts(tmp_path: Path) -> None:
    """Its runs were 9 and 34 minutes apart."""
    shell = [Use("Bash", {"command": f"echo {number} > part-{number}.txt"}) for number in range(12)]

    async def story() -> None:
        command("claude")
        with model("claude", [*shell, *[Say("I am done.")] * 9]) as fake:
            async with stage(tmp_path) as at:
                settings = config("claude", fake, maxTurns=2)
                await at.cast("claude", {**settings, "tools": ["Bash"]})
                await at.send("Build it.")
                # Far sooner than minutes, which is how long this waits.
                found = (await at.over(3))[:3]
                assert [run["exit_reason"] for run in found] == ["max_turns"] * 3

    asyncio.run(story())
