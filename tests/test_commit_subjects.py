"""The check of commit subjects, on subjects and on a repository of its own."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "commit-subjects"


def problem(subject: str) -> str | None:
    found = runpy.run_path(str(SCRIPT))["problem"](subject)
    assert found is None or isinstance(found, str)
    return found


@pytest.mark.parametrize(
    "subject",
    ["Refuse a stale decision", "Bring mail back", "Embed the schema", "Need no lock", "x" * 72],
)
def test_an_imperative_of_at_most_72_characters_is_fine(subject: str) -> None:
    assert problem(subject[:1].upper() + subject[1:]) is None


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("Refuse " + "x" * 66, "73 characters"),
        ("refuse a stale decision", "small letter"),
        ("Whoever holds a program does not obey", "not imperative"),
        ("A process that ends is gone", "not imperative"),
        ("Adding a check", "not imperative"),
        ("Added a check", "not imperative"),
        ("Add a check.", "full stop"),
        ("", "small letter"),
    ],
)
def test_what_is_wrong_is_said(subject: str, said: str) -> None:
    assert said in (problem(subject) or "")


def test_only_commits_after_the_check_are_looked_at(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull},
        )

    def check() -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, str(tmp_path / "scripts" / SCRIPT.name)],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "whatever was said before")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / SCRIPT.name).write_text(SCRIPT.read_text())
    git("add", ".")
    git("commit", "-q", "-m", "Check subjects")
    assert check() == (0, "")
    git("commit", "-q", "--allow-empty", "-m", "Those that are new")
    code, said = check()
    assert code == 1
    assert "Those that are new: is not imperative" in said
