"""Database interface for the services: transactions, and the threads that run them.

Two implementations: `sqlite.py` (one writer, group commit) and `postgres.py` (threads with a
connection each). A write sees everything committed before it, and its changes are durable when it
returns.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, TypeVar

from sqlalchemy import insert
from sqlalchemy.engine import Dialect

from remit.store.engine.statement import POSTGRESQL, SQLITE, Row, Statement, change, row
from remit.store.tables.base import STORED

T = TypeVar("T")
#: Parameters of one execution of a statement, or a list of them for one execution per row.
Parameters = dict[str, Any] | list[dict[str, Any]]


class Delayed(ABC):
    """Rows that are stored together: at the end of a transaction, or before a statement that names
    their tables."""

    tables: frozenset[str]

    @abstractmethod
    def store(self, transaction: "Transaction") -> None: ...


class Transaction(ABC):
    """One unit of work: committed when it returns, rolled back by an exception."""

    dialect: Dialect
    #: Whether writes run one after the other, so that none waits for another's locks.
    one_by_one: bool
    writable: bool
    #: Default parameters of every statement: the time and the company of the call.
    given: Mapping[str, Any] = MappingProxyType({})
    #: Whether no other transaction can change what this one reads, so that cached results hold.
    undisturbed: bool
    _delayed: Delayed | None = None

    def __init__(self) -> None:
        #: Cached results of statements that are marked with `keep`, by their parameters.
        self._answers: dict[Statement[Any], dict[object, tuple[Any, ...]]] = {}

    @abstractmethod
    def execute(self, sql: str, parameters: Parameters) -> Any: ...

    @abstractmethod
    def _undo(self) -> None: ...

    def restart(self) -> None:
        """Roll back the changes so far, and continue the transaction."""
        self._delayed = None
        self._answers.clear()
        self._undo()

    def carry_out(self, work: Callable[["Transaction"], T]) -> T:
        """Do the work, then store the rows that it delayed; returns the result of the work."""
        result = work(self)
        self._store_delayed()
        return result

    def delay(self, rows: Delayed) -> None:
        """Store these rows later, but before a statement that names their tables is executed."""
        if self._delayed is not rows:
            self._store_delayed()
            self._delayed = rows

    def _store_delayed(self) -> None:
        if (delayed := self._delayed) is not None:
            self._delayed = None
            delayed.store(self)

    def one(self, statement: Statement[T], **parameters: Any) -> T | None:
        if statement.kept:
            return next(iter(self._kept(statement, parameters)), None)
        record: Row | None = self._run(statement, parameters).fetchone()
        return None if record is None else statement.make(*record)

    def existing(self, statement: Statement[T], **parameters: Any) -> T:
        """Return the one row; its absence would be a defect of Remit."""
        value = self.one(statement, **parameters)
        assert value is not None
        return value

    def all(self, statement: Statement[T], **parameters: Any) -> list[T]:
        if statement.kept:
            return list(self._kept(statement, parameters))
        return self._rows(statement, parameters)

    def _rows(self, statement: Statement[T], parameters: dict[str, Any]) -> list[T]:
        make = statement.make
        return [make(*record) for record in self._run(statement, parameters).fetchall()]

    def _kept(self, statement: Statement[T], parameters: dict[str, Any]) -> Sequence[T]:
        """Return the rows of a kept statement, cached unless others may have changed them."""
        if not self.undisturbed:
            return self._rows(statement, parameters)
        statement.compiled(self.dialect)
        arguments = {**self.given, **parameters}
        question = tuple(arguments.get(name) for name in statement.parameters)
        answers = self._answers.setdefault(statement, {})
        if question not in answers:
            answers[question] = tuple(self._rows(statement, parameters))
        return answers[question]

    def look_ahead(
        self, statement: Statement[Any], values: Iterable[object], **parameters: Any
    ) -> None:
        """Find with one statement the rows that a keyed statement is going to be asked for, one by
        one."""
        assert statement.many is not None
        key, many = statement.many
        wanted = list(dict.fromkeys(values))
        if not self.undisturbed or len(wanted) < 2:
            return
        rows: dict[object, list[Any]] = {value: [] for value in wanted}
        for value, *columns in self.all(many, values=json.dumps(wanted), **parameters):
            rows[value].append(statement.make(*columns))
        statement.compiled(self.dialect)
        arguments = {**self.given, **parameters}
        answers = self._answers.setdefault(statement, {})
        for value, matches in rows.items():
            question = {**arguments, key: value}
            answers[tuple(question.get(name) for name in statement.parameters)] = tuple(matches)

    def run(self, statement: Statement[Any], **parameters: Any) -> int:
        """Execute a statement; return the number of rows that it changed."""
        return int(self._run(statement, parameters).rowcount)

    def run_for_each(self, statement: Statement[Any], rows: Sequence[dict[str, Any]]) -> None:
        """Execute a statement once for each row, with one call of the driver."""
        if len(rows) == 1:
            self._run(statement, rows[0])
        elif rows:
            self._run(statement, list(rows))

    def add(self, *values: object, **more: Any) -> None:
        """Store values of one kind as new rows, with the columns that the values do not know."""
        kind = type(values[0])
        if kind not in _INSERTIONS:
            _INSERTIONS[kind] = change(insert(STORED[kind]))
        self.run_for_each(_INSERTIONS[kind], [row(value, **more) for value in values])

    def _run(self, statement: Statement[Any], parameters: Parameters) -> Any:
        sql, constants = statement.compiled(self.dialect)
        if self._delayed is not None and statement.names_any(self._delayed.tables):
            self._store_delayed()
        if statement.writes:
            for kept in [query for query in self._answers if query.names_any(statement.writes)]:
                del self._answers[kept]
        if isinstance(parameters, list):
            return self.execute(
                sql, [{**constants, **self.given, **record} for record in parameters]
            )
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
