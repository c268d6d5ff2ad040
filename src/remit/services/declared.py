"""What a document that declares a company looks like, and the plan of what it changes.

`applying.py` carries such a document out, section by section.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from remit.errors import BadInput, RemitError
from remit.services.command import Answer

MOST_ENTRIES = 1000

Entry = Mapping[str, Any]


@dataclass
class Plan:
    """What has to be done, or was."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    #: Of new bindings, to be shown once.
    tokens: list[dict[str, str]] = field(default_factory=list)
    #: Files with values of secrets that are found elsewhere from now on.
    replaced: list[str] = field(default_factory=list)

    def add(
        self, path: str, kind: str, name: str, action: str, changes: list[Any] | None = None
    ) -> None:
        entry = {"path": path, "kind": kind, "name": name, "action": action}
        self.entries.append({**entry, "changes": changes or []})

    def compare(self, path: str, kind: str, name: str, changes: list[Any]) -> None:
        self.add(path, kind, name, "change" if changes else "unchanged", changes)

    def names(self, action: str) -> list[str]:
        return [f"{one['kind']} {one['name']}" for one in self.entries if one["action"] == action]

    def view(self) -> Answer:
        counts = {
            word: len(self.names(action))
            for word, action in (
                ("created", "create"),
                ("changed", "change"),
                ("unchanged", "unchanged"),
            )
        }
        return {"plan": self.entries, **counts}


def table(path: str, value: object, keys: tuple[str, ...]) -> Entry:
    if not isinstance(value, Mapping):
        raise BadInput(f"{path}: must be an object with named values.", "Correct it.")
    check_keys(f"{path}.", value, keys)
    return {key: inner for key, inner in value.items() if inner is not None}


def check_keys(path: str, value: Mapping[Any, Any], keys: tuple[str, ...]) -> None:
    for key in value:
        if key not in keys:
            raise BadInput(f"{path}{str(key)[:60]}: is not known.", f"Known are {', '.join(keys)}.")


@contextmanager
def at(path: str, keys: tuple[str, ...] = ()) -> Iterator[None]:
    """Whatever is wrong here says where in the file it is."""
    try:
        yield
    except RemitError as error:
        first = error.sentence.replace(":", " ").replace(".", " ").partition(" ")[0]
        between = "." if first in keys else ": "
        raise type(error)(
            f"{path}{between}{error.sentence}",
            error.step,
            code=error.reason,
            details=error.details,
        ) from error


def text(path: str, entry: Entry, key: str) -> str:
    if not isinstance(entry.get(key), str) or not entry[key]:
        raise BadInput(f"{path}.{key}: must be text.", f"Give the {key}.")
    return str(entry[key])


def once(seen: dict[Any, str], key: Any, path: str) -> None:
    if key in seen:
        raise BadInput(f"{path}: is the same as {seen[key]}.", "Say everything once.")
    seen[key] = path
