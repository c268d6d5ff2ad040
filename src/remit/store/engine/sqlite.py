"""SQLite: one writer thread with group commit, a few reader threads with snapshots.

While one commit waits for the disk, the next callers queue up; they then share one commit. Each
has a savepoint of its own, so a failed one rolls back alone. `synchronous=FULL`: acknowledged
changes survive a power cut, and sharing the commit makes that affordable.
"""

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from remit.errors import BadInput, RemitError, StorageFull, Unavailable
from remit.store.engine.database import Database, Parameters, Transaction
from remit.store.engine.errors import RowConflict
from remit.store.engine.statement import SQLITE

T = TypeVar("T")
log = logging.getLogger(__name__)

#: Most commands in one commit: more than queue up during a sync, few enough for quick replies.
LARGEST_BATCH = 64
READERS = 2
#: Another process may hold the file for a moment, such as a backup.
BUSY_MILLISECONDS = 10_000


class _Job(NamedTuple):
    work: Callable[[Transaction], Any]
    future: Future[Any]


class SqliteTransaction(Transaction):
    dialect = SQLITE
    one_by_one = True
    undisturbed = True

    def __init__(self, connection: sqlite3.Connection, *, writable: bool) -> None:
        super().__init__()
        self._connection = connection
        self.writable = writable

    def execute(self, sql: str, parameters: Parameters) -> sqlite3.Cursor:
        if isinstance(parameters, list):
            return self._connection.executemany(sql, parameters)
        return self._connection.execute(sql, parameters)

    def _undo(self) -> None:
        if self.writable:
            self._connection.execute("ROLLBACK TO job")


class SqliteDatabase(Database):
    dialect = SQLITE

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writes: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._idle = threading.Semaphore(0)
        self._starting = threading.Lock()
        # Connected here, so that a database which cannot be opened fails the start.
        self._writer = _started("sqlite-writer", self._write_loop, connect(path))
        #: Started on demand: reading the schema takes each of them milliseconds.
        self._readers: list[threading.Thread] = []
        #: Connection that never writes: its `PRAGMA data_version` counts commits of others only.
        self._counter: sqlite3.Connection | None = None

    def submit_write(self, work: Callable[[Transaction], T]) -> Future[T]:
        return self._submit(self._writes, work)

    def submit_read(self, work: Callable[[Transaction], T]) -> Future[T]:
        if not self._idle.acquire(blocking=False):
            with self._starting:
                if len(self._readers) < READERS and not self._closed:
                    self._readers.append(_started("sqlite-reader", self._read_loop))
        return self._submit(self._reads, work)

    def version(self) -> int | None:
        with self._starting:
            if self._closed:
                return None
            try:
                if self._counter is None:
                    self._counter = _read_only(self.path)
                    # No waiting: a locked database counts as changed.
                    self._counter.execute("PRAGMA busy_timeout=0")
                return int(self._counter.execute("PRAGMA data_version").fetchone()[0])
            except (sqlite3.Error, RemitError):
                return None

    def _submit(
        self, jobs: queue.SimpleQueue[_Job | None], work: Callable[[Transaction], T]
    ) -> Future[T]:
        future: Future[T] = Future()
        if self._closed:
            future.set_exception(Unavailable("The instance is shutting down."))
        else:
            jobs.put(_Job(work, future))
        return future

    def close(self) -> None:
        """Finish the queued work, then stop the threads."""
        with self._starting:
            if self._closed:
                return
            self._closed = True
        self._writes.put(None)
        for _ in self._readers:
            self._reads.put(None)
        for thread in (self._writer, *self._readers):
            thread.join()
        if self._counter is not None:
            self._counter.close()

    def _write_loop(self, connection: sqlite3.Connection) -> None:
        stopping = False
        while not stopping:
            job = self._writes.get()
            if job is None:
                break
            batch = [job]
            while len(batch) < LARGEST_BATCH:
                try:
                    job = self._writes.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    stopping = True
                    break
                batch.append(job)
            _commit_together(connection, batch)
        connection.close()

    def _read_loop(self) -> None:
        connection: sqlite3.Connection | None = None
        while job := self._reads.get():
            result: Any = None
            failed: BaseException | None = None
            wanted = job.future.set_running_or_notify_cancel()
            try:
                if wanted:
                    connection = connection or _read_only(self.path)
                    result = _read(connection, job)
            except BaseException as error:
                failed = translate(error)
            # Before the result is set, because its receiver may submit the next read at once.
            self._idle.release()
            if failed is not None:
                job.future.set_exception(failed)
            elif wanted:
                job.future.set_result(result)
        if connection is not None:
            connection.close()


def _started(name: str, loop: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=loop, args=arguments, name=name, daemon=True)
    thread.start()
    return thread


def _read_only(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    connection.execute("PRAGMA query_only=ON")
    return connection


def _read(connection: sqlite3.Connection, job: _Job) -> Any:
    connection.execute("BEGIN")  # one snapshot for all statements of the read
    try:
        return job.work(SqliteTransaction(connection, writable=False))
    finally:
        connection.execute("COMMIT")


def _commit_together(connection: sqlite3.Connection, batch: list[_Job]) -> None:
    done: list[tuple[Future[Any], Any]] = []
    failed: list[tuple[Future[Any], BaseException]] = []
    # Jobs that were cancelled in the queue are dropped.
    batch = [job for job in batch if job.future.set_running_or_notify_cancel()]
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in batch:
            # A rollback goes to the newest savepoint of the name; the commit releases them all.
            connection.execute("SAVEPOINT job")
            try:
                transaction = SqliteTransaction(connection, writable=True)
                done.append((job.future, transaction.carry_out(job.work)))
            except BaseException as error:
                if not connection.in_transaction:
                    # SQLite itself gave up the whole transaction (disk full, I/O error).
                    raise
                failed.append((job.future, error))
                connection.execute("ROLLBACK TO job")
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        reported = translate(error)
        log.error("a commit of %d commands failed: %s", len(batch), error)
        for job in batch:
            job.future.set_exception(reported)
        return
    for future, result in done:
        future.set_result(result)
    for future, reason in failed:
        future.set_exception(translate(reason))


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection with explicit transactions, in WAL mode with full syncs."""
    try:
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        # For the journal of savepoints, which would take a temporary file for each commit.
        connection.execute("PRAGMA temp_store=MEMORY")
    except sqlite3.Error as error:
        raise translate(error) from error
    return connection


def translate(error: BaseException) -> BaseException:
    """Translate a database error for the caller."""
    if isinstance(error, (UnicodeError, OverflowError)):
        return BadInput("A value is not one that the database can hold.")
    if isinstance(error, RemitError) or not isinstance(error, sqlite3.Error):
        return error
    text = str(error)
    if "full" in text:
        reported: RemitError = StorageFull("There is no room left to record this.")
    elif isinstance(error, sqlite3.IntegrityError):
        reported = RowConflict("Another change came first.")
    else:
        reported = Unavailable(f"The database cannot be used right now ({text}).")
    reported.__cause__ = error
    return reported
