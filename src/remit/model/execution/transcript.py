"""Transcript of a run, in a form that people can read and that is the same for every adapter.

What a program prints is kept as it is. An *entry* is what one part of it means: something that was
said, a call, its result, a denial. Everything in it may be written by a model or by somebody who
wants to mislead its reader, so it is text and nothing else.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from remit.clock import DAY, SECOND, Micros, to_iso
from remit.model.text import dollars

#: A line of Remit's own in the log that holds an entry begins with this.
MARK = '{"remit":'
_MOST_NUMBER = 1 << 53
#: How much of an entry is shown unless all of it is asked for: characters, and lines.
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
    #: By the model, for whoever reads; and for itself.
    SAID = "said"
    THOUGHT = "thought"
    #: A tool that is called, and what came back.
    CALL = "call"
    RESULT = "result"
    #: A call that was not allowed: by the agent's program, or by Remit.
    DENIED = "denied"
    #: The model's server could not answer, and is asked again.
    RETRY = "retry"
    #: The model was asked once more: what the run has taken so far.
    TURN = "turn"
    #: Output of a program that is nothing of the above.
    PRINTED = "printed"
    #: A remark of Remit.
    NOTE = "note"
    END = "end"


_UNMARKED = frozenset({EntryKind.SAID, EntryKind.PRINTED})


@dataclass(frozen=True, slots=True)
class Entry:
    kind: EntryKind
    #: The text that was said or answered; of a call its arguments; of an end its reason.
    text: str = ""
    tool: str | None = None
    #: Which call this is about, as the program counts them.
    call: str | None = None
    failed: bool = False
    #: `stdout` or `stderr`, of what was printed.
    stream: str | None = None
    #: How often the model was asked; and what the run has taken so far.
    turn: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    cost_micros: int | None = None
    cost_estimated: bool = False
    #: Of a retry: the how manieth of how many, and how long it waits before.
    attempt: int | None = None
    most: int | None = None
    wait_ms: int | None = None
    #: Of the end.
    status: str | None = None
    fault: str | None = None
    at: Micros | None = None
    #: How long a turn, or the run, took.
    took: Micros | None = None


_FIELDS = tuple(one.name for one in fields(Entry) if one.name != "kind")
_WORDS = frozenset({"text", "tool", "call", "stream", "status", "fault"})
_FLAGS = frozenset({"failed", "cost_estimated"})


def line_of(entry: Entry) -> str:
    """One line of the log that `entry_of` reads."""
    known = {name: value for name in _FIELDS if (value := getattr(entry, name))}
    return json.dumps({"remit": entry.kind.value, **known}, separators=(",", ":"))


def entry_of(line: str) -> Entry | None:
    """The entry that Remit wrote down, if the line holds one."""
    if not line.startswith(MARK):
        return None
    try:
        given = json.loads(line)
        kind = EntryKind(given["remit"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    known = {name: value for name, value in given.items() if _fits(name, value)}
    return Entry(kind, **known)


def _fits(name: str, value: object) -> bool:
    if name in _WORDS:
        return isinstance(value, str)
    if name in _FLAGS:
        return isinstance(value, bool)
    if name not in _FIELDS:
        return False
    return type(value) is int and 0 <= value <= _MOST_NUMBER


def arguments(given: object) -> str:
    """Arguments of a call, in one line."""
    if given is None or given == {}:
        return ""
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return ", ".join(f"{name}={_value(one)}" for name, one in given.items())
    return _value(given)


def _value(given: object) -> str:
    try:
        return json.dumps(given, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "…"


def name(text: object) -> str:
    """The name of a tool, which a model may have invented."""
    return " ".join(harmless(str(text or "?"))[:_LONGEST_NAME].split()) or "?"


def harmless(text: str) -> str:
    """The same text without what cannot be sent or kept."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def short(entry: Entry) -> tuple[str, bool]:
    """The text of an entry as far as it is shown, and whether that is not all of it."""
    most, most_lines = _SHORT.get(entry.kind.value, (2_000, 20))
    text = entry.text
    cut = text[:most]
    lines = cut.split("\n", most_lines)
    if len(lines) > most_lines:
        cut = "\n".join(lines[:most_lines])
    return cut, len(cut) < len(text.rstrip("\n"))


def shown(entry: Entry, *, whole: bool = False) -> str:
    """How an entry reads, in a terminal and on a page; it may be several lines."""
    text, cut = (entry.text, False) if whole else short(entry)
    if cut:
        text = f"{text} […]"
    if entry.kind in _UNMARKED:
        return _unmistakable(text)
    return _marked(entry, text).replace("\n", _INDENT)


def _unmistakable(text: str) -> str:
    """The same, and no line of it looks like a call, a denial or an end that is none."""
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
            return text  # what is unmarked


def _behind(head: str, text: str) -> str:
    return f"{head}: {text}" if text else head


def _known(*texts: str) -> Iterable[str]:
    return (text for text in texts if text)


def _count(entry: Entry) -> str:
    of = f" of {entry.most}" if entry.most else ""
    number = f" {entry.attempt}{of}" if entry.attempt else ""
    return f"{number} in {entry.wait_ms / 1000:.1f} s" if entry.wait_ms else number


def _taken(entry: Entry) -> str:
    """When, how long, how many tokens and how much money."""
    found = []
    if entry.at is not None and entry.kind is EntryKind.TURN:
        found.append(f"{to_iso(entry.at)[11:19]}Z")
    if entry.took is not None:
        found.append(duration(entry.took))
    if entry.tokens_in or entry.tokens_out:
        cached = f" ({entry.tokens_cached:,} cached)" if entry.tokens_cached else ""
        found.append(f"{entry.tokens_in or 0:,} tokens in{cached}, {entry.tokens_out or 0:,} out")
    if entry.cost_micros:
        about = "about " if entry.cost_estimated else ""
        found.append(f"{about}{dollars(entry.cost_micros / 1_000_000)}")
    so_far = entry.kind is EntryKind.TURN and (entry.tokens_in or entry.tokens_out)
    return ", ".join(found) + (" so far" if so_far else "")


def duration(passed: Micros) -> str:
    seconds = min(max(passed, 0), 1000 * DAY) / SECOND
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def view(number: int, entry: Entry, *, whole: bool = False) -> dict[str, Any]:
    """An entry for programs; `shown` is how it reads."""
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
    """Denials of a run in a few words: "3 denied: Bash, Write"; nothing if nothing was."""
    found = list(denied)
    count = sum(one["count"] for one in found)
    return f"{count} denied: {', '.join(one['tool'] for one in found)}" if count else ""
