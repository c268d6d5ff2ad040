"""The prompt: everything that stays the same first, then the agent's memory, the turn last."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2

from remit.model.messaging.turn import barred

#: How much of an agent's memory goes into a prompt, in bytes.
MOST_MEMORY = 8 * 1024
_NOTHING_IN_MAIL = "There is no new mail. Go on with what is due.\n"


@dataclass(frozen=True)
class Written:
    """Something that an agent wrote down for itself: what it is, and how much of it is shown."""

    what: str
    text: str
    most: int = MOST_MEMORY


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
    mandate: Mapping[str, object],
    can: Collection[str] = (),
) -> str:
    """The same bytes for the same agent, whatever the run is about; `can` says what it may besides
    what every agent may."""
    return _template().render(
        agent=agent, boss=boss, company=company, mandate=mandate, can=frozenset(can)
    )


def turn(text: str, *, situation: str, mail: bool, memory: Sequence[Written] = ()) -> str:
    """The prompt of this run; a new conversation begins with the agent's own notes."""
    return f"{_remembered(memory)}# Situation\n\n{situation}{text}" + (
        "" if mail else f"\n{_NOTHING_IN_MAIL}"
    )


def _remembered(memory: Sequence[Written]) -> str:
    """Behind bars like mail: what an injected run wrote down must not pass for ours in the next."""
    blocks = []
    left = MOST_MEMORY
    for one in memory:
        shown = _fitting(one.text, min(one.most, left))
        left -= len(barred(shown).encode())
        cut = "" if shown == one.text else " (cut; the whole is in its file)"
        blocks.append(f"What you wrote yourself, {one.what}{cut}:\n{barred(shown)}\n")
        if left <= 0:
            break
    return f"# Your memory\n\n{''.join(blocks)}" if blocks else ""


def _fitting(text: str, most: int) -> str:
    """So much of a text as fits when it stands behind bars, which many short lines make longer."""
    shown = bounded(text, most)
    while shown and (size := len(barred(shown).encode())) > most:
        shown = bounded(shown, len(shown.encode()) * most // size)
    return shown


def bounded(text: str, most: int) -> str:
    """So much of a text as fits, and no half of a character."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")
