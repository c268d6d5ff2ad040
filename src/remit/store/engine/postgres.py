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
from psycopg.conninfo import conninfo_to_dict, make_conninfo

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
#: Defaults of a connection, which the address may override: a server that went away without a word
#: is noticed within half a minute.
DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
#: Settings of a session. Compiling one of our statements takes longer than running it.
OPTIONS = f"-c idle_in_transaction_session_timeout={LONGEST_SILENCE_MS} -c jit=off"


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
            undone = True
            try:
                _begin(connection, writable=writable)
                result = PostgresTransaction(connection, writable=writable).carry_out(work)
                undone = False
                connection.commit()
            except (pg.SerializationFailure, pg.DeadlockDetected):
                _undo(connection)
                if attempt == ATTEMPTS:
                    raise Unavailable("Too many changes at once.") from None
            except BaseException as error:
                if undone and _is_lost(connection, error) and attempt < ATTEMPTS:
                    continue  # with a new connection, such as after a restart of the server
                _undo(connection)
                raise translate(error) from error
            else:
                return result
        raise AssertionError("unreachable")

    def _connection(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] | None = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            try:
                connection = psycopg.connect(connection_address(self._url))
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


def connection_address(url: str) -> str:
    """Return the address with our defaults for what it leaves open."""
    parts = {**DEFAULTS, **conninfo_to_dict(url, application_name="remit")}
    options = f"{OPTIONS} {parts.get('options') or ''}".rstrip()
    return make_conninfo("", **{**parts, "options": options})


def _is_lost(connection: psycopg.Connection[Any], error: BaseException) -> bool:
    """Return whether the server ended the connection, and with it the transaction."""
    return connection.closed and isinstance(error, psycopg.OperationalError)


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
