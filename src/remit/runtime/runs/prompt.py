"""The prompt: the constant part first, then the agent's memory, the turn last."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2

from remit.errors import RemitError
from remit.model.messaging.turn import barred
from remit.services.execution.run_start import Memory
from remit.services.knowledge.file_contents import Library

#: How much of an agent's memory goes into a prompt, in bytes.
MOST_MEMORY = 8 * 1024
_NOTHING_IN_MAIL = "There is no new mail. Go on with what is due.\n"


@dataclass(frozen=True)
class Written:
    """A text of an agent's memory, with a title and the most bytes of it that are shown."""

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
    """Return the constant part of the prompt, the same bytes for every run of an agent; `can` names
    permissions beyond those of every agent."""
    return _template().render(
        agent=agent, boss=boss, company=company, mandate=mandate, can=frozenset(can)
    )


def turn(
    text: str, *, situation: str, mail: bool, memory: Sequence[Written] = (), folder: str = ""
) -> str:
    """Return the variable part of the prompt: the instructions of the folder that the agent works
    in, its own notes in a new conversation, its situation, its mail."""
    return f"{folder}{_remembered(memory)}# Situation\n\n{situation}{text}" + (
        "" if mail else f"\n{_NOTHING_IN_MAIL}"
    )


def _remembered(memory: Sequence[Written]) -> str:
    """Quote the memory behind bars, like mail: notes of a run with injected instructions must not
    pass for Remit's words in the next run."""
    blocks = []
    left = MOST_MEMORY
    for part in memory:
        shown = _fitting(part.text, min(part.most, left))
        left -= len(barred(shown).encode())
        cut = "" if shown == part.text else " (cut; the whole is in its file)"
        blocks.append(f"What you wrote yourself, {part.what}{cut}:\n{barred(shown)}\n")
        if left <= 0:
            break
    return f"# Your memory\n\n{''.join(blocks)}" if blocks else ""


def _fitting(text: str, most: int) -> str:
    """Return the beginning of a text that fits the limit with a bar added to each of its lines."""
    shown = bounded(text, most)
    while shown and (size := len(barred(shown).encode())) > most:
        shown = bounded(shown, len(shown.encode()) * most // size)
    return shown


def bounded(text: str, most: int) -> str:
    """Return the beginning of a text within a limit of bytes, without half a character."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")


#: Most bytes of the notes of one day.
MOST_NOTE = 2 * 1024


async def remembered(library: Library, memory: Iterable[Memory]) -> list[Written]:
    """Load the texts that a briefing names."""
    parts = []
    for note in memory:
        part = Written(note.title, await _text(library, note.version))
        parts.append(replace(part, most=MOST_NOTE) if note.is_note else part)
    return [part for part in parts if part.text]


async def _text(library: Library, version: dict[str, Any]) -> str:
    try:
        _, content = await library.contents(version)
    except RemitError:
        return ""
    return content.decode(errors="replace").strip()
