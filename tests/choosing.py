"""Chooses the tests that `make test` runs on PostgreSQL as well as on SQLite.

Most tests run the same statements, and PostgreSQL takes four times as long for them. So a test is
left to the campaign there if other tests run each of its statements on PostgreSQL, unless it is
about the database, lets calls race, or shows a promise of docs/guarantees.md. A new test runs on
both until somebody chooses again:

    python -m tests.choosing        (needs ten minutes; adds to tests/repeated_on_postgresql.txt)

What is on the list stays there, and is not run for this; a list that is emptied is made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from remit.store.engine.database import Transaction
from remit.store.engine.postgres import PostgresTransaction
from remit.store.engine.statement import Statement
from tests.mutants import mutants
from tests.selection import REPEATED, name_of, repeated

#: So many other tests run each statement of one that is left out.
OTHERS = 3
#: They are about the database itself, whatever statements they run.
ABOUT_DATABASES = (
    "test_store",
    "test_linearizability",
    "test_lease_races",
    "test_releases",
    "test_backup",
    "_crash",
    "_concurrency",
)
#: What a test names that lets calls race.
RACING = re.compile(r"\b(together|gather|Thread|ThreadPoolExecutor|Barrier|Popen)\(|two_workers")
GUARANTEES = Path(__file__).parent.parent / "docs" / "guarantees.md"
_FOLDER = "REMIT_TESTS_RECORD_STATEMENTS"
_HEAD = """\
# On PostgreSQL these are the campaign's: at least three other tests run each of their statements
# there. `python -m tests.choosing` writes this list.
"""


class Recorder:
    """As a plugin of pytest: which statements each test runs on PostgreSQL."""

    def __init__(self) -> None:
        self.statements: dict[str, set[str]] = defaultdict(set)
        self._now = ""
        recorder, run = self, PostgresTransaction._run

        def recorded(tx: Transaction, statement: Statement[Any], parameters: dict[str, Any]) -> Any:
            text, _ = statement.compiled(tx.dialect)
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            recorder.statements[recorder._now].add(digest)
            return run(tx, statement, parameters)

        setattr(PostgresTransaction, "_run", recorded)  # noqa: B010  # mypy knows it as a method

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._now = name_of(item)

    def pytest_sessionfinish(self) -> None:
        file = Path(os.environ[_FOLDER], f"{os.getpid()}.json")
        file.write_text(json.dumps({test: list(of) for test, of in self.statements.items()}))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder())


def choose(statements: dict[str, set[str]]) -> list[str]:
    """Tests that can be left out, those first that run the fewest statements."""
    runs = Counter(statement for of in statements.values() for statement in of)
    needed = {statement: min(OTHERS, count) for statement, count in runs.items()}
    chosen = []
    for test in sorted(statements, key=lambda test: (len(statements[test]), test)):
        if not _runs_on_both(test) and all(
            runs[statement] > needed[statement] for statement in statements[test]
        ):
            runs.subtract(statements[test])
            chosen.append(test)
    return chosen


def _runs_on_both(test: str) -> bool:
    file, _, name = test.partition("::")
    source = (Path(__file__).parent / file).read_text()
    _, _, begun = source.partition(f"\ndef {name}(")
    return (
        any(word in file for word in ABOUT_DATABASES)
        or "postgres_cluster" in source
        or f"{test}`" in GUARANTEES.read_text()
        or any(test in mutant.tests for mutant in mutants() if mutant.engine == "postgresql")
        or RACING.search(name + re.split(r"\n(?=[@\w])", begun)[0]) is not None
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [*(sys.executable, "-m", "pytest", "-p", "tests.choosing", "-k", "postgresql")]
        command += ["-q", "-n", "3", "--dist", "loadfile"]
        subprocess.run(command, env={**os.environ, _FOLDER: folder}, check=True)
        statements: dict[str, set[str]] = defaultdict(set)
        for file in Path(folder).iterdir():
            for test, of in json.loads(file.read_text()).items():
                statements[test] |= set(of)
    chosen = sorted({*repeated(), *choose(statements)})
    REPEATED.write_text(_HEAD + "".join(f"{test}\n" for test in chosen))


if __name__ == "__main__":
    main()
