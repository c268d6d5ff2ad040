"""Memory of an agent: its own notes, with which a new conversation begins."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from remit.errors import RemitError
from remit.runtime.runs.prompt import Written
from remit.services.execution.run_start import Memory
from remit.services.knowledge.file_contents import Library

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
