"""Iteration over the rows of paged statements."""

from collections.abc import Iterator
from typing import Any, TypeVar

from remit.store.engine.database import Transaction
from remit.store.engine.statement import Statement

T = TypeVar("T")
PAGE = 500


def each(
    tx: Transaction,
    statement: Statement[T],
    *,
    page: int = PAGE,
    key: str = "id",
    **parameters: Any,
) -> Iterator[T]:
    """Yield all rows that a paged statement finds after a key, or newest first `before` one; one
    page is in memory at a time."""
    way = "before" if "before" in parameters else "after"
    parameters.setdefault(way, "")
    while rows := tx.all(statement, limit=page, **parameters):
        yield from rows
        if len(rows) < page:
            return
        parameters[way] = getattr(rows[-1], key)
