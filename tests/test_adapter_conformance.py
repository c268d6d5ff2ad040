"""What every adapter does alike, whoever wrote it: it ends, says what it took, and leaves nothing.

Each is put to work by a real worker in a real instance. The programs of Claude and Codex are the
real ones; where they are not installed that is said, and skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from remit.adapters import http, registry
from remit.adapters.contract import Check, adopt
from remit.adapters.running import RunContext, RunResult, Usage
from remit.runtime.runs import processes
from remit.runtime.runs.processes import ChildProcess
from remit.services.execution import runs
from tests.agent_stage import Answer, Stage, stage, until
from tests.agents import ClientMissing, program
from tests.agents.fake_anthropic import FakeAnthropic
from tests.agents.fake_openai import FakeOpenAI, Say, Use
from tests.agents.remote import Remote

#: interfaces.md, section 1.
RUN_VARIABLES = {
    "REMIT_URL",
    "REMIT_TOKEN",
    "REMIT_AGENT",
    "REMIT_RUN",
    "REMIT_BOSS",
    "REMIT_WORKSPACE",
}
CANARY = "REMIT_TEST_CANARY"
KEYS = {"ANTHROPIC_API_KEY": "sk-fake-anthropic-0123", "OPENAI_API_KEY": "sk-fake-openai-0123"}
LONG = 30.0


class ParrotConfig(BaseModel):
    seconds: float = Field(default=0, description="How long it thinks.")


class Parrot:
    """A plugin, as somebody else would write it: it derives from nothing of ours."""

    type = "parrot"
    summary = "Says what it was told."
    Config = ParrotConfig

    def check(self) -> Check:
        return Check(True, "It can be used.")

    async def run(self, context: RunContext) -> RunResult:
        child = await context.start(
            ["/bin/sh", "-c", 'sleep "$1"; cat', "parrot", str(context.config.seconds)],
            env=context.environment(),
            stdin=b"hello\n",
        )
        said = [line async for line in child.lines()]
        code = await child.wait()
        return RunResult(code == 0, said[-1], usage=Usage(tokens_in=5, tokens_out=1))


def installed(name: str) -> str:
    try:
        return str(program(name))
    except ClientMissing as missing:
        sentence = str(missing)
    pytest.skip(f"NOT TESTED WITH THE REAL {name.upper()}: {sentence}")


def _claude(stack: ExitStack, slow: bool) -> tuple[str, dict[str, Any]]:
    command = installed("claude")
    model = stack.enter_context(FakeAnthropic([Say("done")]))
    model.delay_seconds = LONG if slow else 0
    return "claude", {"command": command, "baseUrl": model.url, "tools": [], "model": "m"}


def _codex(stack: ExitStack, slow: bool) -> tuple[str, dict[str, Any]]:
    command = installed("codex")
    model = stack.enter_context(FakeOpenAI([Say("done")]))
    model.delay_seconds = LONG if slow else 0
    return "codex", {"command": command, "baseUrl": model.url, "model": "m"}


def _llm(stack: ExitStack, slow: bool) -> tuple[str, dict[str, Any]]:
    if find_spec("pydantic_ai") is None:
        pytest.skip("NOT TESTED: the extra llm is not installed")
    model = stack.enter_context(FakeOpenAI([Use("mail_inbox", {}), Say("done")]))
    model.delay_seconds = LONG if slow else 0
    return "llm", {"provider": "compatible", "baseUrl": model.url, "model": "m"}


def _process(_: ExitStack, slow: bool) -> tuple[str, dict[str, Any]]:
    said = json.dumps({"text": "done", "usage": {"tokens_in": 3}})
    script = f"cat >/dev/null; sleep {LONG if slow else 0}; echo '{said}'"
    return "process", {"command": "sh", "args": ["-c", script]}


def _http(stack: ExitStack, slow: bool) -> tuple[str, dict[str, Any]]:
    remote = stack.enter_context(Remote())
    remote.delay_seconds = LONG if slow else 0
    return "http", {"url": f"{remote.url}/run", "cancelUrl": f"{remote.url}/cancel"}


def _scripted(_: ExitStack, slow: bool) -> tuple[str, dict[str, Any]]:
    step = {"tool": "outcome_list", "arguments": {}}
    return "scripted", {"script": [step] * (200 if slow else 1)}


def _plugin(_: ExitStack, slow: bool) -> tuple[str, dict[str, Any]]:
    return "parrot", {"seconds": LONG if slow else 0}


Make = Callable[[ExitStack, bool], tuple[str, dict[str, Any]]]
CASES: dict[str, Make] = {
    "claude": _claude,
    "codex": _codex,
    "llm": _llm,
    "process": _process,
    "http": _http,
    "scripted": _scripted,
    "plugin": _plugin,
}
#: They take nothing from a model.
WITHOUT_USAGE = {"scripted"}
STARTS_A_PROGRAM = {"claude", "codex", "process", "plugin"}
#: Its slowest script is over before anybody can stop it; it is stopped between two steps.
TOO_FAST_TO_STOP = {"scripted"}


@dataclass
class Seen:
    """The environments of the programs that were started."""

    environments: list[dict[str, str]] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CANARY, "canary")
    monkeypatch.setenv("HOME", "/nonexistent")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(processes, "GRACE_SECONDS", 1.0)
    monkeypatch.setattr(registry.installed, "_plugins", {"parrot": adopt(Parrot)})


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen()
    begin = ChildProcess.begin

    async def spy(*args: Any, **kwargs: Any) -> Any:
        child = await begin(*args, **kwargs)
        found.environments.append(dict(kwargs["env"]))
        found.pids.append(child.pid)
        return child

    monkeypatch.setattr(ChildProcess, "begin", spy)
    return found


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def left_over(run: str) -> list[int]:
    """Processes of a run that are still there."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and run.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


async def nothing_is_left(at: Stage, run: Answer) -> None:
    """No process when it is over, and no folder as soon as it could be removed."""
    assert left_over(run["id"]) == []
    await until(lambda: not (at.settings.workspaces / run["id"]).exists())


@pytest.mark.requirement("HH-09")
@pytest.mark.parametrize("name", CASES)
def test_a_run_ends_says_what_it_took_and_leaves_nothing(
    name: str, tmp_path: Path, stack: ExitStack, seen: Seen
) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            await at.cast(*CASES[name](stack, False))
            await at.send("Please do it.")
            (run, *_) = await at.over()
            assert (run["status"], run["exit_reason"]) == ("completed", "completed"), run["error"]
            assert run["error"] is None
            if name in WITHOUT_USAGE:
                assert (run["tokens_in"], run["tokens_out"]) == (0, 0)
            else:
                assert run["tokens_in"] > 0
            await nothing_is_left(at, run)
            assert_environments(name, seen, at, run)

    asyncio.run(story())


def assert_environments(name: str, seen: Seen, at: Stage, run: Answer) -> None:
    assert bool(seen.environments) is (name in STARTS_A_PROGRAM)
    for environment in seen.environments:
        assert {one for one in environment if one.startswith("REMIT_")} == RUN_VARIABLES
        assert environment["REMIT_URL"] == at.url
        assert environment["REMIT_RUN"] == run["id"]
        assert environment["REMIT_AGENT"] == run["agent_id"]
        assert environment["REMIT_BOSS"] == run["accountable_user_id"]
        assert environment["REMIT_WORKSPACE"] == str(at.settings.workspaces / run["id"])
        assert "canary" not in environment.values()
        assert environment["HOME"] == str(at.settings.home / "agents" / run["agent_id"])
        lent = {"claude": {"ANTHROPIC_API_KEY"}, "codex": {"OPENAI_API_KEY", "CODEX_API_KEY"}}
        keys = {one for one in environment if one.endswith("_API_KEY")}
        assert keys == lent.get(name, set())


@pytest.mark.parametrize("name", [name for name in CASES if name not in TOO_FAST_TO_STOP])
def test_a_run_that_is_cancelled_ends_and_leaves_nothing(
    name: str, tmp_path: Path, stack: ExitStack
) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            await at.cast(*CASES[name](stack, True))
            await at.send("Please do it.")
            begun = await at.begun()
            await asyncio.sleep(1.5 if name in ("claude", "codex", "llm") else 0.3)
            await at.app.gate(at.board, runs.cancel, run=begun["id"])
            (run, *_) = await at.over(seconds=15)
            assert run["status"] == "cancelled"
            await until(lambda: not left_over(run["id"]))
            await until(lambda: not (at.settings.workspaces / run["id"]).exists())

    asyncio.run(story())


@pytest.mark.parametrize("name", [n for n in CASES if n not in TOO_FAST_TO_STOP | {"plugin"}])
def test_a_run_that_takes_too_long_is_stopped(name: str, tmp_path: Path, stack: ExitStack) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            adapter, config = CASES[name](stack, True)
            await at.cast(adapter, {**config, "timeoutSeconds": 2})
            await at.send("Please do it.")
            await at.begun()
            (run, *_) = await at.over(seconds=20)
            assert (run["status"], run["exit_reason"]) == ("failed", "timeout")
            assert left_over(run["id"]) == []

    asyncio.run(story())


# ── an agent elsewhere ──────────────────────────────────────────────────────────────────────────


def test_an_agent_elsewhere_is_told_what_it_needs_and_no_redirect_is_followed(
    tmp_path: Path, stack: ExitStack
) -> None:
    async def story() -> None:
        remote = stack.enter_context(Remote())
        async with stage(tmp_path) as at:
            await at.cast("http", {"url": f"{remote.url}/run", "headers": {"X-Of": "us"}})
            await at.send("Please do it.")
            (run, *_) = await at.over()
            path, task = remote.calls[0]
            assert path == "/run"
            assert set(task) == {"run", "agent", "instructions", "turn", "session", "remit"}
            assert set(task["remit"]) == {"url", "mcp", "report", "token"}
            assert "Please do it." in task["turn"]
            assert run["final_response"] == "done"
            assert (run["tokens_in"], run["tokens_out"]) == (7, 2)
            assert task["remit"]["token"] not in await at.log(run)
            remote.status = 302
            before = len(await at.runs())
            await at.send("Please do it, 302.")
            found = await at.over(before + 1)
            ended = (found[before]["status"], found[before]["exit_reason"])
            assert ended == ("failed", "redirected")
            assert "/elsewhere" not in remote.paths()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("status", "reason"), [(404, "remote_error"), (500, "overloaded"), (403, "auth")]
)
def test_an_agent_elsewhere_that_answers_with_an_error_says_whose_fault_it_is(
    status: int, reason: str, tmp_path: Path, stack: ExitStack
) -> None:
    """Each in a company of its own: trouble of the other side holds everybody who depends on it."""

    async def story() -> None:
        remote = stack.enter_context(Remote())
        remote.status = status
        async with stage(tmp_path) as at:
            await at.cast("http", {"url": f"{remote.url}/run"})
            await at.send("Please do it.")
            (run, *_) = await at.over()
            assert (run["status"], run["exit_reason"]) == ("failed", reason)

    asyncio.run(story())


def test_an_agent_elsewhere_ends_its_run_by_calling_back(tmp_path: Path, stack: ExitStack) -> None:
    import httpx2

    async def story() -> None:
        remote = stack.enter_context(Remote())
        remote.status = 202
        async with stage(tmp_path) as at:
            await at.cast("http", {"url": f"{remote.url}/run", "mode": "callback"})
            await at.send("Please do it.")
            begun = await at.begun()
            await until(lambda: remote.calls)
            told = remote.calls[0][1]["remit"]
            report = {"ok": True, "text": "done later", "usage": {"tokensIn": 11}}
            async with httpx2.AsyncClient(trust_env=False) as client:
                nobody = await client.post(told["report"], json=report)
                assert nobody.status_code == 401
                me = {"Authorization": f"Bearer {told['token']}"}
                wrong = told["report"].replace(begun["id"], begun["agent_id"])
                assert (await client.post(wrong, json=report, headers=me)).status_code == 404
                first = await client.post(told["report"], json=report, headers=me)
                assert first.status_code == 200, first.text
                (run, *_) = await at.over()
                again = await client.post(told["report"], json=report, headers=me)
                assert again.status_code == 401, "the token has ended with the run"
            assert (run["status"], run["final_response"]) == ("completed", "done later")
            assert run["tokens_in"] == 11

    asyncio.run(story())


def test_an_agent_elsewhere_is_told_the_address_that_is_set(
    tmp_path: Path, stack: ExitStack
) -> None:
    async def story() -> None:
        remote = stack.enter_context(Remote())
        async with stage(tmp_path) as at:
            at.app.settings = replace(at.settings, url="https://remit.example.org/")
            await at.cast("http", {"url": f"{remote.url}/run"})
            await at.send("Please do it.")
            await at.over()
            (_, task), *_ = remote.calls
            run, told = task["run"], task["remit"]
            assert told["url"] == "https://remit.example.org"
            assert told["mcp"] == "https://remit.example.org/mcp"
            assert told["report"] == f"https://remit.example.org/api/runs/{run}/report"

    asyncio.run(story())


def test_a_failed_run_elsewhere_names_the_setting_without_which_nobody_can_call_back(
    tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(reachable: bool) -> tuple[str, str]:
        remote = stack.enter_context(Remote())
        remote.status = 202
        async with stage(tmp_path / str(reachable)) as at:
            config = {"url": f"{remote.url}/run", "mode": "callback", "timeoutSeconds": 1}
            await at.cast("http", config)
            await at.send("Please do it.")
            (run, *_) = await at.over()
            assert (run["status"], run["exit_reason"]) == ("failed", "timeout")
            return run["error"], await at.log(run)

    assert asyncio.run(story(True))[0] == "it took longer than 1 seconds"
    monkeypatch.setattr(http, "_is_own", lambda *_: False)  # the server is of another machine
    error, log = asyncio.run(story(False))
    assert error.startswith("it took longer than 1 seconds. The agent was told http://127.0.0.1:")
    assert "set REMIT_URL of the process that starts it" in error
    assert "set REMIT_URL of the process that starts it" in log


def test_an_agent_elsewhere_is_told_that_its_run_was_cancelled(
    tmp_path: Path, stack: ExitStack
) -> None:
    async def story() -> None:
        remote = stack.enter_context(Remote())
        remote.status = 202
        config = {"url": f"{remote.url}/run", "mode": "callback"}
        async with stage(tmp_path) as at:
            await at.cast("http", {**config, "cancelUrl": f"{remote.url}/cancel"})
            await at.send("Please do it.")
            begun = await at.begun()
            await until(lambda: remote.calls)
            await at.app.gate(at.board, runs.cancel, run=begun["id"])
            await until(lambda: "/cancel" in remote.paths())
            assert remote.calls[-1][1] == {"run": begun["id"], "cancelled": True}

    asyncio.run(story())
