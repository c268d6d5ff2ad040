"""A SQLite database with all tables and no rows, copied instead of migrated for each test."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from alembic import op
from sqlalchemy import MetaData

from remit import app
from remit.store.engine import migrate
from remit.store.migrations import additions
from tests import run_folder


def copy_sqlite(source: Path, target: Path) -> None:
    """With all that is in it, also what lies in the log beside it: whoever closed it last may not
    have got to that."""
    with closing(sqlite3.connect(source)) as whole, closing(sqlite3.connect(target)) as copy:
        whole.backup(copy)


def lay_tables(url: str) -> str:
    """Give a SQLite database that is not there yet its tables, as a first start would."""
    if not run_folder.is_under_way() or not migrate.is_sqlite(url):
        return url
    path = migrate.sqlite_path(url)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_migrated(), path)
    return url


def copy_tables_at_starts() -> None:
    """Let instances in this process copy the tables at their first start, and migrations describe
    those of a revision once; to copy the description of all tables takes longer than to make them.
    """
    vars(app)["migrate"] = _copied
    vars(additions)["tables_at"] = _described(additions.tables_at)


def _described(tables_at: Callable[[str, Iterable[str]], MetaData]) -> Callable[..., MetaData]:
    # Each engine has its own: making tables leaves marks in their description.
    known: dict[tuple[str, str, frozenset[str]], MetaData] = {}

    def described(revision: str, only: Iterable[str] = ()) -> MetaData:
        which = op.get_bind().dialect.name, revision, frozenset(only)
        if which not in known:
            known[which] = tables_at(revision, which[2])
        return known[which]

    return described


def _copied(url: str) -> str | None:
    if migrate.is_sqlite(url) and migrate.sqlite_path(url).parent.is_dir():
        lay_tables(url)
    return migrate.migrate(url)


def _migrated() -> Path:
    run = run_folder.current()
    template = run.path / "migrated.db"
    if not template.exists():
        with run.locked("migrated"):
            if not template.exists():
                grown, beside = run.path / "grown.db", run.path / "migrating.db"
                migrate.migrate(f"sqlite:///{grown}")
                copy_sqlite(grown, beside)
                beside.rename(template)
    return template
