"""Transcript of a run: readable, and the same for every adapter.

A program's output is stored as it is. An *entry* is the meaning of one part of it: speech, a call,
its result, a denial. All of its text may be written by a model or by an attacker, so it is shown as
text and nothing else.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from remit.clock import DAY, SECOND, Micros, to_iso
from remit.model.text import dollars

#: Prefix of a log line in which Remit stored an entry.
MARK = '{"remit":'
_MOST_NUMBER = 1 << 53
#: Limits of an entry's excerpt: characters, and lines.
_SHORT = {
    "said": (20_000, 1000),
    "printed": (40_000, 2000),
    "note": (4_000, 100),
    "thought": (2_000, 30),
    "call": (300, 4),
    "result": (600, 8),
    "denied": (300, 3),
    "retry": (300, 3),
}
_LONGEST_NAME = 100
#: Prefixes of entries in a terminal; speech and printed lines have none.
_MARKS = ("-> ", "<- ", "!! ", "~~ ", "-- ", "== ", "(thinks) ", "remit: ")
_INDENT = "\n   "


class EntryKind(StrEnum):
    #: Text of the model: for readers, and for itself.
    SAID = "said"
    THOUGHT = "thought"
    #: A call of a tool, and its result.
    CALL = "call"
    RESULT = "result"
    #: A denied call: by the agent's program, or by Remit.
    DENIED = "denied"
    #: A repeated request after the model's server failed.
    RETRY = "retry"
    #: A turn of the model, with the run's usage so far.
    TURN = "turn"
    #: Other output of a program.
    PRINTED = "printed"
    #: A remark of Remit.
    NOTE = "note"
    END = "end"


_UNMARKED = frozenset({EntryKind.SAID, EntryKind.PRINTED})


@dataclass(frozen=True, slots=True)
class Entry:
    kind: EntryKind
    #: Text or result; of a call its arguments; of an end its reason.
    text: str = ""
    tool: str | None = None
    #: The call's id in the program's output.
    call: str | None = None
    failed: bool = False
    #: `stdout` or `stderr`, of what was printed.
    stream: str | None = None
    #: Number of the turn, and the run's usage so far.
    turn: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    cost_micros: int | None = None
    cost_estimated: bool = False
    #: Of a retry: its number, the most retries, and the wait before it.
    attempt: int | None = None
    most: int | None = None
    wait_ms: int | None = None
    #: Of the end.
    status: str | None = None
    fault: str | None = None
    at: Micros | None = None
    #: Duration of the turn or the run.
    took: Micros | None = None


_FIELDS = tuple(field.name for field in fields(Entry) if field.name != "kind")
_WORDS = frozenset({"text", "tool", "call", "stream", "status", "fault"})
_FLAGS = frozenset({"failed", "cost_estimated"})


def line_of(entry: Entry) -> str:
    """Serialise an entry to a log line for `entry_of`."""
    known = {name: value for name in _FIELDS if (value := getattr(entry, name))}
    return json.dumps({"remit": entry.kind.value, **known}, separators=(",", ":"))


def entry_of(line: str) -> Entry | None:
    """Parse an entry that Remit stored; None for any other line."""
    if not line.startswith(MARK):
        return None
    try:
        document = json.loads(line)
        kind = EntryKind(document["remit"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    known = {name: value for name, value in document.items() if _fits(name, value)}
    return Entry(kind, **known)


def _fits(name: str, value: object) -> bool:
    if name in _WORDS:
        return isinstance(value, str)
    if name in _FLAGS:
        return isinstance(value, bool)
    if name not in _FIELDS:
        return False
    return type(value) is int and 0 <= value <= _MOST_NUMBER


def arguments(values: object) -> str:
    """Return the arguments of a call on one line."""
    if values is None or values == {}:
        return ""
    if isinstance(values, str):
        return values
    if isinstance(values, Mapping):
        return ", ".join(f"{name}={_value(argument)}" for name, argument in values.items())
    return _value(values)


def _value(argument: object) -> str:
    try:
        return json.dumps(argument, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "…"


def name(text: object) -> str:
    """Return the name of a tool on one line; a model may have invented it."""
    return " ".join(harmless(str(text or "?"))[:_LONGEST_NAME].split()) or "?"


def harmless(text: str) -> str:
    """Replace NUL and lone surrogates, which cannot be sent or stored."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def short(entry: Entry) -> tuple[str, bool]:
    """Return an entry's excerpt, and whether it is cut."""
    most, most_lines = _SHORT.get(entry.kind.value, (2_000, 20))
    text = entry.text
    cut = text[:most]
    lines = cut.split("\n", most_lines)
    if len(lines) > most_lines:
        cut = "\n".join(lines[:most_lines])
    return cut, len(cut) < len(text.rstrip("\n"))


def shown(entry: Entry, *, whole: bool = False) -> str:
    """Return an entry as text for the terminal and pages, of one or more lines."""
    text, cut = (entry.text, False) if whole else short(entry)
    if cut:
        text = f"{text} […]"
    if entry.kind in _UNMARKED:
        return _unmistakable(text)
    return _marked(entry, text).replace("\n", _INDENT)


def _unmistakable(text: str) -> str:
    """Indent lines that could pass for a call, a denial or an end."""
    return "\n".join(f" {line}" if line.startswith(_MARKS) else line for line in text.split("\n"))


def _marked(entry: Entry, text: str) -> str:
    match entry.kind:
        case EntryKind.CALL:
            return f"-> {entry.tool}({text})"
        case EntryKind.RESULT:
            head = f"<- {entry.tool}" if entry.tool else "<-"
            return _behind(f"{head} failed" if entry.failed else head, text)
        case EntryKind.DENIED:
            return _behind(f"!! denied {entry.tool}", text)
        case EntryKind.RETRY:
            return _behind(f"~~ retry{_count(entry)}", text)
        case EntryKind.THOUGHT:
            return f"(thinks) {text}"
        case EntryKind.NOTE:
            return f"remit: {text}"
        case EntryKind.TURN:
            return f"-- turn {entry.turn or '?'}: {_taken(entry)}"
        case EntryKind.END:
            whose = f" (fault: {entry.fault})" if entry.fault else ""
            return _behind(f"== {entry.status}{whose}", "; ".join(_known(text, _taken(entry))))
        case _:
            return text  # kinds without a mark


def _behind(head: str, text: str) -> str:
    return f"{head}: {text}" if text else head


def _known(*texts: str) -> Iterable[str]:
    return (text for text in texts if text)


def _count(entry: Entry) -> str:
    of = f" of {entry.most}" if entry.most else ""
    number = f" {entry.attempt}{of}" if entry.attempt else ""
    return f"{number} in {entry.wait_ms / 1000:.1f} s" if entry.wait_ms else number


def _taken(entry: Entry) -> str:
    """Return time, duration, tokens and cost."""
    parts = []
    if entry.at is not None and entry.kind is EntryKind.TURN:
        parts.append(f"{to_iso(entry.at)[11:19]}Z")
    if entry.took is not None:
        parts.append(duration(entry.took))
    if entry.tokens_in or entry.tokens_out:
        cached = f" ({entry.tokens_cached:,} cached)" if entry.tokens_cached else ""
        parts.append(f"{entry.tokens_in or 0:,} tokens in{cached}, {entry.tokens_out or 0:,} out")
    if entry.cost_micros:
        about = "about " if entry.cost_estimated else ""
        parts.append(f"{about}{dollars(entry.cost_micros / 1_000_000)}")
    so_far = entry.kind is EntryKind.TURN and (entry.tokens_in or entry.tokens_out)
    return ", ".join(parts) + (" so far" if so_far else "")


def duration(passed: Micros) -> str:
    seconds = min(max(passed, 0), 1000 * DAY) / SECOND
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def view(number: int, entry: Entry, *, whole: bool = False) -> dict[str, Any]:
    """Return an entry as a view for programs, with its readable text as `shown`."""
    text, cut = (entry.text, False) if whole else short(entry)
    known: dict[str, Any] = {
        "number": number,
        "at": None if entry.at is None else to_iso(entry.at),
        "kind": entry.kind.value,
        "shown": shown(entry, whole=whole),
        "text": text,
        "cut": cut,
        "size": len(entry.text),
    }
    for name_ in ("tool", "call", "stream", "turn", "attempt", "most", "wait_ms", "status"):
        if (value := getattr(entry, name_)) is not None:
            known[name_] = value
    for name_ in ("fault", "tokens_in", "tokens_out", "tokens_cached"):
        if (value := getattr(entry, name_)) is not None:
            known[name_] = value
    if entry.kind is EntryKind.RESULT:
        known["failed"] = entry.failed
    if entry.cost_micros is not None:
        known["cost_usd"] = entry.cost_micros / 1_000_000
        known["cost_estimated"] = entry.cost_estimated
    if entry.took is not None:
        known["seconds"] = entry.took / SECOND
    return known


def denials(denied: Iterable[Mapping[str, Any]]) -> str:
    """Summarise the denials of a run: "3 denied: Bash, Write"; empty if there are none."""
    rows = list(denied)
    count = sum(row["count"] for row in rows)
    return f"{count} denied: {', '.join(row['tool'] for row in rows)}" if count else ""
