"""Cells of a table, or the fields of one thing, made of an answer by keys and templates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from remit.entrypoints.cli.drawing import output
from remit.ids import short

if TYPE_CHECKING:
    from remit.entrypoints.cli.session import Cell, Session, View

_SHOWN: dict[str, Callable[[Session, Any], object]] = {
    "": lambda _, value: value,
    "count": lambda _, value: len(value),
    "list": lambda _, value: ", ".join(value),
    "short": lambda _, value: short(value),
    "size": lambda _, value: output.size(value),
    "when": lambda _, value: output.when(value),
    "age": lambda _, value: output.age(value),
    "words": lambda _, value: value.replace("_", " "),
    "yes": lambda _, value: "yes" if value else "no",
    #: A text with its UUIDs as short ids.
    "ids": lambda _, value: output.shortened(value),
    #: The name of any agent, with a request for each; and that of a user or any agent, from lists
    #: that are fetched once.
    "name": lambda session, value: session.agent_name(value),
    "known": lambda session, value: session.known(value),
}


def fields(session: Session, view: View, *cells: Cell) -> None:
    """Print one thing, a field a line."""
    output.fields({title(cell): text(session, view, cell) for cell in cells})


def table(session: Session, rows: Sequence[View], *cells: Cell, empty: str) -> None:
    drawn = [[text(session, row, cell) for cell in cells] for row in rows]
    output.table([title(cell) for cell in cells], drawn, empty=empty)


def title(cell: Cell) -> str:
    return cell.partition(":")[0] if isinstance(cell, str) else cell[0]


def text(session: Session, view: View, cell: Cell) -> object:
    if not isinstance(cell, str):
        return cell[1](session, view)
    key, colon, template = cell.partition(": ")
    return filled(session, view, template) if colon else view[key]


def filled(session: Session, view: View, template: str) -> str:
    """Fill a template with the values of an answer; missing ones are empty."""
    return template.format_map(_Values(session, view))


class _Values(dict[str, Any]):
    def __init__(self, session: Session, answer: View) -> None:
        super().__init__({key: _Value(session, value) for key, value in answer.items()})
        self._session = session

    def __missing__(self, _: str) -> _Value:
        return _Value(self._session, None)


class _Value:
    def __init__(self, session: Session, value: Any) -> None:
        self._session = session
        self._value = value

    def __format__(self, wanted: str) -> str:
        return "" if self._value is None else str(_SHOWN[wanted](self._session, self._value))

    def __getitem__(self, key: str) -> _Value:
        return _Value(self._session, None if self._value is None else self._value.get(key))
