"""What a model is sent first: by each program, with the model that it takes by default.

The programs are the real ones, the model is a script on loopback. Sizes are in tokens of about four
characters; what is Remit's is its tools, its prompt, its skills and the turn.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import Plan, Row
from tests.agent_stage import stage
from tests.agents import ClientMissing, program
from tests.agents.fake_model import Say
from tests.real_programs import KEY, config, model

CHARACTERS_PER_TOKEN = 4
MOST_OF_CLAUDE = 9_500
MOST_OF_REMIT = 6_000
#: An agent that has a report is shown more tools.
WITH_REPORT = "claude with a report"
#: Where the prompt begins that Remit adds to the program's own.
_OURS = "# Who you are"
PROGRAMS = {
    "claude": ("claude", None),
    WITH_REPORT: ("claude", None),
    "codex": ("codex", None),
    "codex with gpt-5.5": ("codex", "gpt-5.5"),
    "llm": ("llm", "a-model"),
}


def measure(plan: Plan) -> Iterator[Row]:
    for name, (kind, named) in PROGRAMS.items():
        try:
            if kind != "llm":
                program(kind)
        except ClientMissing as missing:
            yield Row(f"{name}: not measured", str(missing))
            continue
        home = plan.folder / name.replace(" ", "-")
        home.mkdir()
        first, again = asyncio.run(_requests(home, kind, named, report=name == WITH_REPORT))
        whole, ours = _size(first), sum(_size(part) for part in _of_remit(first))
        most = MOST_OF_CLAUDE if kind == "claude" else None
        yield Row(
            f"{name}: first request",
            f"about {whole:,} tokens",
            "Remit's part",
            ours / whole,
            f"≤ {most:,}" if most else "",
            None if most is None else whole <= most,
        )
        yield Row(
            f"{name}: Remit's part",
            f"about {ours:,} tokens",
            budget=f"≤ {MOST_OF_REMIT:,}",
            ok=ours <= MOST_OF_REMIT,
        )
        yield Row(f"{name}: its parts", ", ".join(_parts(first)))
        same = _same_beginning(_fixed(first), _fixed(again))
        yield Row(
            f"{name}: the same in the next run",
            f"{same:.0%} of tools and prompt",
            budget="100%",
            ok=same == 1,
        )


async def _requests(home: Path, kind: str, named: str | None, *, report: bool) -> tuple[Any, Any]:
    """The first requests of two runs of an agent, each with a letter."""
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        os.environ[variable] = KEY
    with model(kind, [Say("Done.")]) as fake:
        async with stage(home) as at:
            given = {**config(kind, fake), "model": named}
            if kind == "claude":
                del given["tools"]
            if report:
                await at.hire("writer", "scripted", {})
            await at.cast(kind, given)
            for number, letter in enumerate(("What colour is grass?", "And the sky?"), start=1):
                await at.send(letter)
                await at.over(number)
        return fake.requests[0], fake.requests[-1]


def _parts(request: dict[str, Any]) -> Iterator[str]:
    """How large each part is; what is left is the program's own."""
    ours = list(_of_remit(request))
    tools = [part for part in ours if not isinstance(part, str)]
    told = [part for part in ours if isinstance(part, str)]
    known = {
        "Remit's tools": tools,
        "prompt": [part for part in told if part.startswith(_OURS)],
        "turn": [part for part in told if not part.startswith(_OURS)],
    }
    own = [tool for tool in _tools(request) if tool not in tools]
    sizes = {name: sum(map(_size, parts)) for name, parts in known.items()}
    sizes["the program's tools"] = sum(map(_size, own))
    sizes["the rest"] = _size(request) - sum(sizes.values())
    for name, size in sizes.items():
        count = {"Remit's tools": f" ({len(tools)})", "the program's tools": f" ({len(own)})"}
        yield f"{name}{count.get(name, '')} {size:,}"


def _tools(request: dict[str, Any]) -> list[Any]:
    """Codex' newest model has them in a message."""
    more = [one["tools"] for one in request.get("input", []) if "tools" in one]
    return [*request.get("tools", []), *(tool for tools in more for tool in tools)]


def _of_remit(request: dict[str, Any]) -> Iterator[Any]:
    for tool in request.get("tools", []):
        name = str(tool.get("name") or tool.get("function", {}).get("name", ""))
        if "remit" in name or "function" in tool:
            yield tool
    for text in _texts(request):
        if _OURS in text:
            yield text[text.index(_OURS) :]
        elif "pending-envelopes:" in text:
            yield text


def _texts(request: dict[str, Any]) -> Iterator[str]:
    told = [*request.get("system", []), *request.get("messages", []), *request.get("input", [])]
    for one in told:
        content = one.get("text") or one.get("content") or ""
        for part in content if isinstance(content, list) else [content]:
            yield str(part.get("text", "")) if isinstance(part, dict) else str(part)


def _fixed(request: dict[str, Any]) -> str:
    """What a provider's cache could hold: the tools, and what Remit always says."""
    ours = [text[text.index(_OURS) :] for text in _texts(request) if _OURS in text]
    return json.dumps([request.get("tools", []), ours])


def _same_beginning(first: str, again: str) -> float:
    pairs = zip(first, again, strict=False)
    same = next(
        (place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(again))
    )
    return same / max(len(first), len(again))


def _size(part: Any) -> int:
    text = part if isinstance(part, str) else json.dumps(part, separators=(",", ":"))
    return len(text) // CHARACTERS_PER_TOKEN
