"""A SQLite database with all tables and no rows, copied instead of migrated for each test."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from remit.store import migrate
from tests import run_folder


def lay_tables(url: str) -> str:
    """Give a SQLite database that is not there yet its tables, as a first start would."""
    if not run_folder.is_under_way() or not migrate.is_sqlite(url):
        return url
    path = migrate.sqlite_path(url)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_migrated(), path)
    return url


def _migrated() -> Path:
    run = run_folder.current()
    template = run.path / "migrated.db"
    if not template.exists():
        with run.locked("migrated"):
            if not template.exists():
                beside = run.path / "migrating.db"
                migrate.migrate(f"sqlite:///{beside}")
                connection = sqlite3.connect(beside)
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.close()
                beside.rename(template)
    return template
