"""Cost of the services above that of the disk."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import office
from benchmarks.harness import KIB_4, Cost, Plan, Row, compared, interleaved
from benchmarks.office import Office
from remit.services.knowledge import files
from remit.services.people import users


def measure(plan: Plan) -> Iterator[Row]:
    plan.home("floor").mkdir()
    with office.opened(plan.home("services")) as here:
        commit, select = _sqlite(plan.home("floor") / "bare.db")
        taken = interleaved(
            {
                "commit": commit,
                "select": select,
                "bytes": _durable_bytes(plan.home("floor")),
                **verbs(here),
            },
            plan.some(400),
            seconds=plan.patience,
        )
    yield from rows(taken, taken)


def rows(taken: dict[str, Cost], floor: dict[str, Cost]) -> Iterator[Row]:
    commit, stored = floor["commit"].p50, floor["bytes"].p50
    yield Row("bare commit, SQLite WAL, synchronous=FULL", str(floor["commit"]))
    yield Row("bare write, fsync, rename, fsync of folder", str(floor["bytes"]))
    yield compared("who am I (query)", taken["me"].p50, "bare select", floor["select"].p50)
    yield compared("look at a file (query)", taken["show"].p50, "bare select", floor["select"].p50)
    yield compared("read 4 KiB (access-log row)", taken["read"].p50, "bare commit", commit)
    yield compared(
        "write 4 KiB (version, rows, event)",
        taken["write"].p50,
        "bytes and commit",
        stored + commit,
    )


def verbs(here: Office) -> dict[str, Callable[[], object]]:
    """What is measured, on any database."""
    shown = here.file(KIB_4)["id"]
    state = here.file(KIB_4)

    def write() -> None:
        nonlocal state
        state = here.write(state, b"%08d" % state["version"] + KIB_4[8:])

    return {
        "me": lambda: here.call(here.agent, users.me),
        "show": lambda: here.call(here.agent, files.show, file=shown),
        "read": lambda: here.read(shown),
        "write": write,
    }


def _sqlite(path: Path) -> tuple[Callable[[], object], Callable[[], object]]:
    bare = sqlite3.connect(path, isolation_level=None)
    bare.execute("PRAGMA journal_mode=WAL")
    bare.execute("PRAGMA synchronous=FULL")
    bare.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, words TEXT)")

    def commit() -> None:
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("INSERT INTO t (words) VALUES ('one row and nothing else')")
        bare.execute("COMMIT")

    return commit, lambda: bare.execute("SELECT words FROM t WHERE id = 1").fetchone()


def _durable_bytes(folder: Path) -> Callable[[], object]:
    number = 0

    def write() -> None:
        nonlocal number
        number += 1
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        file = os.open("temporary", os.O_WRONLY | os.O_CREAT, dir_fd=place)
        os.write(file, KIB_4)
        os.fsync(file)
        os.close(file)
        os.rename("temporary", f"{number}.blob", src_dir_fd=place, dst_dir_fd=place)
        os.fsync(place)
        os.close(place)

    return write
