"""Backups: taken from a living instance, verified, and put back."""

from __future__ import annotations

import asyncio
import io
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from remit.app import App
from remit.errors import AwaitsApproval, BadInput, Conflict
from remit.services import events, files, grants
from remit.services.identity import Caller
from remit.settings import load
from remit.store import backup
from remit.store.blobs import open_blobs
from tests.company import opened


def written(home: Path, database: Path, target: Path) -> backup.Contents:
    return backup.create(database, open_blobs((home / "blobs").as_uri(), home / "run"), target)


@pytest.fixture
def taken(tmp_path: Path) -> tuple[Path, list[str]]:
    """A backup that was made while somebody went on writing; what was acknowledged before it."""
    home = tmp_path / "home"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        before = [
            company.file(company.board, f"text {number}".encode(), f"Note {number}")["id"]
            for number in range(20)
        ]
        over = threading.Event()
        made: list[str] = []

        def goes_on() -> None:
            while not over.is_set():
                made.append(company.file(company.board, b"more", f"Later {len(made)}")["id"])

        writer = threading.Thread(target=goes_on)
        writer.start()
        try:
            found = written(home, home / "remit.db", tmp_path / "backup.tar")
        finally:
            over.set()
            writer.join()
        assert found.companies == 1
        assert found.contents >= 20
    return tmp_path / "backup.tar", before


def test_a_backup_of_a_living_instance_has_everything_acknowledged_before(
    taken: tuple[Path, list[str]], tmp_path: Path
) -> None:
    source, before = taken
    home = tmp_path / "again"
    found = backup.restore(source, home)
    assert found.events > 20

    async def look() -> None:
        async with App(load({"REMIT_HOME": str(home)})) as app:
            assert not await app.first_start()
            board = Caller(app.settings.board_token_file.read_text().strip())
            assert [
                (await app.gate(board, files.show, file=one))["description"] for one in before
            ] == [f"Note {number}" for number in range(20)]
            _, content = await app.library.read(board, file=before[3])
            assert content == b"text 3"
            assert (await app.gate(board, events.verify, company=None))["ok"]

    asyncio.run(look())


def test_nothing_is_overwritten(taken: tuple[Path, list[str]], tmp_path: Path) -> None:
    source, _ = taken
    home = tmp_path / "home"
    with pytest.raises(Conflict, match="exists already"):
        written(home, home / "remit.db", source)
    with pytest.raises(Conflict, match="There is an instance"):
        backup.restore(source, home)


def _without_a_blob(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    members.pop()


def _with_a_changed_blob(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info, content = members[-1]
    members[-1] = (info, content[:-1] + b"!")


def _with_a_changed_database(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info, content = members[1]
    members[1] = (info, content.replace(b"Note 3", b"Mote 3"))


def _with_a_way_out(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info = tarfile.TarInfo("../../outside")
    info.size = 1
    members.append((info, b"x"))


def _with_a_link(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    info = tarfile.TarInfo("blobs/link")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    members.append((info, b""))


@pytest.mark.parametrize(
    "harm",
    [
        _without_a_blob,
        _with_a_changed_blob,
        _with_a_changed_database,
        _with_a_way_out,
        _with_a_link,
    ],
    ids=lambda harm: harm.__name__.strip("_"),
)
def test_a_backup_that_was_harmed_is_refused_and_leaves_nothing(
    taken: tuple[Path, list[str]],
    tmp_path: Path,
    harm: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None],
) -> None:
    source, _ = taken
    with tarfile.open(source) as tar:
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
    home = tmp_path / "again"
    with pytest.raises(BadInput) as refusal:
        backup.restore(harmed, home)
    assert refusal.value.reason == "damaged"
    assert list(home.iterdir()) == []
    assert not (tmp_path / "outside").exists()


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"not a tar file" * 1000)
    with pytest.raises(BadInput, match="cannot be used"):
        backup.restore(tmp_path / "x.tar", tmp_path / "again")


def test_what_a_call_brought_along_that_awaits_approval_is_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(f"sqlite:///{home}/remit.db", home) as company:
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
        before = written(home, home / "remit.db", tmp_path / "before.tar").contents
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
        assert written(home, home / "remit.db", tmp_path / "after.tar").contents > before
    assert backup.restore(tmp_path / "after.tar", tmp_path / "again").contents > before
