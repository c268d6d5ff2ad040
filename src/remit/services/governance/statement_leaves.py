"""Entries of a statement: every leaf of a document under its name, and what differs between two.

An entry has a name, a kind, and lines of plain text in which nothing is invisible. Each line of a
difference begins with a mark: `+` added, `-` removed, a blank the same, `…` lines that are left
out, `~` a secret.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from remit.model.organisation.configuration import changed_paths, value_at
from remit.model.organisation.statement import EntryKind
from remit.model.spelling import spelled_lines, spelled_name, spelled_value
from remit.model.text import plural
from remit.model.text_diff import compare_whole
from remit.services.governance.shapes import EntryShape
from remit.services.redaction import REMOVED

#: Last keys of texts in which somebody speaks.
_WORDS: Final = frozenset(
    {"reason", "prompt", "capabilities", "title", "purpose", "description", "body", "subject"}
    | {"note", "text", "summary", "message", "role_description", "question", "answer", "why"}
)
_HIDDEN: Final = f"{REMOVED} (a secret, which is not shown)"
_OTHER_VALUE: Final = "~ a secret in it is different"
_MARKS: Final = {"added": "+", "removed": "-", "same": " "}
_MISSING: Final = object()


def entry(name: str, kind: EntryKind, *lines: str) -> EntryShape:
    return {"name": name, "kind": kind.value, "lines": list(lines)}


def fact(name: str, value: object, about: str = "") -> EntryShape:
    """A value under a name; `about` says what it names, spelled already."""
    return _leaf(name, value, EntryKind.VALUE, about)


def words(name: str, text: str) -> EntryShape:
    """Words of the requester."""
    return entry(name, EntryKind.WORDS, *spelled_lines(text))


def leaves(
    document: Mapping[str, Any], names: Mapping[str, str], *, above: str = "", empty: bool = False
) -> Iterator[EntryShape]:
    """Yield every leaf of a document; `names` says what ids and addresses in it name. Keys without
    a value are left out, unless an `empty` value means something there."""
    for path, key, value in _flat(document, above):
        if value in (None, "", [], {}) and not empty:
            continue
        kind = EntryKind.WORDS if key in _WORDS and isinstance(value, str) else EntryKind.VALUE
        yield _leaf(path, value, kind, _about(value, names))


def differences(
    was: dict[str, Any], now: dict[str, Any], shown_was: Any, shown_now: Any
) -> Iterator[EntryShape]:
    """Yield what differs between two documents, each given as it is and as it is shown without its
    secrets."""
    old, new = ({path: value for path, _, value in _flat(side)} for side in (shown_was, shown_now))
    for path in [*new, *(path for path in old if path not in new)]:
        before, after = old.get(path, _MISSING), new.get(path, _MISSING)
        if _is_filled(path, before, new) or _is_filled(path, after, old):
            continue
        if before != after or type(before) is not type(after):
            yield entry(path, EntryKind.DIFFERENCE, *_replaced(before, after))
    for keys in changed_paths(was, now):
        if value_at(shown_was, keys) == value_at(shown_now, keys):
            path = ".".join(map(spelled_name, keys))
            yield entry(path, EntryKind.DIFFERENCE, _OTHER_VALUE)


def _is_filled(path: str, value: object, others: Mapping[str, object]) -> bool:
    """Return whether an object or list is empty on one side, and its entries stand on the other."""
    return value in ({}, []) and any(name.startswith((f"{path}.", f"{path}[")) for name in others)


def text_difference(name: str, before: str, after: str) -> EntryShape:
    """The lines that differ between two texts."""
    return entry(name, EntryKind.DIFFERENCE, *_compared(before, after))


def _flat(value: Any, path: str = "", key: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the path, the last key and the value of each leaf; an empty object or list is one."""
    if isinstance(value, Mapping) and (value or not path):
        for name, inner in value.items():
            shown = spelled_name(str(name))
            yield from _flat(inner, f"{path}.{shown}" if path else shown, str(name))
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{path}[{number}]", key)
    else:
        yield path, key, value


def _leaf(name: str, value: object, kind: EntryKind, about: str = "") -> EntryShape:
    if value == REMOVED:
        return entry(name, EntryKind.VALUE, _HIDDEN)
    if isinstance(value, str) and (kind is EntryKind.WORDS or "\n" in value):
        return entry(name, EntryKind.WORDS, *spelled_lines(value))
    return entry(name, kind, f"{spelled_value(value)} ({about})" if about else spelled_value(value))


def _about(value: object, names: Mapping[str, str]) -> str:
    if not isinstance(value, str):
        return ""
    return names.get(value) or names.get(value.rpartition(":")[2], "")


def _replaced(before: object, after: object) -> Iterator[str]:
    if isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        yield from _compared(before, after)
        return
    for mark, value in (("-", before), ("+", after)):
        if value is _MISSING:
            continue
        several = isinstance(value, str) and "\n" in value
        lines = spelled_lines(str(value)) if several else [spelled_value(value)]
        yield from (f"{mark} {line}" for line in lines)


def _compared(before: str, after: str) -> Iterator[str]:
    compared = compare_whole(before, after)
    if compared.cut_off:  # too different to be compared: all of it
        sides = (("removed", before), ("added", after))
        lines = [(kind, line) for kind, text in sides for line in text.split("\n") if text]
    else:
        lines = compared.lines
    for kind, line in lines:
        if kind == "gap":
            yield f"… {plural(int(line), 'line')} unchanged"
        else:
            yield f"{_MARKS[kind]} {spelled_lines(line)[0]}"
