"""Backups, restores and upgrades in processes that end by their own hand at a certain step.

A step is whatever leaves a trace outside of the process: a file that is made, linked, renamed or
removed, or a statement to a database.
"""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine, event

from remit.store.backups import backup
from remit.store.blob_store.blobs import open_blobs
from remit.store.engine import migrate
from tests.company import settings
from tests.runtime_stage import Stage, fork_on_order
from tests.working import alive, eventually

MODULE = "tests.backup_stage"
TRACES = ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "shutil.rmtree")
NEVER = 1 << 30


@dataclass
class Attempt:
    #: "backup", "restore" or "migrate".
    what: str
    url: str
    home: str
    file: str
    #: Where it says how many steps it took, if it came to the end.
    said: str
    dies_at: int = NEVER


def steps_of(stage: Stage, attempt: Attempt) -> int | None:
    """How many steps it took; None if it died on the way."""
    path = Path(attempt.said)
    path.unlink(missing_ok=True)
    pid = stage.begin(attempt, wait=False)
    eventually(lambda: not alive(pid), 60)
    return int(path.read_text()) if path.exists() else None


def spread(steps: int, most: int) -> list[int]:
    """Some of the steps: the last ones, where it counts, and others all along."""
    last = list(range(max(1, steps - most // 3), steps + 1))
    every = max(1, steps // (most - len(last)))
    return sorted({*range(1, steps, every), *last})


class _Steps:
    def __init__(self, dies_at: int) -> None:
        self.count = 0
        self._dies_at = dies_at

    def step(self, *_: Any) -> None:
        self.count += 1
        if self.count == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(self, name: str, arguments: tuple[Any, ...]) -> None:
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
        if name in TRACES or (
            name == "open" and arguments[2] is not None and arguments[2] & writes
        ):
            self.step()


def be(order: dict[str, Any]) -> None:
    attempt = Attempt(**order)
    steps = _Steps(attempt.dies_at)
    sys.addaudithook(steps.hook)
    event.listen(Engine, "before_cursor_execute", steps.step)
    event.listen(Engine, "commit", steps.step)
    copy = psycopg.Cursor.copy

    def counted(*args: Any, **kwargs: Any) -> Any:
        steps.step()
        return copy(*args, **kwargs)

    psycopg.Cursor.copy = counted  # type: ignore[method-assign]
    where = settings(attempt.url, Path(attempt.home))
    if attempt.what == "migrate":
        migrate.migrate(attempt.url)
    elif attempt.what == "backup":
        backup.create(
            attempt.url, lambda: open_blobs(where.blob_url, where.run_folder), Path(attempt.file)
        )
    else:
        backup.restore(
            Path(attempt.file),
            where.home,
            attempt.url,
            lambda: open_blobs(where.blob_url, where.run_folder),
        )
    total = steps.count
    Path(attempt.said).write_text(str(total))


def main() -> None:
    for name in ("alembic.command", "alembic.runtime.migration", "sqlalchemy.dialects.sqlite"):
        import_module(name)
    fork_on_order(be)
