"""The log of a run as a transcript for people."""

from collections.abc import Iterator, Mapping
from typing import Any

from remit.adapters import registry
from remit.adapters.reading import Transcript
from remit.clock import from_iso
from remit.model.execution.transcript import Entry, EntryKind, denials
from remit.services.command import Ask
from remit.services.execution import runs

PIECES = 500
#: Number of an entry in its run, from 1, and the entry.
Numbered = tuple[int, Entry]
_SPEAKS = (EntryKind.SAID, EntryKind.PRINTED)


class Reading:
    """Incremental reader of a run's log."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        self._transcript = Transcript(
            registry.reader(run["adapter_type"]), from_iso(run["started_at"])
        )
        self._count = 0
        self._spoke = False
        #: Number of the last piece of the log that was read.
        self.seen = 0

    def add(self, piece: Mapping[str, Any]) -> list[Numbered]:
        self.seen = piece["number"]
        return self._numbered(
            self._transcript.add(piece["stream"], piece["text"], from_iso(piece["at"]))
        )

    def end(self, run: Mapping[str, Any]) -> list[Numbered]:
        """Return the rest of a finished run's output, and an entry about its end."""
        at = from_iso(run["completed_at"]) if run["completed_at"] else None
        rest = self._numbered(self._transcript.end(at))
        if run["final_response"] and not self._spoke:
            rest += self._numbered([Entry(EntryKind.SAID, run["final_response"], at=at)])
        return [*rest, *self._numbered([_end(run)])]

    def _numbered(self, entries: list[Entry]) -> list[Numbered]:
        start = self._count + 1
        self._count += len(entries)
        self._spoke = self._spoke or any(entry.kind in _SPEAKS for entry in entries)
        return list(enumerate(entries, start))


def _end(run: Mapping[str, Any]) -> Entry:
    at = from_iso(run["completed_at"]) if run["completed_at"] else None
    error = (run["error"] or "").rstrip(".")
    return Entry(
        EntryKind.END,
        "; ".join(reason for reason in (error, denials(run["denied"])) if reason),
        tokens_in=run["tokens_in"],
        tokens_out=run["tokens_out"],
        tokens_cached=run["tokens_cached"],
        cost_micros=None if run["cost_usd"] is None else round(run["cost_usd"] * 1_000_000),
        cost_estimated=run["cost_estimated"],
        status=run["status"],
        fault=run["fault"],
        at=at,
        took=None if at is None else max(0, at - from_iso(run["started_at"])),
    )


def entries(ask: Ask, run: str) -> Iterator[Numbered]:
    """Yield all entries so far, from the beginning; with the end if the run has ended."""
    answer = ask(runs.show, run=run)
    reading = Reading(answer)
    while True:
        page = ask(runs.log, run=run, after=reading.seen, limit=PIECES)
        for piece in page["pieces"]:
            yield from reading.add(piece)
        if len(page["pieces"]) < PIECES:
            break
    if not page["live"]:
        yield from reading.end(answer)
