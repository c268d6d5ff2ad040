"""What must be true of a call that was killed: nothing of it is there, or all of it, once.

A control makes the call undisturbed and then again. Each trial makes it in a process that is killed
at a point, looks at what is there, and makes it again; the rows and the answers must be those of
the control, to the byte.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from remit.store.blobs import EMPTY
from remit.store.migrate import is_sqlite
from remit.testing.invariants import RULES
from tests.crash_stage import (
    COMMITTED,
    DONE,
    HALF,
    KEPT,
    LEAVES,
    PLACED,
    REMOVING,
    SENT,
    STORED,
    TOKEN_WRITTEN,
    Order,
    Stage,
)
from tests.postgres import Cluster

#: Every row of every table.
Rows = dict[str, list[tuple[Any, ...]]]
#: A process is killed here, not a machine: what it wrote is there, so memory will do for a disk.
_MEMORY = Path("/dev/shm")
_KEPT_VALUE = re.compile(r"(secrets/[0-9a-f-]{36})/[0-9a-f]{32}")
#: So little of the last page of a commit is missing.
_CUT = 1000
_GONE_SECONDS = 20.0


class Matrix:
    """An instance on one database that is put back into its first state for each trial."""

    def __init__(self, cluster: Cluster | None) -> None:
        self._folder = Path(
            tempfile.mkdtemp(prefix="remit-matrix-", dir=_MEMORY if _MEMORY.is_dir() else None)
        )
        self.stage = Stage()
        self.home = self._folder / "now" / "home"
        self._databases: dict[str, Any] = {}
        for kind in ("nothing", "lost", "company"):
            self._folder.joinpath("now").mkdir()
            url = self._sqlite if cluster is None else cluster.create_database()
            said = self.stage.run(Order(url, str(self.home), kind))
            assert said["code"] == 0, "it could not be prepared; what it said is above"
            self._folder.joinpath("now").rename(self._folder / kind)
            self._databases[kind] = Sqlite(self._folder / "now" / "remit.db", url)
            if cluster is not None:
                self._databases[kind] = Postgres(url)
        self.calls: dict[str, dict[str, Any]] = said["calls"]
        #: How often something was killed at each point.
        self.kills: dict[str, int] = {}

    @property
    def _sqlite(self) -> str:
        return f"sqlite:///{self._folder}/now/remit.db"

    def close(self) -> None:
        self.stage.close()
        for one in self._databases.values():
            one.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def fresh(self, kind: str) -> Any:
        """As it was before the call: the database, and the home folder."""
        now = self._folder / "now"
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(self._folder / kind, now)
        database = self._databases[kind]
        database.restore()
        return database


class Sqlite:
    """A file; a copy of it is as good as the original."""

    def __init__(self, path: Path, url: str) -> None:
        self._path, self.url = path, url
        #: What was read last, by the digest of the whole file.
        self._known: dict[bytes, Rows] = {}

    def close(self) -> None:
        """There is nothing to close."""

    def restore(self) -> None:
        """It came with the folder."""

    def rows(self) -> Rows:
        """Read only if it is another file than before; a log that a kill left is gone through."""
        self.ask("PRAGMA wal_checkpoint(TRUNCATE)")
        digest = hashlib.blake2b(self._path.read_bytes()).digest()
        if digest not in self._known:
            while len(self._known) > 8:
                self._known.pop(next(iter(self._known)))
            self._known[digest] = self._read()
        return self._known[digest]

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
        self._tables = [
            name
            for (name,) in self._connection.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            )
        ]
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
        return _without_names(
            {
                name: _rows(self._connection.execute(f'SELECT * FROM public."{name}"'))  # noqa: S608
                for name in self._tables
            }
        )

    def ask(self, *questions: str) -> list[list[tuple[Any, ...]]]:
        return [self._connection.execute(question).fetchall() for question in questions]

    def check(self) -> None:
        """What SQLite is asked here, PostgreSQL sees to by itself."""

    def wait_for_the_dead(self) -> None:
        """Until the server has noticed; what they had sent before is carried out."""
        until = time.monotonic() + _GONE_SECONDS
        name = self.url.rpartition("/")[2]
        while self._connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND application_name = 'remit'",
            (name,),
        ).fetchall():
            assert time.monotonic() < until, "somebody is still connected"
            time.sleep(0.002)


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
    return tuple(_KEPT_VALUE.sub(r"\1/…", one) if isinstance(one, str) else one for one in row)


# ── one row of the matrix ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Said:
    """What came of a call, as far as whoever called can tell."""

    answer: Any
    refused: Any

    @classmethod
    def of(cls, said: dict[str, Any]) -> "Said":
        answer = json.loads(_KEPT_VALUE.sub(r"\1/…", json.dumps(said.get("answer"))))
        return cls(answer, said.get("refused"))

    def without(self, names: list[str]) -> "Said":
        if not names:
            return self
        return Said({**self.answer, **dict.fromkeys(names)}, self.refused)


@dataclass(frozen=True)
class Control:
    """The call undisturbed, and made again."""

    before: Rows
    after: Rows
    again: Rows
    first: Said
    second: Said
    #: How often it came by each point, and how long the log of the database was then.
    seen: dict[str, int]
    wal: int


class Trial:
    def __init__(self, matrix: Matrix, name: str) -> None:
        self._matrix, self._name = matrix, name
        self._call = matrix.calls[name]
        self._database = self._fresh()

    def _fresh(self) -> Any:
        self._database = self._matrix.fresh(self._call["home"])
        return self._database

    def run(self) -> list[str]:
        """Kill the call at each of its points; answers them."""
        control = self._control()
        nothing, last = self._points(control)
        self._fresh()
        _same(self._rows(), control.before, "it was not put back")
        for point in nothing:
            # Whoever is killed has other ids than who succeeds in the end; but a token that is in
            # its file already is used.
            seed = f"killed: {point}" if self._call["home"] == "company" else "first"
            self._kill(point, seed, control)
            _same(self._rows(), control.before, f"killed when {point}, and something is there")
        for number, point in enumerate(last):
            if number:
                self._fresh()
            self._kill(point, "first", control)
            now = self._rows()
            if point == SENT and not _differences(now, control.before):
                self._undisturbed("first")  # the server did not come to it
                now = self._rows()
            _same(now, control.after, f"killed when {point}, and not all of it is there, once")
            repeat = self._undisturbed("second")
            assert repeat == control.second, f"the repeat, after a kill when {point}"
            _same(self._rows(), control.again, f"repeated after a kill when {point}")
            self._check_rules()
            if not number or point == REMOVING:  # otherwise it has left nothing new
                self._database.check()
                self._restart()
        return [*nothing, *last]

    def _control(self) -> Control:
        before = self._rows()
        said = self._run("first")
        first, after = Said.of(said), self._rows()
        second, again = self._undisturbed("second"), self._rows()
        call = self._call
        if call["asks"]:
            assert first.refused["reason"] == "pending_approval", first
        else:
            assert first.refused is None, first
        assert bool(_differences(after, before)) is call["leaves"], "it leaves something, or not"
        if call["refused"]:
            assert second.refused["reason"] == call["refused"], second
        elif call["keyed"]:
            assert second == first.without(call["shown_once"])
        if call["keyed"] or call["refused"]:
            _same(again, after, "a repeat has another effect")
        for name in call["shown_once"]:
            assert first.answer[name], f"{name} is shown once"
        return Control(before, after, again, first, second, said["seen"], said["wal"])

    def _points(self, control: Control) -> tuple[list[str], list[str]]:
        """Those that leave nothing, and those after which it has happened."""
        files = (KEPT, TOKEN_WRITTEN, STORED, PLACED)
        nothing = [point for point in files if point in control.seen] + [DONE]
        last = [COMMITTED] + [point for point in (REMOVING,) if point in control.seen]
        if is_sqlite(self._database.url):
            nothing += [HALF] if control.wal else []
        else:
            last = [SENT, *last]
        assert all(LEAVES[point] == "nothing" for point in nothing)
        return nothing, last

    def _kill(self, point: str, seed: str, control: Control) -> None:
        which = control.seen[PLACED] if point == PLACED else 1
        said = self._run(seed, point, which, max(control.wal - _CUT, 0))
        ended_by = signal.SIGXFSZ if point == HALF else signal.SIGKILL
        assert said["code"] == -ended_by, f"it was not killed when {point}: {said}"
        self._matrix.kills[point] = self._matrix.kills.get(point, 0) + 1
        self._database.wait_for_the_dead()

    def _undisturbed(self, seed: str) -> Said:
        return Said.of(self._run(seed))

    def _run(self, seed: str, point: str = "", which: int = 1, length: int = 0) -> dict[str, Any]:
        where = (self._database.url, str(self._matrix.home), "call", self._call)
        order = Order(*where, f"{self._name} {seed}", point, length, which)
        said = self._matrix.stage.run(order)
        assert not said["strays"], "a process is left"
        assert point or said["code"] == 0, "it failed; what it said is above"
        return said

    def _rows(self) -> Rows:
        found: Rows = self._database.rows()
        return found

    def _check_rules(self) -> None:
        answers = self._database.ask(*RULES.values())
        broken = {name: found for name, found in zip(RULES, answers, strict=True) if found}
        assert not broken

    def _restart(self) -> None:
        """An instance begins on it: the record is whole, and nothing is left that nobody names."""
        said = self._matrix.stage.run(
            Order(self._database.url, str(self._matrix.home), "restart", seed="restart")
        )
        assert said["code"] == 0, "it cannot be started again; what it said is above"
        assert not said["strays"], "a process is left"
        assert said["companies"] >= 1
        assert said["faults"] == []
        self._check_rules()
        assert self._stored() == self._named(), "what is stored is what rows name"
        home = self._matrix.home
        for folder in ("blobs/.incoming", "blobs/.trash", "run/workspaces", "run/jobs"):
            assert os.listdir(home / folder) == [], folder
        kept = {str(path) for path in home.glob("secrets/*/*")}
        (places,) = self._database.ask("SELECT place FROM secrets WHERE removed_at IS NULL")
        assert kept == {place for (place,) in places if place.startswith(str(home))}
        assert sorted(path.name for path in home.glob("board.token*")) == ["board.token"]

    def _stored(self) -> set[tuple[str, str]]:
        return {
            (path.parent.name, path.name)
            for path in self._matrix.home.glob("blobs/*/*")
            if not path.parent.name.startswith(".")
        }

    def _named(self) -> set[tuple[str, str]]:
        versions, parked = self._database.ask(
            "SELECT file_id, sha256 FROM file_versions",
            "SELECT blob_file_id, blob_sha256 FROM approvals WHERE blob_file_id IS NOT NULL"
            " AND status IN ('pending', 'revision_requested')",
        )
        return {(file, digest) for file, digest in [*versions, *parked] if digest != EMPTY}


def _differences(found: Rows, expected: Rows) -> list[str]:
    """Which rows are too many, and which are missing, in whichever order they come."""
    lines: list[str] = []
    for name in sorted(expected.keys() | found.keys()):
        here, there = found.get(name, []), expected.get(name, [])
        if here != there:
            more, fewer = Counter(here) - Counter(there), Counter(there) - Counter(here)
            lines += [f"+ {count} {name} {row}"[:500] for row, count in more.items()]
            lines += [f"- {count} {name} {row}"[:500] for row, count in fewer.items()]
    return lines


def _same(found: Rows, expected: Rows, otherwise: str) -> None:
    lines = _differences(found, expected)
    assert not lines, "\n".join([otherwise, *lines])
