"""The installed adapters: what they take, what they say about it, and what they find here."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from remit.adapters import hiring_docs, registry
from remit.adapters.contract import Adapter, Check, adopt, looked
from remit.adapters.plugin_shape import configuration_doc
from remit.adapters.plugins import validate
from remit.adapters.running import RunContext, RunResult
from remit.errors import BadInput, NotFound
from remit.services.redaction import without_secrets

ROOT = Path(__file__).parent.parent
TYPES = ["claude", "codex", "llm", "process", "http", "human", "scripted"]
WITH_MODEL = ["claude", "codex", "llm"]
WITH_PROGRAM = ["claude", "codex", "process"]
SECRET = "hunter2-XyZ"

SMALLEST: dict[str, dict[str, Any]] = {
    **{type_: {} for type_ in TYPES},
    "process": {"command": "true"},
    "http": {"url": "https://agents.example.org/run"},
}


# Settings


def test_ours_are_there() -> None:
    assert registry.types() == TYPES
    assert [adapter.type for adapter in registry.all()] == TYPES
    assert registry.problems() == {}
    with pytest.raises(NotFound, match="nothing"):
        registry.get("nothing")


@pytest.mark.parametrize("type_", TYPES)
def test_settings_stay_as_given_and_defaults_are_not_written_in(type_: str) -> None:
    smallest = SMALLEST[type_]
    found = registry.validate(type_, smallest)
    assert found == smallest
    assert found is not smallest


@pytest.mark.requirement("PC-60")
@pytest.mark.parametrize("type_", TYPES)
def test_every_example_is_valid(type_: str) -> None:
    adapter = registry.get(type_)
    assert adapter.examples
    for config in adapter.examples.values():
        assert registry.validate(type_, config) == config
        assert without_secrets(config) == (config, [])  # what is written there is seen by readers
    assert any(config for config in adapter.examples.values())


@pytest.mark.requirement("HB-16", "HB-17")
@pytest.mark.parametrize("type_", WITH_MODEL)
def test_the_model_and_its_effort_can_be_left_to_the_provider(type_: str) -> None:
    for effort in ("none", "low", "medium", "high", "xhigh", None):
        config = {"model": None, "reasoningEffort": effort}
        assert registry.validate(type_, config) == config
    with pytest.raises(BadInput, match=r"adapterConfig\.reasoningEffort: should be 'none', 'low'"):
        registry.validate(type_, {"reasoningEffort": "extreme"})


@pytest.mark.requirement("HB-56")
@pytest.mark.parametrize("type_", WITH_MODEL)
def test_a_session_policy_says_when_a_conversation_ends(type_: str) -> None:
    policy = {
        "maxAge": "7d",
        "idleTime": "90m",
        "maxContextTokens": 150_000,
        "dailyResetAt": "04:30",
    }
    assert registry.validate(type_, {"sessionPolicy": policy}) == {"sessionPolicy": policy}
    for key, wrong in {
        "maxAge": "soon",
        "idleTime": 5,
        "maxContextTokens": 1,
        "dailyResetAt": "24:00",
        "more": 1,
    }.items():
        with pytest.raises(BadInput, match=rf"^adapterConfig\.sessionPolicy\.{key}: "):
            registry.validate(type_, {"sessionPolicy": {key: wrong}})


@pytest.mark.parametrize("type_", WITH_PROGRAM)
@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"timeoutSeconds": 0}, "adapterConfig.timeoutSeconds"),
        ({"timeoutSeconds": 86_401}, "adapterConfig.timeoutSeconds"),
        ({"timeoutSeconds": "60"}, "adapterConfig.timeoutSeconds"),
        ({"timeoutSeconds": True}, "adapterConfig.timeoutSeconds"),
        ({"sandbox": "none"}, "adapterConfig.sandbox"),
        ({"env": {"A": 1}}, "adapterConfig.env.A"),
        ({"env": {"A": "x\0y"}}, "adapterConfig.env.A"),
        ({"env": {"A": "x" * 9000}}, "adapterConfig.env.A"),
        ({"env": {"not a name": "x"}}, "adapterConfig.env"),
        ({"env": {f"A{number}": "" for number in range(101)}}, "adapterConfig.env"),
        ({"env": {"REMIT_TOKEN": "x"}}, "adapterConfig"),
        ({"env": []}, "adapterConfig.env"),
        ({"cwd": "/etc"}, "adapterConfig"),
        ({"cwd": "a/../../b"}, "adapterConfig"),
        ({"cwd": ""}, "adapterConfig.cwd"),
        ({"command": ""}, "adapterConfig.command"),
        ({"command": "a\nb"}, "adapterConfig.command"),
        ({"command": ["a"]}, "adapterConfig.command"),
        ({"nothing": 1}, "adapterConfig.nothing"),
        ({"timeout_seconds": 5}, "adapterConfig.timeout_seconds"),
    ],
)
def test_a_wrong_setting_of_a_program_is_named(
    type_: str, more: Mapping[str, Any], path: str
) -> None:
    with pytest.raises(BadInput) as refused:
        registry.validate(type_, {**SMALLEST[type_], **more})
    assert refused.value.sentence.startswith(f"{path}")
    assert refused.value.details["path"].startswith(path)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("type_", "config", "path"),
    [
        ("process", {}, "adapterConfig.command"),
        ("process", {"command": "a", "args": "b"}, "adapterConfig.args"),
        ("process", {"command": "a", "args": ["b", 5]}, "adapterConfig.args[1]"),
        ("process", {"command": "a", "args": ["b"] * 201}, "adapterConfig.args"),
        ("http", {}, "adapterConfig.url"),
        ("http", {"url": "ftp://example.org"}, "adapterConfig.url"),
        ("http", {"url": "https://me:x@example.org"}, "adapterConfig.url"),
        ("http", {"url": "https://example.org:99999"}, "adapterConfig.url"),
        ("http", {"url": "https://[x"}, "adapterConfig.url"),
        ("http", {"url": "https://a.org", "headers": {"A": "b\nc"}}, "adapterConfig.headers.A"),
        ("http", {"url": "https://a.org", "secretRef": "A B"}, "adapterConfig.secretRef"),
        ("human", {"notify": "yes"}, "adapterConfig.notify"),
        ("scripted", {"script": [{}]}, "adapterConfig.script[0].tool"),
        ("scripted", {"script": [{"tool": "a", "x": 1}]}, "adapterConfig.script[0].x"),
        ("claude", {"permissionMode": "plan"}, "adapterConfig.permissionMode"),
        ("claude", {"maxBudgetUsd": 0}, "adapterConfig.maxBudgetUsd"),
        ("claude", {"baseUrl": "https://me:x@example.org"}, "adapterConfig.baseUrl"),
        ("codex", {"codexSandbox": "none"}, "adapterConfig.codexSandbox"),
        ("llm", {"provider": "nobody"}, "adapterConfig.provider"),
        ("llm", {"temperature": 3}, "adapterConfig.temperature"),
        ("llm", [], "adapterConfig"),
        ("llm", {"model": "\ud800"}, "adapterConfig"),
        ("llm", {"temperature": float("nan")}, "adapterConfig"),
        (
            "scripted",
            {"script": [{"tool": "a", "arguments": {"a": "x" * 70_000}}]},
            "adapterConfig",
        ),
    ],
)
def test_a_wrong_setting_is_named(type_: str, config: Any, path: str) -> None:
    with pytest.raises(BadInput) as refused:
        registry.validate(type_, config)
    assert refused.value.sentence.startswith(f"{path}: ")


def test_an_absolute_folder_needs_full_access() -> None:
    config = {"command": "a", "cwd": "/srv/work", "sandbox": "full"}
    assert registry.validate("process", config) == config


@pytest.mark.parametrize(
    ("type_", "config"),
    [
        ("claude", {"apiKey": SECRET}),
        ("claude", {SECRET: 1}),
        ("claude", {"env": {SECRET: "x"}}),
        ("claude", {"env": {"A": {"b": SECRET}}}),
        ("claude", {"model": SECRET * 100}),
        ("claude", {"secretRef": SECRET}),
        ("http", {"url": f"https://me:{SECRET}@example.org"}),
        ("http", {"url": f"{SECRET}"}),
        ("codex", {"provider": SECRET}),
        ("scripted", {"script": [{"tool": SECRET}]}),
        ("scripted", {"script": SECRET}),
    ],
)
def test_an_error_does_not_repeat_what_was_sent(type_: str, config: Any) -> None:
    with pytest.raises(BadInput) as refused:
        registry.validate(type_, config)
    assert SECRET not in refused.value.as_text()
    assert SECRET not in json.dumps(refused.value.details)


def test_a_plugin_that_repeats_what_was_sent_is_not_quoted() -> None:
    class Talkative(BaseModel):
        word: str

        @field_validator("word")
        @classmethod
        def _complain(cls, word: str) -> str:
            if word.startswith("x"):
                raise RuntimeError(word)
            raise ValueError(f"{word} is wrong")

    for word in (SECRET, f"x{SECRET}"):
        with pytest.raises(BadInput) as refused:
            validate(Talkative, {"word": word})
        assert SECRET not in refused.value.as_text()


# Documentation


@pytest.mark.requirement("PC-60", "PC-62")
@pytest.mark.parametrize("type_", TYPES)
def test_the_documentation_gives_every_key_with_default_and_description(type_: str) -> None:
    adapter = registry.get(type_)
    text = adapter.agent_configuration_doc()
    unwrapped = " ".join(text.split())
    for name, field in adapter.Config.model_fields.items():
        key = field.alias or name
        assert field.description, key
        assert " ".join(field.description.split()) in unwrapped
        line = next(line for line in text.splitlines() if line.startswith(f"{key}: "))
        if field.is_required():
            assert line.endswith("Required.")
            assert text.index(line) < text.index("## Optional keys")
        else:
            default = json.dumps(field.get_default(call_default_factory=True, validated_data={}))
            assert line.endswith(f"Default: {default}.")
            assert text.index(line) > text.index("## Optional keys")
    for note in adapter.safety:
        assert note in unwrapped
    assert adapter.safety
    for config in adapter.examples.values():
        assert json.dumps(config, indent=2).splitlines()[-1] in text
    assert text.replace("\n", "").isprintable()
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.requirement("PC-57", "PC-59", "PC-63")
def test_the_index_names_adapters_addresses_and_the_hire() -> None:
    text = hiring_docs.index_text()
    for adapter in registry.all():
        assert f"- {adapter.type}: {adapter.summary}" in text
        assert f"GET /llms/agent-configuration/{adapter.type}.txt" in text
    calls = [
        "/llms/agent-configuration/{adapterType}.txt",
        "agent-configurations",
        "/agent-hires",
        "pending_approval",
        "/api/approvals/{id}",
        "revision_requested",
        "/resubmit",
    ]
    hiring = text[text.index("## How to hire") :]
    assert sorted(calls, key=hiring.index) == calls


@pytest.mark.requirement("PC-58", "PC-63")
@pytest.mark.parametrize("type_", TYPES)
def test_the_text_of_an_adapter_is_its_own(type_: str) -> None:
    assert hiring_docs.adapter_text(type_) == registry.get(type_).agent_configuration_doc()


def test_there_is_no_text_for_what_is_not_installed() -> None:
    with pytest.raises(NotFound):
        hiring_docs.adapter_text("nothing")


def test_a_model_without_descriptions_is_documented_too() -> None:
    class Inner(BaseModel):
        deep: int = 3

    class Plain(BaseModel):
        word: str
        many: list[Inner] = []
        maybe: dict[str, float] | None = None

    text = configuration_doc("plain", "", Plain)
    assert "word: text. Required." in text
    assert "many[].deep: whole number. Default: 3." in text
    assert "maybe: object of number or null. Default: null." in text


# Looking


@pytest.mark.parametrize("type_", TYPES)
def test_a_check_tells_what_was_found_without_secrets(type_: str, tmp_path: Path) -> None:
    around = {"PATH": str(tmp_path), "HOME": str(tmp_path), "ANTHROPIC_API_KEY": SECRET}
    found = registry.check(type_, SMALLEST[type_] if type_ != "http" else None, around)
    assert found.sentence
    assert found.usable or found.next_step
    assert SECRET not in str(found)


def program(folder: Path, name: str, answer: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("type_", "variable", "file"),
    [
        ("claude", "ANTHROPIC_API_KEY", ".claude/.credentials.json"),
        ("codex", "OPENAI_API_KEY", ".codex/auth.json"),
    ],
)
def test_a_program_its_version_and_its_key_are_looked_for(
    type_: str, variable: str, file: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    around = {"PATH": str(tmp_path), "HOME": str(home)}
    missing = registry.check(type_, {}, around)
    assert (missing.usable, missing.facts) == (False, {"program": None})

    where = program(tmp_path, type_, f'[ -z "${variable}" ] && echo "{type_} 9.1.7 (Agent)"')
    without_key = registry.check(type_, {}, around)
    assert not without_key.usable
    assert variable in without_key.next_step
    assert without_key.facts["version"] == "9.1.7"

    # The program does not get the key, or it would not have answered.
    found = registry.check(type_, {}, {**around, variable: SECRET})
    assert found.usable
    assert found.facts == {"program": str(where), "version": "9.1.7", "credential": variable}
    assert SECRET not in str(found)

    assert registry.check(type_, {"secretRef": "mine"}, around).facts["credential"] == "mine"
    (home / file).parent.mkdir()
    (home / file).write_text(SECRET)
    found = registry.check(type_, {}, around)
    assert found.usable
    assert found.facts["credential"] == f"$HOME/{file}"

    program(tmp_path, type_, "exit 3")
    assert not registry.check(type_, {}, {**around, variable: SECRET}).usable


def test_the_program_of_a_process_is_looked_for(tmp_path: Path) -> None:
    where = program(tmp_path, "worker", "exit 0")
    around = {"PATH": str(tmp_path)}
    assert registry.check("process", {"command": "worker"}, around).facts == {"program": str(where)}
    assert not registry.check("process", {"command": "another"}, around).usable
    assert registry.check("process", {"command": "bin/in-workspace"}, around).usable


def test_an_address_is_called() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        url = f"http://127.0.0.1:{port}/run"
        assert registry.check("http", {"url": url}, {}).usable
    found = registry.check("http", {"url": url}, {})
    assert not found.usable
    assert f"127.0.0.1:{port}" in found.sentence


def test_a_model_of_ones_own_needs_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remit.adapters.llm.adapter.version", lambda name: "2.0")
    assert not registry.check("llm", {}, {}).usable
    assert registry.check("llm", {}, {"GROQ_API_KEY": SECRET}).facts["credential"] == "GROQ_API_KEY"
    assert not registry.check("llm", {"provider": "openai"}, {"GROQ_API_KEY": SECRET}).usable
    assert not registry.check("llm", {"provider": "compatible"}, {}).usable
    own = {"provider": "compatible", "baseUrl": "http://127.0.0.1:1/v1"}
    assert registry.check("llm", own, {}).usable


# Other people's


class Free:
    """Rolls dice."""

    type = "dice"

    class Config(BaseModel):
        sides: int = 6

    def check(self) -> bool:
        return True

    async def run(self, context: RunContext) -> RunResult:
        return RunResult(True, text=f"{context.config.sides}")


def test_any_class_with_the_right_parts_is_an_adapter() -> None:
    adapter = adopt(Free)
    assert isinstance(adapter, Adapter)
    assert Free in type(adapter).__mro__
    assert "sides: whole number. Default: 6." in adapter.agent_configuration_doc()
    assert "Rolls dice." in adapter.agent_configuration_doc()
    assert looked(adapter, None, {}) == Check(True, "It can be used.")


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"Config": Free.Config, "check": Free.check}, "no `type`"),
        ({"type": "No Good", "Config": Free.Config, "check": Free.check}, "no `type`"),
        ({"type": "x", "check": Free.check}, "no `Config`"),
        ({"type": "x", "Config": dict, "check": Free.check}, "no `Config`"),
        ({"type": "x", "Config": Free.Config}, "no `check"),
        ({"type": "x", "Config": Free.Config, "check": Free.check}, "no `run"),
    ],
)
def test_a_class_without_them_is_none(parts: dict[str, Any], why: str) -> None:
    with pytest.raises(match=why):
        adopt(type("Half", (), parts))
    with pytest.raises(match="not a class"):
        adopt(parts)


def test_a_check_that_fails_is_an_answer() -> None:
    class Failing(Free):
        def check(self) -> bool:
            raise RuntimeError(SECRET)

    class Later(Free):
        async def check(self) -> bool:  # type: ignore[override]
            return True

    for kind in (Failing, Later):
        found = looked(adopt(kind), None, {})
        assert not found.usable
        assert SECRET not in str(found)


GOOD = '''
"""An adapter from elsewhere."""
from pydantic import BaseModel, Field


class Pigeon:
    """Sends a pigeon with the task."""

    type = "pigeon"

    class Config(BaseModel, extra="forbid"):
        coop: str = Field(description="Where the pigeon lives.", max_length=50)
        speed: int = Field(default=60, ge=1, le=150, description="Kilometres an hour.")

    def check(self):
        return True

    async def run(self, context):
        return None
'''
ENTRIES = """[remit.adapters]
pigeon = pigeon_adapter:Pigeon
absent = no_such_module:Thing
raising = raising_adapter:Thing
leaving = leaving_adapter:Thing
taken = pigeon_adapter:Taken
"""
LOOK = """
import json, sys
from remit.adapters import registry
assert "pydantic" not in sys.modules
types = registry.types()
from remit.adapters import hiring_docs
print(json.dumps({
    "types": types,
    "problems": registry.problems(),
    "index": hiring_docs.index_text(),
    "text": hiring_docs.adapter_text("pigeon"),
    "valid": registry.validate("pigeon", {"coop": "roof"}),
    "usable": registry.check("pigeon", {"coop": "roof"}, {}).usable,
    "ours": registry.validate("human", {}),
}))
"""


def wheel(folder: Path) -> Path:
    """A wheel as a build backend makes it: a zip with modules and metadata."""
    import zipfile

    path = folder / "pigeon_adapter-1.0-py3-none-any.whl"
    taken = '\n\nclass Taken(Pigeon):\n    type = "claude"\n'
    info = "pigeon_adapter-1.0.dist-info"
    files = {
        "pigeon_adapter.py": GOOD + taken,
        "raising_adapter.py": "raise RuntimeError('broken on purpose')\n",
        "leaving_adapter.py": "import sys\nsys.exit(3)\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: pigeon-adapter\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": ENTRIES,
    }
    record = f"{info}/RECORD"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(record, "".join(f"{name},,\n" for name in (*files, record)))
    return path


@pytest.mark.requirement("PC-63")
@pytest.mark.slow
def test_a_plugin_from_a_wheel_shows_up_and_broken_ones_do_no_harm(tmp_path: Path) -> None:
    place = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    pip += ["--no-index", "--no-deps", "--no-cache-dir", "--target", str(place)]
    subprocess.run([*pip, str(wheel(tmp_path))], check=True, timeout=100)
    source = os.pathsep.join([str(place), str(ROOT / "src")])
    answer = subprocess.run(
        [sys.executable, "-c", LOOK],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert found["types"] == [*TYPES, "pigeon"]
    assert set(found["problems"]) == {"absent", "raising", "leaving", "taken"}
    assert "broken on purpose" in found["problems"]["raising"]
    assert "- pigeon: Sends a pigeon with the task." in found["index"]
    assert "GET /llms/agent-configuration/pigeon.txt" in found["index"]
    assert "not usable: absent, leaving, raising, taken." in found["index"]
    assert "coop: text, at most 50 characters. Required." in found["text"]
    assert "speed: whole number, at least 1, at most 150. Default: 60." in found["text"]
    assert found["valid"] == {"coop": "roof"}
    assert found["usable"] is True
    assert found["ours"] == {}
