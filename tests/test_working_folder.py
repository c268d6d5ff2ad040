"""A folder to work in is data: nothing that lies in it, above it or in a home configures a program.

The programs are the real Claude Code and Codex; the model behind them is a script on loopback, and
whoever else is contacted is seen. `planted.py` has the tricks. The controls start the same programs
in the same folders without our wall, where the tricks work.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from remit.runtime.sandbox import sandbox_policy
from remit.services.connections import folders, repos
from remit.services.rights import grants
from tests import planted
from tests.agent_stage import Answer, Stage, stage
from tests.agents.fake_model import Say, Step, Use
from tests.git_remote import Remote
from tests.planted import Elsewhere
from tests.real_programs import KEY, RESUMED, Fake, command, config, model, surroundings
from tests.test_sandbox import found

__all__ = ["surroundings"]

KINDS = ["claude", "codex"]
LETTER = "letter-4711"
#: A skill of Remit, in the home of the instance.
SKILL = "skills/remit/skills/remit-create-agent/SKILL.md"


def steps(kind: str, folder: Path | str) -> list[Step]:
    """What the model has its program do: read a file in a subfolder, and all keys."""
    keys = (
        f"cd '{folder}'; cat {' '.join(planted.KEYS)}; cat README.md; "
        "echo repository: $(git rev-parse --is-inside-work-tree); echo over"
    )
    if kind == "claude":
        read = Use("Read", {"file_path": f"{folder}/sub/file.txt"})
        return [read, Use("Bash", {"command": keys, "description": "x"}), Say("done")]
    read = Use("exec_command", {"cmd": f"cat '{folder}/sub/file.txt'"})
    return [read, Use("exec_command", {"cmd": keys}), Say("done")]


def settings(kind: str, fake: Fake, **more: Any) -> dict[str, Any]:
    if kind == "claude":
        more = {"tools": ["Read", "Edit", "Write", "Bash", "Skill", "Agent"], **more}
    return config(kind, fake, **more)


async def run(at: Stage, count: int, to: str = "agent:ceo") -> Answer:
    await at.send(f"{LETTER}: go on. {planted.NAMED}", to=to)
    done = (await at.over(count))[count - 1]
    assert done["status"] == "completed", (done["error"], await at.log(done))
    return done


async def bind(at: Stage, path: Path) -> None:
    await at.app.gate(at.board, folders.bind, company=None, agent="ceo", path=str(path))


def assert_held(kind: str, fake: Fake, elsewhere: Elsewhere, *places: Path) -> None:
    assert fake.failures == []
    assert planted.ran(*places) == set()
    assert planted.told(fake.requests, LETTER) == set()
    assert elsewhere.contacts == []
    skill = "remit:remit-create-agent" if kind == "claude" else "- remit-create-agent: "
    assert all(skill in json.dumps(request) for request in fake.requests)


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whoever is contacted, and is not on this machine, is contacted here."""
    with Elsewhere() as elsewhere:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, elsewhere.url)
        yield elsewhere


@pytest.mark.requirement("FX-80", "FX-78")
@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_project_with_settings_is_worked_in_and_configures_nothing(
    kind: str, tmp_path: Path, outside: Elsewhere
) -> None:
    """Before the first request, when a conversation is resumed, and after a file in a subfolder was
    read; files with keys are empty."""
    work, above = tmp_path / "above" / "work", tmp_path / "above"
    planted.plant(work, planted.files("work", outside.url))
    planted.plant(above, planted.files("above", outside.url))
    planted.plant_keys(work)
    (work / "README.md").write_text("readable-4711\n")
    planted.make_repository(work, "work")

    async def story() -> None:
        command(kind)
        script = steps(kind, work) * 2
        with model(kind, script) as fake:
            async with stage(above / "home") as at:
                await at.cast(kind, settings(kind, fake, **RESUMED))
                await bind(at, work)
                first = await run(at, 1)
                home = at.settings.home / "agents" / first["agent_id"]
                planted.plant(home, planted.files("home", outside.url))
                await run(at, 2)
                texts = [result.text for result in fake.results()]
                assert len(texts) == 4, texts
                for text in (texts[1], texts[3]):
                    assert "readable-4711" in text
                    assert "repository: true" in text, "the model's own git works"
                    assert "over" in text
                    assert planted.KEY not in json.dumps(fake.requests)
                assert_held(kind, fake, outside, tmp_path)

    asyncio.run(story())
    assert planted.KEY in (work / ".env").read_text(), "it is hidden, not changed"


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize("sandbox", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_a_repository_configures_nothing(
    kind: str, sandbox: str, tmp_path: Path, outside: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy has what was committed, and what a run left in it beside that: settings of git."""
    here = found(sandbox)
    monkeypatch.setattr(sandbox_policy, "look", lambda: here)
    remote = Remote(tmp_path / "remotes" / "site")
    remote.commit({**planted.files("repo", outside.url), "README.md": "readable-4711\n"})

    skill = tmp_path / "home" / SKILL
    spoil = shell(kind, f"echo spoiled >>{skill}; mv {skill.parent} /tmp; rm -rf {skill}; echo x")
    read = Use("Skill", {"skill": "remit:remit-create-agent"})
    if kind == "codex":
        read = shell(kind, f"cat {skill}")

    def script(request: Mapping[str, Any]) -> Sequence[Step]:
        del request
        return [*steps(kind, copies[0] if copies else ".")[:-1], spoil, read, Say("done")] * 2

    copies: list[Path] = []

    async def story() -> None:
        command(kind)
        with model(kind, script) as fake:
            async with stage(tmp_path / "home") as at:
                own = await at.hire("dev", kind, settings(kind, fake, **RESUMED))
                await at.app.gate(at.board, repos.add, company=None, name="site", url=remote.url)
                right: dict[str, Any] = {"resource": "repo:site", "level": "read", "mode": "allow"}
                await at.app.gate(at.board, grants.give, company=None, to=own["id"], **right)
                bound = await at.app.gate(
                    at.board, folders.bind, company=None, agent="dev", repo="site"
                )
                home = at.settings.home
                copies.append(home / "projects" / own["id"] / bound["id"])
                await run(at, 1, to="agent:dev")
                (mirror,) = (home / "repos").glob("*/site.git")
                (copies[0] / "README.md").write_text("readable-4711 and changed\n")
                planted.plant_git(copies[0], "copy", mirror.as_uri())
                planted.plant(home, planted.files("instance", outside.url))
                planted.plant(home / "agents" / own["id"], planted.files("home", outside.url))
                remote.commit({"more.txt": "later"})
                done = await run(at, 2, to="agent:dev")
                assert "readable-4711 and changed" in fake.results()[-3].text
                assert "Propose a configuration" in json.dumps(fake.requests[-1])
                assert "spoiled" not in skill.read_text()
                assert_held(kind, fake, outside, copies[0], home / "agents")
                assert done["session_id"]

    asyncio.run(story())


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_does_not_configure_itself_by_what_it_writes(
    kind: str, tmp_path: Path, outside: Elsewhere
) -> None:
    """In its workspace, above a file that it then reads, and in its home."""
    kit = tmp_path / "kit"
    planted.plant(kit / "all", planted.files("kit", outside.url))

    async def story() -> None:
        command(kind)
        with model(kind, lambda _: script) as fake:
            async with stage(tmp_path / "home") as at:
                made = await at.hire("dev", kind, settings(kind, fake))
                await at.app.gate(at.board, folders.mount, company=None, path=str(kit), agent="dev")
                line = f"cp -r {kit}/all/. . && cp -r {kit}/all/. ~/; pwd"
                script[:] = [shell(kind, line), *steps(kind, ".")]
                await run(at, 1, to="agent:dev")
                assert "/run/" in fake.results()[0].text
                assert_held(kind, fake, outside, at.settings.home / "agents" / made["id"])
                assert planted.ran(at.settings.home) == set()

    script: list[Step] = []
    asyncio.run(story())


def shell(kind: str, line: str) -> Use:
    if kind == "claude":
        return Use("Bash", {"command": line, "description": "x"})
    return Use("exec_command", {"cmd": line})


@pytest.mark.requirement("FX-80", "FX-79")
@pytest.mark.parametrize("kind", KINDS)
def test_full_access_brings_no_settings_of_the_person_and_of_folders_above(
    kind: str, tmp_path: Path, outside: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of the sandbox the program sees the home of the worker's user, and uses its login."""
    person, above = tmp_path / "person", tmp_path / "above"
    work = above / "work"
    for folder, tag in ((work, "work"), (above, "above"), (person, "person")):
        planted.plant(folder, planted.files(tag, outside.url))
    planted.plant(person / ".claude", planted.files("config", outside.url))
    planted.make_repository(above, "above")  # a project is often a part of a repository
    login = {
        "accessToken": KEY,
        "refreshToken": "x",
        "expiresAt": 1 << 42,
        "scopes": ["user:inference"],
    }
    oauth = {"claudeAiOauth": {**login, "subscriptionType": "pro"}}
    (person / ".claude" / ".credentials.json").write_text(json.dumps(oauth))
    (person / ".codex" / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": KEY}))
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    async def story() -> None:
        command(kind)
        with model(kind, steps(kind, work)) as fake:
            async with stage(above / "home") as at:
                more: dict[str, Any] = {"permissionMode": "bypassPermissions"}
                if kind == "codex":
                    more = {"codexSandbox": "danger-full-access"}
                await at.cast(kind, settings(kind, fake, sandbox="full", **more))
                right: dict[str, Any] = {"resource": "full_access", "level": "use"}
                await at.app.gate(at.board, grants.give, company=None, to="ceo", **right)
                await bind(at, work)
                await run(at, 1)
                assert len(fake.results()) == 2
                assert_held(kind, fake, outside, tmp_path)

    asyncio.run(story())


# ── controls ────────────────────────────────────────────────────────────────────────────────────


def started(kind: str, fake: Fake, work: Path, home: Path, *options: str) -> None:
    """Start a program without our wall."""
    shutil.rmtree(home / "tmp", ignore_errors=True)
    (home / "tmp").mkdir(parents=True)
    env = {
        "PATH": f"{Path(command(kind)).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "IS_SANDBOX": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": fake.url,
        "OPENAI_API_KEY": KEY,
        "CODEX_API_KEY": KEY,
    }
    argv = [command(kind), *options]
    if kind == "claude":
        argv += [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            "claude-sonnet-4-5",
        ]
        argv += ["--permission-mode", "bypassPermissions"]
    else:
        argv = [command(kind), "exec", "--json", "--skip-git-repo-check", "--disable", "plugins"]
        argv += ["-m", "a-model", "-c", "analytics.enabled=false", *options]
        argv += ["-c", 'sandbox_mode="danger-full-access"']
        argv += ["-c", "check_for_update_on_startup=false", "-"]
    words = f"{LETTER} {planted.NAMED}".encode()
    done = subprocess.run(
        argv, input=words, env=env, cwd=work, capture_output=True, timeout=60, check=False
    )
    assert done.stdout, done.stderr


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize("kind", KINDS)
def test_without_the_wall_the_folder_starts_programs_and_instructs(
    kind: str, tmp_path: Path
) -> None:
    command(kind)
    work, above = tmp_path / "above" / "work", tmp_path / "above"
    for folder, tag in ((work, "work"), (above, "above")):
        planted.plant(folder, planted.files(tag, "http://127.0.0.1:9", elsewhere=False))
    planted.make_repository(work, "work")
    planted.plant(tmp_path / "home", planted.start_files("home"))
    with model(kind, steps(kind, work)) as fake:
        options: list[str] = []
        if kind == "codex":
            settings = {"name": "x", "base_url": fake.url, "wire_api": "responses"}
            settings |= {"env_key": "OPENAI_API_KEY"}
            options = ["-c", 'model_provider="x"']
            for name, value in settings.items():
                options += ["-c", f"model_providers.x.{name}={json.dumps(value)}"]
        started(kind, fake, work, tmp_path / "home", *options)
        names = {mark.partition("-")[2] for mark in planted.ran(tmp_path)}
        assert planted.CONTROLS[kind] - names == set()
        assert planted.TOLD[kind] - planted.told(fake.requests, LETTER) == set()


@pytest.mark.requirement("FX-80")
def test_without_the_wall_the_folder_has_the_key_sent_elsewhere(tmp_path: Path) -> None:
    command("claude")
    with Elsewhere() as elsewhere, model("claude", [Say("never")]) as fake:
        planted.plant(tmp_path / "work", planted.files("work", elsewhere.url))
        started("claude", fake, tmp_path / "work", tmp_path / "home")
        assert fake.requests == []
        assert any(KEY in key for contact in elsewhere.contacts for key in contact.keys)
    assert os.listdir(tmp_path / "work")
