"""What an agent is told: everything that stays the same first, the turn last."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2

#: How much of an agent's memory goes into a prompt.
MOST_MEMORY = 8 * 1024
_CUT = "\n[… cut here; the rest is in your state document …]"


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    source = resources.files("remit.prompts").joinpath("system/base.md").read_text()
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  # it is text for a model, not a page
        keep_trailing_newline=True,
    )
    return environment.from_string(source)


def instructions(
    *,
    agent: dict[str, Any],
    boss: dict[str, Any],
    company: dict[str, Any],
    tools: list[str],
    memory: str = "",
) -> str:
    """The same bytes for the same agent, whatever the run is about."""
    return _template().render(
        agent=agent, boss=boss, company=company, tools=sorted(tools), memory=bounded(memory)
    )


def bounded(text: str, most: int = MOST_MEMORY) -> str:
    """A text that fits, with a mark where it was cut."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    return raw[:most].decode(errors="ignore") + _CUT
