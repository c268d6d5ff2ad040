"""Readers of a run's output: parsers into entries of `remit.model.execution.transcript`.

Each adapter has a reader for its program (`Adapter.reader`). Lines may be cut, huge, mixed or made
to mislead: unrecognised ones are shown as text. The time is linear in the length of a line.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from remit.clock import Micros
from remit.model.execution.transcript import Entry, EntryKind, entry_of, harmless
from remit.model.organisation.decision import REFUSALS

#: Remit's note in a log whose middle is left out.
_GAP = re.compile(r"^\[… \d{1,20} characters are left out …\]$")
_REFUSAL = re.compile(r"(?:Error: )?([a-z][a-z_]{1,40}): ")
#: The code of a refusal in an answer for programs.
_CODE = re.compile(r'\{?"?code"?[=:] ?"([a-z][a-z_]{1,40})"')
_DENIED = re.compile(r'"effect": ?"deny"')
_PROGRAM_DENIES = re.compile(
    r"(?:Error: )?(?:Permission to use [^\n]{1,200} has been denied"
    r"|Claude requested permissions? to |The user doesn't want to proceed with this tool use"
    r"|user (?:cancelled|rejected) MCP tool call|[^\n]{0,200} requires approval, but )"
)
#: Most unanswered calls that are remembered.
_MOST_KNOWN = 1000


class Reader:
    """Reader that shows each line as printed; the base of all others."""

    #: Whether the output shows denials, which are then counted while the run lasts.
    sees_denials = False

    def read(self, line: str) -> Iterable[Entry]:
        return (Entry(EntryKind.PRINTED, line),)


class JsonReader(Reader, ABC):
    """Reader of output with one JSON object in each line."""

    def read(self, line: str) -> Iterable[Entry]:
        event = parsed(line)
        if event is None:
            return super().read(line)
        return self.meaning(event)

    @abstractmethod
    def meaning(self, event: Mapping[str, Any]) -> Iterable[Entry]:
        """Return the entries for one object."""


class Known:
    """Bounded map of calls to a text; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def put(self, call: str, what: str) -> None:
        self._known[call] = what
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def get(self, call: str) -> str | None:
        return self._known.get(call)


class Transcript:
    """Incremental parser of the pieces of a log into entries."""

    def __init__(self, reader: Reader, began: Micros | None = None) -> None:
        self._reader = reader
        self._since = began
        #: The parts of the unfinished line of each stream.
        self._open: dict[str, list[str]] = {}
        #: Whether the next line of the program may lack its beginning.
        self._torn = False

    def add(self, stream: str, text: str, at: Micros | None = None) -> list[Entry]:
        *lines, rest = text.split("\n")
        begun = self._open.pop(stream, [])
        if lines and begun:
            lines[0] = "".join((*begun, lines[0]))
            begun = []
        if rest or begun:
            begun.append(rest)
            self._open[stream] = begun
        return self._finished(self._meanings(stream, lines, at), at)

    def end(self, at: Micros | None = None) -> list[Entry]:
        """Return the entries of unfinished lines at the end of the output."""
        left, self._open = self._open, {}
        entries: list[Entry] = []
        for stream, parts in left.items():
            entries += self._finished(self._meanings(stream, ["".join(parts)], at), at)
        return entries

    def _finished(self, entries: Iterable[Entry], at: Micros | None) -> list[Entry]:
        return [self._dated(entry, at) for entry in _joined(entries)]

    def _meanings(self, stream: str, lines: Iterable[str], at: Micros | None) -> Iterator[Entry]:
        for line in lines:
            if stream == "remit" and _GAP.match(line):
                yield from self.end(at)
                self._torn = True
            yield from self._meaning(stream, line.removesuffix("\r"))

    def _meaning(self, stream: str, line: str) -> Iterable[Entry]:
        if stream == "remit":
            return (entry_of(line) or Entry(EntryKind.NOTE, line),)
        if stream == "stderr":
            return (Entry(EntryKind.PRINTED, line, stream=stream),)
        torn, self._torn = self._torn, False
        if torn and isinstance(self._reader, JsonReader) and parsed(line) is None:
            return ()  # the rest of a line whose beginning was left out
        try:
            entries = list(self._reader.read(line))
        except Exception:
            # A line on which the reader fails, which may be a plugin's, is shown as it is.
            entries = [Entry(EntryKind.PRINTED, line)]
        return entries

    def _dated(self, entry: Entry, at: Micros | None) -> Entry:
        entry = replace(entry, text=harmless(entry.text), at=at if entry.at is None else entry.at)
        if entry.kind is not EntryKind.TURN or entry.at is None:
            return entry
        if self._since is not None:
            entry = replace(entry, took=max(0, entry.at - self._since))
        self._since = entry.at
        return entry


def _joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Merge successive printed lines into one entry."""
    lines: list[str] = []
    last: Entry | None = None
    for entry in entries:
        if last is not None and entry.kind is EntryKind.PRINTED and entry.stream == last.stream:
            lines.append(entry.text)
            continue
        if last is not None:
            yield replace(last, text="\n".join(lines))
        last, lines = None, []
        if entry.kind is EntryKind.PRINTED:
            last, lines = entry, [entry.text]
        else:
            yield entry
    if last is not None:
        yield replace(last, text="\n".join(lines))


def parsed(line: str) -> dict[str, Any] | None:
    """Parse the JSON object in a line, also if the end of the line is missing."""
    if not line.startswith("{"):
        return None
    try:
        document = json.loads(line, strict=False)
    except (ValueError, RecursionError):
        try:
            document = from_json(line, allow_partial="trailing-strings")
        except (ValueError, TypeError):  # TypeError: a lone surrogate
            return None
    return document if isinstance(document, dict) else None


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def number(value: object) -> int | None:
    """Return a count or a time if it is a reasonable number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= 1e15 else None


def words(content: object) -> str:
    """Return the text of a tool's answer, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = []
    for part in sequence(content):
        kind = mapping(part).get("type")
        text = mapping(part).get("text")
        parts.append(text if isinstance(text, str) else f"[{kind or 'something else'}]")
    return "\n".join(parts)


def denies(text: str) -> bool:
    """Return whether the answer of a failed tool is a denial, by the program or by Remit."""
    if _PROGRAM_DENIES.match(text):
        return True
    refusal, known = _REFUSAL.match(text), _CODE.match(text)
    code = refusal[1] if refusal and " Next: " in text else known[1] if known else None
    return code is not None and (code in REFUSALS or _DENIED.search(text) is not None)


def answered(tool: str, call: str | None, text: str, *, failed: bool) -> Entry:
    """Return the entry for an answered call: its result, or its denial."""
    if failed and denies(text):
        # The JSON after the sentence is for programs.
        sentence = text.partition('\n{"')[0].removeprefix("Error: ")
        return Entry(EntryKind.DENIED, sentence, tool, call)
    return Entry(EntryKind.RESULT, text, tool, call, failed)
