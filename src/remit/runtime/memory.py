"""What an agent wrote down for itself, as a new conversation begins with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from remit.errors import RemitError
from remit.runtime.prompt import Written
from remit.services import notes
from remit.services.command import Gate
from remit.services.identity import Caller
from remit.services.library import Library

#: Of one day, in bytes.
MOST_NOTE = 2 * 1024
#: How many days of notes go into a new conversation; none unless `runtimeConfig` says so.
DAILY_NOTES = "dailyNotes"


class Shelf(Protocol):
    gate: Gate
    library: Library


async def remembered(app: Shelf, caller: Caller, agent: Mapping[str, Any]) -> list[Written]:
    """The agent's state document as it left it, then its notes, if it wants them."""
    parts = [Written("your state document", await _text(app, caller, agent["state_file_id"]))]
    days = agent.get("runtime_config", {}).get(DAILY_NOTES)
    if isinstance(days, int) and not isinstance(days, bool) and days > 0:
        for day, file in await app.gate(caller, notes.recent, days=days):
            text = await _text(app, caller, file)
            parts.append(Written(f"your notes of {day}", text, MOST_NOTE))
    return [part for part in parts if part.text]


async def _text(app: Shelf, caller: Caller, file: str) -> str:
    try:
        _, content = await app.library.read(caller, file=file)
    except RemitError:
        return ""
    return content.decode(errors="replace").strip()
