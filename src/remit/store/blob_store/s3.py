"""Blobs in a bucket that speaks S3, for instances of more than one machine.

Endpoint, region and keys come from the usual AWS_* environment variables. The server promises that
a put is atomic and durable. A crash in an upload leaves invisible parts in the bucket; give it a
lifecycle rule that aborts incomplete multipart uploads.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from remit.clock import Micros, from_iso
from remit.errors import StorageFull, Unavailable
from remit.ids import random_name
from remit.store.blob_store.blobs import EMPTY, missing
from remit.store.blob_store.orphan_sweep import (
    BATCH,
    Pair,
    Referenced,
    SweepReport,
    check_pair,
    discard_pair,
    is_pair,
    remove_old_files,
    sweep_places,
)
from remit.store.blob_store.spool import Content, Spool, storage_error

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_TRASH = ".trash"
_PART = 5 * 1024 * 1024  # the smallest part S3 takes
_PARTS_AT_ONCE = 2
_READ = 256 * 1024
# Signs of a full bucket in the errors of several makers' servers.
_FULL = ("StorageFull", "QuotaExceeded", "InsufficientStorage", "status: 507")


class S3Blobs:
    """Blobs in a bucket: the paths of `LocalBlobs` as keys, `<file id>/<SHA-256>` and the trash."""

    def __init__(self, bucket: str, prefix: str, spool_dir: Path) -> None:
        self._where = f"s3://{bucket}/{prefix}".rstrip("/")
        self._spools = str(spool_dir)
        try:
            os.makedirs(self._spools, 0o700, exist_ok=True)
        except OSError as error:
            raise storage_error(error) from error
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        with _translated():
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={
                    "connect_timeout": "5s",
                    # Lasts until the last byte was read, and a reader may be slow.
                    "timeout": "5m",
                    **({"allow_http": True} if endpoint.startswith("http://") else {}),
                },
                # Few retries: a caller waits for them, and can try again itself.
                retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=15)},
            )

    def receive(self, limit: int) -> Spool:
        return Spool(self._spools, limit)

    def put(self, file_id: str, spool: Spool) -> Content:
        with spool:
            content = spool.finish()
            key = _key(check_pair(file_id, content.sha256))
            body = spool.body()
            with _translated():
                # Overwrites on purpose: the blob must look new to a sweep.
                obstore.put(
                    self._store, key, body, chunk_size=_PART, max_concurrency=_PARTS_AT_ONCE
                )
        return content

    def open(self, file_id: str, sha256: str) -> BinaryIO:
        pair = check_pair(file_id, sha256)
        if sha256 == EMPTY:
            return io.BytesIO()
        # Twice, because a sweep may move the blob back between the two attempts.
        for key in (_key(pair), _key(pair, trash=True)) * 2:
            try:
                with _translated(lookup=True):
                    blob = obstore.get(self._store, key)
                    return io.BufferedReader(_Stream(blob.stream(_READ)), _READ)
            except FileNotFoundError:
                continue
        raise missing(file_id)

    def discard(self, file_id: str, sha256: str) -> None:
        discard_pair(self, check_pair(file_id, sha256))

    def sweep(self, referenced: Referenced, now: Micros, min_age: Micros) -> SweepReport:
        before = now - min_age
        try:
            temporaries = remove_old_files(self._spools, before)
        except OSError as error:
            raise storage_error(error) from error
        return SweepReport(*sweep_places(self, referenced, before), temporaries)

    def check(self) -> str:
        key = f".check/{random_name()}"
        with _translated():
            obstore.put(self._store, key, b"\n")
            obstore.delete(self._store, key)
        return f"Blobs are in {self._where}, which is writable."

    # For sweep_places.

    def old(self, trash: bool, before: Micros) -> Iterator[Pair]:
        start = f"{_TRASH}/" if trash else ""
        with _translated():
            chunks = obstore.list(self._store, _TRASH if trash else None, chunk_size=BATCH)
        while True:
            with _translated():
                chunk = next(chunks, None)
            if chunk is None:
                return
            for entry in chunk:
                # Other programs may store objects under the same prefix.
                folder, _, name = entry["path"].removeprefix(start).partition("/")
                stored_at = from_iso(entry["last_modified"].isoformat())
                if is_pair(folder, name) and stored_at <= before:
                    yield folder, name

    def move(self, pair: Pair, to_trash: bool) -> bool:
        # Copy, then delete: a reader finds the blob in at least one of the two places, and a
        # writer in between stores the same content as the copy.
        here, there = _key(pair, not to_trash), _key(pair, to_trash)
        try:
            with _translated(lookup=True):
                obstore.copy(self._store, here, there)
                obstore.delete(self._store, here)
        except FileNotFoundError:
            return False
        return True

    def delete(self, pair: Pair) -> bool:
        with _translated():
            obstore.delete(self._store, _key(pair, trash=True))
        return True


class _Stream(io.RawIOBase):
    """Raw stream over the chunks of a download."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._rest:
            with _translated():
                chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        with memoryview(buffer) as target:
            size = min(len(target), len(self._rest))
            target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._chunks = iter(())
        self._rest = memoryview(b"")
        super().close()


def _key(pair: Pair, trash: bool = False) -> str:
    return f"{_TRASH}/{pair[0]}/{pair[1]}" if trash else f"{pair[0]}/{pair[1]}"


@contextmanager
def _translated(lookup: bool = False) -> Iterator[None]:
    """Translate the library's errors into Remit's; a lookup passes FileNotFoundError through."""
    try:
        yield
    except FileNotFoundError as error:
        if lookup:
            raise
        raise Unavailable(
            "The bucket of the blob store does not exist.", "Create the bucket."
        ) from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise Unavailable(
            "The blob store refused our credentials.",
            "Check the AWS_* variables and the permissions on the bucket.",
        ) from error
    except (BaseError, OSError, ValueError) as error:
        if any(word in str(error) for word in _FULL):
            raise StorageFull(
                "The blob store is full.", "Make room in the bucket, then try again."
            ) from error
        raise Unavailable("The blob store does not answer as it should.") from error
