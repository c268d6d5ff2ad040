"""A set-up that is tried: one request says whether key, address and model are right."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import registry
from remit.adapters.claude import claude_cli
from remit.adapters.codex import codex_cli
from remit.adapters.llm import adapter
from remit.adapters.llm.adapter import LlmConfig, has_few_tools
from remit.adapters.running import Child
from remit.adapters.setup import lending, probe
from remit.adapters.setup.probe import Tried
from remit.entrypoints.cli import first_agent
from remit.entrypoints.mcp.registry import Tool
from remit.entrypoints.mcp.tools.few import NAMES, few, simpler
from remit.errors import BadInput, Unsupported
from remit.runtime.runs import checks
from remit.runtime.sandbox import sandbox_policy
from remit.services.identity import Caller
from tests.model_server import ModelServer
from tests.test_adapter_runs import Paper

ROOT = Path(__file__).parent.parent
KEY = "sk-fake-0123456789-abcdef"
#: Whatever is set where the tests run is not theirs.
FOREIGN = (
    *("ANTHROPIC_", "OPENAI_", "CODEX_", "CLAUDE_", "AWS_", "GOOGLE_", "CLOUD_ML", "VERTEX_"),
    *("GEMINI_", "GROQ_", "MISTRAL_", "OPENROUTER_", "NODE_EXTRA", "SSL_CERT"),
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without keys, logins and proxies."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer("claude-x", "gpt-x", "qwen3:latest") as server:
        yield server


def tried(type_: str, config: dict[str, Any], secret: str | None = None) -> Tried:
    found = asyncio.run(registry.try_out(type_, config, secret))
    assert found is not None
    assert KEY not in str(found)
    assert found.sentence.endswith(".")
    assert found.ok is True or found.next_step
    return found


#: Each adapter with a model, at the server and with the worker's key.
def cases(server: ModelServer) -> dict[str, dict[str, Any]]:
    return {
        "claude": {"baseUrl": server.url, "model": "claude-x"},
        "codex": {"baseUrl": f"{server.url}/v1", "model": "gpt-x"},
        "llm": {"baseUrl": f"{server.url}/v1", "model": "gpt-x", "provider": "openai"},
    }


KINDS = ("claude", "codex", "llm")


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


# ── what comes back ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-13")
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_answers_is_named_with_the_time_it_took(
    kind: str, server: ModelServer, keys: None
) -> None:
    config = cases(server)[kind]
    found = tried(kind, config)
    assert found.ok is True
    assert found.facts["model"] == f"{config['model']}-2026"
    assert found.sentence.startswith(f"{config['model']}-2026 at {server.host} answered in ")
    assert found.sentence.endswith(" ms.")
    (asked,) = server.asked
    assert KEY in (asked.headers.get("x-api-key", ""), asked.headers.get("authorization", "")[7:])
    assert len(json.dumps(asked.body)) < 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "says", "sentence"),
    [
        (401, {"error": {"message": f"Incorrect API key: {KEY}"}}, "refuses the key"),
        (403, {"error": {"message": "forbidden"}}, "refuses the key"),
        (404, {"error": {"message": "unknown"}}, "has no model"),
        (400, {"error": {"message": "The model `x` does not exist"}}, "has no model"),
        (400, {"error": {"message": "Your credit balance is too low"}}, "requires payment"),
        (400, {"error": {"message": f"odd {KEY}"}}, "refuses the request (400): odd …"),
        (429, {"error": {"message": "slow down"}}, "its limit is reached (429)"),
        (503, "<html>", "an error of its own (503)"),
        (302, "", "answers with a redirect (302)"),
        (200, "<html>hello</html>", "not as a model's server does"),
    ],
)
def test_what_a_server_refuses_is_said_without_the_key(
    kind: str, status: int, says: Any, sentence: str, server: ModelServer, keys: None
) -> None:
    server.status, server.says = status, says
    found = tried(kind, cases(server)[kind])
    assert found.ok is False
    assert sentence in found.sentence
    assert server.host in found.sentence
    assert len(server.asked) == 1  # nothing is followed


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_there_and_nobody_in_time(
    kind: str, server: ModelServer, keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {**cases(server)[kind], "baseUrl": "http://127.0.0.1:1/v1"}
    found = tried(kind, gone)
    assert (found.ok, found.sentence) == (False, "127.0.0.1:1 does not answer.")
    monkeypatch.setattr(probe.ask, "__defaults__", (0.1,))
    server.silent = True
    found = tried(kind, cases(server)[kind])
    assert found.ok is False
    assert "did not answer within 0.1 seconds" in found.sentence


def test_without_a_model_the_key_is_tried_by_asking_which_there_are(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    found = tried("claude", {"model": "opus[1m]"})  # a name of Claude's own
    assert found.ok is True
    assert "took the key ANTHROPIC_AUTH_TOKEN" in found.sentence
    assert server.asked[0].path == "/v1/models"
    server.without_list = True
    assert tried("claude", {}).ok is None
    # Of a gateway that has names of its own.
    monkeypatch.setenv("ANTHROPIC_MODEL", "claude-x")
    assert tried("claude", {}).facts["model"] == "claude-x-2026"


def test_a_secret_of_the_company_is_used_at_its_own_address(
    server: ModelServer, keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "sk-own-9876543210"
    for kind, config in cases(server).items():
        found = tried(kind, {**config, "secretRef": "model-key"}, own)
        assert found.ok is True
        assert own not in str(found)
        server.status = 401
        assert (
            "the key model-key" in tried(kind, {**config, "secretRef": "model-key"}, own).sentence
        )
        server.status = 200
    assert not any(KEY in str(asked.headers) for asked in server.asked)
    # The worker's address is for the worker's key.
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    for kind in ("claude", "codex", "llm"):
        settings = registry.read(kind, {"secretRef": "model-key"})
        lent = registry.get(kind).lending(settings, os.environ)
        assert lent.keys == {}
        assert server.url not in lent.beside.values()


def test_logins_and_clouds_are_not_tried_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("claude", "codex"):
        found = tried(kind, {})
        assert found.ok is None
        assert "login is not tried" in found.sentence
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    assert "Bedrock is not tried" in tried("claude", {}).sentence
    assert tried("codex", {"provider": "azure"}, KEY).ok is None


@pytest.mark.parametrize("key", ["sk-two\nlines", "sk-ключ", "x" * 100_000])
def test_a_key_that_cannot_be_sent_is_not_shown(
    key: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    found = tried("claude", cases(server)["claude"])
    assert found.ok is False
    assert key not in str(found)


def test_services_of_the_machine_are_not_called(keys: None) -> None:
    found = tried("claude", {"baseUrl": "http://169.254.169.254", "model": "x"})
    assert found.ok is False
    assert "is not called" in found.sentence


def test_an_adapter_that_fails_to_try_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ValueError(KEY)

    monkeypatch.setattr(type(registry.get("claude")), "try_out", broken)
    assert tried("claude", {}).sentence == "Trying it failed (ValueError)."
    assert asyncio.run(registry.try_out("scripted", {})) is None


# ── models of one's own ─────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-21")
def test_a_local_server_is_asked_what_it_has_and_not_to_load_it(server: ModelServer) -> None:
    local = {"provider": "ollama", "baseUrl": f"{server.url}/v1"}
    found = tried("llm", {**local, "model": "qwen3"})
    assert found.ok is True
    assert found.sentence.startswith(f"qwen3 is there at {server.host}")
    missing = tried("llm", {**local, "model": "llama9"})
    assert missing.ok is False
    assert "has no model 'llama9'; it has claude-x, gpt-x, qwen3:latest." in missing.sentence
    assert "`ollama pull llama9`" in missing.next_step
    assert {asked.method for asked in server.asked} == {"GET"}
    assert tried("llm", {**local, "provider": "compatible", "model": "gpt-x"}).ok is True


@pytest.mark.requirement("FX-21")
def test_a_server_at_the_usual_port_is_found_and_offered_with_the_command(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.adapters.llm.adapter.version", lambda name: "2.0")
    monkeypatch.setattr(adapter, "OLLAMA", "http://127.0.0.1:1/v1")
    assert registry.check("llm", {}, {}).facts["local"] is None
    monkeypatch.setattr(adapter, "OLLAMA", f"{server.url}/v1")
    found = registry.check("llm", {}, {})
    assert not found.usable
    assert found.facts["local"] == "claude-x, gpt-x, qwen3"
    assert 'provider "ollama", model "claude-x"' in found.next_step
    # Whoever has a key, or chose something else, is not asked about.
    before = len(server.asked)
    registry.check("llm", {}, {"GROQ_API_KEY": KEY})
    registry.check("llm", {"provider": "mistral"}, {})
    assert len(server.asked) == before
    details = {"local": "qwen3, x", "library": "2.0"}
    sentence = first_agent._offer("ceo", "qwen3, x", {"details": details})
    command = shlex.split(sentence.split("`")[1])
    assert command[:5] == ["remit", "agent", "set", "ceo", "adapterType=llm"]
    settings = json.loads(command[5].removeprefix("adapterConfig="))
    assert settings == {"provider": "ollama", "model": "qwen3"}
    assert registry.validate("llm", settings)
    answers: list[Any] = ["<html>", {"data": 5}, {"data": [{"id": 5}]}, {"data": []}]
    for server.says in answers:
        assert adapter.local_models() is None


@pytest.mark.requirement("FX-21")
@pytest.mark.parametrize(
    ("model", "url", "settings"),
    [
        ("ollama/qwen3", None, {"provider": "ollama", "model": "qwen3"}),
        ("ollama/qwen3:8b", None, {"provider": "ollama", "model": "qwen3:8b"}),
        (
            "ollama/qwen3",
            "http://box:11434/v1",
            {"provider": "ollama", "model": "qwen3", "baseUrl": "http://box:11434/v1"},
        ),
        (
            "Qwen/Qwen3-8B",
            "http://127.0.0.1:8000/v1",
            {"provider": "compatible", "model": "Qwen/Qwen3-8B"}
            | {"baseUrl": "http://127.0.0.1:8000/v1"},
        ),
        ("openrouter/meta/llama", None, {"provider": "openrouter", "model": "meta/llama"}),
    ],
)
def test_a_model_is_named_in_one_word(
    model: str, url: str | None, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.adapters.llm.adapter.version", lambda name: "2.0")
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    assert first_agent.model_settings(model, url) == settings


@pytest.mark.requirement("FX-21")
def test_a_model_that_cannot_be_used_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("remit.adapters.llm.adapter.version", lambda name: "2.0")
    for wrong in ("qwen3", "nobody/qwen3", "ollama/", "/", ""):
        with pytest.raises(BadInput) as refused:
            first_agent.model_settings(wrong, None)
        assert "ollama/qwen3" in refused.value.step
    with pytest.raises(BadInput, match="baseUrl"):
        first_agent.model_settings("ollama/qwen3", "ftp://box")
    with pytest.raises(Unsupported, match="no key"):
        first_agent.model_settings("openai/gpt-5.5", None)


@pytest.mark.requirement("FX-21")
@pytest.mark.parametrize(
    ("config", "few"),
    [
        ({}, False),
        ({"provider": "ollama", "model": "x"}, True),
        ({"provider": "ollama", "model": "x", "tools": "all"}, False),
        ({"provider": "openai", "tools": "few"}, True),
        ({"provider": "compatible", "baseUrl": "http://localhost:1/v1"}, True),
        ({"provider": "compatible", "baseUrl": "http://192.168.1.9/v1"}, True),
        ({"provider": "compatible", "baseUrl": "http://[::1]:8000/v1"}, True),
        ({"provider": "compatible", "baseUrl": "https://gateway.example/v1"}, False),
    ],
)
def test_a_model_of_ones_own_is_told_of_few_tools(config: dict[str, Any], few: bool) -> None:
    assert has_few_tools(LlmConfig.model_validate(config)) is few


@pytest.mark.requirement("FX-21")
def test_tools_that_were_granted_are_listed_beside_the_few() -> None:
    async def call(caller: Caller, arguments: Any) -> dict[str, Any]:
        raise AssertionError("nobody calls it")

    ours = [Tool(name, "", None, call) for name in (*NAMES, "delegate", "hire_agent")]
    theirs = Tool("tracker__search", "", None, call, schema={"type": "object"})
    assert [tool.name for tool in few([*ours, theirs])] == [*NAMES, "tracker__search"]
    assert simpler({"type": "object"}) == {"type": "object", "properties": {}}


# ── what is lent ────────────────────────────────────────────────────────────────────────────────

AWS = {"AWS_ACCESS_KEY_ID": "AKIAFAKE", "AWS_SECRET_ACCESS_KEY": "aws-secret-value"}


@pytest.mark.requirement("HB-14")
@pytest.mark.parametrize(
    ("environment", "keys", "beside"),
    [
        ({}, set(), set()),
        ({**AWS, "GOOGLE_CLOUD_PROJECT": "p"}, set(), set()),
        ({"ANTHROPIC_API_KEY": KEY}, {"ANTHROPIC_API_KEY"}, set()),
        (
            {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": "https://gw.example"}
            | {"ANTHROPIC_CUSTOM_HEADERS": "X-Key: abcdefgh", "ANTHROPIC_MODEL": "glm"},
            {"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"},
            {"ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"},
        ),
        (
            {**AWS, "CLAUDE_CODE_USE_BEDROCK": "1", "AWS_REGION": "eu-west-1", "AWS_PROFILE": "x"},
            set(AWS),
            {"CLAUDE_CODE_USE_BEDROCK", "AWS_REGION"},
        ),
        ({**AWS, "CLAUDE_CODE_USE_BEDROCK": "0"}, set(), set()),
        ({"ANTHROPIC_CUSTOM_HEADERS": "X-Key: abcdefgh"}, set(), set()),
        (
            {"CLAUDE_CODE_USE_BEDROCK": "true", "AWS_BEARER_TOKEN_BEDROCK": KEY}
            | {"AWS_DEFAULT_REGION": "eu-west-1"},
            {"AWS_BEARER_TOKEN_BEDROCK"},
            {"CLAUDE_CODE_USE_BEDROCK", "AWS_DEFAULT_REGION"},
        ),
        (
            {"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1"}
            | {"ANTHROPIC_BEDROCK_BASE_URL": "https://gw.example"},
            set(),
            {"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH"}
            | {"ANTHROPIC_BEDROCK_BASE_URL"},
        ),
        (
            {"CLAUDE_CODE_USE_VERTEX": "1", "GOOGLE_APPLICATION_CREDENTIALS": __file__}
            | {"ANTHROPIC_VERTEX_PROJECT_ID": "p", "CLOUD_ML_REGION": "global"}
            | {"VERTEX_REGION_CLAUDE_4_5": "eu"},
            set(),
            {"CLAUDE_CODE_USE_VERTEX", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUD_ML_REGION"}
            | {"ANTHROPIC_VERTEX_PROJECT_ID", "VERTEX_REGION_CLAUDE_4_5"},
        ),
    ],
)
def test_what_belongs_to_a_key_of_claude_is_lent_with_it_and_nothing_else(
    environment: dict[str, str], keys: set[str], beside: set[str]
) -> None:
    lent = registry.get("claude").lending(registry.read("claude", {}), environment)
    assert (set(lent.keys), set(lent.beside)) == (keys, beside)
    assert lent.problem == ""
    own = registry.read("claude", {"baseUrl": "https://mine.example"})
    assert not registry.get("claude").lending(own, environment).beside


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID and"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", **AWS}, "AWS_REGION or AWS_DEFAULT_REGION"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "me", "AWS_REGION": "x"}, "Bedrock needs"),
        ({"CLAUDE_CODE_USE_VERTEX": "1"}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ({"CLAUDE_CODE_USE_FOUNDRY": "1"}, "ANTHROPIC_FOUNDRY_API_KEY"),
        ({"ANTHROPIC_API_KEY": KEY, "NODE_EXTRA_CA_CERTS": "/nowhere"}, "NODE_EXTRA_CA_CERTS"),
    ],
)
def test_what_cannot_be_lent_is_refused_with_a_sentence(
    environment: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    program(tmp_path, "claude", "echo 9.1.7")
    found = registry.check("claude", {}, {"PATH": str(tmp_path), **environment})
    assert not found.usable
    assert sentence in found.sentence
    assert found.next_step
    if "AWS_PROFILE" in environment:
        assert "aws configure export-credentials --format env" in found.next_step
    assert "aws-secret-value" not in str(found)


class Watched(Paper):
    """A run whose program is looked at while it runs."""

    look: Callable[[Mapping[str, str]], None]

    async def start(self, argv: Sequence[str], **more: Any) -> Child:
        self.look(more["env"])
        return await super().start(argv, **more)


def looking(context: Watched, seen: list[str]) -> Callable[[Mapping[str, str]], None]:
    def look(environment: Mapping[str, str]) -> None:
        copy = Path(environment["NODE_EXTRA_CA_CERTS"])
        assert copy.is_relative_to(context.workspace)
        assert copy.stat().st_mode & 0o777 == 0o600
        seen.append(copy.read_text())
        copy.write_text("changed")

    return look


def test_a_cloud_that_is_off_or_not_used_is_no_key(tmp_path: Path) -> None:
    program(tmp_path, "claude", "echo 9.1.7")
    around = {"PATH": str(tmp_path), "CLAUDE_CODE_USE_BEDROCK": "0"}
    assert "no key" in registry.check("claude", {}, around).sentence
    around |= {"CLAUDE_CODE_USE_BEDROCK": "1", **AWS, "AWS_REGION": "x"}
    assert registry.check("claude", {}, around).facts["credential"] == "CLAUDE_CODE_USE_BEDROCK"
    own = {"baseUrl": "https://mine.example"}
    assert "no key" in registry.check("claude", own, around).sentence


def test_proxies_and_certificates_are_lent_and_remit_is_not_behind_them(tmp_path: Path) -> None:
    certificate = tmp_path / "company.pem"
    certificate.write_text("a certificate")
    environment = {
        "HTTPS_PROXY": "http://me:proxy-password@proxy.example:3128",
        "no_proxy": "intern.example, 127.0.0.1",
        "NODE_EXTRA_CA_CERTS": str(certificate),
        "SSL_CERT_FILE": str(certificate),
    }
    for kind in ("claude", "codex"):
        (tmp_path / kind).mkdir()
        (tmp_path / f"{kind}-full").mkdir()
        context = Watched(kind, tmp_path / kind, command=sys.executable)
        lent = registry.get(kind).lending(context.config, environment)
        assert "proxy-password" in lent.hidden
        context.beside = lent.beside
        seen: list[str] = []

        context.look = looking(context, seen)
        asyncio.run(registry.get(kind).run(context))
        told = context.started[0]["env"]
        assert seen == ["a certificate"]
        assert told["HTTPS_PROXY"] == environment["HTTPS_PROXY"]
        assert told["NO_PROXY"] == told["no_proxy"] == "intern.example,127.0.0.1,localhost,::1"
        assert not list((context.workspace / ".tmp").iterdir())
        assert certificate.read_text() == "a certificate"
        full = Paper(kind, tmp_path / f"{kind}-full", sandbox="full", command=sys.executable)
        full.beside = lent.beside
        asyncio.run(registry.get(kind).run(full))
        assert full.started[0]["env"]["SSL_CERT_FILE"] == str(certificate)


def test_a_library_of_the_worker_reaches_this_machine_without_a_proxy() -> None:
    around = {"HTTP_PROXY": "http://proxy.example:3128", "NO_PROXY": "intern.example"}
    for _ in range(2):
        lending.spare_loopback(around)
        assert around["NO_PROXY"] == around["no_proxy"] == "intern.example,127.0.0.1,localhost,::1"
    plain = {"NO_PROXY": "intern.example"}
    lending.spare_loopback(plain)
    assert plain == {"NO_PROXY": "intern.example"}


def test_a_copy_goes_nowhere_else_and_what_is_too_large_is_not_made(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * ((4 << 20) + 1))
    beside = {"SSL_CERT_FILE": str(large), "NODE_EXTRA_CA_CERTS": str(tmp_path / "gone")}
    with lending.shown(beside, tmp_path / "folder", full=False) as told:
        assert told == {}
    place = tmp_path / "link"
    place.symlink_to(tmp_path / "victim")
    assert not lending._copy(Path(__file__), place)
    assert not (tmp_path / "victim").exists()


def test_codex_is_told_of_the_worker_s_address_and_uses_its_key(tmp_path: Path) -> None:
    gateway = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://gw.example/v1"}
    context = Paper("codex", tmp_path)
    lent = registry.get("codex").lending(context.config, gateway)
    context.beside, context.credentials = lent.beside, lent.keys
    argv = codex_cli.command_line(context, "codex", None)
    assert 'model_providers.custom.base_url="https://gw.example/v1"' in argv
    assert 'model_providers.custom.env_key="OPENAI_API_KEY"' in argv
    assert "OPENAI_BASE_URL" not in codex_cli.environment(context, "codex")
    # With a login instead of a key it is not for us.
    del gateway["OPENAI_API_KEY"]
    assert registry.get("codex").lending(context.config, gateway).beside == {}


# ── programs ────────────────────────────────────────────────────────────────────────────────────


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.requirement("HB-13")
@pytest.mark.parametrize(
    ("kind", "options", "variable"),
    [
        ("claude", claude_cli.OPTIONS, "ANTHROPIC_API_KEY"),
        ("codex", codex_cli.OPTIONS, "OPENAI_API_KEY"),
    ],
)
def test_a_program_that_does_not_know_an_option_is_found_by_its_help_once(
    kind: str, options: tuple[str, ...], variable: str, tmp_path: Path
) -> None:
    counted = f'echo "$@" >> {tmp_path}/started; case "$*" in --version) echo 9.0.3;; *) '
    around = {"PATH": f"{tmp_path}:/usr/bin:/bin", variable: KEY}
    known = " ".join(options[1:])
    program(tmp_path, kind, f"{counted} echo 'Usage: x [options] {known}x {known}';; esac")
    found = registry.check(kind, {}, around)
    assert not found.usable
    assert found.sentence.endswith(f" 9.0.3 does not know {options[0]}.")
    assert "newer" in found.next_step
    assert registry.check(kind, {}, around) == found
    assert len((tmp_path / "started").read_text().splitlines()) == 2

    program(tmp_path, kind, f"{counted} echo 'Usage: {options[0]} {known}';; esac")
    assert registry.check(kind, {}, around).usable
    for other in (
        "exit 3",
        "echo 'Usage: wrapper [--speed]'",
    ):  # one without such a help is believed
        program(tmp_path, kind, f"{counted} {other};; esac")
        assert registry.check(kind, {}, around).usable


def test_a_program_that_settings_name_is_looked_at_in_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that hires chooses the program of its report, and may have written it."""
    if not sandbox_policy.look().usable:
        pytest.skip(f"LOOKING IN THE SANDBOX IS NOT TESTED: {sandbox_policy.look().reason}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    secret, outside = tmp_path / "home", tmp_path / "bin"
    for folder in (secret, outside):
        folder.mkdir()
    (secret / "board.token").write_text("the token of the board")
    tell = f"cat {secret}/board.token > {tmp_path}/stolen; touch {outside}/made; echo 9.1.7"
    shown = program(outside, "claude", tell)
    hidden = program(secret, "claude", tell)
    found = checks.check("claude", {"command": str(shown)}, secret)
    assert found.usable, found
    assert found.facts["version"] == "9.1.7"
    assert not checks.check("claude", {"command": str(hidden)}, secret).usable
    full = {"command": str(hidden), "sandbox": "full"}
    assert checks.check("claude", full, secret).sentence.endswith("not tried outside a sandbox.")
    assert not (tmp_path / "stolen").exists()
    assert not (outside / "made").exists()
