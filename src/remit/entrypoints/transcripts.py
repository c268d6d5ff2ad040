"""The log of a run as people read it: asked for piece by piece, each time by whoever looks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from remit.adapters import registry
from remit.adapters.reading import Transcript
from remit.clock import from_iso
from remit.model.transcript import Entry, EntryKind, denials
from remit.services import runs
from remit.services.command import Gate
from remit.services.identity import Caller

PIECES = 500
#: An entry, and its place among those of its run; the first is 1.
Numbered = tuple[int, Entry]
_SPEAKS = (EntryKind.SAID, EntryKind.PRINTED)


class Reading:
    """What was read of a run so far."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        self._transcript = Transcript(
            registry.reader(run["adapter_type"]), from_iso(run["started_at"])
        )
        self._count = 0
        self._spoke = False
        #: The last piece of the log that was read.
        self.seen = 0

    def add(self, piece: Mapping[str, Any]) -> list[Numbered]:
        self.seen = piece["number"]
        return self._numbered(
            self._transcript.add(piece["stream"], piece["text"], from_iso(piece["at"]))
        )

    def end(self, run: Mapping[str, Any]) -> list[Numbered]:
        """What is left when the run is over, and how it ended."""
        at = from_iso(run["completed_at"]) if run["completed_at"] else None
        found = self._numbered(self._transcript.end(at))
        if run["final_response"] and not self._spoke:
            found += self._numbered([Entry(EntryKind.SAID, run["final_response"], at=at)])
        return [*found, *self._numbered([_end(run)])]

    def _numbered(self, entries: list[Entry]) -> list[Numbered]:
        start = self._count + 1
        self._count += len(entries)
        self._spoke = self._spoke or any(one.kind in _SPEAKS for one in entries)
        return list(enumerate(entries, start))


def _end(run: Mapping[str, Any]) -> Entry:
    at = from_iso(run["completed_at"]) if run["completed_at"] else None
    error = (run["error"] or "").rstrip(".")
    return Entry(
        EntryKind.END,
        "; ".join(one for one in (error, denials(run["denied"])) if one),
        tokens_in=run["tokens_in"],
        tokens_out=run["tokens_out"],
        tokens_cached=run["tokens_cached"],
        cost_micros=round(run["cost_usd"] * 1_000_000),
        cost_estimated=run["cost_estimated"],
        status=run["status"],
        fault=run["fault"],
        at=at,
        took=None if at is None else max(0, at - from_iso(run["started_at"])),
    )


async def entries(gate: Gate, who: Caller, run: Mapping[str, Any]) -> AsyncIterator[Numbered]:
    """All there is so far, from the beginning; its end only if it has ended."""
    reading = Reading(run)
    while True:
        page = await gate(who, runs.log, run=run["id"], after=reading.seen, limit=PIECES)
        for piece in page["pieces"]:
            for one in reading.add(piece):
                yield one
        if len(page["pieces"]) < PIECES:
            break
    if not page["live"]:
        ended = await gate(who, runs.show, run=run["id"])
        for one in reading.end(ended):
            yield one
