"""Fields of an export's documents: each is validated before use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from remit.clock import Micros, from_iso
from remit.errors import BadInput
from remit.ids import AgentId, UserId, is_id

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

LARGEST_NUMBER = 2**31 - 1
#: Stands for every person.
PERSON = "person"


class Fields:
    """The fields of one document; errors name its path."""

    def __init__(self, path: str, table: Any, importer: UserId | None = None) -> None:
        if not isinstance(table, Mapping):
            raise BadInput(f"{path}: must be a table of fields.")
        self.path = path
        #: The importer takes the place of every person of the company.
        self.importer = importer
        self._table = table
        self._asked: set[str] = set()

    def wrong(self, name: str, what: str) -> BadInput:
        return BadInput(f"{self.path}: {name} {what}.", "Correct it, or export the company again.")

    def get(self, name: str) -> Any:
        self._asked.add(name)
        return self._table.get(name)

    def done(self) -> None:
        """Refuse fields that were not read: they would be lost silently."""
        for name in self._table:
            if name not in self._asked:
                raise BadInput(f"{self.path}: {str(name)[:60]!r} is not a field it has.")

    def clean(self, name: str, cleaned: Callable[[Any], T]) -> T:
        """Return a value that is exactly as Remit would have stored it."""
        given = self.get(name)
        try:
            found = cleaned(given)
        except BadInput as error:
            raise self.wrong(name, f"is refused: {error.sentence.rstrip('.')}") from None
        if isinstance(found, str) and found != given:
            raise self.wrong(name, "has blanks or characters that Remit does not keep")
        return found

    def id(self, name: str) -> str:
        found = self.get(name)
        if not isinstance(found, str) or not is_id(found):
            raise self.wrong(name, "must be an id")
        return found

    def maybe_id(self, name: str) -> str | None:
        return None if self.get(name) is None else self.id(name)

    def ids(self, name: str) -> list[str]:
        found = self.get(name)
        if found is None:
            return []
        if not isinstance(found, list) or not all(isinstance(o, str) and is_id(o) for o in found):
            raise self.wrong(name, "must be a list of ids")
        if len(set(found)) != len(found):
            raise self.wrong(name, "names something twice")
        return found

    def texts(self, name: str) -> list[str]:
        found = self.get(name)
        if found is not None and not isinstance(found, list):
            raise self.wrong(name, "must be a list of texts")
        if not all(isinstance(one, str) for one in found or ()):
            raise self.wrong(name, "must be a list of texts")
        return found or []

    def text(self, name: str, longest: int) -> str:
        """Return a text unchanged, blanks included."""
        found = self.get(name)
        if not isinstance(found, str) or len(found) > longest or "\0" in found:
            raise self.wrong(name, f"must be a text of at most {longest} characters")
        return found

    def time(self, name: str) -> Micros:
        found = self.get(name)
        if not isinstance(found, str):
            raise self.wrong(name, "must be a time in quotes")
        try:
            return from_iso(found)
        except BadInput:
            raise self.wrong(name, "is not a time") from None

    def maybe_time(self, name: str) -> Micros | None:
        return None if self.get(name) is None else self.time(name)

    def flag(self, name: str) -> bool:
        found = self.get(name)
        if found is not None and not isinstance(found, bool):
            raise self.wrong(name, "must be true or false")
        return bool(found)

    def number(self, name: str, *, least: int = 1, most: int = LARGEST_NUMBER) -> int:
        found = self.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise self.wrong(name, f"must be a whole number from {least} to {most}")
        return found

    def one_of(self, name: str, kind: type[E]) -> E:
        try:
            return kind(self.get(name))
        except ValueError:
            known = ", ".join(one.value for one in kind)
            raise self.wrong(name, f"must be one of {known}") from None

    def tables(self, name: str) -> list[Fields]:
        found = self.get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.wrong(name, "must be a list")
        return [self.inner(f"{name} {n}", one) for n, one in enumerate(found, 1)]

    def inner(self, name: str, table: Any) -> Fields:
        return Fields(f"{self.path}, {name}", table, self.importer)

    def sha256(self, name: str) -> str:
        found = self.get(name)
        if not isinstance(found, str) or len(found) != 64 or set(found) - set("0123456789abcdef"):
            raise self.wrong(name, "must be 64 hex digits")
        return found

    def author(self, name: str) -> tuple[AgentId | None, UserId | None]:
        found = self.get(name)
        if found is None:
            return None, None
        if found == PERSON:
            return None, self.importer
        agent = found.removeprefix("agent:") if isinstance(found, str) else ""
        if not is_id(agent) or found != f"agent:{agent}":
            raise self.wrong(name, "must be person or agent:ID")
        return AgentId(agent), None
