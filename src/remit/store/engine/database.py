"""Database interface for the services: transactions, and the threads that run them.

Two implementations: `sqlite.py` (one writer, group commit) and `postgres.py` (threads with a
connection each). A write sees everything committed before it, and its changes are durable when it
returns.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, TypeVar

from sqlalchemy import insert
from sqlalchemy.engine import Dialect

from remit.store.engine.statement import POSTGRESQL, SQLITE, Row, Statement, change, row
from remit.store.tables.base import STORED

T = TypeVar("T")


class Transaction(ABC):
    """One unit of work: committed when it returns, rolled back by an exception."""

    dialect: Dialect
    #: Whether writes run one after the other, so that none waits for another's locks.
    one_by_one: bool
    writable: bool
    #: Default parameters of every statement: the time and the company of the call.
    given: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def execute(self, sql: str, parameters: dict[str, Any]) -> Any: ...

    @abstractmethod
    def restart(self) -> None:
        """Roll back the changes so far, and continue the transaction."""

    def one(self, statement: Statement[T], **parameters: Any) -> T | None:
        found: Row | None = self._run(statement, parameters).fetchone()
        return None if found is None else statement.make(*found)

    def existing(self, statement: Statement[T], **parameters: Any) -> T:
        """Return the one row; its absence would be a defect of Remit."""
        found = self.one(statement, **parameters)
        assert found is not None
        return found

    def all(self, statement: Statement[T], **parameters: Any) -> list[T]:
        make = statement.make
        return [make(*one) for one in self._run(statement, parameters).fetchall()]

    def run(self, statement: Statement[Any], **parameters: Any) -> int:
        """Execute a statement; return the number of rows that it changed."""
        return int(self._run(statement, parameters).rowcount)

    def add(self, value: object, **more: Any) -> None:
        """Insert a value as a new row; `more` are columns that are no fields of the value."""
        kind = type(value)
        if kind not in _INSERTIONS:
            _INSERTIONS[kind] = change(insert(STORED[kind]))
        self.run(_INSERTIONS[kind], **row(value, **more))

    def _run(self, statement: Statement[Any], parameters: dict[str, Any]) -> Any:
        sql, constants = statement.compiled(self.dialect)
        values = {**constants, **self.given, **parameters}
        for switch, name in statement.optional:
            values.setdefault(switch, parameters.get(name) is None)
        return self.execute(sql, values)


#: Insert statements, compiled once for each type of value.
_INSERTIONS: dict[type[object], Statement[None]] = {}
#: Statements whose commit has to reach the disk, although they change no row.
_TOUCH = {SQLITE: "PRAGMA user_version = 0", POSTGRESQL: "SELECT txid_current()"}


class Database(ABC):
    """A database that runs units of work in its own threads."""

    dialect: Dialect

    @abstractmethod
    def submit_write(self, work: Callable[[Transaction], T]) -> Future[T]: ...

    @abstractmethod
    def submit_read(self, work: Callable[[Transaction], T]) -> Future[T]: ...

    @abstractmethod
    def close(self) -> None: ...

    async def write(self, work: Callable[[Transaction], T]) -> T:
        return await asyncio.wrap_future(self.submit_write(work))

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return await asyncio.wrap_future(self.submit_read(work))

    def version(self) -> int | None:
        """A number that changes with every commit of any process; None where there is none.
        Returns without waiting."""
        return None

    async def check(self) -> None:
        """Commit to the disk without changing a row; raises the error of a failed write."""
        await self.write(lambda tx: tx.execute(_TOUCH[self.dialect], {}).close())


def open_database(url: str) -> Database:
    """Open `sqlite:///path` or `postgresql://…`, whose schema must be in place."""
    from remit.store.engine import migrate

    if migrate.is_sqlite(url):
        from remit.store.engine.sqlite import SqliteDatabase

        return SqliteDatabase(migrate.sqlite_path(url))
    from remit.store.engine.postgres import PostgresDatabase

    return PostgresDatabase(url)
