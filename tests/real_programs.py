"""The real programs of agents, each in front of a model that is a script on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Any

import pytest

from remit.runtime.sandbox import sandbox_policy
from tests.agents import ClientMissing, program
from tests.agents.fake_anthropic import FakeAnthropic
from tests.agents.fake_model import Say, Script, Step, ToolResult, Use
from tests.agents.fake_openai import FakeOpenAI

KINDS = ["claude", "codex", "llm"]
RESUMED = {"sessionPolicy": {"maxAge": "1h"}}
KEY = "sk-fake-0123456789abcdef"
Fake = FakeAnthropic | FakeOpenAI
Input = Mapping[str, Any] | Callable[[ToolResult], Mapping[str, Any]]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    if not sandbox_policy.look().usable:
        pytest.skip(f"REAL AGENTS ARE NOT TESTED: {sandbox_policy.look().reason}")
    monkeypatch.setenv("HOME", "/nonexistent")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


def command(kind: str) -> str:
    if kind == "llm" and find_spec("pydantic_ai") is None:
        pytest.skip("THE LOOP OF llm IS NOT TESTED: install the extra llm")
    if kind == "llm":
        return ""
    try:
        return str(program(kind))
    except ClientMissing as missing:
        sentence = str(missing)
    pytest.skip(f"THE REAL {kind.upper()} IS NOT TESTED: {sentence}")


def model(kind: str, script: Script, **more: Any) -> AbstractContextManager[Fake]:
    return FakeAnthropic(script, **more) if kind == "claude" else FakeOpenAI(script, **more)


def config(kind: str, fake: Fake, **more: Any) -> dict[str, Any]:
    settings = {"command": command(kind), "baseUrl": fake.url, "model": "claude-sonnet-4-5", **more}
    if kind == "claude":
        return {"tools": [], **settings}
    if kind == "llm":
        del settings["command"]
        return {**settings, "provider": "compatible", "model": "a-model"}
    return {**settings, "model": "a-model"}


def tool(kind: str, name: str) -> str:
    return name if kind == "llm" else f"mcp__remit__{name}"


def story_of(kind: str, answer: str) -> list[Step]:
    """Read the mail, acknowledge it, keep a file, attach it to an answer, and sum up."""

    def acknowledge(inbox: ToolResult) -> dict[str, Any]:
        return {"ids": [letter["id"] for letter in inbox.json()["messages"]]}

    def reply(created: ToolResult) -> dict[str, Any]:
        attached = [created.json()["id"]]
        return {"to": "board", "subject": "Done", "body": answer, "attachments": attached}

    return [
        Use(tool(kind, "mail_inbox"), {}),
        Use(tool(kind, "mail_ack"), acknowledge),
        Use(tool(kind, "kb_create"), {"description": "A result", "content": answer}),
        Use(tool(kind, "mail_send"), reply),
        Say(f"I am done: {answer}"),
    ]


#: Wrong calls, and what their answers have to say: the sentence and the next step.
MISTAKES = (
    ("should be a valid list", "Call mail_ack again: give ids as JSON itself"),
    ("'open', 'completed' or 'closed'", "Call outcome_list again: choose one of these for status"),
    ("'notes.md' is not an id", "kb_list shows the ids of your files"),
    ("recipient: is not known", "Call mail_send again: write to instead of recipient"),
)


def mistaken_story(kind: str, named: str | None, answer: str) -> list[Step]:
    """As a model does that gets each call right the second time; of Codex' own models, those that
    are not told of the tools find them first."""
    mail: list[str] = []

    def letters(inbox: ToolResult) -> dict[str, Any]:
        mail[:] = [letter["id"] for letter in answer_of(inbox)["messages"]]
        return {"ids": json.dumps(mail)}

    calls: list[tuple[str, Input]] = [
        ("mail_inbox", {}),
        ("mail_ack", letters),
        ("mail_ack", lambda _: {"ids": mail}),
        ("outcome_list", {"status": "done"}),
        ("outcome_list", {"status": "completed"}),
        ("kb_read", {"id": "notes.md"}),
        ("kb_browse", {"query": "notes"}),
        ("mail_send", {"recipient": "board", "body": answer}),
        ("mail_send", {"to": "board", "body": answer}),
    ]
    if kind == "codex" and named is None:
        find = "text(ALL_TOOLS.filter(one => one.name.includes('remit')).map(one => one.name))"
        steps: list[Step] = [Use("exec", {"code": find})]
        steps += [Use("exec", _as_code(name, input_)) for name, input_ in calls]
    else:
        search = kind == "codex" and named is not None
        steps = [Use("tool_search", {"query": "remit answer mail"})] if search else []
        steps += [Use(tool(kind, name), input_) for name, input_ in calls]
    return [*steps, Say(f"I am done: {answer}")]


def by_default(kind: str, fake: Fake, **more: Any) -> dict[str, Any]:
    """Settings with which a program takes the model that it takes by default."""
    return {**config(kind, fake, **more), "model": None}


def use(kind: str, name: str, input_: Input) -> Use:
    """A call as such a model makes it."""
    return Use("exec", _as_code(name, input_)) if kind == "codex" else Use(tool(kind, name), input_)


def answer_of(result: ToolResult) -> Any:
    document = result.json()
    return document.get("structuredContent", document)


def _as_code(name: str, input_: Input) -> Input:
    def code(arguments: Mapping[str, Any]) -> dict[str, str]:
        called = f"tools.mcp__remit__{name}({json.dumps(arguments)})"
        return {"code": f"text(await {called})"}

    if callable(input_):
        return lambda result: code(input_(result))
    return code(input_)


def prompt_of(request: dict[str, Any]) -> str:
    """Everything that a model was told before the conversation."""
    if "system" in request:
        return json.dumps(request["system"])
    told = request.get("input") or request["messages"]
    return json.dumps(
        [message for message in told if message.get("role") in ("developer", "system")]
    )


def said_to(request: dict[str, Any]) -> str:
    return json.dumps(request.get("input") or request["messages"])
