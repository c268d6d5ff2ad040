"""Contents of knowledge-base file versions.

A blob has a place, `<file id>/<SHA-256>`, and is durable before a row names it. So a crash can
leave a blob without a row, never a row without its blob; `sweep` takes such orphans away.

A writer may store the very content that a sweep is about to remove, and nobody takes a lock.
So an orphan is first moved to the trash, where readers still find it, and a later sweep asks
once more before it deletes. That is safe as long as a writer commits its row within `min_age`
of its put.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol, Self
from urllib.parse import unquote, urlsplit

from remit.clock import Micros
from remit.errors import BadInput, StorageFull, TooLarge, Unavailable, Unsupported
from remit.ids import is_id, random_name

#: Where a blob is: the id of its file and the SHA-256 of its content.
Pair = tuple[str, str]
#: Which of the given pairs have a version row.
Referenced = Callable[[Sequence[Pair]], set[Pair]]

#: Nothing has to be kept to know what is in an empty file.
EMPTY = hashlib.sha256().hexdigest()
MAX_LINKS = 1000
BATCH = 500

#: Content this small comes from the page cache faster than a thread can be asked for it.
SMALL = 64 * 1024

_PIECE = 256 * 1024  # what is kept in memory before it goes to disk
_LINK = re.compile(rb"kb://([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
_LINK_LENGTH = len("kb://") + 36
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ATTEMPTS = 50
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Content:
    sha256: str
    size: int
    links: tuple[str, ...]
    """Ids of the files it links to as kb://UUID: unique, in order, the first MAX_LINKS."""
    is_text: bool
    """Valid UTF-8 without NUL."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    trashed: int
    """Orphans moved to the trash, also those that came back at once."""
    restored: int
    deleted: int
    temporaries: int


class BlobStore(Protocol):
    """Keeps contents. Every method blocks; call it from a thread."""

    def receive(self, limit: int) -> Spool:
        """A spool for at most `limit` bytes."""
        ...

    def put(self, file_id: str, spool: Spool) -> Content:
        """Store what the spool received; it is durable when this returns. Ends the spool."""
        ...

    def open(self, file_id: str, sha256: str) -> BinaryIO:
        """A stream of the content, not necessarily seekable."""
        ...

    def sweep(self, referenced: Referenced, now: Micros, min_age: Micros) -> SweepReport:
        """Remove orphans and temporaries older than `min_age`. Run one sweep at a time."""
        ...

    def check(self) -> str:
        """Say where the blobs are and that they can be written; raises Unavailable."""
        ...


def open_blobs(url: str, spool_dir: Path) -> BlobStore:
    """The store behind file:///absolute/path or s3://bucket/prefix."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and path.startswith("/"):
        return LocalBlobs(path)
    if parts.scheme == "s3" and parts.netloc:
        # Imported here because its library is an extra that a local instance does without.
        try:
            from remit.store.s3 import S3Blobs
        except ModuleNotFoundError as error:
            raise Unsupported(
                "Blobs in S3 need a library that is not installed.",
                "Install Remit with its s3 extra: remit[s3].",
            ) from error
        return S3Blobs(parts.netloc, path.strip("/"), spool_dir)
    raise BadInput(
        f"{url[:200]!r} is not a place for blobs.",
        "Use file:///absolute/path or s3://bucket/prefix.",
    )


def storage_error(error: OSError) -> Unavailable:
    """What a failed system call means to whoever wanted something stored or read."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("The storage of this instance is full.")
    reason = os.strerror(error.errno) if error.errno else "unknown"
    return Unavailable(f"The storage of this instance failed: {reason}.")


def is_pair(file_id: str, sha256: str) -> bool:
    return is_id(file_id) and _SHA256.fullmatch(sha256) is not None


def check_pair(file_id: str, sha256: str) -> Pair:
    """The pair, once it is certain that it cannot name anything but a blob."""
    if not is_id(file_id):
        raise BadInput(f"{file_id[:60]!r} is not the id of a file.")
    if not _SHA256.fullmatch(sha256):
        raise BadInput(f"{sha256[:80]!r} is not a SHA-256 in hex.")
    return file_id, sha256


def missing(file_id: str) -> Unavailable:
    return Unavailable(
        f"The content of file {file_id} is missing from the blob store.",
        "Run `remit doctor`; restore the blobs from a backup.",
        code="content_missing",
    )


class Spool:
    """Receives bytes and learns about them on the way; small content stays in memory.

    Leaving `with` discards what was not stored.
    """

    def __init__(self, folder: str, limit: int) -> None:
        self._path = f"{folder}/{random_name()}"
        self._limit = limit
        self._fd = -1
        self._gone = False
        self._buffer = bytearray()
        self._size = 0
        self._hash = hashlib.sha256()
        self._links: dict[str, None] = {}
        self._tail = b""
        self._is_text = True
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._content: Content | None = None

    def write(self, chunk: bytes) -> None:
        if self._content is not None:
            raise ValueError("the spool is finished")
        self._size += len(chunk)
        self._check_limit()
        if self._gone:
            raise ValueError("the spool was discarded")
        for start in range(0, len(chunk), _PIECE):
            self._take(chunk[start : start + _PIECE])

    def finish(self) -> Content:
        """What was received; nothing can be written after this."""
        if self._content is None:
            self._check_limit()
            self._read_text(b"", final=True)
            links = tuple(self._links)
            self._content = Content(self._hash.hexdigest(), self._size, links, self._is_text)
        return self._content

    def discard(self) -> None:
        self._gone = True
        self._buffer = bytearray()  # not clear(): a failed write may still look at it
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def body(self) -> bytes | Path:
        """The content, for a store that keeps it elsewhere."""
        if self._gone:
            raise ValueError("the spool was discarded or stored")
        return bytes(self._buffer) if self._fd < 0 else Path(self._path)

    def move_to(self, move: Callable[[str], None]) -> None:
        """Make the temporary file durable and let `move` rename it; then it is no longer ours."""
        if self._gone:
            raise ValueError("the spool was discarded or stored")
        try:
            if self._fd < 0:
                self._spill()
            else:
                os.utime(self._fd)  # a slow upload must not look old to a sweep
            os.fsync(self._fd)
            move(self._path)
        except OSError as error:
            self.discard()
            raise storage_error(error) from error
        self._gone = True
        self._buffer.clear()
        os.close(self._fd)
        self._fd = -1

    def _check_limit(self) -> None:
        if self._size > self._limit:
            self.discard()
            raise TooLarge(f"The content is larger than {self._limit} bytes.")

    def _take(self, piece: bytes) -> None:
        self._hash.update(piece)
        self._read_text(piece)
        if len(self._links) < MAX_LINKS:
            self._read_links(piece)
        if self._fd < 0 and len(self._buffer) + len(piece) <= _PIECE:
            self._buffer += piece
            return
        try:
            if self._fd < 0:
                self._spill()
            write_all(self._fd, piece)
        except OSError as error:
            self.discard()
            raise storage_error(error) from error

    def _read_text(self, piece: bytes, final: bool = False) -> None:
        if not self._is_text:
            return
        try:
            self._decoder.decode(piece, final)
        except UnicodeDecodeError:
            self._is_text = False
        else:
            self._is_text = b"\0" not in piece

    def _read_links(self, piece: bytes) -> None:
        # The tail is one byte shorter than a link, so that none is seen twice.
        text = self._tail + piece
        for match in _LINK.finditer(text):
            self._links[match[1].decode("ascii").lower()] = None
            if len(self._links) == MAX_LINKS:
                break
        self._tail = text[-(_LINK_LENGTH - 1) :]

    def _spill(self) -> None:
        self._fd = os.open(self._path, _NEW_FILE, 0o600)
        write_all(self._fd, self._buffer)
        self._buffer.clear()


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
        # Again and again, because sweeps may move it just after we looked where it is now.
        for root in (self._root, self._trash) * _ATTEMPTS:
            try:
                return _opened(f"{root}/{file_id}/{sha256}")
            except FileNotFoundError:
                continue
            except OSError as error:
                raise storage_error(error) from error
        raise missing(file_id)

    def sweep(self, referenced: Referenced, now: Micros, min_age: Micros) -> SweepReport:
        before = now - min_age
        try:
            with _alone(self._root) as alone:
                if not alone:
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
        """Rename durably. A sweep may remove the folder at any moment while it is empty."""
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

    # What sweep_places needs.

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
                    if is_pair(folder.name, blob.name) and _is_old(blob, before):
                        yield folder.name, blob.name

    def move(self, pair: Pair, to_trash: bool) -> bool:
        here, there = self._root, self._trash
        if not to_trash:
            here, there = there, here
        path = f"{here}/{pair[0]}/{pair[1]}"
        try:
            # Before the rename: after a crash between the two it must not look long trashed.
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


class Places(Protocol):
    """Two places for each blob, its own and the trash; what a sweep does with them."""

    def old(self, trash: bool, before: Micros) -> Iterator[Pair]:
        """Blobs last stored, or trash last trashed, before that time."""
        ...

    def move(self, pair: Pair, to_trash: bool) -> bool:
        """Move it and set its age to zero; False when it was gone."""
        ...

    def delete(self, pair: Pair) -> bool:
        """Delete it from the trash; False when it was gone."""
        ...


def sweep_places(places: Places, referenced: Referenced, before: Micros) -> tuple[int, int, int]:
    """Both phases; the later one first, so that nothing passes through both in one sweep."""
    trashed = restored = deleted = 0
    for batch in _batches(places.old(True, before)):
        kept = referenced(batch)
        restored += sum(places.move(pair, False) for pair in batch if pair in kept)
        deleted += sum(places.delete(pair) for pair in batch if pair not in kept)
    for batch in _batches(places.old(False, before)):
        kept = referenced(batch)
        moved = [pair for pair in batch if pair not in kept and places.move(pair, True)]
        trashed += len(moved)
        if moved:
            # A row may have appeared while we moved.
            kept = referenced(moved)
            restored += sum(places.move(pair, False) for pair in moved if pair in kept)
    return trashed, restored, deleted


def remove_old_files(folder: str, before: Micros) -> int:
    """Remove temporaries that a crash left behind."""
    removed = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if _is_old(entry, before):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)
                    removed += 1
    return removed


def _opened(path: str) -> BinaryIO:
    """A stream of a file. A small one is read at once: the stream alone takes more than that."""
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


def write_all(fd: int, data: bytes | bytearray) -> None:
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.write(fd, view[done:])


def _batches(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    iterator = iter(pairs)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _is_old(entry: os.DirEntry[str], before: Micros) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns <= before * 1000
    except FileNotFoundError:
        return False


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
def _alone(root: str) -> Iterator[bool]:
    """Whether no other sweep of this folder is under way; writers do not care."""
    fd = os.open(root, _FOLDER)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
