"""What must be true of a call that was killed: nothing of it is there, or all of it, once.

A control makes the call undisturbed, and again where no key says what comes of that. Each trial
makes it in a process that is killed at a point, looks at what is there, and makes it again; the
rows and the answers must be those of the control, to the byte.
"""

import json
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.store.blob_store.blobs import EMPTY
from remit.store.engine.migrate import is_sqlite
from remit.testing.invariants import RULES
from tests.crashing.databases import (
    KEPT_VALUE,
    Database,
    Postgres,
    Rows,
    Sqlite,
    differences,
)
from tests.crashing.points import (
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
)
from tests.crashing.stage import Order, Stage
from tests.postgres import Cluster

#: A process is killed here, not a machine: what it wrote is there, so memory will do for a disk.
_MEMORY = Path("/dev/shm")
#: The points at which something is in a file that no row names.
FILES = (KEPT, TOKEN_WRITTEN, STORED, PLACED)
#: So little of the last page of a commit is missing.
_CUT = 1000


class Matrix:
    """Instances on one database that are put back into their first state for each trial."""

    def __init__(self, stage: Stage, names: list[str], cluster: Cluster | None) -> None:
        """`names` are the situations that are tried on it."""
        self._folder = Path(
            tempfile.mkdtemp(prefix="remit-matrix-", dir=_MEMORY if _MEMORY.is_dir() else None)
        )
        self.stage, self._names, self._cluster = stage, names, cluster
        self.home = self._folder / "now" / "home"
        self._databases: dict[str, Database] = {}
        self.calls: dict[str, dict[str, Any]] = self._prepare("company")["calls"]
        #: How often something was killed at each point.
        self.kills: dict[str, int] = {}

    def _prepare(self, kind: str) -> dict[str, Any]:
        now = self._folder / "now"
        shutil.rmtree(now, ignore_errors=True)
        now.mkdir()
        cluster, file = self._cluster, now / "remit.db"
        url = f"sqlite:///{file}" if cluster is None else cluster.migrated_database()
        said = self.stage.run(Order(url, str(self.home), kind, names=self._names))
        assert said["code"] == 0, "it could not be prepared; what it said is above"
        now.rename(self._folder / kind)
        self._databases[kind] = Sqlite(file, url) if cluster is None else Postgres(url)
        return said

    def close(self) -> None:
        for one in self._databases.values():
            one.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def fresh(self, kind: str) -> Database:
        """As it was before the call: the database, and the home folder."""
        if kind not in self._databases:
            self._prepare(kind)
        now = self._folder / "now"
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(self._folder / kind, now)
        database = self._databases[kind]
        database.restore()
        return database


# ── one row of the matrix ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Said:
    """What came of a call, as far as whoever called can tell."""

    answer: Any
    refused: Any

    @classmethod
    def of(cls, said: dict[str, Any]) -> "Said":
        answer = json.loads(KEPT_VALUE.sub(r"\1/…", json.dumps(said.get("answer"))))
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
    def __init__(self, matrix: Matrix, name: str, harm: str = "", *, thorough: bool = True) -> None:
        """Unless it is thorough, a verb that keeps nothing in files is spared what depends on the
        database alone: half a commit, and a start of the instance afterwards."""
        self._matrix, self._name, self._harm = matrix, name, harm
        self._thorough = thorough
        self._call = matrix.calls[name]
        self._database = self._fresh()

    def _fresh(self) -> Database:
        self._database = self._matrix.fresh(self._call["home"])
        return self._database

    def run(self) -> list[str]:
        """Kill the call at each of its points; answers them."""
        control = self._control()
        self._thorough = self._thorough or any(point in control.seen for point in FILES)
        nothing, last = self._points(control)
        self._fresh()
        _same(self._rows(), control.before, "it was not put back")
        for point in nothing:
            # Whoever is killed has other ids than who succeeds in the end. But a token that is in
            # its file already is used, and with other ids a commit may be a page shorter.
            same = self._call["home"] != "company" or point == HALF
            self._kill(point, "first" if same else f"killed: {point}", control)
            _same(self._rows(), control.before, f"killed when {point}, and something is there")
        for number, point in enumerate(last):
            if number:
                self._fresh()
            self._kill(point, "first", control)
            now = self._rows()
            if point == SENT and not differences(now, control.before):
                self._undisturbed("first")  # the server did not come to it
                now = self._rows()
            _same(now, control.after, f"killed when {point}, and not all of it is there, once")
            if not number or point == REMOVING:
                self._repeat(control, point)
            # Otherwise it is, to the byte, where the repeat was made already.
        return [*nothing, *last]

    def _repeat(self, control: Control, point: str) -> None:
        """Whoever got no answer calls again; then an instance begins on what there is."""
        repeat = self._undisturbed("second")
        assert repeat == control.second, f"the repeat, after a kill when {point}"
        _same(self._rows(), control.again, f"repeated after a kill when {point}")
        self._check_rules()
        self._database.check()
        if self._thorough:
            self._restart()

    def _control(self) -> Control:
        before = self._rows()
        said = self._run("first")
        first, after = Said.of(said), self._rows()
        call = self._call
        if call["keyed"] and not call["refused"]:
            # What a key promises; each trial makes the call again and must find just that.
            second, again = first.without(call["shown_once"]), after
        else:
            second, again = self._undisturbed("second"), self._rows()
        if call["asks"]:
            assert first.refused["reason"] == "pending_approval", first
        else:
            assert first.refused is None, first
        assert bool(differences(after, before)) is call["leaves"], "it leaves something, or not"
        if call["refused"]:
            assert second.refused["reason"] == call["refused"], second
            _same(again, after, "a repeat has another effect")
        for name in call["shown_once"]:
            assert first.answer[name], f"{name} is shown once"
        return Control(before, after, again, first, second, said["seen"], said["wal"])

    def _points(self, control: Control) -> tuple[list[str], list[str]]:
        """Those that leave nothing, and those after which it has happened."""
        nothing = [point for point in FILES if point in control.seen] + [DONE]
        last = [COMMITTED] + [point for point in (REMOVING,) if point in control.seen]
        if is_sqlite(self._database.url):
            nothing += [HALF] if control.wal and self._thorough else []
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
        order = Order(*where, f"{self._name} {seed}", point, which, length, self._harm)
        said = self._matrix.stage.run(order)
        assert not said["strays"], "a process is left"
        assert point or said["code"] == 0, "it failed; what it said is above"
        return said

    def _rows(self) -> Rows:
        return self._database.rows()

    def _check_rules(self) -> None:
        answers = self._database.ask(*RULES.values())
        broken = {name: found for name, found in zip(RULES, answers, strict=True) if found}
        assert not broken

    def _restart(self) -> None:
        """An instance begins on it: the record is whole, and nothing is left that nobody names."""
        where = (self._database.url, str(self._matrix.home))
        said = self._matrix.stage.run(Order(*where, "restart", harm=self._harm))
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
        assert kept == {str(home / place) for (place,) in places if place.startswith("secrets/")}
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


def _same(found: Rows, expected: Rows, otherwise: str) -> None:
    lines = differences(found, expected)
    assert not lines, "\n".join([otherwise, *lines])
