"""Backup of a whole instance in one file, taken while it works, and its restore into an empty one.

The rows are copied first, from one snapshot. Blobs are immutable and stored before the rows that
name them, so the blobs that the copy names can be added afterwards. A backup holds its rows as a
SQLite database, whichever engine they come from, so that it can be restored into either.

A backup is verified before it counts, and again before anything of it is restored: the database
itself, every company's chain of events, and the content of every version by its hash. A restore
writes the contents first and all rows at once at the end, so that one that is cut off leaves no
instance and can be repeated.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from remit.errors import Conflict, Unavailable
from remit.store.backups import backup_file, copying
from remit.store.backups.backup_file import DATABASE, PIECE, Contents, damaged, write
from remit.store.backups.staging import remove_left_over, workplace
from remit.store.blob_store.blobs import BlobStore, storage_error
from remit.store.blob_store.orphan_sweep import Pair
from remit.store.engine.migrate import engine_of, is_sqlite, refuse_unknown, revision, sqlite_path
from remit.store.engine.sqlite import connect

__all__ = ["Contents", "create", "restore"]

#: Later than the time of any blob, so that all of them are listed.
LAST = 1 << 62
_RESTORING = ".remit-restore-"
#: Suffixes of a SQLite database and its side files; a stale side file would be applied to the
#: restored database.
_BESIDE = ("", "-wal", "-shm", "-journal")


def create(url: str, blobs: Callable[[], BlobStore], target: Path) -> Contents:
    """Write a backup of a living instance; the file appears whole or not at all."""
    if target.exists():
        raise Conflict(f"{target} exists already.", "Choose another name.")
    try:
        with workplace(target.parent, ".remit-backup-") as folder:
            copy = folder / DATABASE
            _snapshot(url, copy)
            part = folder / "backup.tar"
            contents = backup_file.pack(copy, blobs(), part)
            _sync(part)
            os.link(part, target)  # unlike a rename, never over something else
            _sync(target.parent)
    except FileExistsError:
        raise Conflict(f"{target} exists already.", "Choose another name.") from None
    except OSError as error:
        raise storage_error(error) from error
    return contents


def restore(source: Path, home: Path, url: str, blobs: Callable[[], BlobStore]) -> Contents:
    """Restore a backup where there is no instance; a damaged backup leaves no instance behind."""
    remove_left_over(home, _RESTORING)
    _refuse_instance(url)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with workplace(home, _RESTORING) as here:
            contents, pairs = backup_file.unpack(source, here / DATABASE)
            store = blobs()
            _refuse_contents_of_others(store, pairs)
            _put_contents(source, store)
            if is_sqlite(url):
                _put_file(here / DATABASE, sqlite_path(url))
            else:
                with _postgres(url) as target:
                    copying.into_postgres(here / DATABASE, contents.schema, target)
    except FileExistsError:
        raise _there_already(sqlite_path(url).parent) from None
    except OSError as error:
        raise storage_error(error) from error
    return contents


def _snapshot(url: str, copy: Path) -> None:
    if not is_sqlite(url):
        with _postgres(url, isolation_level="REPEATABLE READ", postgresql_readonly=True) as source:
            schema = revision(source)
            if schema is None:
                raise _none_there()
            refuse_unknown(schema)
            copying.into_file(source, schema, copy)
        return
    if not sqlite_path(url).exists():
        raise _none_there()
    connection = connect(sqlite_path(url))
    try:
        refuse_unknown(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
        connection.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.DatabaseError as error:
        raise Unavailable(
            f"The database cannot be read ({error}).", "Run `remit doctor`."
        ) from error
    finally:
        connection.close()


@contextmanager
def _postgres(url: str, **options: object) -> Iterator[Connection]:
    """Context manager: a connection in one transaction, which is committed at the end."""
    from psycopg import Error  # an extra

    engine = engine_of(url)
    try:
        with engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection
    except (DBAPIError, Error) as error:
        reason = str(getattr(error, "orig", error)).partition("\n")[0]
        raise Unavailable(
            f"The database cannot be used ({reason}).", "Start it, or correct REMIT_DATABASE_URL."
        ) from error
    finally:
        engine.dispose()


def _refuse_instance(url: str) -> None:
    if is_sqlite(url):
        path = sqlite_path(url)
        if any(path.with_name(path.name + end).exists() for end in _BESIDE):
            raise _there_already(path.parent)
        return
    with _postgres(url) as connection:
        schema = revision(connection)
    refuse_unknown(schema)
    if schema is not None:
        raise Conflict(
            "There is an instance in the database already.",
            "Point REMIT_DATABASE_URL to an empty database.",
        )


def _refuse_contents_of_others(blobs: BlobStore, pairs: set[Pair]) -> None:
    """Refuse a blob store with contents of another instance. One content of this backup is enough
    to accept it: a restore that was cut off left it, or the same instance did."""
    there = 0
    for pair in blobs.old(False, LAST):
        if pair in pairs:
            return
        there += 1
    if there:
        raise Conflict(
            f"Where the contents are to be, there are {there} of another instance.",
            "Set REMIT_HOME to an empty folder, or REMIT_BLOB_URL to an empty place.",
        )


def _put_contents(source: Path, blobs: BlobStore) -> None:
    for (file_id, sha256), size, stream in backup_file.contents(source):
        with blobs.receive(size) as spool:
            while piece := stream.read(PIECE):
                spool.write(piece)
            if blobs.put(file_id, spool).sha256 != sha256:
                raise damaged("it was changed while it was read")


def _put_file(file: Path, place: Path) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if file.parent.stat().st_dev != place.parent.stat().st_dev:
        with workplace(place.parent, _RESTORING) as near, file.open("rb") as stream:
            write(near / DATABASE, stream)
            _put_file(near / DATABASE, place)
        return
    file.chmod(0o600)
    _sync(file)
    os.link(file, place)  # unlike a rename, never over something else
    _sync(place.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _none_there() -> Conflict:
    return Conflict("There is no instance here.", "Set REMIT_HOME or REMIT_DATABASE_URL.")


def _there_already(folder: Path) -> Conflict:
    return Conflict(
        f"There is an instance in {folder} already.", "Set REMIT_HOME to an empty folder."
    )
