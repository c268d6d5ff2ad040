"""Fields of an export's documents: each is validated before use."""

from __future__ import annotations

import re
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
        written = self.get(name)
        try:
            stored = cleaned(written)
        except BadInput as error:
            raise self.wrong(name, f"is refused: {error.sentence.rstrip('.')}") from None
        if isinstance(stored, str) and stored != written:
            raise self.wrong(name, "has blanks or characters that Remit does not keep")
        return stored

    def id(self, name: str) -> str:
        id_ = self.get(name)
        if not isinstance(id_, str) or not is_id(id_):
            raise self.wrong(name, "must be an id")
        return id_

    def ids(self, name: str) -> list[str]:
        ids = self.get(name)
        if ids is None:
            return []
        if not isinstance(ids, list) or not all(isinstance(id_, str) and is_id(id_) for id_ in ids):
            raise self.wrong(name, "must be a list of ids")
        if len(set(ids)) != len(ids):
            raise self.wrong(name, "names something twice")
        return ids

    def texts(self, name: str) -> list[str]:
        texts = self.get(name)
        if texts is not None and not isinstance(texts, list):
            raise self.wrong(name, "must be a list of texts")
        if not all(isinstance(text, str) for text in texts or ()):
            raise self.wrong(name, "must be a list of texts")
        return texts or []

    def text(self, name: str, longest: int) -> str:
        """Return a text unchanged, blanks included."""
        text = self.get(name)
        if not isinstance(text, str) or len(text) > longest or "\0" in text:
            raise self.wrong(name, f"must be a text of at most {longest} characters")
        return text

    def time(self, name: str) -> Micros:
        written = self.get(name)
        if not isinstance(written, str):
            raise self.wrong(name, "must be a time in quotes")
        try:
            return from_iso(written)
        except BadInput:
            raise self.wrong(name, "is not a time") from None

    def flag(self, name: str) -> bool:
        flag = self.get(name)
        if flag is not None and not isinstance(flag, bool):
            raise self.wrong(name, "must be true or false")
        return bool(flag)

    def number(self, name: str, *, least: int = 1, most: int = LARGEST_NUMBER) -> int:
        number = self.get(name)
        if not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most:
            raise self.wrong(name, f"must be a whole number from {least} to {most}")
        return number

    def one_of(self, name: str, kind: type[E]) -> E:
        try:
            return kind(self.get(name))
        except ValueError:
            known = ", ".join(word.value for word in kind)
            raise self.wrong(name, f"must be one of {known}") from None

    def tables(self, name: str) -> list[Fields]:
        tables = self.get(name)
        if tables is None:
            return []
        if not isinstance(tables, list):
            raise self.wrong(name, "must be a list")
        return [self.inner(f"{name} {n}", table) for n, table in enumerate(tables, 1)]

    def inner(self, name: str, table: Any) -> Fields:
        return Fields(f"{self.path}, {name}", table, self.importer)

    def sha256(self, name: str) -> str:
        digest = self.get(name)
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
            raise self.wrong(name, "must be 64 hex digits")
        return digest

    def author(self, name: str) -> tuple[AgentId | None, UserId | None]:
        author = self.get(name)
        if author is None:
            return None, None
        if author == PERSON:
            return None, self.importer
        agent = author.removeprefix("agent:") if isinstance(author, str) else ""
        if not is_id(agent) or author != f"agent:{agent}":
            raise self.wrong(name, "must be person or agent:ID")
        return AgentId(agent), None
