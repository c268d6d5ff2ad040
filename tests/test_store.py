"""What the databases guarantee by themselves, and how they are run."""

import contextlib
import functools
import importlib
import itertools
import re
import sqlite3
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Connection,
    String,
    Table,
    create_engine,
    inspect,
)
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql.visitors import iterate

from remit.app import App
from remit.clock import Micros, SystemClock
from remit.errors import BadInput, Conflict, StorageFull, Unavailable, Unsupported
from remit.ids import AgentId, CompanyId
from remit.model.event import GENESIS
from remit.model.organisation import company as company_model
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.record import events
from remit.store.engine import migrate, sqlite
from remit.store.engine.database import Transaction, open_database
from remit.store.engine.errors import RowConflict
from remit.store.engine.sqlite import LARGEST_BATCH, READERS, SqliteDatabase
from remit.store.engine.statement import POSTGRESQL, SQLITE, Statement
from remit.store.messaging import mail, threads
from remit.store.organisation import grants, people
from remit.store.record import overview
from remit.store.record.events import Chain
from remit.store.tables import metadata
from remit.store.tables.base import STORED, table_of
from remit.store.work import files as file_statements
from remit.store.work import wishes
from tests import postgres
from tests.company import Company, opened, run_sql, settings
from tests.statements import every_statement
from tests.templates import lay_tables

T = TypeVar("T")

MIGRATIONS = Path(migrate.__file__).parents[1] / "migrations"
REFUSED = (sqlite3.IntegrityError, psycopg.IntegrityError)


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    url = f"sqlite:///{tmp_path}/remit.db"
    lay_tables(url)
    opened = open_database(url)
    assert isinstance(opened, SqliteDatabase)
    yield opened
    opened.close()


def add_company(name: str) -> Callable[[Transaction], str]:
    def work(tx: Transaction) -> str:
        company = company_model.Company(CompanyId(name), name, 0)
        tx.add(company, name_key=name, mail_position=0)
        return name

    return work


def names(database: SqliteDatabase) -> list[str]:
    return database.submit_read(lambda tx: tx.all(people.ALL_COMPANIES)).result()


# ── what a transaction keeps ────────────────────────────────────────────────────────────────────


def test_what_is_kept_is_dropped_with_every_table_that_it_rests_on() -> None:
    kept = [(name, one) for name, one in every_statement() if one.kept]
    assert len(kept) > 5
    for name, one in kept:
        assert not one.compiled(SQLITE)[0].startswith(("INSERT", "UPDATE", "DELETE")), name
        assert not one.writes
        assert not one.names_any(Chain.tables), f"{name}: what is delayed changes it unseen"
        tables = {part.name for part in iterate(one._statement) if isinstance(part, Table)}
        assert tables
        assert all(one.names_any(frozenset({table})) for table in tables), name


def test_each_statement_says_what_it_changes() -> None:
    changed = re.compile(r"\b(?:INSERT (?:OR REPLACE )?INTO|UPDATE|DELETE FROM) (\w+)")
    for name, one in every_statement():
        text = one.compiled(SQLITE)[0]
        if found := set(changed.findall(text)) - {"SET"}:
            assert found <= one.writes, name


# ── group commit ────────────────────────────────────────────────────────────────────────────────


def test_a_sqlite_database_has_another_version_after_each_commit(tmp_path: Path) -> None:
    """Also after one of another process."""
    url = f"sqlite:///{tmp_path / 'remit.db'}"
    lay_tables(url)
    database = open_database(url)
    with contextlib.closing(sqlite3.connect(tmp_path / "remit.db")) as elsewhere:
        seen = [database.version(), database.version()]
        database.submit_read(lambda tx: tx.execute("SELECT 1", {}).close()).result()
        seen.append(database.version())
        assert len(set(seen)) == 1
        assert seen[0] is not None
        database.submit_write(lambda tx: tx.execute("PRAGMA user_version = 0", {})).result()
        seen.append(database.version())
        with elsewhere:
            elsewhere.execute("DELETE FROM answers")
            elsewhere.execute("PRAGMA user_version = 1")
        seen.append(database.version())
    database.close()
    assert len(set(seen)) == 3
    assert database.version() is None


def test_writes_that_come_together_share_a_commit(database: SqliteDatabase) -> None:
    statements: list[str] = []
    waiting, go = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        tx.execute("SELECT 1", {}).connection.set_trace_callback(statements.append)
        waiting.set()
        assert go.wait(30)

    first = database.submit_write(hold)
    assert waiting.wait(30)
    count = LARGEST_BATCH + 10
    writes = [database.submit_write(add_company(f"company-{n:03}")) for n in range(count)]
    assert not any(write.done() for write in writes)
    go.set()
    assert [write.result(30) for write in writes] == [f"company-{n:03}" for n in range(count)]
    first.result(30)
    # The one that was held, then a full batch, then the rest.
    assert statements.count("COMMIT") == 3
    assert statements.count("BEGIN IMMEDIATE") == 2
    assert names(database) == [f"company-{n:03}" for n in range(count)]


def test_one_that_fails_takes_nothing_along(database: SqliteDatabase) -> None:
    waiting, go = threading.Event(), threading.Event()

    def hold(_: Transaction) -> None:
        waiting.set()
        assert go.wait(30)

    def fail_late(tx: Transaction) -> str:
        add_company("half done")(tx)
        raise Conflict("on purpose")

    def fail_hard(tx: Transaction) -> str:
        add_company("half done")(tx)
        raise RuntimeError("a defect")

    held = database.submit_write(hold)
    assert waiting.wait(30)
    jobs = [add_company("a"), fail_late, add_company("b"), add_company("a"), fail_hard]
    futures: list[Future[str]] = [database.submit_write(job) for job in [*jobs, add_company("c")]]
    cancelled = database.submit_write(add_company("nobody waits for it"))
    assert cancelled.cancel()
    go.set()
    held.result(30)
    errors = [future.exception(30) for future in futures]
    kinds = [type(error) for error in errors]
    assert kinds == [type(None), Conflict, type(None), RowConflict, RuntimeError, type(None)]
    assert names(database) == ["a", "b", "c"]


def test_a_write_sees_what_came_before_it_in_the_same_commit(database: SqliteDatabase) -> None:
    waiting, go = threading.Event(), threading.Event()

    def hold(_: Transaction) -> None:
        waiting.set()
        assert go.wait(30)

    database.submit_write(hold)
    assert waiting.wait(30)
    database.submit_write(add_company("a"))
    seen = database.submit_write(lambda tx: tx.all(people.ALL_COMPANIES))
    unseen = database.submit_read(lambda tx: tx.all(people.ALL_COMPANIES)).result(30)
    go.set()
    assert (seen.result(30), unseen) == (["a"], [])


def test_a_commit_that_fails_fails_for_everybody_in_it(database: SqliteDatabase) -> None:
    def break_at_commit(tx: Transaction) -> None:
        tx.execute("PRAGMA defer_foreign_keys=ON", {})
        tx.run(people.INSERT_HEAD, company_id="nobody", seq=0, hash=GENESIS)

    with pytest.raises(RowConflict):
        database.submit_write(break_at_commit).result(30)
    database.submit_write(add_company("a")).result(30)
    assert names(database) == ["a"]


def test_a_closed_database_takes_no_more_work_and_finishes_what_it_took(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/remit.db"
    migrate.migrate(url)
    database = open_database(url)
    writes = [database.submit_write(add_company(f"company-{n:03}")) for n in range(100)]
    database.close()
    assert all(write.result(0) for write in writes)
    with pytest.raises(Unavailable):
        database.submit_write(add_company("late")).result(1)
    with pytest.raises(Unavailable):
        database.submit_read(lambda tx: None).result(1)


# ── settings ────────────────────────────────────────────────────────────────────────────────────


def pragmas(tx: Transaction) -> dict[str, Any]:
    asked = ("journal_mode", "synchronous", "foreign_keys", "query_only")
    return {name: tx.execute(f"PRAGMA {name}", {}).fetchone()[0] for name in asked}


def test_every_live_connection_to_sqlite_is_durable_and_checks_references(
    database: SqliteDatabase,
) -> None:
    together = threading.Barrier(READERS)

    def look(tx: Transaction) -> dict[str, Any]:
        together.wait(30)  # so that each reader takes one
        return pragmas(tx)

    full = 2
    expected = {"journal_mode": "wal", "synchronous": full, "foreign_keys": 1}
    assert database.submit_write(pragmas).result(30) == {**expected, "query_only": 0}
    for answer in [database.submit_read(look) for _ in range(READERS)]:
        assert answer.result(30) == {**expected, "query_only": 1}


def test_readers_begin_when_they_are_wanted_and_try_again_if_they_cannot(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def readers() -> int:
        return [thread.name for thread in threading.enumerate()].count("sqlite-reader")

    assert readers() == 0
    with monkeypatch.context() as broken:
        broken.setattr(sqlite, "connect", lambda path: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            database.submit_read(pragmas).result(30)
    for _ in range(5):
        assert database.submit_read(pragmas).result(30)["query_only"] == 1
    assert readers() == 1
    gone = database.submit_read(pragmas)
    gone.cancel()
    both = threading.Barrier(READERS)
    for answer in [database.submit_read(lambda tx: both.wait(30)) for _ in range(READERS)]:
        answer.result(30)
    assert readers() == READERS


def test_a_check_writes_something_and_changes_nothing(company: Company) -> None:
    """What never reaches the disk would not notice one that fails."""

    def written() -> object:
        if company.app.database.dialect is SQLITE:
            wal = Path(f"{migrate.sqlite_path(company.app.settings.database_url)}-wal")
            return wal.read_bytes()
        return company.sql("SELECT txid_snapshot_xmax(txid_current_snapshot())")

    before, rows = written(), company.sql("SELECT count(*) FROM events")
    company.wait(company.app.database.check())
    assert written() != before
    assert company.sql("SELECT count(*) FROM events") == rows


def test_a_read_cannot_write(database_url: str) -> None:
    migrate.migrate(database_url)
    database = open_database(database_url)
    try:
        with pytest.raises(Unavailable):
            database.submit_read(add_company("sneaked in")).result(30)
        assert database.submit_read(lambda tx: tx.all(people.ALL_COMPANIES)).result(30) == []
    finally:
        database.close()


def test_a_read_sees_one_moment(database_url: str) -> None:
    """What is committed between two statements of a read is in neither of them."""
    migrate.migrate(database_url)
    database = open_database(database_url)
    looked, written = threading.Event(), threading.Event()

    def look_twice(tx: Transaction) -> tuple[list[str], list[str]]:
        before = tx.all(people.ALL_COMPANIES)
        looked.set()
        assert written.wait(30)
        return before, tx.all(people.ALL_COMPANIES)

    try:
        read = database.submit_read(look_twice)
        assert looked.wait(30)
        database.submit_write(add_company("meanwhile")).result(30)
        written.set()
        assert read.result(30) == ([], [])
        found = database.submit_read(lambda tx: tx.all(people.ALL_COMPANIES)).result(30)
        assert found == ["meanwhile"]
    finally:
        written.set()
        database.close()


# ── constraints ─────────────────────────────────────────────────────────────────────────────────


def refused(company: Company, statement: str, *parameters: object) -> None:
    with pytest.raises(REFUSED):
        company.sql(statement, *parameters)


def test_an_agent_has_exactly_one_boss_and_is_not_its_own(company: Company) -> None:
    lead = company.agent("lead")
    user = company.sql("SELECT id FROM users")[0][0]
    refused(company, "UPDATE agents SET boss_user_id = ? WHERE id = ?", user, lead.id)
    refused(company, "UPDATE agents SET boss_id = NULL WHERE id = ?", lead.id)
    refused(company, "UPDATE agents SET boss_id = ? WHERE id = ?", lead.id, lead.id)
    refused(company, "UPDATE agents SET status = 'asleep' WHERE id = ?", lead.id)


@pytest.mark.tampers
def test_living_agents_do_not_share_a_name(company: Company) -> None:
    company.agent("lead")
    refused(company, "UPDATE agents SET name_key = 'ceo' WHERE name_key = 'lead'")
    company.sql("UPDATE agents SET status = 'terminated' WHERE name_key = 'lead'")
    company.sql("UPDATE agents SET name_key = 'ceo' WHERE name_key = 'lead'")


def test_an_agent_has_one_live_run(company: Company) -> None:
    run = company.run(company.ceo)
    insert = (
        "INSERT INTO runs (id, company_id, agent_id, status, started_at, ended_at)"
        " VALUES (?, ?, ?, ?, 1, ?)"
    )
    common = (company.id, company.ceo.id)
    refused(company, insert, company.app.ids.new(), *common, "running", None)
    refused(company, insert, company.app.ids.new(), *common, "completed", None)
    refused(company, "UPDATE runs SET ended_at = 5 WHERE id = ?", run.id)
    company.sql(insert, company.app.ids.new(), *common, "completed", 2)


def test_nothing_points_into_another_company(company: Company) -> None:
    other = company.second_company()
    lead = company.agent("lead")
    file = company.file(company.ceo.caller)
    grant = company.give(company.ceo.caller, lead, file, "read")
    theirs = other.agent.id
    company.run(company.ceo)
    for statement in (
        "UPDATE agents SET boss_id = ? WHERE id = ?",
        "UPDATE outcomes SET owner_id = ? WHERE id = ?",
    ):
        refused(company, statement, theirs, lead.id)
    refused(company, "UPDATE files SET home_agent_id = ? WHERE id = ?", theirs, file["id"])
    refused(company, "UPDATE runs SET agent_id = ?", theirs)
    refused(company, "UPDATE tokens SET agent_id = ? WHERE kind = 'run'", theirs)
    refused(company, "UPDATE memberships SET scope_agent_id = ? WHERE company_id = ?", theirs,
            company.id)  # fmt: skip
    for column in ("holder_id", "scope_id", "granted_by_agent"):
        statement = f"UPDATE grants SET {column} = ? WHERE id = ?"  # noqa: S608
        refused(company, statement, theirs, grant["id"])
    refused(company, "UPDATE grants SET company_id = ? WHERE id = ?", other.id, grant["id"])


#: Ids that lead to no row of a company, and why the database does not keep them in one.
ELSEWHERE = {
    "a run, which is looked for by who acts in it": {
        *("accounts.probe_run_id", "approvals.requested_by_run_id", "messages.sender_run_id"),
        *("deliveries.run_id", "deliveries.alone_run_id", "events.run_id"),
    },
    "what may be gone, and is only told": {
        *(
            "agent_leases.held_by",
            "jobs.held_by",
            "limits_reached.subject_id",
            "messages.origin_id",
        ),
        *("messages.question_id", "messages.thread_id", "messages.outcome_id"),
        "outcomes.origin_id",
        *("notices.subject_id", "notices.digest_id", "notices.escalated_from", "notices.post_id"),
        *("runs.account_id", "waits.subject_id", "approvals.blob_file_id", "wishes.shared_with"),
    },
    "a person's token, which belongs to no company": {
        *("linked_accounts.made_with", "tokens.made_with"),
    },
    "an event, which may be of another company; `event verify` compares the two": {
        "tokens.event_id"
    },
    "a comment of the same approval, which the service looks for there": {
        "approval_comments.reply_to"
    },
    "a part of the same post, which the service looks for in its company": {
        "channel_posts.last_id"
    },
}


def keys_within_companies() -> dict[str, str]:
    """Every column that names a row of the same company, and the table that it is of."""
    return {
        f"{table.name}.{column.name}": key.referred_table.name
        for table in metadata.sorted_tables
        for key in table.foreign_key_constraints
        for column in key.columns
        if len(key.columns) == 2 and column.name != "company_id"
    }


def test_every_id_in_a_company_is_kept_within_it() -> None:
    """A column that names something and has no such key is a way into another company."""
    kept = keys_within_companies()
    loose = set()
    for table in metadata.sorted_tables:
        if "company_id" not in table.c:
            continue
        people = {
            column.name
            for key in table.foreign_key_constraints
            for column in key.columns
            if key.referred_table.name in ("users", "companies") and len(key.columns) == 1
        }
        loose |= {
            f"{table.name}.{column.name}"
            for column in table.c
            if isinstance(column.type, String) and column.type.length == 36
            if column.name not in {"id", *people}
        }
    assert loose - set(kept) == set().union(*ELSEWHERE.values())
    assert len(kept) >= 68


class Shade(StrEnum):
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True)
class Sketch:
    """A value that nothing stores but the test below."""

    id: str
    company_id: CompanyId
    drawn_by: AgentId | None
    shade: Shade
    pages: int
    drawn_at: Micros


def test_a_table_keeps_what_the_types_of_a_value_say() -> None:
    sketches = table_of(Sketch, "sketches", defaults={"pages": 1})
    try:
        text = str(CreateTable(sketches).compile(dialect=POSTGRESQL))
    finally:
        metadata.remove(sketches)
        del STORED[Sketch]
    for line in (
        'id VARCHAR(36) COLLATE "C" NOT NULL',
        'drawn_by VARCHAR(36) COLLATE "C", ',
        "shade TEXT NOT NULL",
        "pages INTEGER DEFAULT '1' NOT NULL",
        "drawn_at BIGINT NOT NULL",
        "PRIMARY KEY (id)",
        "FOREIGN KEY(company_id) REFERENCES companies (id)",
        "FOREIGN KEY(drawn_by, company_id) REFERENCES agents (id, company_id)",
        "CHECK (shade IN ('light', 'dark'))",
    ):
        assert line in text


def test_no_row_names_one_of_another_company(tmp_path: Path) -> None:
    """Tried for every key that the migrations made, with rows that have nothing else in them."""
    url = lay_tables(f"sqlite:///{tmp_path}/keys.db")
    numbers = itertools.count(1)

    def fill(table: str, **given: str) -> int:
        """A row with something in every column that must have something; answers its number."""
        row = {
            column.name: given.get(column.name) or next(numbers)
            for column in metadata.tables[table].c
            if column.name in given or (not column.nullable and column.server_default is None)
        }
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        made = it.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608
            list(row.values()),
        )
        return int(made.lastrowid or 0)

    with contextlib.closing(sqlite3.connect(migrate.sqlite_path(url), isolation_level=None)) as it:
        it.execute("PRAGMA ignore_check_constraints=ON")
        for column, target in sorted(keys_within_companies().items()):
            table, _, name = column.partition(".")
            ours, theirs, our_id, their_id = (f"{column}-{one}" for one in range(4))
            it.execute("PRAGMA foreign_keys=OFF")
            fill(target, id=our_id, company_id=ours)
            fill(target, id=their_id, company_id=theirs)
            mine = fill(table, company_id=ours)
            it.execute("PRAGMA foreign_keys=ON")
            change = f"UPDATE {table} SET {name} = ? WHERE rowid = ?"  # noqa: S608
            with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
                it.execute(change, (their_id, mine))
            assert it.execute(change, (our_id, mine)).rowcount == 1, column


def test_a_grant_by_an_agent_comes_from_one_it_holds(company: Company) -> None:
    lead = company.agent("lead")
    grant = company.give(company.ceo.caller, lead, company.file(company.ceo.caller), "read")
    user = company.sql("SELECT id FROM users")[0][0]
    for change in (
        "parent_id = NULL",
        "granted_by_agent = NULL",
        "parent_id = id",
        f"granted_by_user = '{user}'",
        "mode = 'maybe'",
        "level = 6",
        "kind = 'planet'",
    ):
        statement = f"UPDATE grants SET {change} WHERE id = ?"  # noqa: S608
        refused(company, statement, grant["id"])


def test_a_token_names_one_subject(company: Company) -> None:
    user = company.sql("SELECT id FROM users")[0][0]
    refused(company, "UPDATE tokens SET user_id = ? WHERE kind = 'agent'", user)
    refused(company, "UPDATE tokens SET kind = 'run' WHERE kind = 'agent'")
    refused(company, "UPDATE tokens SET kind = 'agent' WHERE kind = 'user'")
    refused(company, "UPDATE tokens SET digest = 'same'")


def test_outcomes_and_versions_are_consistent(company: Company) -> None:
    file = company.file(company.ceo.caller)
    refused(company, "UPDATE outcomes SET status = 'closed'")
    refused(company, "UPDATE outcomes SET status = 'completed', finished_at = 1 WHERE perpetual")
    refused(company, "DELETE FROM outcomes")
    refused(company, "UPDATE files SET version = 0")
    refused(company, "UPDATE file_versions SET size = -1")
    refused(company, "UPDATE file_versions SET sha256 = 'short'")
    refused(
        company,
        "INSERT INTO file_versions (file_id, number, sha256, size, is_text, at)"
        " SELECT file_id, number, sha256, size, is_text, at FROM file_versions WHERE file_id = ?",
        file["id"],
    )


# ── migrations ──────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextlib.contextmanager
def looked_at(url: str) -> Iterator[Connection]:
    """A database of which everything is read but indexes on expressions, for `expressions`."""
    with warnings.catch_warnings(), connected(url) as connection:
        warnings.filterwarnings("ignore", ".*expression-based index")
        yield connection


def once_a_schema(look: Callable[[str], T]) -> Callable[[str], T]:
    """Looks at SQLite databases of one schema once: its text is all that they are asked for."""
    known: dict[str, T] = {}

    @functools.wraps(look)
    def found(url: str) -> T:
        if not migrate.is_sqlite(url):
            return look(url)
        schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
        written = repr(run_sql(url, schema))
        if written not in known:
            known[written] = look(url)
        return known[written]

    return found


@once_a_schema
def differences(url: str) -> list[Any]:
    """What the database has otherwise than the code expects."""

    # Of indexes with descending columns Alembic does not know; `expressions` compares them.
    descending = {
        index.name
        for table in metadata.sorted_tables
        for index in table.indexes
        if any("DESC" in str(expression) for expression in index.expressions)
    }

    def ours(_: Any, name: str | None, kind: str, __: bool, ___: Any) -> bool:
        if kind == "index" and name in descending:
            return False
        return not (kind in ("table", "index") and "file_search" in (name or ""))

    with looked_at(url) as connection:
        context = MigrationContext.configure(
            connection, opts={"include_object": ours, "compare_type": True}
        )
        return list(compare_metadata(context, metadata))


def expressions(url: str) -> set[str]:
    """How the indexes are made that are not on columns; of SQLite's, nobody else reads them."""
    if not migrate.is_sqlite(url):
        return set()
    made = run_sql(
        url,
        "SELECT sql FROM sqlite_master WHERE type = 'index'"
        " AND (sql LIKE '%substr%' OR sql LIKE '%DESC%')",
    )
    return {" ".join(str(sql).replace('"', "").split()) for (sql,) in made}


@once_a_schema
def conditions(url: str) -> dict[str, Any]:
    """What Alembic does not compare: the conditions of tables and of partial indexes."""
    with looked_at(url) as connection:
        seen = inspect(connection)
        return {
            name: (
                sorted(str(one["sqltext"]) for one in seen.get_check_constraints(name)),
                sorted(
                    (str(one["name"]), option, str(condition))
                    for one in seen.get_indexes(name)
                    for option, condition in one.get("dialect_options", {}).items()
                ),
            )
            for name in metadata.tables
        }


@pytest.mark.requirement("PC-80")
def test_the_migrations_make_the_tables_that_the_code_expects(
    empty_database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    assert migrate.migrate(empty_database_url) == ""
    assert migrate.migrate(empty_database_url) is None
    assert differences(empty_database_url) == []
    if migrate.is_sqlite(empty_database_url):
        direct = f"sqlite:///{tmp_path}/direct.db"
    else:
        direct = request.getfixturevalue("postgres_cluster").empty_database()
    with connected(direct) as connection:
        metadata.create_all(connection)
    assert conditions(empty_database_url) == conditions(direct)
    assert expressions(empty_database_url) == expressions(direct)


def test_the_program_knows_every_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    found = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(sorted(one.revision for one in found)) == migrate.SCHEMAS


def test_a_newer_database_is_refused_with_a_clear_sentence(
    database_url: str, tmp_path: Path
) -> None:
    migrate.migrate(database_url)
    run_sql(database_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Unsupported) as error:
        App(settings(database_url, tmp_path / "home"))
    assert "newer than this program" in error.value.sentence
    assert run_sql(database_url, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_a_database_of_a_schema_that_was_never_released_is_refused(
    tmp_path: Path, database_url: str
) -> None:
    migrate.migrate(database_url)
    run_sql(database_url, "UPDATE alembic_version SET version_num = '0012'")
    with pytest.raises(Unsupported, match="schema 0012, which no release had"):
        App(settings(database_url, tmp_path / "home"))


@pytest.mark.parametrize("url", ["mysql://localhost/x", "remit.db", "", "sqlite:/x"])
def test_an_address_that_is_no_database_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput):
        migrate.migrate(url)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        migrate.migrate("postgresql://nobody@127.0.0.1:1/none?connect_timeout=2")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "remit.db").write_bytes(b"This is not a database, whatever its name says." * 50)
    with pytest.raises(Unavailable):
        migrate.migrate(f"sqlite:///{tmp_path}/remit.db")


def test_every_statement_says_what_it_answers() -> None:
    silent = []
    for place in sorted({name for name, _ in every_statement()}):
        module, _, name = place.rpartition(".")
        lines = Path(importlib.import_module(module).__file__ or "").read_text().splitlines()
        own = [number for number, line in enumerate(lines) if re.match(rf"{name}(: .*)? = ", line)]
        silent += [place for number in own if not lines[number - 1].startswith("#")]
    assert silent == []


def test_every_statement_is_understood_by_postgresql(postgres_cluster: postgres.Cluster) -> None:
    refused, tried = {}, 0
    with psycopg.connect(postgres_cluster.migrated_database(), autocommit=True) as connection:
        for name, statement in every_statement():
            text, _ = statement.compiled(POSTGRESQL)
            names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
            for number, given in enumerate(names, start=1):
                text = text.replace(f"%({given})s", f"${number}")
            tried += 1
            try:
                connection.execute(f"PREPARE one AS {text.replace('%%', '%')}".encode())
                connection.execute("DEALLOCATE one")
            except psycopg.Error as error:
                refused[name] = str(error)
    assert refused == {}
    assert tried > 550


MAIL_TABLES = ("messages", "deliveries", "questions")


def plan_of(database: SqliteDatabase, statement: Statement[Any]) -> list[str]:
    """The steps by which SQLite carries a statement out."""
    sql, constants = statement.compiled(SQLITE)
    asked = {**dict.fromkeys(re.findall(r":(\w+)", sql), 1), **constants}
    explained = database.submit_read(
        lambda tx: tx.execute(f"EXPLAIN QUERY PLAN {sql}", asked).fetchall()
    )
    return [row[3] for row in explained.result(30)]


@pytest.mark.parametrize("module", [mail, threads])
def test_no_statement_about_mail_goes_through_a_whole_table(
    database: SqliteDatabase, module: Any
) -> None:
    """SQLite chooses among indexes by rules, so a new one can spoil another statement."""
    statements = {k: v for k, v in vars(module).items() if isinstance(v, Statement)}
    assert statements
    for name, statement in statements.items():
        steps = plan_of(database, statement)
        for table in MAIL_TABLES:
            assert not any(step.startswith(f"SCAN {table}") for step in steps), (name, steps)
        if name in ("WAITING_FOR_AGENT", "COUNT_WAITING", "UNREAD_BY_AGENT"):
            assert "ix_deliveries_agent_waiting" in steps[0], (name, steps)


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (file_statements.NEWEST_LISTED, "ix_files_listed"),
        (file_statements.NEWEST_WRITTEN, "ix_files_written"),
        (grants.UNUSED_BY, "ix_grants_holder_id"),
        (people.REVOKE_OPENED_WITH, "ix_tokens_made_with"),
        (wishes.SENT_BY_USER, "ix_messages_sender_user_id"),
        (wishes.ANSWERS_TO, "ix_deliveries_message_id"),
        (overview.UNREAD, "ix_deliveries_user_waiting"),
    ],
)
def test_of_two_indexes_that_fit_the_one_that_finds_fewer_rows_is_taken(
    database: SqliteDatabase, statement: Statement[Any], index: str
) -> None:
    assert any(index in step for step in plan_of(database, statement)), plan_of(database, statement)


# ── a full disk ─────────────────────────────────────────────────────────────────────────────────


def created_until_full(company: Company, content: bytes, description: str = "x") -> list[str]:
    """Make files until there is no room; the ids of those that were acknowledged."""
    made: list[str] = []
    with contextlib.suppress(StorageFull):
        while len(made) < 1_000:
            made.append(company.file(company.ceo.caller, content, description)["id"])
    assert len(made) < 1_000
    return made


def test_a_full_database_refuses_and_nothing_is_half_done(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        file = company.file(company.ceo.caller, b"before")
        database = company.app.database

        def limit(pages: int) -> None:
            database.submit_write(
                lambda tx: tx.execute(f"PRAGMA max_page_count={pages}", {}).fetchall()
            ).result(30)

        used = company.sql("PRAGMA page_count")[0][0]
        limit(used + 6)
        kept = [file["id"], *created_until_full(company, b"x", "x" * 1_500)]
        assert len(kept) > 1
        with pytest.raises(StorageFull) as error:
            company.file(company.ceo.caller, b"again", "x" * 2_000)
        assert "room" in error.value.sentence
        # What is there can be read, and it is whole.
        assert sorted(company.found(company.board)) == sorted(kept)
        assert company.call(company.board, events.verify, company=company.id)["ok"]
        limit(1_000_000)
        assert company.write(company.ceo.caller, file, b"after")["version"] == 2
        assert company.sql("PRAGMA integrity_check") == [("ok",)]
        assert company.sql("PRAGMA foreign_key_check") == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with little room, where that can be made."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_refuses_and_nothing_is_half_done(small_disk: Path) -> None:
    with opened(f"sqlite:///{small_disk}/remit.db", small_disk / "home") as company:
        first = company.file(company.ceo.caller, b"before")
        large = created_until_full(company, b"x" * 200_000)
        small = created_until_full(company, b"small")
        kept = [first["id"], *large, *small]
        # Make room; then everything that was acknowledged is there and nothing else is.
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        found = company.call(company.board, files.browse, company=None, limit=500)
        assert sorted(file["id"] for file in found) == sorted(kept)
        assert len(company.read(company.ceo.caller, large[-1])[1]) == 200_000
        assert company.call(company.board, events.verify, company=company.id)["ok"]
        assert company.write(company.ceo.caller, first, b"after")["version"] == 2
        assert company.call(company.board, agents.show, agent="ceo")["name"] == "ceo"
        assert company.sql("PRAGMA integrity_check") == [("ok",)]
