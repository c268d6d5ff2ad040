"""Restoring the secrets of a document that a client received redacted and sent back."""

import json
from collections.abc import Mapping
from typing import Any

from remit.errors import BadInput
from remit.services.redaction import text
from remit.services.redaction.document import without_secrets
from remit.services.redaction.rules import REMOVED

_IDENTITIES = ("name", "key", "id", "variable", "header", "type")
_NOTHING: Any = object()


def restore(new: Any, old: Any) -> Any:
    """Return `new` with the values of `old` in place of markers; the result has no marker.

    A marker without a value in `old` raises BadInput that names the place.
    """
    return _restore(new, old, without_secrets(old)[0], "")


def _restore(new: Any, old: Any, shown: Any, path: str) -> Any:
    if not _is_marked(new):
        return new
    if old is _NOTHING:
        if isinstance(new, Mapping):
            old, shown = {}, {}
        elif isinstance(new, list):
            old, shown = [], []
        else:
            raise _no_value(path)
    if new in (shown, REMOVED) and not _is_marked(old):
        return old
    if isinstance(new, Mapping):
        return _restore_object(new, old, shown, path)
    if isinstance(new, list):
        return _restore_list(new, old, shown, path)
    if new == REMOVED:
        raise _no_value(path)
    return _restore_json(new, old, path)


def _restore_object(new: Mapping[str, Any], old: Any, shown: Any, path: str) -> dict[str, object]:
    if not isinstance(old, Mapping) or not isinstance(shown, Mapping):
        old, shown = {}, {}
    # The walk keeps the order, so hidden names are found by their position.
    real = dict(zip(shown, old, strict=True))
    fields: dict[str, object] = {}
    for name, inner in new.items():
        here = f"{path}.{name}" if path else name
        if REMOVED in name and name not in real:
            raise _no_value(here)
        name_then = real.get(name, name)
        fields[name_then] = _restore(
            inner, old.get(name_then, _NOTHING), shown.get(name, _NOTHING), here
        )
    return fields


def _restore_list(new: list[Any], old: Any, shown: Any, path: str) -> list[Any]:
    """Entries may have moved, and a secret must not end up behind another flag."""
    if not isinstance(old, list) or not isinstance(shown, list):
        old, shown = [], []
    entries: list[Any] = []
    for number, inner in enumerate(new):
        here = f"{path}[{number}]"
        before = new[number - 1] if number else _NOTHING
        at = _place(inner, before, number, shown) if _is_marked(inner) else None
        if at is None:
            entries.append(_restore(inner, _NOTHING, _NOTHING, here))
        else:
            entries.append(_restore(inner, old[at], shown[at], here))
    return entries


def _place(item: Any, before: Any, number: int, shown: list[Any]) -> int | None:
    same = [
        at
        for at, other in enumerate(shown)
        if other == item and (shown[at - 1] if at else _NOTHING) == before
    ]
    if number in same:
        return number
    if len(same) == 1:
        return same[0]
    if isinstance(item, Mapping):
        known = [at for at, other in enumerate(shown) if _is_same(item, other)]
        if number in known:
            return number
        return known[0] if len(known) == 1 else None
    if isinstance(item, list) and number < len(shown) and isinstance(shown[number], list):
        return number
    return None


def _is_same(item: Mapping[str, Any], other: Any) -> bool:
    if not isinstance(other, Mapping):
        return False
    names = [name for name in _IDENTITIES if name in item or name in other]
    return all(item.get(name, _NOTHING) == other.get(name, _NOTHING) for name in names)


def _restore_json(new: Any, old: Any, path: str) -> str:
    """Restore settings that are stored as JSON inside JSON."""
    try:
        inner = text.as_json(new)
        was = text.as_json(old) if isinstance(old, str) else None
    except text.Repeated:
        inner = was = None
    if inner is None or was is None or isinstance(inner, str):
        raise BadInput(
            f"{_shown(path)} has the marker {REMOVED} inside a text that was changed.",
            "Leave the value as you read it, or write all of it again.",
        )
    return json.dumps(_restore(inner, was, without_secrets(was)[0], path))


def _is_marked(value: Any) -> bool:
    pending = [value]
    while pending:
        inner = pending.pop()
        if isinstance(inner, str):
            if REMOVED in inner:
                return True
        elif isinstance(inner, Mapping):
            pending.extend(inner)
            pending.extend(inner.values())
        elif isinstance(inner, list | tuple):
            pending.extend(inner)
    return False


def _no_value(path: str) -> BadInput:
    return BadInput(
        f"{_shown(path)} is {REMOVED}, and there is no value that it could stand for.",
        "Give the value, or leave the setting out.",
    )


def _shown(path: str) -> str:
    return path[:200] or "The document"
