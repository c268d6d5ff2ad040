"""Statements: written in SQLAlchemy Core, compiled once per database, run on the bare driver.

Executing through SQLAlchemy costs four times as much as the statement itself; compiling once and
handing text and parameters to the driver keeps its portability and loses that cost.
"""

from __future__ import annotations

import enum
import typing
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

T = TypeVar("T")

SQLITE: Dialect = sqlite.dialect(paramstyle="named")
POSTGRESQL: Dialect = postgresql.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]

Row = Sequence[Any]


class Statement(Generic[T]):
    """A statement and what each of its rows becomes."""

    __slots__ = ("_compiled", "_per_dialect", "_statement", "make")

    def __init__(
        self,
        statement: ClauseElement,
        make: Callable[..., T],
        *,
        sqlite: ClauseElement | None = None,
    ) -> None:
        self._statement = statement
        self._per_dialect = {SQLITE.name: sqlite if sqlite is not None else statement}
        self._compiled: dict[str, tuple[str, dict[str, Any]]] = {}
        self.make = make

    def compiled(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        """The text for this database, and the values of its constants."""
        try:
            return self._compiled[dialect.name]
        except KeyError:
            statement = self._per_dialect.get(dialect.name, self._statement)
            compiled = statement.compile(dialect=dialect)
            constants = {key: value for key, value in compiled.params.items() if value is not None}
            self._compiled[dialect.name] = (str(compiled), constants)
            return self._compiled[dialect.name]


def change(statement: ClauseElement, *, sqlite: ClauseElement | None = None) -> Statement[None]:
    """A statement whose rows nobody looks at."""
    return Statement(statement, lambda *_: None, sqlite=sqlite)


def columns(table: Table, value: type[Any]) -> list[Column[Any]]:
    """The columns that make up a value, in the order of its fields."""
    return [table.c[field.name] for field in fields(value)]


def into(value: type[T]) -> Callable[..., T]:
    """Make values from rows; enums and booleans come out as such on every database."""
    casts = _casts(typing.cast(Any, value))
    if not casts:
        return value

    def make(*row: Any) -> T:
        values = list(row)
        for index, cast in casts:
            values[index] = cast(values[index])
        return value(*values)

    return make


@cache  # a dozen statements answer with agents, and each start of a program makes them all
def _casts(value: Any) -> list[tuple[int, Callable[[Any], Any]]]:
    hints = typing.get_type_hints(value)
    casts: list[tuple[int, Callable[[Any], Any]]] = []
    for index, field in enumerate(fields(value)):
        hint = hints[field.name]
        if hint is bool:
            casts.append((index, bool))
        elif isinstance(hint, type) and issubclass(hint, enum.Enum):
            # A look-up takes a tenth of calling the enum, and lists are made of thousands.
            casts.append((index, {member.value: member for member in hint}.__getitem__))
    return casts


def scalar(value: Any) -> Any:
    """For rows of one column."""
    return value


def counted(value: Any, count: Any) -> tuple[str, int]:
    """A row that says how many, or how far, of each."""
    return str(value), int(count)


def row(value: Any, **more: Any) -> dict[str, Any]:
    """The parameters that store a value: its fields, enums as their plain values."""
    parameters = {
        field.name: plain.value if isinstance(plain, enum.Enum) else plain
        for field in fields(value)
        for plain in (getattr(value, field.name),)
    }
    return {**parameters, **more}
