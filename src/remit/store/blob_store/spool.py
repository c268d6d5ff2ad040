"""Spool of bytes on their way into the store; derives their hash, links and kind meanwhile."""

import codecs
import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from remit.errors import StorageFull, TooLarge, Unavailable
from remit.ids import random_name

MAX_LINKS = 1000

_PIECE = 256 * 1024  # more than this spills to disk
_LINK = re.compile(rb"kb://([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")
_LINK_LENGTH = len("kb://") + 36
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Content:
    sha256: str
    size: int
    links: tuple[str, ...]
    """Ids of the files it links to as kb://UUID: unique, in order, the first MAX_LINKS."""
    is_text: bool
    """Valid UTF-8 without NUL."""


def storage_error(error: OSError) -> Unavailable:
    """Translate a failed system call into an error for the caller."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("The storage of this instance is full.")
    reason = os.strerror(error.errno) if error.errno else "unknown"
    return Unavailable(f"The storage of this instance failed: {reason}.")


class Spool:
    """Buffer of one incoming content, which analyses its bytes; small content stays in memory.

    Leaving `with` discards content that was not stored.
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
        """The received content; nothing can be written after this."""
        if self._content is None:
            self._check_limit()
            self._read_text(b"", final=True)
            links = tuple(self._links)
            self._content = Content(self._hash.hexdigest(), self._size, links, self._is_text)
        return self._content

    def discard(self) -> None:
        self._gone = True
        self._buffer = bytearray()  # not clear(): a failed write may still hold a view of it
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
        """The content as bytes or as a file, for a store that copies it."""
        if self._gone:
            raise ValueError("the spool was discarded or stored")
        return bytes(self._buffer) if self._fd < 0 else Path(self._path)

    def move_to(self, move: Callable[[str], None]) -> None:
        """Make the temporary file durable and let `move` rename it; ends the spool."""
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
        # The tail is one byte shorter than a link, so that no link is counted twice.
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


def write_all(fd: int, data: bytes | bytearray) -> None:
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.write(fd, view[done:])
