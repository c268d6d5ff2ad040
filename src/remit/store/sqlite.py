"""SQLite: one writer thread with group commit, a few reader threads with snapshots.

While one commit waits for the disk, the next callers queue up; they then share one commit. Each
has a savepoint of its own, so one that fails takes nothing along. `synchronous=FULL`: what was
acknowledged survives a power cut, and sharing the commit makes that affordable.
"""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from remit.errors import BadInput, RemitError, StorageFull, Unavailable
from remit.store.database import Database, Transaction
from remit.store.errors import RowConflict
from remit.store.statement import SQLITE

T = TypeVar("T")
log = logging.getLogger(__name__)

#: More than a disk can make wait in one commit, and little enough to keep replies quick.
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

    def __init__(self, connection: sqlite3.Connection, *, writable: bool) -> None:
        self._connection = connection
        self.writable = writable

    def execute(self, sql: str, parameters: dict[str, Any]) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def restart(self) -> None:
        if self.writable:
            self._connection.execute("ROLLBACK TO job")


class SqliteDatabase(Database):
    dialect = SQLITE

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writes: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._threads = [
            # Connected here, so that a database which cannot be opened fails the start.
            _thread("sqlite-writer", self._write_loop, connect(path)),
            *(
                _thread(f"sqlite-reader-{n}", self._read_loop, connect(path))
                for n in range(READERS)
            ),
        ]
        for thread in self._threads:
            thread.start()

    def submit_write(self, work: Callable[[Transaction], T]) -> Future[T]:
        return self._submit(self._writes, work)

    def submit_read(self, work: Callable[[Transaction], T]) -> Future[T]:
        return self._submit(self._reads, work)

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
        """Finish what was asked for, then stop."""
        if not self._closed:
            self._closed = True
            self._writes.put(None)
            for _ in range(READERS):
                self._reads.put(None)
            for thread in self._threads:
                thread.join()

    def _write_loop(self, connection: sqlite3.Connection) -> None:
        transaction = SqliteTransaction(connection, writable=True)
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
            _commit_together(connection, transaction, batch)
        connection.close()

    def _read_loop(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA query_only=ON")
        transaction = SqliteTransaction(connection, writable=False)
        while job := self._reads.get():
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                connection.execute("BEGIN")  # one snapshot for all statements of the read
                try:
                    result = job.work(transaction)
                finally:
                    connection.execute("COMMIT")
            except BaseException as error:
                job.future.set_exception(translate(error))
            else:
                job.future.set_result(result)
        connection.close()


def _thread(
    name: str, loop: Callable[[sqlite3.Connection], None], connection: sqlite3.Connection
) -> threading.Thread:
    return threading.Thread(target=loop, args=(connection,), name=name, daemon=True)


def _commit_together(
    connection: sqlite3.Connection, transaction: SqliteTransaction, batch: list[_Job]
) -> None:
    done: list[tuple[Future[Any], Any]] = []
    failed: list[tuple[Future[Any], BaseException]] = []
    # Somebody who stopped waiting before we began gets nothing done.
    batch = [job for job in batch if job.future.set_running_or_notify_cancel()]
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in batch:
            # Going back leads to the youngest of that name; the commit releases them all.
            connection.execute("SAVEPOINT job")
            try:
                done.append((job.future, job.work(transaction)))
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
    """A connection on which transactions are begun by hand."""
    try:
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        # What a savepoint may have to restore; else each commit makes a temporary file for it.
        connection.execute("PRAGMA temp_store=MEMORY")
    except sqlite3.Error as error:
        raise translate(error) from error
    return connection


def translate(error: BaseException) -> BaseException:
    """What a database error means to a caller."""
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
