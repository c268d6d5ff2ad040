"""The oldest version of a program that can be used: said by name wherever it is looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import registry
from remit.adapters.claude import claude_cli
from remit.adapters.codex import codex_cli
from remit.adapters.registry import WITH_MODEL
from remit.adapters.setup.detect import is_older
from remit.entrypoints.cli import first_agent
from remit.model.execution.fault import Fault
from remit.runtime import diagnosis
from remit.settings import load
from tests.agent_stage import stage
from tests.agents.fake_model import Say
from tests.real_programs import KEY, command, config, model, surroundings

__all__ = ["surroundings"]

OLDEST = {"claude": claude_cli.OLDEST, "codex": codex_cli.OLDEST}
NAMES = {"claude": "Claude Code", "codex": "Codex"}
OLD = {"claude": "2.1.197", "codex": "0.140.0"}
UPDATES = {"claude": "claude update", "codex": "npm install --global @openai/codex"}
KIND = pytest.mark.parametrize("kind", OLDEST)


def script(folder: Path, kind: str, version: str) -> Path:
    """A program that knows its version, and fails in its own words at everything else."""
    path = folder / kind
    told = f'[ "$*" = --version ] && echo "{version} ({kind})" && exit'
    path.write_text(f"#!/bin/sh\n{told}\necho \"error: unknown option '--strange'\" >&2\nexit 1\n")
    path.chmod(0o755)
    return path


def around(folder: Path) -> Mapping[str, str]:
    keys = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    return {"PATH": f"{folder}:/usr/bin:/bin", **keys}


def too_old(kind: str) -> str:
    return f"{NAMES[kind]} {OLD[kind]} is too old; {OLDEST[kind]} or newer is needed."


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("2.1.298", "2.1.299", True),
        ("2.1.299", "2.1.299", False),
        ("2.1.1000", "2.1.299", False),
        ("2.0.999", "2.1.299", True),
        ("3.0", "2.1.299", False),
        ("2.1", "2.1.299", True),
        ("0.166.0-alpha.2", "0.163.0", False),
        ("0.99.0+build5", "0.163.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, than: str, older: bool) -> None:
    assert is_older(version, than) is older


@KIND
def test_a_check_names_the_version_that_is_needed_and_how_to_get_it(
    kind: str, tmp_path: Path
) -> None:
    script(tmp_path, kind, OLD[kind])
    found = registry.check(kind, {}, around(tmp_path))
    assert (found.usable, found.sentence) == (False, too_old(kind))
    assert UPDATES[kind] in found.next_step
    # Brought up to date in place, it can be used.
    script(tmp_path, kind, f"{OLDEST[kind]}-updated")
    assert registry.check(kind, {}, around(tmp_path)).usable


@KIND
def test_doctor_says_that_a_program_is_too_old(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, kind, OLD[kind])
    for name, value in around(tmp_path).items():
        monkeypatch.setenv(name, value)
    found = {one.check: one for one in diagnosis.adapters(load({}))}[f"adapter {kind}"]
    assert (found.state, found.found) == ("warn", too_old(kind))
    assert UPDATES[kind] in found.next_step


@KIND
def test_a_run_with_a_program_that_is_too_old_says_so_and_holds_its_set_up(
    kind: str, tmp_path: Path
) -> None:
    async def story() -> None:
        program = script(tmp_path, kind, OLD[kind])
        async with stage(tmp_path / "instance") as at:
            await at.cast(kind, {"command": str(program)})
            await at.send("What colour is grass?")
            (run,) = await at.over(1)
            assert run["fault"] == Fault.SETUP
            assert run["error"] == f"{too_old(kind)} `{UPDATES[kind]}` updates it."
            assert "unknown option" not in await at.log(run)

    asyncio.run(story())


@KIND
def test_without_the_look_beforehand_the_failure_would_be_a_strange_one(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr("remit.adapters.setup.detect.is_older", lambda *_: False)

    async def story() -> None:
        program = script(tmp_path, kind, OLD[kind])
        async with stage(tmp_path / "instance") as at:
            await at.cast(kind, {"command": str(program)})
            await at.send("What colour is grass?")
            run = await at.first_over()
            assert "unknown option" in run["error"]

    asyncio.run(story())


@KIND
def test_the_real_program_is_new_enough_and_is_run(kind: str, tmp_path: Path) -> None:
    named = command(kind)
    found = registry.check(kind, {"command": named}, around(Path(named).parent))
    assert found.usable, found.sentence
    assert not is_older(str(found.facts["version"]), OLDEST[kind])

    async def story() -> None:
        with model(kind, [Say("It is green.")]) as fake:
            async with stage(tmp_path) as at:
                await at.cast(kind, config(kind, fake))
                await at.send("What colour is grass?")
                (run,) = await at.over(1)
                assert run["status"] == "completed", run["error"]

    asyncio.run(story())


class Instance:
    """A client of an instance on which programs were found so."""

    def __init__(self, **found: dict[str, Any]) -> None:
        self.found = found

    def send(self, method: str, target: str, body: object) -> dict[str, Any]:
        return self.found[next(kind for kind in WITH_MODEL if f"/{kind}/" in target)]


def test_a_start_with_another_adapter_says_that_the_preferred_program_is_too_old() -> None:
    old = {"usable": False, "sentence": "Claude Code 1 is too old.", "nextStep": "Update it."}
    none = {"usable": False, "sentence": "No codex.", "nextStep": "Get it.", "details": {}}
    client: Any = Instance(claude={**old, "details": {"oldest": "2"}}, codex=none)
    said = first_agent._passed_over(client, "c", "llm")
    assert said == " Claude Code 1 is too old. Update it."
    assert first_agent._passed_over(client, "c", "claude") == ""
    assert first_agent._passed_over(client, "c", "process") == ""
