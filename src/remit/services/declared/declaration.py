"""Schema of a document that declares a company, and the plan of its changes.

`declared_company.py` carries such a document out, section by section.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from remit.errors import BadInput, RemitError
from remit.services import shapes
from remit.services.command import Context
from remit.services.verbs import Arguments, Verb

MOST_ENTRIES = 1000

Entry = Mapping[str, Any]
#: Refuses an entry whose key was declared already.
Once = Callable[[Any], None]


@dataclass
class Plan:
    """The changes that have to be made, or were."""

    entries: list[shapes.PlannedShape] = field(default_factory=list)
    #: Tokens of new bindings, shown once.
    tokens: list[dict[str, str]] = field(default_factory=list)
    #: Files with values of secrets that have another place from now on.
    replaced: list[str] = field(default_factory=list)
    #: Rights over the machine, which a file does not give.
    left_out: list[str] = field(default_factory=list)
    #: Agents that a budget of money does not hold.
    warnings: list[shapes.AgentWarningShape] = field(default_factory=list)

    def add(
        self, path: str, kind: str, name: str, action: str, changes: list[Any] | None = None
    ) -> None:
        self.entries.append(
            {"path": path, "kind": kind, "name": name, "action": action, "changes": changes or []}
        )

    def compare(self, path: str, kind: str, name: str, changes: list[Any]) -> None:
        self.add(path, kind, name, "change" if changes else "unchanged", changes)

    def names(self, action: str) -> list[str]:
        return [
            f"{entry['kind']} {entry['name']}"
            for entry in self.entries
            if entry["action"] == action
        ]

    def view(self) -> shapes.PlanShape:
        return {
            "plan": self.entries,
            "created": len(self.names("create")),
            "changed": len(self.names("change")),
            "unchanged": len(self.names("unchanged")),
        }


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
    """Context manager: prefix errors with their place in the file."""
    try:
        yield
    except RemitError as error:
        first = error.sentence.replace(":", " ").replace(".", " ").partition(" ")[0]
        between = "." if first in keys else ": "
        raise type(error)(
            f"{path}{between}{error.sentence}", error.step, code=error.reason, details=error.details
        ) from error


def text(path: str, entry: Entry, key: str) -> str:
    if not isinstance(entry.get(key), str) or not entry[key]:
        raise BadInput(f"{path}.{key}: must be text.", f"Give the {key}.")
    return str(entry[key])


def fitting(verb: Verb[..., Any], entry: Entry) -> Arguments:
    """Validate arguments of a verb from a file like those of other callers."""
    arguments = {}
    for key, value in entry.items():
        field = verb.fields[key]
        single = [value] if field.entries is None else value
        kind = (field.entries or field).kind
        if not isinstance(single, list) or not all(type(member) is kind for member in single):
            many = "" if field.entries is None else "a list of "
            raise BadInput(f"{key}: must be {many}{_WORDS[kind]}.", "Correct it.")
        limits = field.range
        if limits is not None and not limits.least <= value <= limits.most:
            raise BadInput(f"{key}: must be {limits.least} to {limits.most}.", "Correct it.")
        if field.most is not None and len(value) > field.most:
            raise BadInput(f"{key}: must be at most {field.most}.", "Leave some out.")
        arguments[key] = field.clean(value, key)
    return arguments


_WORDS = {str: "text", int: "a number", bool: "true or false"}


@dataclass(frozen=True)
class Section:
    """A list of entries in a document: its keys, those that must be text, and the function that
    carries one entry out. That returns the entry's name and its changes, or None for the changes if
    it was created."""

    kind: str
    keys: tuple[str, ...]
    required: tuple[str, ...]
    carry_out: Callable[[Context, Plan, Entry, Once], tuple[str, list[Any] | None]]

    def __call__(self, ctx: Context, plan: Plan, name: str, entries: list[Entry]) -> None:
        seen: dict[Any, str] = {}
        for number, entry in enumerate(entries):
            path = f"{name}[{number}]"
            for key in self.required:
                text(path, entry, key)
            with at(path, self.keys):
                called, changes = self.carry_out(ctx, plan, entry, partial(once, seen, path))
            if changes is None:
                plan.add(path, self.kind, called, "create")
            else:
                plan.compare(path, self.kind, called, changes)


def once(seen: dict[Any, str], path: str, key: Any) -> None:
    if key in seen:
        raise BadInput(f"is the same as {seen[key]}.", "Say everything once.")
    seen[key] = path


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, object]]:
    return [
        {"path": key, "was": was.get(key), "now": now.get(key)}
        for key in dict.fromkeys((*was, *now))
        if was.get(key) != now.get(key)
    ]
