"""A whole instance in one file, taken while it works, and put back where there is none.

The database is copied first, as it is at one moment; blobs are never changed and are there before
the rows that name them, so whatever that copy names can be added afterwards. A backup is looked
through before it counts, and again before anything of it is put back: the database itself, every
company's chain of events, and the content of every version by its hash.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sqlite3
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from remit.errors import BadInput, Conflict, RemitError, Unsupported
from remit.store import events, people
from remit.store.blobs import EMPTY, BlobStore, LocalBlobs, storage_error
from remit.store.migrate import HEAD
from remit.store.sqlite import SqliteTransaction, connect

FORMAT = 1
_DATABASE = "remit.db"
_MANIFEST = "manifest.json"
_BLOB = re.compile(r"blobs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([0-9a-f]{64})")
_PIECE = 1 << 20
_LARGEST_MANIFEST = 1 << 20


@dataclass(frozen=True)
class Contents:
    """What is in a backup, found by looking at all of it."""

    schema: str
    companies: int
    events: int
    contents: int
    bytes: int


def create(database: Path, blobs: BlobStore, target: Path) -> Contents:
    """Write a backup of a living instance; the file appears whole or not at all."""
    if target.exists():
        raise Conflict(f"{target} exists already.", "Choose another name.")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".remit-backup-") as folder:
            copy = Path(folder) / _DATABASE
            _snapshot(database, copy)
            found = _look_through(copy, blobs)
            part = Path(folder) / "backup.tar"
            with tarfile.open(part, "w") as tar:
                manifest = {"format": FORMAT, **asdict(found), "database": _hash_of(copy)}
                text = json.dumps(manifest, indent=2).encode()
                _add(tar, _MANIFEST, io.BytesIO(text), len(text))
                tar.add(copy, _DATABASE, filter=_plain)
                for file_id, sha256 in _named_in(copy):
                    size = _size_of(blobs, file_id, sha256)
                    with blobs.open(file_id, sha256) as stream:
                        _add(tar, f"blobs/{file_id}/{sha256}", stream, size)
            part.chmod(0o600)
            with part.open("rb") as written:
                os.fsync(written.fileno())
            os.link(part, target)  # unlike a rename, never over something else
    except FileExistsError:
        raise Conflict(f"{target} exists already.", "Choose another name.") from None
    except OSError as error:
        raise storage_error(error) from error
    return found


def restore(source: Path, home: Path) -> Contents:
    """Put a backup into a home that has no instance; nothing is there unless all of it is good."""
    for name in (_DATABASE, "blobs"):
        if (home / name).exists():
            raise Conflict(
                f"There is an instance in {home} already.", "Set REMIT_HOME to an empty folder."
            )
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".remit-restore-") as folder:
            here = Path(folder)
            (here / "blobs").mkdir(mode=0o700)
            manifest = _unpack(source, here)
            if manifest.get("database") != _hash_of(here / _DATABASE):
                raise _damaged("its database was changed")
            found = _look_through(here / _DATABASE, LocalBlobs(here / "blobs"))
            if manifest.get("contents") != found.contents:
                raise _damaged("something is missing from it")
            os.rename(here / "blobs", home / "blobs")
            os.rename(here / _DATABASE, home / _DATABASE)
    except tarfile.TarError as error:
        raise _damaged(str(error)) from error
    except OSError as error:
        raise storage_error(error) from error
    return found


def _snapshot(database: Path, copy: Path) -> None:
    connection = connect(database)
    try:
        connection.execute("VACUUM INTO ?", (str(copy),))
    finally:
        connection.close()


def _look_through(database: Path, blobs: BlobStore) -> Contents:
    connection = connect(database)
    try:
        [(verdict,)] = connection.execute("PRAGMA integrity_check(1)").fetchall()
        if verdict != "ok":
            raise _damaged(f"its database is broken ({verdict})")
        schema = str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
        if schema > HEAD:
            raise Unsupported(
                f"The backup has schema {schema}, which is newer than this program ({HEAD}).",
                "Run a newer Remit.",
            )
        transaction = SqliteTransaction(connection, writable=False)
        companies = transaction.all(people.ALL_COMPANIES)
        seen = 0
        for company in companies:
            count, _, faults = events.verify(transaction, company)
            if faults:
                raise _damaged(f"the record of company {company} is not whole")
            seen += count
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        raise _damaged(str(error)) from error
    finally:
        connection.close()
    sizes = [_size_of(blobs, *pair) for pair in _named_in(database)]
    return Contents(schema, len(companies), seen, len(sizes), sum(sizes))


def _named_in(database: Path) -> list[tuple[str, str]]:
    """Every content that a version has, or a call that awaits approval brought along."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return connection.execute(
            "SELECT file_id, sha256 FROM file_versions WHERE sha256 <> :empty"
            " UNION SELECT blob_file_id, blob_sha256 FROM approvals"
            " WHERE blob_sha256 IS NOT NULL AND blob_sha256 <> :empty"
            " AND (status IN ('pending', 'revision_requested') OR used_at IS NULL)"
            " ORDER BY 1, 2",
            {"empty": EMPTY},
        ).fetchall()
    finally:
        connection.close()


def _size_of(blobs: BlobStore, file_id: str, sha256: str) -> int:
    """How long a content is, once it was found to be what it is called."""
    digest, seen = hashlib.sha256(), 0
    try:
        with blobs.open(file_id, sha256) as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
                seen += len(piece)
    except RemitError as error:
        raise _damaged(f"the content of file {file_id} is missing") from error
    if digest.hexdigest() != sha256:
        raise _damaged(f"the content of file {file_id} was changed")
    return seen


def _unpack(source: Path, here: Path) -> dict[str, object]:
    """Only what a backup has, under the names that it has there."""
    manifest: dict[str, object] | None = None
    with tarfile.open(source, "r:") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() else None
            place = _BLOB.fullmatch(member.name)
            if stream is None:
                raise _damaged(f"{member.name[:80]!r} does not belong there")
            if member.name == _MANIFEST and member.size <= _LARGEST_MANIFEST:
                manifest = _read_manifest(stream.read())
            elif member.name == _DATABASE:
                _write(here / _DATABASE, stream)
            elif place is not None:
                (here / "blobs" / place[1]).mkdir(mode=0o700, exist_ok=True)
                _write(here / "blobs" / place[1] / place[2], stream)
            else:
                raise _damaged(f"{member.name[:80]!r} does not belong there")
    if manifest is None or not (here / _DATABASE).exists():
        raise _damaged("it is not a backup of an instance")
    return manifest


def _read_manifest(text: bytes) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _damaged("its manifest cannot be read") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _damaged("its manifest is of another kind")
    return found


def _write(path: Path, stream: IO[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while piece := stream.read(_PIECE):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def _add(tar: tarfile.TarFile, name: str, stream: IO[bytes], size: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o600
    tar.addfile(member, stream)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _hash_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _damaged(why: str) -> BadInput:
    return BadInput(f"The backup cannot be used: {why}.", "Use another one.", code="damaged")
