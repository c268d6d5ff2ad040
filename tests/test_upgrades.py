"""Upgrades from every schema, with data in it; cut off, or of what is too new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from sqlalchemy import inspect

from remit.clock import HOUR, SystemClock, to_iso
from remit.errors import BadInput
from remit.ids import Ids, TokenKind, new_token, token_digest
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.messaging import pending_items
from remit.services.organisation import agents
from remit.services.people import tokens
from remit.services.work import outcomes
from remit.store.engine import migrate
from remit.store.tables import metadata
from remit.store.tables.base import in_order
from tests import backup_stage, governance, mailing, older, release, runtime_stage
from tests.backup_stage import Attempt, spread, steps_of
from tests.company import Company, opened, run_sql
from tests.older import Ages, had, rows
from tests.organisation import work
from tests.postgres import Cluster
from tests.runtime_stage import Stage
from tests.test_backup import check_whole, put_back, written
from tests.test_cli import Home
from tests.test_store import conditions, differences, expressions, looked_at
from tests.working import claim, end


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Ages:
    return Ages(tmp_path_factory.mktemp("ages"))


@pytest.fixture(scope="module")
def fresh_conditions(
    tmp_path_factory: pytest.TempPathFactory, postgres_cluster: Cluster
) -> dict[bool, Any]:
    """What the tables of a new database hold their rows to, on SQLite and not."""
    urls = [
        f"sqlite:///{tmp_path_factory.mktemp('fresh')}/remit.db",
        postgres_cluster.empty_database(),
    ]
    for url in urls:
        migrate.migrate(url)
    return {migrate.is_sqlite(url): conditions(url) for url in urls}


def schemas() -> Iterator[str | ParameterSet]:
    """The first, the last before this one and every fourth between them each time; on PostgreSQL
    the two alone."""
    why = "an upgrade from the first has all later steps"
    between = pytest.mark.campaign_on_postgresql(why)
    for number, name in enumerate(migrate.SCHEMAS):
        if name in (migrate.SCHEMAS[0], migrate.SCHEMAS[-2]):
            yield name
        else:
            yield pytest.param(
                name, marks=between if number % 4 == 0 else pytest.mark.campaign(why)
            )


def assert_kept(before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """Every row is as it was, and the chains became longer by what the upgrade itself recorded."""
    new = set(after["events"]) - set(before["events"])
    assert set(before["events"]) <= set(after["events"])
    assert all("'token.adopt'" in event or "'approval.adopt'" in event for event in new)
    chains = ("events", "event_heads")
    for table, found in before.items():
        assert table in chains or after[table] == found, table


@pytest.mark.requirement("PC-80")
@pytest.mark.parametrize("name", list(schemas()))
def test_an_upgrade_keeps_every_row_and_the_company_works_on(
    ages: Ages, empty_database_url: str, name: str, fresh_conditions: dict[bool, Any]
) -> None:
    ages.make(name, empty_database_url)
    columns = had(empty_database_url)
    before = rows(empty_database_url, columns)
    assert [table for table, found in before.items() if not found] == []
    assert migrate.migrate(empty_database_url) == (None if name == migrate.HEAD else name)
    assert_kept(before, rows(empty_database_url, columns))
    assert differences(empty_database_url) == []
    assert conditions(empty_database_url) == fresh_conditions[migrate.is_sqlite(empty_database_url)]
    with opened(empty_database_url, ages.home) as company:
        check_whole(company)
        work_on(company)
        check_whole(company)


def work_on(company: Company) -> None:
    """What people and agents do, of every release."""
    lead = older.member(company, "lead")
    (found,) = company.found(company.board, "from before")
    seen, content = company.read(lead.caller, found)
    assert content == b"before"
    assert company.write(lead.caller, seen, b"after")["version"] == 2
    mailing.send(company, company.board, "agent:lead", "Go on")
    fresh = company.call(
        company.board,
        agents.create,
        company=company.id,
        name="fresh",
        reports_to="lead",
        purpose="Work",
        perpetual=False,
        adapter_type="scripted",
    )
    run = claim(company, older.member(company, "fresh"))
    company.call(run.caller, agents.submit_log, summary="Here")
    end(company, run)
    part = work(company, lead.caller, lead.id, "Something new")
    company.call(lead.caller, outcomes.complete, outcome=part, note="Done")
    governance.approve(company, governance.ask(company, lead.caller, "One more"))
    company.call(company.board, agents.terminate, agent=fresh["id"])


@pytest.mark.requirement("FX-08")
def test_letters_that_died_before_an_upgrade_stay_dead_until_one_command_revives_them(
    ages: Ages, empty_database_url: str
) -> None:
    ages.make("0008", empty_database_url)
    run_sql(
        empty_database_url,
        "UPDATE deliveries SET status = 'dead', ended_at = 5, ended_why = 'failed 3 times'"
        " WHERE agent_id IS NOT NULL AND status = 'queued'",
    )
    with opened(empty_database_url, ages.home) as company:
        listed = company.call(company.board, pending_items.revivable, company=company.id)
        assert listed
        answer = company.call(company.board, pending_items.revive_all, company=company.id)
        assert answer["revived"] == [one["id"] for one in listed]
        assert company.call(company.board, pending_items.revivable, company=company.id) == []
        check_whole(company)


@pytest.mark.requirement("FX-08")
def test_bundles_of_before_they_were_kept_apart_are_not_listed_among_files(
    ages: Ages, empty_database_url: str
) -> None:
    ages.make("0037", empty_database_url)
    found = "SELECT id FROM files WHERE letter AND id IN (SELECT bundle_id FROM changes)"
    bundles = {file for (file,) in run_sql(empty_database_url, found)}
    assert len(bundles) > 1
    for bundle in bundles:
        run_sql(empty_database_url, "UPDATE files SET letter = false WHERE id = ?", bundle)
    # Those of all changes but one are now of earlier revisions, which only the record knows.
    run_sql(empty_database_url, "UPDATE changes SET bundle_id = ?", min(bundles))
    with opened(empty_database_url, ages.home) as company:
        listed = company.call(company.board, files.browse, company=company.id)
        assert listed
        assert {one["id"] for one in listed} & bundles == set()
        more = company.call(company.board, files.browse, company=company.id, letters=True)
        assert bundles <= {one["id"] for one in more}


def test_a_session_of_before_an_upgrade_makes_nothing_that_outlives_it(
    ages: Ages, empty_database_url: str
) -> None:
    """Nobody knows what it was opened with."""
    ages.make("0029", empty_database_url)
    session, until = new_token(TokenKind.SESSION), SystemClock().now() + HOUR
    run_sql(
        empty_database_url,
        "INSERT INTO tokens (id, digest, kind, user_id, label, created_at, expires_at)"
        " SELECT ?, ?, 'session', id, 'web', 5, ? FROM users WHERE operator",
        *(Ids(SystemClock()).new(), token_digest(session), until),
    )
    with opened(empty_database_url, ages.home) as company:
        with pytest.raises(BadInput):
            company.call(Caller(session), tokens.create, days=1)
        made = company.call(Caller(session), tokens.create)
        assert made["expires_at"] == to_iso(until)
        assert company.call(company.board, tokens.create)["expires_at"] > made["expires_at"]


def test_the_first_schema_is_that_of_the_first_release(tmp_path: Path) -> None:
    """It is made from the tables of today, so a change to one, and not an addition, shows here."""
    release.unpack("v0.1.0", tmp_path)
    url = f"sqlite:///{tmp_path}/made.db"
    with older.connected(url) as connection:
        migrate.upgrade(connection, "0008", commit=False)
    assert shape(url) == shape(f"sqlite:///{tmp_path}/home/remit.db")


def test_a_new_database_is_as_one_that_every_migration_made(
    empty_database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """It is made in one go, so what only a migration says would be missing there."""
    with older.connected(empty_database_url) as connection:
        migrate.upgrade(connection, "0008", commit=False)
        assert migrate.revision(connection) == "0008"
    assert migrate.migrate(empty_database_url) == "0008"
    if migrate.is_sqlite(empty_database_url):
        fresh = f"sqlite:///{tmp_path}/fresh.db"
    else:
        fresh = request.getfixturevalue("postgres_cluster").empty_database()
    assert migrate.migrate(fresh) == ""
    assert shape(fresh) == shape(empty_database_url)
    assert expressions(fresh) == expressions(empty_database_url)
    assert migrate.migrate(fresh) is None


def test_indexes_of_sqlite_are_made_in_the_order_of_their_declaration(tmp_path: Path) -> None:
    """SQLite takes the youngest of those that seem equally good, so the order is part of a plan."""
    declared = {
        table.name: [index.name for index in in_order(table)] for table in metadata.sorted_tables
    }
    fresh, older_one = (f"sqlite:///{tmp_path}/{name}.db" for name in ("fresh", "older"))
    assert migrate.migrate(fresh) == ""
    assert made_in_order(fresh) == declared
    with older.connected(older_one) as connection:
        migrate.upgrade(connection, "0038", commit=False)
    run_sql(older_one, "DROP INDEX ix_files_company_id")
    run_sql(
        older_one, "CREATE INDEX ix_files_company_id ON files (company_id, id) WHERE kind = 'file'"
    )
    assert made_in_order(older_one)["files"][-1] == "ix_files_company_id"
    assert migrate.migrate(older_one) == "0038"
    assert made_in_order(older_one) == declared
    assert shape(older_one) == shape(fresh)


def made_in_order(url: str) -> dict[str, list[str]]:
    asked = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    return {
        table.name: [
            name for (name,) in run_sql(url, f"{asked} AND tbl_name = ? ORDER BY rowid", table.name)
        ]
        for table in metadata.sorted_tables
    }


#: What SQLAlchemy does not see, by whether it is SQLite's: triggers, functions, the word index.
_BESIDES = {
    True: "SELECT sql FROM sqlite_master WHERE type = 'trigger' OR name = 'file_search'",
    False: "SELECT tgname || pg_get_triggerdef(pg_trigger.oid) || prosrc FROM pg_trigger"
    " JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal"
    " UNION SELECT indexdef FROM pg_indexes WHERE tablename = 'file_search'",
}


def shape(url: str) -> dict[str, Any]:
    """All that the tables are made of, whatever its order."""
    with looked_at(url) as connection:
        seen = inspect(connection)
        return {
            name: {
                "columns": _plain(seen.get_columns(name)),
                "key": _plain([seen.get_pk_constraint(name)]),
                "conditions": _plain(seen.get_check_constraints(name)),
                "unique": _plain(seen.get_unique_constraints(name)),
                "references": _plain(seen.get_foreign_keys(name), but="name"),
                "indexes": _plain(seen.get_indexes(name)),
            }
            for name in seen.get_table_names()
            if not name.startswith("file_search")
        } | {"besides": sorted(run_sql(url, _BESIDES[migrate.is_sqlite(url)]))}


def _plain(found: Iterable[Any], but: str = "") -> list[str]:
    """Comparable: what SQLAlchemy made of a text, by its words; 1 and true are the same default."""
    return sorted(
        repr({key: _words(one[key]) for key in sorted(one) if key != but and one[key]})
        for one in found
    )


def _words(value: Any) -> object:
    if isinstance(value, dict):
        return {key: str(one) for key, one in value.items()}
    return {"true": "1", "false": "0"}.get(str(value), str(value))


# ── cut off ─────────────────────────────────────────────────────────────────────────────────────


def test_an_upgrade_that_fails_leaves_the_old_schema(
    ages: Ages, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ages.make("0008", empty_database_url)
    columns = had(empty_database_url)
    before = rows(empty_database_url, columns)

    def fail(_: object) -> None:
        raise RuntimeError("cut off")

    with monkeypatch.context() as patched:
        # By then tables were changed and made.
        patched.setattr(SystemClock, "now", fail)
        with pytest.raises(RuntimeError, match="cut off"):
            migrate.migrate(empty_database_url)
    assert run_sql(empty_database_url, "SELECT version_num FROM alembic_version") == [("0008",)]
    assert had(empty_database_url) == columns
    assert rows(empty_database_url, columns) == before
    assert migrate.migrate(empty_database_url) == "0008"
    assert differences(empty_database_url) == []


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened(backup_stage.MODULE) as found:
        yield found


@pytest.mark.requirement("BX-06")
@pytest.mark.campaign_on_postgresql("a migration is one transaction there too")
def test_an_upgrade_that_is_killed_leaves_the_database_as_it_was_or_finished(
    ages: Ages,
    empty_database_url: str,
    tmp_path: Path,
    stage: Stage,
    postgres_cluster: Cluster,
) -> None:
    name = "0008"
    ages.make(name, empty_database_url)
    columns = had(empty_database_url)
    before = rows(empty_database_url, columns)
    said = str(tmp_path / "said")
    attempt = Attempt("migrate", empty_database_url, str(tmp_path / "home"), "", said)
    sqlite = migrate.is_sqlite(empty_database_url)
    beside = f"sqlite:///{tmp_path}/beside.db" if sqlite else postgres_cluster.empty_database()
    ages.make(name, beside)
    steps = steps_of(stage, replace(attempt, url=beside))
    assert steps is not None
    killed = 0
    for step in spread(steps, 9 if sqlite else 7):
        killed += steps_of(stage, replace(attempt, dies_at=step)) is None
        found = run_sql(empty_database_url, "SELECT version_num FROM alembic_version")
        assert rows(empty_database_url, columns) == before, step
        if found == [(migrate.HEAD,)]:
            break  # after the commit
        assert found == [(name,)], step
        assert had(empty_database_url) == columns, step
    assert killed >= 5
    migrate.migrate(empty_database_url)
    assert_kept(before, rows(empty_database_url, columns))
    assert differences(empty_database_url) == []
    with opened(empty_database_url, ages.home) as company:
        check_whole(company)


# ── what is too new, or too old ─────────────────────────────────────────────────────────────────


def test_an_older_database_is_backed_up_as_it_is_and_put_back(
    ages: Ages, empty_database_url: str, tmp_path: Path
) -> None:
    """As before an upgrade; the program that made it could use what is put back."""
    ages.make("0008", empty_database_url)
    before = rows(empty_database_url, had(empty_database_url))
    found = written(empty_database_url, ages.home, tmp_path / "backup.tar")
    assert found.schema == "0008"
    again = f"sqlite:///{tmp_path}/again/remit.db"
    put_back(tmp_path / "backup.tar", again, tmp_path / "again")
    assert rows(again, had(again)) == before
    assert migrate.migrate(again) == "0008"


def test_every_command_refuses_a_newer_database_with_a_clear_sentence(
    empty_database_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "home"
    with opened(empty_database_url, folder) as company:
        company.file(company.board, b"text")
    written(empty_database_url, folder, tmp_path / "before.tar")
    run_sql(empty_database_url, "UPDATE alembic_version SET version_num = '9999'")
    home = Home(folder, {"REMIT_DATABASE_URL": empty_database_url})
    sentence = f"schema 9999, which is newer than this program ({migrate.HEAD})"
    for command in (("up", "--port", "0"), ("backup", str(tmp_path / "after.tar"))):
        result = home(*command)
        assert result.code != 0, command
        assert sentence in result.err, command
        assert "Run a newer Remit" in result.err, command
        assert "Traceback" not in result.err, command
    assert not (tmp_path / "after.tar").exists()
    refused = home("restore", str(tmp_path / "before.tar"))
    assert refused.code != 0
    assert "There is an instance" in refused.err or sentence in refused.err
    checked = home("doctor")
    assert checked.code == 1
    assert "schema 9999, which is newer" in " ".join(checked.out.split())
    assert run_sql(empty_database_url, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_a_newer_backup_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/home/remit.db"
    with opened(url, tmp_path / "home") as company:
        company.file(company.board, b"text")
    run_sql(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.MonkeyPatch.context() as later:
        later.setattr(migrate, "SCHEMAS", (*migrate.SCHEMAS, "9999"))
        written(url, tmp_path / "home", tmp_path / "newer.tar")
    again = Home(tmp_path / "again")
    refused = again("restore", str(tmp_path / "newer.tar"))
    assert refused.code != 0
    assert "The backup has schema 9999, which is newer than this program" in refused.err
    assert not list((tmp_path / "again").iterdir())
