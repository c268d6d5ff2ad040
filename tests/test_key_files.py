"""Files with keys in a folder to work in: found by their names, and hidden from runs."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from remit.errors import Refused, TooLarge
from remit.ids import AgentId, CompanyId, FolderId
from remit.model.connections.folder import KEY_FILES, Folder, FolderKind, holds_keys
from remit.runtime.runs import conditions, held_commands, key_files
from remit.runtime.sandbox import sandbox_policy
from remit.runtime.sandbox.mounts import View
from tests import working
from tests.company import Company
from tests.git_remote import git
from tests.planted import KEY, KEYS, plant, plant_keys
from tests.test_folders import bind, run
from tests.test_sandbox import kind  # noqa: F401

needs_sandbox = pytest.mark.skipif(not sandbox_policy.look().usable, reason="THERE IS NO SANDBOX")


def names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in key_files.found(folder)]


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        *((name, True) for name in (".env", ".env.local", ".env.example", ".envrc", ".ENV")),
        *((name, True) for name in (".credentials.json", "auth.json", "oauth_creds.json")),
        *((name, False) for name in ("env", "x.env", "author.json", "auth.json.md", ".en")),
    ],
)
def test_a_name_says_whether_a_file_holds_keys(name: str, hidden: bool) -> None:
    assert holds_keys(name) is hidden


@pytest.mark.requirement("FX-80")
def test_keys_are_found_at_every_depth_and_nothing_else(tmp_path: Path) -> None:
    plant_keys(tmp_path)
    plant(tmp_path, {"a/b/c/d/e/f/g/h/i/j/auth.json": "x", "src/app.py": "x"})
    plant(tmp_path, {".git/refs/heads/auth.json": "x", ".env-venv/pyvenv.cfg": "x"})
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    expected = {name for name in KEYS if not name.startswith(".envs/")}
    assert set(names(tmp_path)) == {*expected, ".envs", "a/b/c/d/e/f/g/h/i/j/auth.json"}


def test_a_link_counts_as_the_file_that_it_leads_to(tmp_path: Path) -> None:
    work = tmp_path / "work"
    plant(work, {"config/production": "x"})
    plant(tmp_path, {"outside": "x"})
    (work / ".env").symlink_to("config/production")
    (work / ".env.outside").symlink_to(tmp_path / "outside")
    (work / ".env.loop").symlink_to(".env.loop")
    (work / ".env.all").symlink_to(".")
    assert names(work) == ["config/production"]


def test_more_keys_than_can_be_hidden_are_refused(tmp_path: Path) -> None:
    plant(tmp_path, {f"{number}/.env": "x" for number in range(key_files.MOST + 1)})
    with pytest.raises(TooLarge, match="501 files"):
        key_files.found(tmp_path)


# ── git ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that tracks one of its two files with keys."""
    work = tmp_path / "work"
    plant(work, {".env.example": "KEY=\n", "sub/.env.example": "KEY=1\n", "app.py": "x"})
    git(work, "init", "--quiet")
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "x")
    plant(work, {".env": f"KEY={KEY}\n"})
    return work


@pytest.mark.parametrize("version", ["2", "3"])
def test_what_git_tracks_unchanged_is_shown(project: Path, version: str) -> None:
    if version == "3":  # it has entries with more flags
        plant(project, {"new.txt": "x"})
        git(project, "add", "--intent-to-add", "new.txt")
    assert (project / ".git" / "index").read_bytes()[7] == int(version)
    assert names(project) == [".env"]
    (project / ".env.example").write_text("KEY=a person's\n")
    assert names(project) == [".env", ".env.example"]


def test_an_index_shows_no_file_whose_content_its_writer_does_not_know(project: Path) -> None:
    (project / ".env").rename(project / "kept")
    (project / ".env").write_text("KEY=a guess\n")
    git(project, "add", "--all", "--force")
    (project / "kept").rename(project / ".env")
    assert ".env" in names(project)


def test_only_the_first_guess_in_an_index_counts(project: Path) -> None:
    """With as many guesses as fit, an index would tell which of them is right."""
    git(project, "add", "--force", ".env")
    assert names(project) == []
    index = project / ".git" / "index"
    content = index.read_bytes()
    count = struct.unpack_from(">I", content, 8)[0]
    entry = bytes(62) + b".env\0" + bytes(5)
    index.write_bytes(content[:8] + struct.pack(">I", count + 1) + entry + content[12:])
    assert names(project) == [".env"]


@pytest.mark.parametrize(
    "index",
    [b"", b"DIRC", b"DIRC" + struct.pack(">II", 2, 1 << 31), b"DIRC" + struct.pack(">II", 4, 1)],
)
def test_an_index_that_cannot_be_read_shows_nothing(project: Path, index: bytes) -> None:
    (project / ".git" / "index").write_bytes(index + b"\0" * 10)
    assert ".env" in names(project)
    (project / ".git" / "index").unlink()
    os.mkfifo(project / ".git" / "index")
    assert names(project) == [".env", ".env.example", "sub/.env.example"]


# ── runs ────────────────────────────────────────────────────────────────────────────────────────


@needs_sandbox
@pytest.mark.requirement("FX-80")
def test_a_run_finds_keys_empty_and_cannot_change_them(small: Company, tmp_path: Path) -> None:
    work = tmp_path / "work"
    plant_keys(work)
    plant(work, {"readable": "readable-4711", "sub/also": "also-4711"})
    every = " ".join(f"'{name}'" for name in KEYS)
    script = f"""cat; cat {every} readable sub/also; tar c . | grep -a -o {KEY}
for name in {every}; do echo stolen >"$name"; rm -rf "$name"; mv "$name" taken; ln "$name" x; done
mv sub moved; cat moved/deep/.env.local; mv moved sub; umount .env; ls .envs
echo done >new; cat new"""
    agent = working.program(small, "coder", script)
    made = bind(small, agent, path=str(work))
    assert made["hides"] == list(KEY_FILES)
    log = run(small, agent)
    assert KEY not in log
    for text in ("readable-4711", "also-4711", "done"):
        assert text in log
    assert 'hidden-there: \\".claude/.credentials.json\\", ' in log
    for name in KEYS:
        assert (work / name).read_text() == f"KEY={KEY}\n", name
    assert working.listed(small, agent)[0]["status"] == "completed"


@needs_sandbox
@pytest.mark.usefixtures("kind")
@pytest.mark.requirement("FX-80")
def test_where_keys_cannot_be_hidden_nothing_is_started(small: Company, tmp_path: Path) -> None:
    """Landlock allows a folder with all that is in it; without keys in it, a project is fine."""
    work = tmp_path / "work"
    plant(work, {".claude/settings.json": "{}", ".codex/config.toml": "", "readable": "yes-4711"})
    agent = working.program(small, "coder", "cat readable .env; echo started")
    bind(small, agent, path=str(work))
    assert "yes-4711" in run(small, agent)
    plant(work, {".env": KEY})
    log = run(small, agent, 2)
    assert KEY not in log
    ended = working.listed(small, agent)[0]
    if sandbox_policy.can_cover():
        assert "started" in log
    else:
        assert "started" not in log
        assert f"keys cannot be hidden on this machine: {work}/.env" in ended["error"]


@needs_sandbox
def test_a_file_can_be_hidden_that_is_made_while_nobody_looks(
    small: Company, tmp_path: Path
) -> None:
    """What is to be empty need not be there yet: it stays empty."""
    work, home = tmp_path / "work", tmp_path / "own"
    work.mkdir()
    home.mkdir()
    sealed = home / "AGENTS.md"

    async def tried() -> held_commands.Ended:
        return await held_commands.run(
            ["/bin/sh", "-c", f"echo planted >{sealed}; mv {work} x; cat {sealed}; echo over"],
            folder=work,
            home=home,
            env={},
            seconds=30,
            view=View(covered=[sealed]),
        )

    text = small.wait(tried()).heard.text
    assert "over" in text
    assert sealed.read_text() == ""


@pytest.mark.requirement("FX-80")
def test_a_file_with_keys_is_no_content_of_a_file_of_the_knowledge_base(tmp_path: Path) -> None:
    work, workspace = tmp_path / "work", tmp_path / "run"
    plant_keys(work)
    plant(work, {"fine": "fine-4711"})
    plant(workspace, {".env": "the run's own"})
    lasting = Folder(FolderId("f"), CompanyId("c"), 0, FolderKind.WORK, AgentId("a"), str(work))
    for name in KEYS:
        for path in (name, f"./{name}", f"{work}/{name}", f"sub/../{name}", f"sub/.//../{name}"):
            with pytest.raises(Refused, match="holds keys"):
                conditions.open_in_run(tmp_path, str(workspace), lasting, path)
    with conditions.open_in_run(tmp_path, str(workspace), lasting, "fine") as stream:
        assert stream.read() == b"fine-4711"
    with conditions.open_in_run(tmp_path, str(workspace), None, ".env") as stream:
        assert stream.read() == b"the run's own"
