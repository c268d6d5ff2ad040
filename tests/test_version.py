"""The version of the program: of checkouts, of builds, and in the record of an instance."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import remit
from remit import version
from remit.errors import Conflict, NotFound
from remit.services.identity import as_system
from remit.services.people import instance
from remit.services.record import events
from remit.settings import load
from remit.store.backups import backup
from remit.store.blob_store.blobs import open_blobs
from tests.company import Company
from tests.test_cli import Home

pytestmark = pytest.mark.requirement("FX-53")

DEVELOPMENT = r"0\.2\.0\.dev\d+\+g[0-9a-f]{8,}(\.dirty\.d[0-9a-f]{8})?"


def git(tree: Path, *arguments: str) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", "-C", tree, *arguments],
        env={"PATH": os.environ["PATH"], **who, **settings},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def commit(tree: Path) -> str:
    git(tree, "commit", "--quiet", "--allow-empty", "--message=A change")
    return git(tree, "rev-parse", "--short=8", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with two commits and no tag."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    git(checkout, "init", "--quiet")
    (checkout / "a.py").write_text("a = 1\n")
    (checkout / ".gitignore").write_text("*.log\n")
    git(checkout, "add", ".")
    commit(checkout)
    commit(checkout)
    return checkout


def test_a_checkout_without_tags_counts_all_commits(tree: Path) -> None:
    head = git(tree, "rev-parse", "--short=8", "HEAD")
    assert version.of_tree(tree) == f"0.2.0.dev2+g{head}"


@pytest.mark.parametrize(
    ("tag", "coming"),
    [("v0.1.0", "0.2.0"), ("v0.1.9", "0.2.0"), ("v0.2.0", "0.3.0"), ("v1.4.2", "1.5.0")],
)
def test_a_checkout_counts_the_commits_since_the_last_release(
    tree: Path, tag: str, coming: str
) -> None:
    git(tree, "tag", tag)
    assert version.of_tree(tree) == tag.removeprefix("v")
    head = commit(tree)
    assert version.of_tree(tree) == f"{coming}.dev1+g{head}"


@pytest.mark.parametrize("tag", ["v0.2.0rc1", "very.old.one", "v0.2", "stable"])
def test_a_tag_of_something_else_is_no_release(tree: Path, tag: str) -> None:
    git(tree, "tag", tag)
    assert version.of_tree(tree).startswith("0.2.0.dev2+g")


def test_a_changed_tree_is_marked_and_no_two_are_the_same(tree: Path) -> None:
    git(tree, "tag", "v0.2.0")
    said = [version.of_tree(tree)]
    (tree / "today.log").write_text("ignored")
    assert version.of_tree(tree) == said[0]
    for name, text in [("a.py", "a = 2\n"), ("a.py", "a = 3\n"), ("b.py", "1"), ("b.py", "2")]:
        (tree / name).write_text(text)
        said.append(version.of_tree(tree))
    assert len(set(said)) == len(said)
    assert all(re.fullmatch(r"0\.3\.0\.dev0\+g\w{8}\.dirty\.d\w{8}", one) for one in said[1:])


def test_variables_of_another_git_do_not_name_the_tree(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = version.of_tree(tree)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert version.of_tree(tree) == known


def test_a_source_distribution_carries_its_version(tree: Path) -> None:
    shutil.rmtree(tree / ".git")
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: remit\nVersion: 0.2.0.dev7+gab\n")
    assert version.of_tree(tree) == "0.2.0.dev7+gab"


def test_a_tree_inside_another_repository_is_not_of_that(tree: Path) -> None:
    inside = tree / "unpacked"
    inside.mkdir()
    assert version.of_tree(inside) == version.UNKNOWN


def test_without_git_and_without_a_build_the_version_is_unknown(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "/nowhere")
        assert version.of_tree(tree) == version.UNKNOWN
    (tree / ".git/HEAD").write_text("broken")
    assert version.of_tree(tree) == version.UNKNOWN
    shutil.rmtree(tree / ".git")
    assert version.of_tree(tree) == version.UNKNOWN
    (tree / "PKG-INFO").write_text("nothing of use\n")
    assert version.of_tree(tree) == version.UNKNOWN


def test_the_package_says_what_is_checked_out_now() -> None:
    assert remit.__version__ == version.current()
    assert re.fullmatch(DEVELOPMENT, version.current())
    with pytest.raises(AttributeError, match="no attribute 'version_info'"):
        _ = remit.version_info


def test_every_surface_of_the_command_line_says_the_version(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    said = home("--version").out.strip()
    assert re.fullmatch(f"remit {DEVELOPMENT}", said)
    assert home("version").out.strip() == said
    assert f"remit {home.json('version')['version']}" == said
    (package,) = [one for one in home.json("doctor") if one["check"] == "package"]
    assert said == f"remit {package['found'].removesuffix(', complete')}"


def test_an_ordinary_command_does_not_ask_for_the_version() -> None:
    asked = (
        "import sys\n"
        "from remit import version\n"
        "from remit.entrypoints.cli.main import run\n"
        "run(['completion', 'bash'])\n"
        "sys.exit(version.current.cache_info().currsize)\n"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, timeout=60)
    assert done.returncode == 0


# ── in the record ───────────────────────────────────────────────────────────────────────────────


def started(company: Company) -> list[dict[str, object]]:
    """Versions that the record of a company says were started, oldest first."""
    page = company.call(company.board, events.listing, company=company.id, after=0, limit=500)
    return [one["details"] for one in page if one["action"] == "version.start"]


def start(company: Company, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(version, "current", lambda: name)
    company.wait(company.app.first_start(alone=False))


def test_the_record_says_which_version_was_started(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = version.current()
    for name in ("0.2.0", "0.2.0", "0.2.1", "0.2.1", "0.2.0"):
        start(small, monkeypatch, name)
    assert started(small) == [
        {"was": None, "now": here},
        {"was": here, "now": "0.2.0"},
        {"was": "0.2.0", "now": "0.2.1"},
        {"was": "0.2.1", "now": "0.2.0"},
    ]
    assert small.call(small.board, events.verify, company=small.id)["ok"]


def test_only_remit_itself_records_its_version(small: Company) -> None:
    with pytest.raises(NotFound):
        small.call(small.board, instance.start_version, version="9.9")
    small.call(as_system(), instance.start_version, version="0.2.0")
    with pytest.raises(Conflict):
        small.call(as_system(), instance.start_version, version="0.2.0")


# ── in a backup ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written_by", "told"),
    [("0.2.1", "0.2.1"), (None, ""), ("\x1b[2J", ""), (["0.2.1"], ""), ("9" * 101, "")],
)
def test_a_backup_says_which_version_wrote_it(
    small: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written_by: object, told: str
) -> None:
    monkeypatch.setattr(version, "current", lambda: written_by)
    settings = small.app.settings
    file, empty = tmp_path / "a.backup", tmp_path / "restored"
    backup.create(settings.database_url, lambda: small.app.blobs, file)
    monkeypatch.setattr(version, "current", lambda: "0.3.0")
    elsewhere = load({"REMIT_HOME": str(empty)})
    restored = backup.restore(
        file, empty, elsewhere.database_url, lambda: open_blobs(elsewhere.blob_url, empty / "run")
    )
    assert restored.version == told


def test_a_restore_says_which_version_wrote_the_backup(tmp_path: Path) -> None:
    home, restored = Home(tmp_path / "home"), Home(tmp_path / "restored")
    file = str(tmp_path / "a.backup")
    assert home("up", "--detach", "--port", "0").code == 0
    assert home("down").code == 0
    assert f"Remit {version.current()} wrote it." in home("backup", file).out
    answer = restored.json("restore", file)
    assert answer["version"] == version.current()
