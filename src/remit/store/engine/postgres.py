"""PostgreSQL: threads with a connection each; every write is a transaction of its own.

Commands of one company take turns by locking the head of its event chain, which gives them the
same order that SQLite's single writer gives.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from remit.errors import BadInput, RemitError, StorageFull, Unavailable
from remit.store.engine.database import Database, Parameters, Transaction
from remit.store.engine.errors import RowConflict
from remit.store.engine.statement import POSTGRESQL

T = TypeVar("T")

CONNECTIONS = 8
#: Timeout of an idle open transaction: a frozen process must not block its company for long.
LONGEST_SILENCE_MS = 5_000
#: Attempts at a transaction; a deadlock or serialization failure rolls it back, so a retry is safe.
ATTEMPTS = 5


class PostgresTransaction(Transaction):
    dialect = POSTGRESQL
    one_by_one = False

    def __init__(self, connection: psycopg.Connection[Any], *, writable: bool) -> None:
        super().__init__()
        self._connection = connection
        self.writable = writable
        # A read has a snapshot; a write sees what others commit, until it locks its company.
        self.undisturbed = not writable

    def execute(self, sql: str, parameters: Parameters) -> psycopg.Cursor[Any]:
        if isinstance(parameters, list):
            cursor = self._connection.cursor()
            cursor.executemany(sql, parameters)
            return cursor
        return self._connection.execute(sql, parameters)

    def _undo(self) -> None:
        self._connection.rollback()
        self.undisturbed = not self.writable


class PostgresDatabase(Database):
    dialect = POSTGRESQL

    def __init__(self, url: str) -> None:
        self._url = url
        self._local = threading.local()
        self._open: list[psycopg.Connection[Any]] = []
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="postgres")
        self._threads.submit(self._connection).result()  # fail at the start, not at the first call

    def submit_write(self, work: Callable[[Transaction], T]) -> Future[T]:
        return self._submit(work, True)

    def submit_read(self, work: Callable[[Transaction], T]) -> Future[T]:
        return self._submit(work, False)

    def _submit(self, work: Callable[[Transaction], T], writable: bool) -> Future[T]:
        try:
            return self._threads.submit(self._run, work, writable)
        except RuntimeError:
            future: Future[T] = Future()
            future.set_exception(Unavailable("The instance is shutting down."))
            return future

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        for connection in self._open:
            connection.close()

    def _run(self, work: Callable[[Transaction], T], writable: bool) -> T:
        for attempt in range(1, ATTEMPTS + 1):
            connection = self._connection()
            try:
                _begin(connection, writable=writable)
                result = PostgresTransaction(connection, writable=writable).carry_out(work)
                connection.commit()
            except (pg.SerializationFailure, pg.DeadlockDetected):
                _undo(connection)
                if attempt == ATTEMPTS:
                    raise Unavailable("Too many changes at once.") from None
            except BaseException as error:
                _undo(connection)
                raise translate(error) from error
            else:
                return result
        raise AssertionError("unreachable")

    def _connection(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] | None = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            try:
                connection = psycopg.connect(
                    self._url,
                    application_name="remit",
                    options=f"-c idle_in_transaction_session_timeout={LONGEST_SILENCE_MS}",
                )
            except psycopg.Error as error:
                raise Unavailable(
                    "The PostgreSQL database cannot be reached.",
                    "Start it, or correct REMIT_DATABASE_URL.",
                ) from error
            self._local.connection = connection
            self._open = [known for known in self._open if not known.closed]
            self._open.append(connection)
        return connection


def _undo(connection: psycopg.Connection[Any]) -> None:
    """Roll back; a connection that was lost has rolled back on the server."""
    try:
        if not connection.closed:
            connection.rollback()
    except psycopg.Error:
        connection.close()


def _begin(connection: psycopg.Connection[Any], *, writable: bool) -> None:
    """Set the isolation: one read-only snapshot for a read, read committed for a write."""
    connection.isolation_level = None if writable else psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = None if writable else True


def translate(error: BaseException) -> BaseException:
    """Translate a database error for the caller."""
    if isinstance(error, (UnicodeError, psycopg.DataError)):
        return BadInput("A value is not one that the database can hold.")
    if isinstance(error, RemitError) or not isinstance(error, psycopg.Error):
        return error
    if isinstance(error, pg.DiskFull):
        return StorageFull("There is no room left to record this.")
    if isinstance(error, pg.IntegrityError):
        return RowConflict("Another change came first.")
    return Unavailable("The database cannot be used right now.")
