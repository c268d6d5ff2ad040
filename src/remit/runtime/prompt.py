"""What an agent is told: everything that stays the same first, then its memory, the turn last."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2

#: How much of an agent's memory goes into a prompt, in bytes.
MOST_MEMORY = 8 * 1024
_CUT = "\n[… cut here; the rest is in your state document …]"
_NOTHING_IN_MAIL = "There is no new mail. Go on with what is due.\n"


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
    agent: Mapping[str, Any],
    boss: Mapping[str, Any],
    company: Mapping[str, Any],
    mandate: Mapping[str, str],
    can: Collection[str] = (),
) -> str:
    """The same bytes for the same agent, whatever the run is about; `can` says what it may besides
    what every agent may."""
    return _template().render(
        agent=agent, boss=boss, company=company, mandate=mandate, can=frozenset(can)
    )


def turn(text: str, *, situation: str, mail: bool, memory: str = "") -> str:
    """What this run is about; a new conversation begins with what the agent wrote down."""
    remembered = f"# Your memory\n\n{bounded(memory)}\n\n" if memory else ""
    return f"{remembered}# Situation\n\n{situation}{text}" + (
        "" if mail else f"\n{_NOTHING_IN_MAIL}"
    )


def bounded(text: str, most: int = MOST_MEMORY) -> str:
    """A text that fits, with a mark where it was cut."""
    raw = text.encode(errors="replace")
    if len(raw) <= most:
        return text
    return raw[: most - len(_CUT.encode())].decode(errors="ignore") + _CUT
