"""Copies all rows of an instance between a SQLite and a PostgreSQL database.

Both have the same schema, so tables are copied column by column. Parts that differ between the
engines are rebuilt: the full-text index, its row numbers in SQLite, and PostgreSQL's sequences.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Boolean, Connection, inspect, select, text

from remit.errors import BadInput, Conflict
from remit.model.text import search_words
from remit.model.work.file import MOST_INDEXED_WORDS
from remit.store.engine import migrate
from remit.store.engine.sqlite import connect
from remit.store.tables import metadata

_PIECE = 1_000
#: The full-text index: a plain table in PostgreSQL, an FTS5 virtual table in SQLite.
_SEARCH = "file_search"


def into_file(source: Connection, schema: str, path: Path) -> None:
    """Copy the rows that a connection sees into a new SQLite file with the same schema."""
    engine = migrate.engine_of(f"sqlite:///{path}")
    try:
        with engine.connect() as connection:
            migrate.upgrade(connection, schema)
            columns = _columns(connection)
    finally:
        engine.dispose()
    target = connect(path)
    try:
        # The caller syncs the finished file; the source has checked its references.
        target.execute("PRAGMA synchronous=OFF")
        target.execute("PRAGMA foreign_keys=OFF")
        target.execute("BEGIN")
        for table, names in columns.items():
            marks = ", ".join("?" * len(names))
            insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608
            for rows in _pieces(source, table, list(names)):
                target.executemany(insert, rows)
        _index_in_sqlite(source, target)
        target.execute("COMMIT")
        if broken := target.execute("PRAGMA foreign_key_check").fetchone():
            raise Conflict(f"A row of {broken[0]} names something that is not there.")
    finally:
        target.close()


def into_postgres(path: Path, schema: str, target: Connection) -> None:
    """Fill an empty PostgreSQL database from a SQLite file, within the caller's transaction."""
    target.execute(text(migrate.TAKE_TURN))
    if inspect(target).get_table_names():
        raise Conflict(
            "The database has tables already.", "Point REMIT_DATABASE_URL to an empty database."
        )
    migrate.upgrade(target, schema, commit=False)
    engine = migrate.engine_of(f"sqlite:///{path}")
    try:
        with engine.connect() as source:
            for table, names in _columns(target).items():
                _copy(source, target, table, names)
            _index_in_postgres(source, target)
    finally:
        engine.dispose()


def _columns(connection: Connection) -> dict[str, dict[str, bool]]:
    """The tables in the order of their references; for each column, whether it is boolean."""
    seen = inspect(connection)
    there = set(seen.get_table_names())
    return {
        table.name: {
            column["name"]: isinstance(column["type"], Boolean)
            for column in seen.get_columns(table.name)
        }
        for table in metadata.sorted_tables
        if table.name in there
    }


def _pieces(source: Connection, table: str, names: Sequence[str]) -> Iterator[Sequence[Any]]:
    wanted = select(*(text(name) for name in names)).select_from(text(table))
    streamed = source.execution_options(stream_results=True, max_row_buffer=_PIECE)
    cursor = streamed.execute(wanted)
    where = names.index("search_row") if "search_row" in names else None
    for rows in cursor.partitions(_PIECE):
        plain = [tuple(row) for row in rows]
        if where is not None:
            # The row number in one database's index means nothing to the other's.
            plain = [(*row[:where], None, *row[where + 1 :]) for row in plain]
        yield plain


def _copy(source: Connection, target: Connection, table: str, names: dict[str, bool]) -> None:
    truths = [index for index, truth in enumerate(names.values()) if truth]
    statement = f"COPY {table} ({', '.join(names)}) FROM STDIN"
    with _driver(target).cursor() as cursor, cursor.copy(statement) as copy:
        for rows in _pieces(source, table, list(names)):
            for row in rows:
                values = list(row)
                for index in truths:
                    values[index] = None if values[index] is None else bool(values[index])
                if any(isinstance(value, str) and "\0" in value for value in values):
                    raise BadInput(
                        f"A row of {table} has a character that PostgreSQL does not keep (NUL)."
                    )
                copy.write_row(values)
    for column in metadata.tables[table].columns:
        if column.autoincrement is True:
            target.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table}', '{column.name}'),"  # noqa: S608
                    f" max({column.name})) FROM {table} HAVING max({column.name}) IS NOT NULL"
                )
            )


def _index_in_sqlite(source: Connection, target: sqlite3.Connection) -> None:
    for number, (file, words) in enumerate(_indexed(source), start=1):
        target.execute(
            "INSERT INTO file_search (rowid, file_id, words) VALUES (?, ?, ?)",
            (number, file, words),
        )
        target.execute("UPDATE files SET search_row = ? WHERE id = ?", (number, file))


def _index_in_postgres(source: Connection, target: Connection) -> None:
    statement = f"INSERT INTO {_SEARCH} (file_id, words) VALUES (%s, to_tsvector('simple', %s))"  # noqa: S608
    with _driver(target).cursor() as cursor:
        cursor.executemany(statement, _indexed(source))


def _indexed(source: Connection) -> Iterator[tuple[str, str]]:
    """Yield each indexed file with its search words, derived from its description again."""
    files = source.execute(
        text(f"SELECT s.file_id, f.description FROM {_SEARCH} s JOIN files f ON f.id = s.file_id")  # noqa: S608
    )
    for file, description in files:
        yield file, " ".join(search_words(description)[:MOST_INDEXED_WORDS])


def _driver(connection: Connection) -> Any:
    return cast(Any, connection.connection.driver_connection)
