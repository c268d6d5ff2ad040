"""Backups: taken from a living instance, verified, and put back, into either kind of database."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import itertools
import os
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remit.errors import AwaitsApproval, BadInput, Conflict, Unavailable
from remit.services.record import events
from remit.services.rights import grants
from remit.store.backups import backup
from remit.store.blob_store.blobs import open_blobs
from remit.store.engine import migrate
from remit.store.engine.migrate import is_sqlite
from tests import backup_stage, older, runtime_stage
from tests.backup_stage import Attempt, spread, steps_of
from tests.company import Company, opened, run_sql, settings
from tests.older import rows
from tests.organisation import problems
from tests.postgres import Cluster
from tests.runtime_stage import Stage
from tests.s3_server import s3_server
from tests.test_cli import MODULE, SOURCE

WRITERS = 16
ENOUGH = 48
OTHER = {"sqlite": "postgresql", "postgresql": "sqlite"}


def written(url: str, home: Path, target: Path) -> backup.Contents:
    where = settings(url, home)
    return backup.create(url, lambda: open_blobs(where.blob_url, where.run_folder), target)


def put_back(source: Path, url: str, home: Path) -> backup.Contents:
    where = settings(url, home)
    return backup.restore(source, home, url, lambda: open_blobs(where.blob_url, where.run_folder))


def kind_of(url: str) -> str:
    return "sqlite" if is_sqlite(url) else "postgresql"


@pytest.fixture
def fresh(postgres_cluster: Cluster, tmp_path: Path) -> Callable[[str], tuple[str, Path]]:
    """Makes an address without a database, and a home without an instance."""
    numbers = itertools.count()

    def make(kind: str) -> tuple[str, Path]:
        home = tmp_path / f"again-{next(numbers)}"
        if kind == "sqlite":
            return f"sqlite:///{home}/remit.db", home
        return postgres_cluster.empty_database(), home

    return make


@pytest.fixture
def taken(database_url: str, tmp_path: Path) -> tuple[Path, list[str]]:
    """A small backup, and the files in it."""
    with opened(database_url, tmp_path / "home") as company:
        made = [
            company.file(company.board, f"text {number}".encode(), f"Note {number}")["id"]
            for number in range(5)
        ]
        written(database_url, tmp_path / "home", tmp_path / "backup.tar")
    return tmp_path / "backup.tar", made


def check_whole(company: Company) -> None:
    """Every chain, and every content of every version."""
    assert company.call(company.board, events.verify, company=company.id)["ok"]
    assert problems(company) == []
    for file, digest in company.sql("SELECT file_id, sha256 FROM file_versions"):
        with company.app.blobs.open(file, digest) as stream:
            assert hashlib.sha256(stream.read()).hexdigest() == digest
    numbers = company.sql(
        "SELECT f.version, count(*) FROM files f JOIN file_versions v ON v.file_id = f.id"
        " GROUP BY f.id, f.version"
    )
    assert all(version == count for version, count in numbers)


# ── of a living instance ────────────────────────────────────────────────────────────────────────


class Writers:
    """Many who write at once, and remember what was acknowledged to them."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.acknowledged: dict[str, bytes] = {}
        self.enough = asyncio.Event()
        self.over = False

    async def backup(self, target: Path) -> dict[str, bytes]:
        """Have one taken by another process meanwhile; what was acknowledged before it began."""
        numbers = itertools.count()
        writers = [asyncio.create_task(self._write(numbers)) for _ in range(WRITERS)]
        try:
            await self.enough.wait()
            before = dict(self.acknowledged)
            environment = {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(SOURCE),
                "REMIT_HOME": str(self.company.home),
                "REMIT_DATABASE_URL": self.company.url,
            }
            command = [sys.executable, "-m", MODULE, "backup", str(target)]
            process = await asyncio.create_subprocess_exec(*command, env=environment)
            assert await process.wait() == 0
        finally:
            self.over = True
            await asyncio.gather(*writers)
        assert len(self.acknowledged) > len(before), "nobody wrote meanwhile"
        return before

    async def _write(self, numbers: Iterator[int]) -> None:
        company, library = self.company, self.company.app.library
        while not self.over:
            number = next(numbers)
            first, second = f"first {number}".encode(), f"second {number}".encode()
            made = await library.create(
                company.board, first, company=company.id, description=f"Note {number}"
            )
            await library.write(
                company.board, second, file=made["id"], version=1, sha256=made["hash"]
            )
            self.acknowledged[made["id"]] = second
            if len(self.acknowledged) >= ENOUGH:
                self.enough.set()
            await library.send(company.board, to=f"agent:{company.ceo.id}", body=f"Look {number}")


def test_a_backup_has_everything_acknowledged_before_and_nothing_half(
    database_url: str, tmp_path: Path, fresh: Callable[[str], tuple[str, Path]]
) -> None:
    target = tmp_path / "backup.tar"
    with opened(database_url, tmp_path / "home") as company:
        before = company.wait(Writers(company).backup(target))
    url, home = fresh(OTHER[kind_of(database_url)])
    found = put_back(target, url, home)
    assert found.companies == 1
    assert found.contents >= 2 * len(before)
    with opened(url, home) as company:
        for file, content in before.items():
            view, kept = company.read(company.board, file)
            assert (view["version"], kept) == (2, content)
        check_whole(company)
        # It works on: what was there is found, and more can be done.
        some, content = next(iter(before.items()))
        words = content.decode().replace("second", "note")
        assert company.found(company.board, words)[0] == some
        made = company.file(company.ceo.caller, b"after", "Made afterwards")
        assert company.write(company.ceo.caller, made, b"and on")["version"] == 2
        assert company.found(company.board, "afterwards") == [made["id"]]


def test_every_row_survives_the_way_to_the_other_database_and_back(
    database_url: str, tmp_path: Path, fresh: Callable[[str], tuple[str, Path]]
) -> None:
    home = tmp_path / "home"
    with opened(database_url, home) as company:
        for schema in older.CHAPTERS:
            older.live_through(company, schema)
        file = company.file(company.board, "Äöü 𝄞 \\ \t \n".encode(), "Ünïcödé \\N \\. 'quoted'")
    before = rows(database_url)
    assert all(before.values()), "every table has rows"
    kind = kind_of(database_url)
    written(database_url, home, tmp_path / "1.tar")
    there, first = fresh(OTHER[kind])
    put_back(tmp_path / "1.tar", there, first)
    assert rows(there) == before
    written(there, first, tmp_path / "2.tar")
    again, second = fresh(kind)
    put_back(tmp_path / "2.tar", again, second)
    assert rows(again) == before
    with opened(again, second) as company:
        check_whole(company)
        assert company.found(company.board, "unicode quoted") == [file["id"]]


# ── cut off ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened(backup_stage.MODULE) as found:
        yield found


@pytest.mark.requirement("BX-06")
@pytest.mark.campaign_on_postgresql("the same steps, each several times as long")
def test_a_restore_that_is_killed_at_any_step_leaves_no_instance_and_can_be_begun_anew(
    taken: tuple[Path, list[str]],
    database_url: str,
    tmp_path: Path,
    stage: Stage,
    fresh: Callable[[str], tuple[str, Path]],
) -> None:
    source, made = taken
    kind = kind_of(database_url)
    said = str(tmp_path / "said")
    url, home = fresh(kind)
    steps = steps_of(stage, Attempt("restore", url, str(home), str(source), said))
    assert steps is not None
    expected = rows(url)
    died = 0
    for step in spread(steps, 10 if kind == "sqlite" else 6):
        url, home = fresh(kind)
        attempt = Attempt("restore", url, str(home), str(source), said, step)
        died += steps_of(stage, attempt) is None
        with contextlib.suppress(Conflict):  # it had come as far as the rows, and is whole
            put_back(source, url, home)
        assert rows(url) == expected, step
        assert not list(home.glob(".remit-restore-*")), step
    assert died >= 5
    with opened(url, home) as company:
        assert company.read(company.board, made[3])[1] == b"text 3"
        check_whole(company)


@pytest.mark.campaign_on_postgresql("the same steps, each several times as long")
def test_a_backup_that_is_killed_at_any_step_leaves_nothing_that_looks_like_one(
    taken: tuple[Path, list[str]],
    database_url: str,
    tmp_path: Path,
    stage: Stage,
    fresh: Callable[[str], tuple[str, Path]],
) -> None:
    said, target = str(tmp_path / "said"), tmp_path / "other" / "backup.tar"
    target.parent.mkdir()
    attempt = Attempt("backup", database_url, str(tmp_path / "home"), str(target), said)
    steps = steps_of(stage, attempt)
    assert steps is not None
    for step in spread(steps, 9 if is_sqlite(database_url) else 5):
        target.unlink(missing_ok=True)
        attempt.dies_at = step
        steps_of(stage, attempt)
        if target.exists():
            put_back(target, *fresh("sqlite"))  # it is whole
            target.unlink()
        written(database_url, tmp_path / "home", target)
        assert [one.name for one in target.parent.iterdir()] == ["backup.tar"], step
    with tarfile.open(target) as tar:
        assert len(tar.getnames()) > len(taken[1])


# ── what is refused ─────────────────────────────────────────────────────────────────────────────


def test_nothing_is_overwritten(
    taken: tuple[Path, list[str]], database_url: str, tmp_path: Path
) -> None:
    source, _ = taken
    before = rows(database_url)
    with pytest.raises(Conflict, match="exists already"):
        written(database_url, tmp_path / "home", source)
    with pytest.raises(Conflict, match="There is an instance"):
        put_back(source, database_url, tmp_path / "home")
    assert rows(database_url) == before


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_of_two_restores_at_once_one_is_done_and_the_other_refused(
    small: Path, kind: str, fresh: Callable[[str], tuple[str, Path]]
) -> None:
    url, home = fresh(kind)
    together = threading.Barrier(2)

    def attempt(_: int) -> str:
        together.wait(30)
        try:
            return put_back(small, url, home).schema
        except Conflict as error:
            return error.reason

    with ThreadPoolExecutor(2) as threads:
        found = sorted(threads.map(attempt, range(2)))
    assert found == [migrate.HEAD, "conflict"]
    with opened(url, home) as company:
        check_whole(company)


def test_what_postgresql_does_not_keep_is_named_and_nothing_is_left(
    tmp_path: Path, fresh: Callable[[str], tuple[str, Path]]
) -> None:
    source = f"sqlite:///{tmp_path}/home/remit.db"
    with opened(source, tmp_path / "home") as company:
        company.sql("UPDATE agents SET title = 'a' || char(0) || 'b'")
    written(source, tmp_path / "home", tmp_path / "backup.tar")
    url, home = fresh("postgresql")
    with pytest.raises(BadInput, match="A row of agents has a character"):
        put_back(tmp_path / "backup.tar", url, home)
    assert rows(url) == {}


def test_contents_can_move_to_a_bucket_and_back(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server() as server:
        server.create_bucket("bucket")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        home = tmp_path / "again"
        bucket = open_blobs("s3://bucket/contents", home / "run")
        url = f"sqlite:///{home}/remit.db"
        found = backup.restore(small, home, url, lambda: bucket)
        again = backup.create(url, lambda: bucket, tmp_path / "again.tar")
        assert again == found


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A backup whose source does not matter."""
    home = tmp_path / "home"
    url = f"sqlite:///{home}/remit.db"
    with opened(url, home) as company:
        for number in range(5):
            company.file(company.board, f"text {number}".encode(), f"Note {number}")
        written(url, home, tmp_path / "backup.tar")
    return tmp_path / "backup.tar"


def test_what_lies_beside_a_database_is_not_taken_for_the_new_ones(
    small: Path, tmp_path: Path
) -> None:
    home = tmp_path / "again"
    home.mkdir()
    (home / "remit.db-wal").write_bytes(b"of a database that was removed")
    with pytest.raises(Conflict, match="There is an instance"):
        put_back(small, f"sqlite:///{home}/remit.db", home)


def test_contents_of_another_instance_are_not_mixed_in(small: Path, tmp_path: Path) -> None:
    home = tmp_path / "again"
    with opened(f"sqlite:///{tmp_path}/elsewhere.db", home) as company:
        company.file(company.board, b"of somebody else")
    with pytest.raises(Conflict, match="of another instance"):
        put_back(small, f"sqlite:///{home}/remit.db", home)
    assert not (home / "remit.db").exists()


def test_a_database_that_is_not_remits_is_refused(
    small: Path, tmp_path: Path, fresh: Callable[[str], tuple[str, Path]]
) -> None:
    url, home = fresh("postgresql")
    run_sql(url, "CREATE TABLE theirs (id int)")
    with pytest.raises(Conflict, match="has tables already"):
        put_back(small, url, home)
    with pytest.raises(Conflict, match="no instance"):
        written(url, home, tmp_path / "x.tar")
    with pytest.raises(Conflict, match="no instance"):
        written(f"sqlite:///{tmp_path}/none.db", home, tmp_path / "x.tar")
    with pytest.raises(Unavailable):
        written("postgresql://nobody@127.0.0.1:1/none", home, tmp_path / "x.tar")
    assert not (tmp_path / "x.tar").exists()


def test_contents_and_rows_go_where_the_settings_say(small: Path, tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "again", tmp_path / "far" / "away"
    url = f"sqlite:///{elsewhere}/other.db"
    backup.restore(
        small, home, url, lambda: open_blobs((elsewhere / "contents").as_uri(), home / "run")
    )
    assert sorted(one.name for one in elsewhere.iterdir()) == ["contents", "other.db"]
    assert (elsewhere / "other.db").stat().st_mode & 0o777 == 0o600
    assert not list(home.iterdir())


def _without_a_blob(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    members.pop()


def _with_a_changed_blob(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info, content = members[-1]
    members[-1] = (info, content[:-1] + b"!")


def _with_a_changed_database(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info, content = members[1]
    members[1] = (info, content.replace(b"Note 3", b"Mote 3"))


def _with_two_databases(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    members.append(members[1])


def _with_a_way_out(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info = tarfile.TarInfo("../../outside")
    info.size = 1
    members.append((info, b"x"))


def _with_a_link(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info = tarfile.TarInfo("blobs/link")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    members.append((info, b""))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "harm",
    [
        _without_a_blob,
        _with_a_changed_blob,
        _with_a_changed_database,
        _with_two_databases,
        _with_a_way_out,
        _with_a_link,
    ],
    ids=lambda harm: harm.__name__.strip("_"),
)
def test_a_backup_that_was_harmed_is_refused_and_leaves_nothing(
    small: Path,
    tmp_path: Path,
    harm: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None],
    kind: str,
    fresh: Callable[[str], tuple[str, Path]],
) -> None:
    with tarfile.open(small) as tar:
        members = []
        for info in tar:
            stream = tar.extractfile(info)
            assert stream is not None
            members.append((info, stream.read()))
    harm(members)
    harmed = tmp_path / "harmed.tar"
    with tarfile.open(harmed, "w") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    url, home = fresh(kind)
    with pytest.raises(BadInput) as refusal:
        put_back(harmed, url, home)
    assert refusal.value.reason == "damaged"
    assert list(home.iterdir()) == []
    assert not (tmp_path / "outside").exists()
    if kind == "postgresql":
        assert rows(url) == {}


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"not a tar file" * 1000)
    with pytest.raises(BadInput, match="cannot be used"):
        put_back(tmp_path / "x.tar", f"sqlite:///{tmp_path}/again/x.db", tmp_path / "again")


def test_what_a_call_brought_along_that_awaits_approval_is_kept(
    database_url: str, tmp_path: Path, fresh: Callable[[str], tuple[str, Path]]
) -> None:
    home = tmp_path / "home"
    with opened(database_url, home) as company:
        made = company.file(company.ceo.caller, b"old")
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to=company.ceo.id,
            resource=f"kb_file:{made['id']}",
            level="write",
            mode="ask",
        )
        before = written(database_url, home, tmp_path / "before.tar").contents
        with pytest.raises(AwaitsApproval):
            company.wait(
                company.app.library.write(
                    company.ceo.caller,
                    b"new",
                    file=made["id"],
                    version=made["version"],
                    sha256=made["hash"],
                )
            )
        assert written(database_url, home, tmp_path / "after.tar").contents > before
    assert put_back(tmp_path / "after.tar", *fresh(kind_of(database_url))).contents > before
