"""Contents of knowledge-base file versions.

A blob has a place, `<file id>/<SHA-256>`, and is durable before a row names it. So a crash can
leave a blob without a row, never a row without its blob; a sweep removes such orphans.
"""

import contextlib
import errno
import fcntl
import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from remit.clock import Micros
from remit.errors import BadInput, Unavailable, Unsupported
from remit.extras import how_to_install
from remit.ids import is_id
from remit.store.blob_store.orphan_sweep import (
    Pair,
    Referenced,
    SweepReport,
    check_pair,
    discard_pair,
    is_old,
    is_pair,
    remove_old_files,
    sweep_places,
)
from remit.store.blob_store.spool import MAX_LINKS, Content, Spool, storage_error, write_all

__all__ = [
    "EMPTY",
    "MAX_LINKS",
    "MISSING",
    "SMALL",
    "BlobStore",
    "Content",
    "LocalBlobs",
    "Pair",
    "Spool",
    "SweepReport",
    "missing",
    "open_blobs",
    "storage_error",
    "write_all",
]

#: Digest of the empty content, which is never stored.
EMPTY = hashlib.sha256().hexdigest()

#: Content up to this size is read at once: the page cache is faster than handing over to a thread.
SMALL = 64 * 1024

#: Code of the error about content that is named and not there.
MISSING = "content_missing"

_ATTEMPTS = 50
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BlobStore(Protocol):
    """Storage of contents. Every method blocks; call it from a thread."""

    def receive(self, limit: int) -> Spool:
        """A spool for at most `limit` bytes."""
        ...

    def put(self, file_id: str, spool: Spool) -> Content:
        """Store what the spool received; it is durable when this returns. Ends the spool."""
        ...

    def open(self, file_id: str, sha256: str) -> BinaryIO:
        """A stream of the content, not necessarily seekable."""
        ...

    def discard(self, file_id: str, sha256: str) -> None:
        """Remove content of a new file that was refused, which no row will name."""
        ...

    def move(self, pair: Pair, to_trash: bool) -> bool:
        """Move a blob into or out of the trash, where it stays readable until a sweep deletes it;
        False when it was gone."""
        ...

    def sweep(self, referenced: Referenced, now: Micros, min_age: Micros) -> SweepReport:
        """Remove orphans and temporaries older than `min_age`. Run one sweep at a time."""
        ...

    def old(self, trash: bool, before: Micros) -> Iterator[Pair]:
        """Blobs stored before a time, or those moved to the trash before it."""
        ...

    def check(self) -> str:
        """Return a sentence that names the place of the blobs; raises Unavailable unless it is
        writable."""
        ...


def open_blobs(url: str, spool_dir: Path) -> BlobStore:
    """Open the blob store of a URL: file:///absolute/path or s3://bucket/prefix."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and path.startswith("/"):
        return LocalBlobs(path)
    if parts.scheme == "s3" and parts.netloc:
        # Imported here because its library is an extra that a local instance does without.
        try:
            from remit.store.blob_store.s3 import S3Blobs
        except ModuleNotFoundError as error:
            raise Unsupported(
                "Blobs in S3 need a library that is not installed.", how_to_install("s3")
            ) from error
        return S3Blobs(parts.netloc, path.strip("/"), spool_dir)
    raise BadInput(
        f"{url[:200]!r} is not a place for blobs.",
        "Use file:///absolute/path or s3://bucket/prefix.",
    )


def missing(file_id: str) -> Unavailable:
    return Unavailable(
        f"The content of file {file_id} is missing from the blob store.",
        "Run `remit doctor`; restore the blobs from a backup.",
        code=MISSING,
    )


class LocalBlobs:
    """Blobs in a folder of this machine. Paths are strings: this is the hot path of a write."""

    def __init__(self, root: Path | str) -> None:
        self._root = os.path.realpath(root)
        self._incoming = f"{self._root}/.incoming"  # inside the root, so that rename works
        self._trash = f"{self._root}/.trash"
        try:
            for folder in (self._root, self._incoming, self._trash):
                os.makedirs(folder, 0o700, exist_ok=True)
        except OSError as error:
            raise storage_error(error) from error

    def receive(self, limit: int) -> Spool:
        return Spool(self._incoming, limit)

    def put(self, file_id: str, spool: Spool) -> Content:
        with spool:
            content = spool.finish()
            check_pair(file_id, content.sha256)
            spool.move_to(lambda path: self._place(path, file_id, content.sha256))
        return content

    def open(self, file_id: str, sha256: str) -> BinaryIO:
        check_pair(file_id, sha256)
        if sha256 == EMPTY:
            return io.BytesIO()
        # Repeated, because a sweep may move the blob between the two attempts to open it.
        for root in (self._root, self._trash) * _ATTEMPTS:
            try:
                return _opened(f"{root}/{file_id}/{sha256}")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error) from error
        raise missing(file_id)

    def discard(self, file_id: str, sha256: str) -> None:
        try:
            discard_pair(self, check_pair(file_id, sha256))
        except OSError as error:
            raise storage_error(error) from error

    def sweep(self, referenced: Referenced, now: Micros, min_age: Micros) -> SweepReport:
        before = now - min_age
        try:
            with alone(os.open(self._root, _FOLDER)) as unshared:
                if not unshared:
                    return SweepReport(0, 0, 0, 0)
                temporaries = remove_old_files(self._incoming, before)
                return SweepReport(*sweep_places(self, referenced, before), temporaries)
        except OSError as error:
            raise storage_error(error) from error

    def check(self) -> str:
        with self.receive(1) as spool:
            spool.write(b"\n")
            spool.move_to(os.unlink)
        return f"Blobs are in {self._root}, which is writable."

    def _place(self, path: str, file_id: str, sha256: str) -> None:
        """Rename durably; retried, because a sweep may remove the folder while it is empty."""
        folder = f"{self._root}/{file_id}"
        created = False
        for _ in range(_ATTEMPTS):
            try:
                fd = os.open(folder, _FOLDER)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, 0o700)
                    created = True
                continue
            try:
                os.rename(path, sha256, dst_dir_fd=fd)
                os.fsync(fd)
            except FileNotFoundError:
                continue
            finally:
                os.close(fd)
            if created:
                _sync_folder(self._root)
            return
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)

    # For sweep_places.

    def old(self, trash: bool, before: Micros) -> Iterator[Pair]:
        with os.scandir(self._trash if trash else self._root) as folders:
            for folder in folders:
                if not is_id(folder.name):
                    continue
                try:
                    with os.scandir(folder.path) as entries:
                        blobs = list(entries)
                except FileNotFoundError:
                    continue
                if not blobs:
                    _remove_if_empty(folder.path)
                for blob in blobs:
                    if is_pair(folder.name, blob.name) and is_old(blob, before):
                        yield folder.name, blob.name

    def move(self, pair: Pair, to_trash: bool) -> bool:
        here, there = self._root, self._trash
        if not to_trash:
            here, there = there, here
        path = f"{here}/{pair[0]}/{pair[1]}"
        try:
            # Before the rename: after a crash in between, the blob must not look long trashed.
            os.utime(path, follow_symlinks=False)
            with contextlib.suppress(FileExistsError):
                os.mkdir(f"{there}/{pair[0]}", 0o700)
            os.rename(path, f"{there}/{pair[0]}/{pair[1]}")
        except FileNotFoundError:
            return False
        _remove_if_empty(f"{here}/{pair[0]}")
        return True

    def delete(self, pair: Pair) -> bool:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._trash}/{pair[0]}/{pair[1]}")
            _remove_if_empty(f"{self._trash}/{pair[0]}")
            return True
        return False


def _opened(path: str) -> BinaryIO:
    """A stream of a file; a small file is read at once, which costs less than a file stream."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        whole = os.read(fd, SMALL + 1)
        if len(whole) > SMALL:
            os.lseek(fd, 0, os.SEEK_SET)
            stream = os.fdopen(fd, "rb")
            fd = -1
            return stream
        return io.BytesIO(whole)
    finally:
        if fd >= 0:
            os.close(fd)


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, _FOLDER)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def alone(fd: int) -> Iterator[bool]:
    """Context manager: try to lock a descriptor, yield whether that worked, and close it."""
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
