"""`remit doctor`: what this installation can do, and what to do about the rest."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import click

from remit.entrypoints.cli import output
from remit.entrypoints.cli.options import Command, Session, pass_session
from remit.errors import RemitError
from remit.extras import how_to_install
from remit.settings import Settings

OLDEST_PYTHON = (3, 11)
EXTRAS = {"llm": "pydantic_ai", "postgres": "psycopg", "s3": "obstore"}
_ABOUT_THE_REST = "Run only agents that you trust with it."


class Finding(NamedTuple):
    check: str
    state: str  # ok, warn or fail
    found: str
    next_step: str = ""


@click.command(cls=Command)
@pass_session
def doctor(session: Session) -> int:
    """Check this installation and say what to do next."""
    findings = [finding for check in CHECKS for finding in _guarded(check, session)]

    def draw(_: Any) -> None:
        output.table(("check", "state", "found", "next step"), findings, empty="")

    session.show([finding._asdict() for finding in findings], draw)
    return 1 if any(finding.state == "fail" for finding in findings) else 0


def _guarded(check: Callable[[Session], Iterator[Finding]], session: Session) -> Iterator[Finding]:
    """One check that fails in an unforeseen way is a finding and not the end of the others."""
    name = check.__name__.strip("_").replace("_", " ")
    try:
        yield from check(session)
    except RemitError as error:
        yield Finding(name, "fail", error.sentence, error.step)
    except Exception as error:
        yield Finding(name, "fail", f"{type(error).__name__}: {error}", "Report it.")


def _python(_: Session) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= OLDEST_PYTHON
    yield Finding("python", "ok" if good else "fail", version, "" if good else "Use 3.11 or newer.")


def _sqlite(_: Session) -> Iterator[Finding]:
    from pathlib import Path

    from remit.store.sqlite import connect

    connection = connect(Path(":memory:"))
    try:
        version = connection.execute("SELECT sqlite_version()").fetchone()[0]
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    finally:
        connection.close()
    if "ENABLE_FTS5" in options:
        yield Finding("sqlite", "ok", f"{version} with FTS5")
    else:
        yield Finding("sqlite", "fail", f"{version} without FTS5", "Use a Python that has it.")


def _home(session: Session) -> Iterator[Finding]:
    home = session.settings.home
    if not home.exists():
        yield Finding("home", "warn", f"{home} does not exist", "`remit up` makes it.")
    elif not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        yield Finding("home", "fail", f"{home} cannot be written", "Set another REMIT_HOME.")
    else:
        yield _private("home", home.stat(), str(home), 0o700)


def _board_token(session: Session) -> Iterator[Finding]:
    file = session.settings.board_token_file
    if not file.exists():
        yield Finding("board token", "warn", f"{file} does not exist", "`remit up` makes it.")
    else:
        yield _private("board token", file.stat(), str(file), 0o600)


def _private(check: str, status: os.stat_result, place: str, wanted: int) -> Finding:
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        return Finding(
            check, "fail", f"{place} has mode {mode:o}", f"Run `chmod {wanted:o} {place}`."
        )
    return Finding(check, "ok", f"{place} ({mode:o})")


def _database(session: Session) -> Iterator[Finding]:
    from remit.store.migrate import HEAD, is_sqlite, sqlite_path

    settings = session.settings
    if is_sqlite(settings.database_url) and not sqlite_path(settings.database_url).exists():
        yield Finding("database", "warn", "there is none yet", "`remit up` makes it.")
        return
    found = _schema(settings)
    if found == HEAD:
        yield Finding("database", "ok", f"reachable, schema {found}")
    elif found is None or found < HEAD:
        state = f"schema {found or 'missing'}, this program has {HEAD}"
        yield Finding("database", "warn", state, "`remit up` brings it up to date.")
    else:
        yield Finding(
            "database", "fail", f"schema {found} is newer than {HEAD}", "Use a newer Remit."
        )


def _schema(settings: Settings) -> str | None:
    """The schema's revision, read without changing anything."""
    from remit.store import database as databases
    from remit.store.database import Transaction

    def look(transaction: Transaction) -> str | None:
        row = transaction.execute("SELECT version_num FROM alembic_version", {}).fetchone()
        return None if row is None else str(row[0])

    database = databases.open_database(settings.database_url)
    try:
        return database.submit_read(look).result(timeout=15)
    finally:
        database.close()


def _blobs(session: Session) -> Iterator[Finding]:
    from remit.store.blobs import open_blobs

    settings = session.settings
    if not settings.home.exists():
        yield Finding("blobs", "warn", "there are none yet", "`remit up` makes their place.")
        return
    yield Finding("blobs", "ok", open_blobs(settings.blob_url, settings.run_folder).check())


def _instance(session: Session) -> Iterator[Finding]:
    try:
        session.anonymous.get("/health")
    except RemitError as error:
        yield Finding("instance", "warn", error.sentence, error.step)
    else:
        yield Finding("instance", "ok", f"answers at {session.url}")


def _sandbox(_: Session) -> Iterator[Finding]:
    """What holds the programs of runs here, tried and not guessed, and what does not."""
    from remit.runtime import sandbox

    found = sandbox.look()
    if not found.usable:
        yield Finding(
            "sandbox",
            "warn",
            f"{found.reason}; programs of agents are refused, except with full_access",
            "Install bubblewrap.",
        )
        return
    yield Finding("sandbox", "ok", f"{found.name} holds the programs of runs")
    for held in found.enforced:
        yield Finding("sandbox holds", "ok", held)
    for free in found.not_enforced:
        yield Finding("sandbox does not hold", "warn", free, _ABOUT_THE_REST)


def _accounts(session: Session) -> Iterator[Finding]:
    """What is closed for all agents that need it, if the instance can be asked."""
    try:
        found = list(session.client.each(session.under_company("accounts")))
    except RemitError:
        return  # nothing runs, or it is not ours to see
    for one in found:
        if one["state"] != "open":
            yield Finding(f"{one['kind']} {one['name']}", "warn", one["sentence"], one["step"])


def _adapters(_: Session) -> Iterator[Finding]:
    """Which agents can be run by a worker with this environment."""
    from remit.adapters import registry

    for type_ in registry.types():
        found = registry.check(type_)
        state = "ok" if found.usable else "warn"
        yield Finding(f"adapter {type_}", state, found.sentence, found.next_step)
    for name, reason in registry.problems().items():
        yield Finding(f"adapter plugin {name}", "warn", reason, "Look at the plugin.")


def _extras(_: Session) -> Iterator[Finding]:
    for extra, module in EXTRAS.items():
        if find_spec(module) is not None:
            yield Finding(f"{extra} extra", "ok", f"{module} is installed")
        else:
            yield Finding(f"{extra} extra", "warn", "not installed", how_to_install(extra))


CHECKS = (
    _python,
    _sqlite,
    _home,
    _board_token,
    _database,
    _blobs,
    _instance,
    _accounts,
    _sandbox,
    _adapters,
    _extras,
)
