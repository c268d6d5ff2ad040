"""Cost of calls on SQLite: statements, rows that change, and steps of its virtual machine.

Steps tell what a statement reads: a look into an index takes a few dozen, a walk through a table a
few for each row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from remit.store.engine.sqlite import SqliteTransaction

#: Steps between two counts.
_AT_A_TIME = 20


@dataclass
class Cost:
    statements: int = 0
    rows: int = 0
    steps: int = 0


@contextmanager
def counted() -> Iterator[Cost]:
    """The cost of all calls meanwhile, by whatever thread."""
    done = Cost()
    execute = SqliteTransaction.execute

    def step() -> int:
        done.steps += _AT_A_TIME
        return 0

    def counting(self: SqliteTransaction, sql: str, parameters: Any) -> sqlite3.Cursor:
        connection = self._connection
        changed = connection.total_changes
        done.statements += 1
        connection.set_progress_handler(step, _AT_A_TIME)
        try:
            return execute(self, sql, parameters)
        finally:
            connection.set_progress_handler(None, 0)
            done.rows += connection.total_changes - changed

    SqliteTransaction.execute = counting  # type: ignore[method-assign]
    try:
        yield done
    finally:
        SqliteTransaction.execute = execute  # type: ignore[method-assign]
