"""A single-threaded database and blob store with crash points.

A process may die at every commit: just before it, without effect, or just after it, with the effect
but without an answer. The same holds for every stored content, which no transaction rolls back. A
`Crash` at such a point ends everything the process was doing, and leaves the rows and contents as a
real crash would.
"""

from collections.abc import Callable
from concurrent.futures import Future
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from remit.store.blob_store.blobs import Content, LocalBlobs, Spool
from remit.store.engine.database import Database, Transaction
from remit.store.engine.sqlite import SqliteTransaction, connect, translate
from remit.store.engine.statement import SQLITE

T = TypeVar("T")


class Moment(StrEnum):
    BEFORE_COMMIT = "before a commit"
    AFTER_COMMIT = "after a commit"
    BEFORE_STORING = "before a content is stored"
    AFTER_STORING = "after a content is stored"


class Crash(BaseException):
    """The process died. Not an Exception, so that no handler in the process continues."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(f"crashed {moment.value}")
        self.moment = moment


#: Called at each crash point; raises Crash to let the process die there.
CrashPoint = Callable[[Moment], None]


def _never(_: Moment) -> None:
    """The crash point that never crashes."""


class InlineDatabase(Database):
    """SQLite without threads: calls are synchronous, so that a seed determines everything."""

    dialect = SQLITE

    def __init__(self, path: Path) -> None:
        self.path = path
        self.crash_point: CrashPoint = _never
        self.commits = 0
        self._connection = connect(path)
        # Without syncs: crashes are simulated at the crash points, not by the disk.
        self._connection.execute("PRAGMA synchronous=OFF")

    @property
    def changes(self) -> int:
        """A counter that grows whenever a row is written."""
        return self._connection.total_changes

    def look(self, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
        """Query rows directly, for checks beyond the verbs."""
        return self._connection.execute(statement, values or {}).fetchall()

    def submit_write(self, work: Callable[[Transaction], T]) -> Future[T]:
        return _done(lambda: self._write(work))

    def submit_read(self, work: Callable[[Transaction], T]) -> Future[T]:
        return _done(lambda: self._read(work))

    async def write(self, work: Callable[[Transaction], T]) -> T:
        return self._write(work)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return self._read(work)

    def close(self) -> None:
        self._connection.close()

    def _write(self, work: Callable[[Transaction], T]) -> T:
        here = self._connection
        here.execute("BEGIN IMMEDIATE")
        try:
            here.execute("SAVEPOINT job")
            result = SqliteTransaction(here, writable=True).carry_out(work)
            self.crash_point(Moment.BEFORE_COMMIT)
        except BaseException as error:
            here.execute("ROLLBACK")
            raise translate(error) from None
        here.execute("COMMIT")
        self.commits += 1
        self.crash_point(Moment.AFTER_COMMIT)
        return result

    def _read(self, work: Callable[[Transaction], T]) -> T:
        self._connection.execute("BEGIN")
        try:
            return work(SqliteTransaction(self._connection, writable=False))
        except BaseException as error:
            raise translate(error) from None
        finally:
            self._connection.execute("ROLLBACK")


class CrashingBlobs(LocalBlobs):
    """Contents in a folder with crash points; a rollback does not remove them."""

    def __init__(self, root: Path, crash_point: CrashPoint) -> None:
        super().__init__(root)
        self._crash_point = crash_point

    def put(self, file_id: str, spool: Spool) -> Content:
        self._crash_point(Moment.BEFORE_STORING)
        content = super().put(file_id, spool)
        self._crash_point(Moment.AFTER_STORING)
        return content


def _done(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
    return future
