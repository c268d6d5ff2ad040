"""Companies that are copied instead of founded anew for each test.

A start lays tables, makes the first company and looks for what a crash left; all tests of a run
need the same one. Whoever asks first makes it.
"""

from __future__ import annotations

import pickle
import shutil
from dataclasses import dataclass
from pathlib import Path

from remit.clock import SECOND, Clock
from remit.testing.clock import A_DAY, VirtualClock
from tests import postgres, run_folder
from tests.company import Founded, opened
from tests.templates import copy_sqlite


@dataclass(frozen=True)
class Template:
    folder: Path
    name: str
    founded: Founded

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def copy_home(self, to: Path) -> None:
        shutil.copytree(self.home, to)

    def copy_sqlite(self, to: Path) -> str:
        shutil.copyfile(self.folder / "remit.db", to)
        return f"sqlite:///{to}"

    def copy_postgres(self, cluster: postgres.Cluster) -> str:
        return cluster.copy(self.name)


def template(
    clock: Clock, asks_before_hiring: bool, cluster: postgres.Cluster | None
) -> Template | None:
    """The company that a test with this clock can begin with, if there is one."""
    virtual = isinstance(clock, VirtualClock)
    if virtual and clock.now() != A_DAY:
        return None
    engine = "sqlite" if cluster is None else "postgres"
    time = "virtual" if virtual else "real"
    name = f"founded_{engine}_{time}_{'asking' if asks_before_hiring else 'hiring'}"
    run = run_folder.current()
    folder = run.path / name
    record = folder / "founded.pickle"
    if not record.exists():
        with run.locked(name):
            if not record.exists():
                # Earlier than any test begins, so that whatever a test makes is newer.
                began: Clock = VirtualClock(A_DAY - SECOND) if virtual else clock
                founded = _found(folder, name, began, asks_before_hiring, cluster)
                beside = folder / "founding.pickle"
                beside.write_bytes(pickle.dumps(founded))
                beside.rename(record)
    return Template(folder, name, pickle.loads(record.read_bytes()))  # noqa: S301  our own


def _found(
    folder: Path,
    name: str,
    clock: Clock,
    asks_before_hiring: bool,
    cluster: postgres.Cluster | None,
) -> Founded:
    folder.mkdir()
    url = f"sqlite:///{folder}/grown.db" if cluster is None else cluster.migrated_database(name)
    with opened(url, folder / "home", clock, asks_before_hiring=asks_before_hiring) as company:
        founded = Founded(company.board, company.id, company.ceo)
    if cluster is None:
        copy_sqlite(folder / "grown.db", folder / "remit.db")
    else:
        cluster.seal(name)
    return founded
