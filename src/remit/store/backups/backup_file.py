"""Format of a backup file, and the check that one is complete.

A backup is a tar file: a manifest, the rows as a SQLite database, and each content under its hash.
"""

import hashlib
import io
import json
import os
import re
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from remit import version
from remit.errors import BadInput, RemitError
from remit.store.blob_store.blobs import EMPTY, BlobStore
from remit.store.blob_store.orphan_sweep import Pair
from remit.store.engine.migrate import refuse_unknown
from remit.store.engine.sqlite import SqliteTransaction, connect
from remit.store.organisation import people
from remit.store.record import events

FORMAT = 1
DATABASE = "remit.db"
PIECE = 1 << 20
_MANIFEST = "manifest.json"
_BLOB = re.compile(r"blobs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/([0-9a-f]{64})")
_LARGEST_MANIFEST = 1 << 20
_VERSION = re.compile(r"[0-9][0-9a-zA-Z.+-]{0,99}")


@dataclass(frozen=True)
class Contents:
    """Contents of a backup, found by reading all of it."""

    schema: str
    #: The version of Remit that wrote it; empty if it does not say so.
    version: str
    companies: int
    events: int
    contents: int
    bytes: int


def pack(database: Path, blobs: BlobStore, part: Path) -> Contents:
    """Write a tar file of a copied database and of all contents that its rows name."""
    summary = look_through(database, lambda pair: _size_of(blobs, *pair))
    with tarfile.open(part, "w") as tar:
        manifest = {"format": FORMAT, **asdict(summary), "database": _hash_of(database)}
        text = json.dumps(manifest, indent=2).encode()
        _add(tar, _MANIFEST, io.BytesIO(text), len(text))
        tar.add(database, DATABASE, filter=_plain)
        for file_id, sha256 in _named_in(database):
            size = _size_of(blobs, file_id, sha256)
            with blobs.open(file_id, sha256) as stream:
                _add(tar, f"blobs/{file_id}/{sha256}", stream, size)
    part.chmod(0o600)
    return summary


def unpack(source: Path, database: Path) -> tuple[Contents, set[Pair]]:
    """Extract the database of a backup and verify the whole; also return the contents' places."""
    try:
        manifest, sizes = _unpack(source, database)
    except tarfile.TarError as error:
        raise damaged(str(error)) from error
    if manifest.get("database") != _hash_of(database):
        raise damaged("its database was changed")
    summary = look_through(database, lambda pair: _size_in(sizes, pair))
    if manifest.get("contents") != summary.contents:
        raise damaged("something is missing from it")
    return replace(summary, version=_version_in(manifest)), set(sizes)


def contents(source: Path) -> Iterator[tuple[Pair, int, IO[bytes]]]:
    """Yield the place, size and stream of each content of a backup."""
    with tarfile.open(source, "r:") as tar:
        for member in tar:
            place = _BLOB.fullmatch(member.name)
            stream = tar.extractfile(member) if place else None
            if place is not None and stream is not None:
                yield (place[1], place[2]), member.size, stream


def look_through(database: Path, size_of: Callable[[Pair], int]) -> Contents:
    connection = connect(database)
    try:
        [(verdict,)] = connection.execute("PRAGMA integrity_check(1)").fetchall()
        if verdict != "ok":
            raise damaged(f"its database is broken ({verdict})")
        schema = str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
        refuse_unknown(schema, "The backup")
        transaction = SqliteTransaction(connection, writable=False)
        companies = transaction.all(people.ALL_COMPANIES)
        seen = 0
        for company in companies:
            count, _, faults = events.verify(transaction, company)
            if faults:
                raise damaged(f"the record of company {company} is not whole")
            seen += count
        connection.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.DatabaseError as error:
        raise damaged(str(error)) from error
    finally:
        connection.close()
    sizes = [size_of(pair) for pair in _named_in(database)]
    return Contents(schema, version.current(), len(companies), seen, len(sizes), sum(sizes))


def _named_in(database: Path) -> list[Pair]:
    """Return the contents of all file versions and of uploads in calls that await approval."""
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
    """Return the size of a content, after checking its hash."""
    digest, seen = hashlib.sha256(), 0
    try:
        with blobs.open(file_id, sha256) as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
                seen += len(piece)
    except RemitError as error:
        raise damaged(f"the content of file {file_id} is missing") from error
    if digest.hexdigest() != sha256:
        raise damaged(f"the content of file {file_id} was changed")
    return seen


def _size_in(sizes: dict[Pair, int], pair: Pair) -> int:
    if pair not in sizes:
        raise damaged(f"the content of file {pair[0]} is missing")
    return sizes[pair]


def _unpack(source: Path, database: Path) -> tuple[dict[str, object], dict[Pair, int]]:
    """Extract the database; return the manifest and the size of each content, its hash checked.

    Unknown or repeated entries make a backup damaged.
    """
    manifest: dict[str, object] | None = None
    sizes: dict[Pair, int] = {}
    with tarfile.open(source, "r:") as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() else None
            place = _BLOB.fullmatch(member.name)
            if stream is None:
                raise damaged(f"{member.name[:80]!r} does not belong there")
            if member.name == _MANIFEST and member.size <= _LARGEST_MANIFEST:
                manifest = _read_manifest(stream.read())
            elif member.name == DATABASE and not database.exists():
                write(database, stream)
            elif place is not None:
                if _digest(stream) != place[2]:
                    raise damaged(f"the content of file {place[1]} was changed")
                sizes[place[1], place[2]] = member.size
            else:
                raise damaged(f"{member.name[:80]!r} does not belong there")
    if manifest is None or not database.exists():
        raise damaged("it is not a backup of an instance")
    return manifest, sizes


def _read_manifest(text: bytes) -> dict[str, object]:
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise damaged("its manifest cannot be read") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise damaged("its manifest is of another kind")
    return manifest


def _version_in(manifest: dict[str, object]) -> str:
    """Return the version that wrote a backup; those of 0.1.0 do not say it."""
    written_by = manifest.get("version")
    is_version = isinstance(written_by, str) and _VERSION.fullmatch(written_by)
    return str(written_by) if is_version else ""


def write(path: Path, stream: IO[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while piece := stream.read(PIECE):
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
    with path.open("rb") as file:
        return _digest(file)


def _digest(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := stream.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()


def damaged(why: str) -> BadInput:
    return BadInput(f"The backup cannot be used: {why}.", "Use another one.", code="damaged")
