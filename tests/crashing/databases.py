"""The two databases: every row that is in them, and how they get back to where they began."""

import re
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

import psycopg

#: Every row of every table.
Rows = dict[str, list[tuple[Any, ...]]]
KEPT_VALUE = re.compile(r"(secrets/[0-9a-f-]{36})/[0-9a-f]{32}")
GONE_SECONDS = 20.0


class Database(Protocol):
    url: str

    def close(self) -> None: ...

    def restore(self) -> None:
        """As it was when it was opened."""
        ...

    def rows(self) -> Rows: ...

    def ask(self, *questions: str) -> list[list[tuple[Any, ...]]]: ...

    def check(self) -> None:
        """That it is in order, as far as it can tell itself."""
        ...

    def wait_for_the_dead(self) -> None:
        """Until nothing of a process that was killed can happen any more."""
        ...


class Sqlite:
    """A file; a copy of it is as good as the original."""

    def __init__(self, path: Path, url: str) -> None:
        self._path, self.url = path, url
        #: What was read last, with the whole file that it was read from.
        self._known: list[tuple[bytes, Rows]] = []

    def close(self) -> None:
        """There is nothing to close."""

    def restore(self) -> None:
        """It came with the folder."""

    def rows(self) -> Rows:
        """Read only if it is another file than before; a log that a kill left is gone through."""
        log = Path(f"{self._path}-wal")
        if log.exists() and log.stat().st_size:
            self.ask("PRAGMA wal_checkpoint(TRUNCATE)")
        whole = self._path.read_bytes()
        for known, rows in reversed(self._known):
            if known == whole:
                return rows
        rows = self._read()
        self._known = [*self._known[-7:], (whole, rows)]
        return rows

    def _read(self) -> Rows:
        connection = self._connect()
        try:
            found = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
                " AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'file_search_%'"
            ).fetchall()
            return _without_names(
                {
                    name: _rows(connection.execute(f'SELECT * FROM "{name}"'))  # noqa: S608
                    for (name,) in found
                }
            )
        finally:
            connection.close()

    def ask(self, *questions: str) -> list[list[tuple[Any, ...]]]:
        connection = self._connect()
        try:
            return [connection.execute(question).fetchall() for question in questions]
        finally:
            connection.close()

    def check(self) -> None:
        assert self.ask("PRAGMA integrity_check", "PRAGMA foreign_key_check") == [[("ok",)], []]

    def wait_for_the_dead(self) -> None:
        """They took their locks along."""

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)


class Postgres:
    """One database whose tables have a copy each; what a trial changed is put back from those."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True, application_name="matrix")
        columns = self._connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = 'public' ORDER BY table_name, ordinal_position"
        ).fetchall()
        self._tables = list(dict.fromkeys(name for name, _, _ in columns))
        #: All rows of all tables at once, as text: a question for each table takes ten times as
        #: long. Numbers that the database gives rows itself are left out.
        self._all = " UNION ALL ".join(
            f"SELECT '{table}', ROW({', '.join(named)})::text FROM public.\"{table}\""  # noqa: S608
            for table in self._tables
            for named in [[f'"{one}"' for one in _counted_apart(table, columns)]]
        )
        self._connection.execute("CREATE SCHEMA before")
        for name in self._tables:
            self._connection.execute(f'CREATE TABLE before."{name}" AS TABLE public."{name}"')
        self._before = self.rows()

    def close(self) -> None:
        self._connection.close()

    def restore(self) -> None:
        self.wait_for_the_dead()
        now = self.rows()
        changed = [name for name in self._tables if now[name] != self._before[name]]
        with self._connection.transaction():
            # Without foreign keys and triggers: in the end everything fits together again.
            self._connection.execute("SET LOCAL session_replication_role = replica")
            for name in changed:
                self._connection.execute(f'DELETE FROM public."{name}"')  # noqa: S608
                self._connection.execute(f'INSERT INTO public."{name}" TABLE before."{name}"')

    def rows(self) -> Rows:
        found: Rows = {name: [] for name in self._tables}
        for name, row in self._connection.execute(self._all, prepare=True):
            found[name].append((row,))
        return _without_names(found)

    def ask(self, *questions: str) -> list[list[tuple[Any, ...]]]:
        return [self._connection.execute(question).fetchall() for question in questions]

    def check(self) -> None:
        """What SQLite is asked here, PostgreSQL sees to by itself."""

    def wait_for_the_dead(self) -> None:
        """Until the server has noticed; what they had sent before is carried out."""
        until = time.monotonic() + GONE_SECONDS
        name = self.url.rpartition("/")[2]
        while self._connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND application_name = 'remit'",
            (name,),
        ).fetchall():
            assert time.monotonic() < until, "somebody is still connected"
            time.sleep(0.002)


def _counted_apart(table: str, columns: list[tuple[Any, ...]]) -> list[str]:
    """The columns of a table without the number that the database gives each row."""
    ours = [(name, kind) for of, name, kind in columns if of == table]
    numbered = ours[0][0] == "id" and ours[0][1] in ("integer", "bigint")
    return [name for name, _ in ours[numbered:]]


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    """Rows without the numbers that the database gives them itself."""
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    if rows and isinstance(rows[0][0], int) and cursor.description[0][0] == "id":
        rows = [row[1:] for row in rows]
    return rows


def _without_names(rows: Rows) -> Rows:
    """The same, but for names that files were given by chance."""
    for table in ("secrets", "answers"):
        rows[table] = [_nameless(row) for row in rows[table]]
    return rows


def _nameless(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(KEPT_VALUE.sub(r"\1/…", one) if isinstance(one, str) else one for one in row)


def differences(found: Rows, expected: Rows) -> list[str]:
    """Which rows are too many, and which are missing, in whichever order they come."""
    lines: list[str] = []
    for name in sorted(expected.keys() | found.keys()):
        here, there = found.get(name, []), expected.get(name, [])
        if here != there:
            more, fewer = Counter(here) - Counter(there), Counter(there) - Counter(here)
            lines += [f"+ {count} {name} {row}"[:500] for row, count in more.items()]
            lines += [f"- {count} {name} {row}"[:500] for row, count in fewer.items()]
    return lines
