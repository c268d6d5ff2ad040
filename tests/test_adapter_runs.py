"""How adapters put a run to a program, and how they read what it says; without the programs."""

from __future__ import annotations

import asyncio
import json
import os
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import program_answer, registry
from remit.adapters.claude import claude_cli
from remit.adapters.codex import codex_cli, codex_wall
from remit.adapters.pace import Pace
from remit.adapters.running import Child, RunContext, RunResult, Usage
from remit.adapters.setup.detect import login_file, path_with
from remit.errors import Unsupported


class Silent(Child):
    """Prints what a test wants, and ends."""

    pid = 0

    def __init__(self, lines: Sequence[str], code: int) -> None:
        self._lines, self._code = lines, code

    async def lines(self) -> AsyncIterator[str]:
        for line in self._lines:
            yield line

    async def wait(self) -> int:
        return self._code

    async def end(self) -> None:
        self._code = -15


class Paper(RunContext):
    """A run that starts nothing."""

    def __init__(self, adapter: str, tmp_path: Path, **config: Any) -> None:
        self.config = registry.read(adapter, config)
        self.agent = {"id": "a", "name": "ada", "role": "engineer", "title": "", "reports_to": "b"}
        self.run_id, self.url, self.token = "r", "http://127.0.0.1:1", "rmt_run_x"
        self.workspace, self.home = tmp_path / "w", tmp_path / "h"
        self.workspace.mkdir()
        self.home.mkdir()
        self.instructions, self.turn, self.session = "be good", "do it", None
        self.credentials: Mapping[str, str] = {}
        self.beside, self.pace = {}, Pace()
        self.started: list[dict[str, Any]] = []
        self.printed: list[str] = []
        self.code = 0

    async def start(self, argv: Sequence[str], **more: Any) -> Child:
        self.started.append({"argv": list(argv), **more})
        return Silent(self.printed, self.code)

    def log(self, text: str, stream: str = "remit") -> None:
        return

    async def reported(self) -> RunResult:
        raise AssertionError("nobody reports about a paper")


def after(argv: Sequence[str], flag: str) -> str:
    return argv[list(argv).index(flag) + 1]


@pytest.mark.requirement("HB-15")
def test_the_system_prompt_is_given_by_flag(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    claude = claude_cli.command_line(Paper("claude", tmp_path / "1"), "claude", None)
    assert after(claude, "--append-system-prompt") == "be good"
    codex = codex_cli.command_line(Paper("codex", tmp_path / "2"), "codex", None)
    (told,) = [one for one in codex if one.startswith("developer_instructions=")]
    assert told.startswith('developer_instructions="be good\\n')


@pytest.mark.requirement("HB-19")
def test_full_access_is_said_by_name_and_never_the_default(tmp_path: Path) -> None:
    """D-29: without it a run has its workspace; with it, what the worker's user has."""
    for number, (kind, cli) in enumerate((("claude", claude_cli), ("codex", codex_cli))):
        (tmp_path / str(number)).mkdir()
        (tmp_path / f"full{number}").mkdir()
        plain = Paper(kind, tmp_path / str(number))
        full = Paper(kind, tmp_path / f"full{number}", sandbox="full")
        for context, wanted in ((plain, False), (full, True)):
            asyncio.run(cli.attempt(context, kind, None, None))
            assert context.started[0]["full_access"] is wanted
    (tmp_path / "c").mkdir()
    (tmp_path / "d").mkdir()
    bold = Paper("claude", tmp_path / "c", permissionMode="bypassPermissions")
    argv = claude_cli.command_line(bold, "claude", None)
    assert after(argv, "--permission-mode") == "bypassPermissions"
    bold = Paper("codex", tmp_path / "d", sandbox="full", codexSandbox="danger-full-access")
    assert 'sandbox_mode="danger-full-access"' in codex_cli.command_line(bold, "codex", None)


@pytest.mark.requirement("HB-14")
def test_the_shared_login_is_used_and_no_variable_leads_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-29, D-30: the worker's own login serves all agents; each has a place of its own beside it,
    and nothing of the worker's environment decides where."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere")
    monkeypatch.setenv("CODEX_HOME", "/elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for kind, cli, variable, name in (
        ("claude", claude_cli, "CLAUDE_CONFIG_DIR", ".credentials.json"),
        ("codex", codex_cli, "CODEX_HOME", "auth.json"),
    ):
        shared = tmp_path / "user" / f".{kind}"
        shared.mkdir(parents=True)
        (shared / name).touch()
        for mode in ("workspace", "full"):
            place = tmp_path / f"{kind}-{mode}"
            place.mkdir()
            context = Paper(kind, place, sandbox=mode)
            (context.home / f".{kind}").mkdir()
            login = login_file(os.environ, {variable: name, "HOME": f".{kind}/{name}"})
            assert login == shared / name
            asyncio.run(cli.attempt(context, kind, login, None))
            (started,) = context.started
            own = context.home / f".{kind}"
            if (mode, kind) == ("full", "claude"):
                assert started["env"][variable] == str(shared)
            elif mode == "full":
                # A person's instructions and keys lie beside the login.
                assert started["env"][variable] == str(own)
                assert (own / name).readlink() == shared / name
            else:
                assert started["env"][variable] == str(own)
                assert started["lent"] == {shared / name: own / name}
            assert "/elsewhere" not in started["env"].values()


def test_codex_gets_no_settings_for_a_provider_that_it_brings_along(tmp_path: Path) -> None:
    def settings(name: str, **config: str) -> list[str]:
        (tmp_path / name).mkdir()
        argv = codex_cli.command_line(Paper("codex", tmp_path / name, **config), "codex", None)
        return [word for word in argv if word.startswith("model_provider")]

    for name in codex_cli.BUILT_IN:
        assert settings(f"{name}-1", provider=name) == [f'model_provider="{name}"']
        elsewhere = settings(f"{name}-2", provider=name, baseUrl="https://gate.example/v1")
        assert f'model_provider="{name}-custom"' in elsewhere
        assert f'model_providers.{name}-custom.base_url="https://gate.example/v1"' in elsewhere
        assert not [word for word in elsewhere if word.startswith(f"model_providers.{name}.")]
    azure = settings("azure", provider="azure", baseUrl="https://gate.example/v1")
    assert 'model_provider="azure"' in azure


def test_no_token_and_no_key_is_in_a_command_line(tmp_path: Path) -> None:
    for number, (kind, cli) in enumerate((("claude", claude_cli), ("codex", codex_cli))):
        (tmp_path / str(number)).mkdir()
        context = Paper(kind, tmp_path / str(number), secretRef="mine")
        context.secret = "sk-secret"
        session = None
        argv = cli.command_line(context, kind, session)
        assert "rmt_run_x" not in " ".join(argv)
        assert "sk-secret" not in " ".join(argv)
        assert "sk-secret" in cli.environment(context, kind).values()


def test_a_secret_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="mine"):
        claude_cli.environment(Paper("claude", tmp_path, secretRef="mine"), "claude")


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"is_error": True, "subtype": "success", "api_error_status": 401}, "auth"),
        ({"is_error": True, "api_error_status": 529}, "overloaded"),
        ({"is_error": True, "subtype": "error_max_turns"}, "max_turns"),
        ({"is_error": True, "subtype": "error_max_budget_usd"}, "budget"),
        ({"is_error": True, "terminal_reason": "prompt_too_long"}, "context_full"),
        ({"is_error": True, "result": "Not logged in"}, "auth"),
        (
            {"is_error": True, "errors": ["No conversation found with session ID: x"]},
            "session_lost",
        ),
        ({"is_error": True, "terminal_reason": "api_error"}, "api_error"),
        ({"is_error": False, "result": "done"}, "completed"),
    ],
)
def test_claude_is_judged_by_its_result_and_not_by_its_exit_code(
    event: dict[str, Any], reason: str
) -> None:
    events = claude_cli.Events()
    events.read(json.dumps({"type": "result", **event}))
    for code in (0, 1):
        result = events.outcome(code)
        assert (result.reason, result.ok) == (reason, reason == "completed")
        assert bool(result.error) is not result.ok


def test_claude_without_a_result_has_crashed_and_what_it_took_still_counts() -> None:
    events = claude_cli.Events()
    usage = {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1}
    for _ in range(2):  # two parts of one message
        message = {"id": "m", "usage": usage}
        events.read(json.dumps({"type": "assistant", "message": message}))
    for noise in ("", "no json", "[]", "3", '{"type": 5}', '{"type": "system"}'):
        events.read(noise)
    result = events.outcome(143)
    assert (result.ok, result.reason) == (False, "crashed")
    assert result.usage == Usage(tokens_in=10, tokens_out=1, tokens_cached=3)


@pytest.mark.parametrize("status", ["failed", "pending", "needs-auth"])
def test_claude_without_our_tools_is_not_let_run(status: str) -> None:
    events = claude_cli.Events()
    servers = [{"name": "remit", "status": status}]
    init = {"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": servers}
    events.read(json.dumps(init))
    assert events.hopeless
    assert events.outcome(143).reason == "no_tools"


def test_codex_counts_a_thread_and_we_count_runs() -> None:
    first = codex_cli.Events()
    first.read('{"type": "thread.started", "thread_id": "t"}')
    first.read('{"type": "turn.completed", "usage": {"input_tokens": 20, "output_tokens": 5}}')
    done = first.outcome(0)
    assert (done.ok, done.usage.tokens_in, done.session) == (True, 20, "t/20/5/0")
    second = codex_cli.Events(codex_cli.Session.read(done.session))
    second.read('{"type": "turn.completed", "usage": {"input_tokens": 50, "output_tokens": 9}}')
    assert second.outcome(0).usage == Usage(tokens_in=30, tokens_out=4)
    assert second.outcome(0).session == "t/50/9/0"


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("unexpected status 401 Unauthorized: no", "auth"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
        ("We're currently experiencing high demand", "overloaded"),
        ("stream disconnected before completion", "unreachable"),
        ("Codex ran out of room in the model's context window", "context_full"),
        ("no rollout found for thread id x", "session_lost"),
        ("Error: required MCP servers failed to initialize: remit", "no_tools"),
        ("", "crashed"),
    ],
)
def test_what_codex_complains_about_has_a_name(complaint: str, reason: str) -> None:
    result = codex_cli.Events().outcome(1, complaint)
    assert (result.ok, result.reason) == (False, reason)


@pytest.mark.parametrize(
    ("said", "usage", "ok"),
    [
        ('{"text": "a", "usage": {"tokens_in": 3}}', Usage(tokens_in=3), True),
        ('{"usage": {"tokensOut": 4, "costMicros": 5}}', Usage(tokens_out=4, cost_micros=5), True),
        ('{"usage": {"tokens_in": -3, "tokens_out": true, "tokens_cached": "9"}}', Usage(), True),
        ('{"ok": false, "error": "no"}', Usage(), False),
        ('{"usage": [], "session": 5, "text": {}}', Usage(), True),
        ("plain words", Usage(), True),
        ("", Usage(), True),
        ("[" * 100_000, Usage(), True),
    ],
)
def test_answers_are_taken_as_far_as_they_make_sense(said: str, usage: Usage, ok: bool) -> None:
    result = program_answer.result_of(program_answer.parse(said))
    assert (result.usage, result.ok) == (usage, ok)
    assert result.session is None
    assert program_answer.result_of(program_answer.parse(said), failure="it fell").ok is False


def test_a_login_is_found_by_name_and_never_read(tmp_path: Path) -> None:
    files = {"CLAUDE_CONFIG_DIR": ".credentials.json", "HOME": ".claude/.credentials.json"}
    assert login_file({"HOME": str(tmp_path)}, files) is None
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").touch(mode=0o000)
    found = login_file({"HOME": str(tmp_path)}, files)
    assert found == tmp_path / ".claude" / ".credentials.json"


def test_what_lies_beside_a_program_is_found() -> None:
    assert path_with("/opt/node/bin/codex", "/usr/bin:/bin") == "/opt/node/bin:/usr/bin:/bin"
    assert path_with("/usr/bin/codex", "/usr/bin:/bin") == "/usr/bin:/bin"


@pytest.mark.requirement("FX-80")
def test_codex_gets_each_skill_of_its_folder_switched_off(tmp_path: Path) -> None:
    """Also behind links, at any depth; its settings are TOML, whatever the folder is called."""
    work = tmp_path / 'a "quoted" földer \U0001f600'
    for name in (".agents/skills/one", ".codex/skills/a/b/c/d/e/two", "skills/three"):
        (work / name).mkdir(parents=True)
        (work / name / "SKILL.md").touch()
    (tmp_path / "elsewhere/four").mkdir(parents=True)
    (tmp_path / "elsewhere/four/SKILL.md").touch()
    (work / ".agents/skills/more").symlink_to(tmp_path / "elsewhere")
    (work / ".agents/skills/loop").symlink_to(work / ".agents")
    settings = codex_wall.settings(work)
    parsed = tomllib.loads("\n".join(f"{k}={codex_wall.toml(v)}" for k, v in settings.items()))
    assert parsed["projects"] == {str(work): {"trust_level": "untrusted"}}
    off = {entry["path"] for entry in parsed["skills"]["config"] if entry["enabled"] is False}
    assert {
        f"{work}/.agents/skills/one/SKILL.md",
        f"{work}/.codex/skills/a/b/c/d/e/two/SKILL.md",
        f"{work}/.agents/skills/more/four/SKILL.md",
        f"{tmp_path}/elsewhere/four/SKILL.md",
    } <= off
    assert f"{work}/skills/three/SKILL.md" not in off
    # By the name that it is reached by, and by its own.
    (tmp_path / "link").symlink_to(work)
    reached = codex_wall.settings(tmp_path / "link")["projects"]
    assert reached.keys() == {str(tmp_path / "link"), str(work)}
    for number in range(2000):
        (work / f".agents/skills/{number}").mkdir()
        (work / f".agents/skills/{number}/SKILL.md").touch()
    with pytest.raises(Unsupported, match="too many skills"):
        codex_wall.settings(work)


@pytest.mark.requirement("FX-80")
def test_no_part_of_the_wall_of_codex_is_missing(tmp_path: Path) -> None:
    """Today some of them hold what another one holds as well (`test_working_folder.py` tries all of
    them together); a newer Codex may need each."""
    context = Paper("codex", tmp_path)
    argv = codex_cli.command_line(context, "codex", None)
    options = [pair for pair in pairwise(argv) if pair[0] == "--disable"]
    assert {("--disable", "hooks"), ("--disable", "shell_snapshot")} <= set(options)
    assert {"--ignore-user-config", "--ignore-rules"} <= set(argv)
    given = [value for option, value in pairwise(argv) if option == "-c"]
    settings = tomllib.loads("\n".join(given))
    assert settings["project_doc_max_bytes"] == 0
    assert settings["project_root_markers"] == []
    assert settings["allow_login_shell"] is False
    assert settings["skills"]["include_instructions"] is False
    assert settings["skills"]["bundled"] == {"enabled": False}
    # Codex itself finds no repository, and commands of the model do.
    assert "GIT_DIR" in codex_cli.environment(context, "codex")
    assert settings["shell_environment_policy"]["exclude"] == ["GIT_DIR"]


@pytest.mark.requirement("FX-80")
def test_no_part_of_the_wall_of_claude_is_missing(tmp_path: Path) -> None:
    """As for Codex: settings of a folder are not read, nor is what they would name."""
    context = Paper("claude", tmp_path)
    argv = claude_cli.command_line(context, "claude", None)
    assert ("--setting-sources", "") in pairwise(argv)
    assert "--strict-mcp-config" in argv
    environment = claude_cli.environment(context, "claude")
    for name in ("CLAUDE_MDS", "FILE_MENTIONS", "GIT_INSTRUCTIONS", "AUTO_MEMORY"):
        assert environment[f"CLAUDE_CODE_DISABLE_{name}"] == "1"


def test_codex_gets_an_empty_folder_without_skills(tmp_path: Path) -> None:
    assert codex_wall.settings(tmp_path / "missing")["skills"]["config"] == []
    assert codex_wall.toml({"a b": [1, True, "x\x7f"]}) == '{"a b"=[1,true,"x\\u007f"]}'
