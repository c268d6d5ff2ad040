"""Agents of each adapter whose models are scripts on loopback; the programs are the real ones."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.agents import ClientMissing, program
from tests.agents.fake_anthropic import FakeAnthropic
from tests.agents.fake_model import Say
from tests.agents.fake_openai import FakeOpenAI
from tests.agents.remote import Remote

#: They open nothing.
KEYS = {
    "ANTHROPIC_API_KEY": "sk-fake-0123456789abcdef",
    "OPENAI_API_KEY": "sk-fake-0123456789abcdef",
}
_ANSWER = "Hello."


@dataclass
class Prepared:
    """What can run here, and a sentence for each adapter that cannot."""

    #: The settings of an agent, by its adapter.
    adapters: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def prepared(stack: ExitStack) -> Prepared:
    """Return the settings of an agent of each adapter that starts runs; `llm` needs its extra."""
    ready = Prepared()
    for name, make in (("claude", _claude), ("codex", _codex)):
        try:
            command = str(program(name))
        except ClientMissing as missing:
            ready.missing.append(f"NOT TRIED: {name}, because {missing}")
            continue
        ready.adapters[name] = make(stack, command)
    said = json.dumps({"text": _ANSWER, "usage": {"tokens_in": 3}})
    echo = f"cat >/dev/null; echo '{said}'"
    ready.adapters["process"] = {"command": "sh", "args": ["-c", echo]}
    remote = stack.enter_context(Remote())
    ready.adapters["http"] = {"url": f"{remote.url}/run"}
    ready.adapters["scripted"] = {"script": [{"tool": "outcome_list", "arguments": {}}]}
    model = stack.enter_context(FakeOpenAI([Say(_ANSWER)]))
    ready.adapters["llm"] = {"provider": "compatible", "baseUrl": model.url, "model": "m"}
    return ready


def _claude(stack: ExitStack, command: str) -> dict[str, Any]:
    model = stack.enter_context(FakeAnthropic([Say(_ANSWER)]))
    return {"command": command, "baseUrl": model.url, "tools": [], "model": "m"}


def _codex(stack: ExitStack, command: str) -> dict[str, Any]:
    model = stack.enter_context(FakeOpenAI([Say(_ANSWER)]))
    return {"command": command, "baseUrl": model.url, "model": "m"}
