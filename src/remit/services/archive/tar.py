"""The plain subset of tar in which an export travels, and the folder of an export, read from one.

The subset is regular files with short relative names. Everything else that a tar can hold (links,
devices, extended headers, sparse files) is refused instead of understood, so that reading one needs
little memory and writes nowhere unexpected.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from remit.errors import BadInput

MOST_ENTRIES = 1_000_000
LARGEST_TEXT = 16 * 1024 * 1024
#: Largest sum of all texts, which are in memory together.
LARGEST_TEXTS = 256 * 1024 * 1024
BLOCK = 512
END = bytes(2 * BLOCK)
#: Mode and time are constant: an archive depends on its contents alone.
_MODE, _TIME = 0o644, 0
_LONGEST_NAME, _LONGEST_PREFIX = 100, 155
_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_OCTAL = re.compile(rb" *([0-7]{1,12})[ \0]*")
_FILE, _FOLDER = (b"0", b"\0"), b"5"
_REFUSED = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"x": "an extended header",
    b"g": "an extended header",
    b"L": "a long name",
    b"K": "a long link",
    b"S": "a sparse file",
}


class Entry(NamedTuple):
    path: str
    size: int


def header(path: str, size: int) -> bytes:
    """Return the header block of a file; it depends on path and size alone."""
    prefix, _, name = path.rpartition("/") if len(path) > _LONGEST_NAME else ("", "", path)
    assert len(name) <= _LONGEST_NAME, path
    assert len(prefix) <= _LONGEST_PREFIX, path
    fields = (
        name.encode("ascii").ljust(100, b"\0"),
        b"%07o\0%07o\0%07o\0" % (_MODE, 0, 0),
        b"%011o\0%011o\0" % (size, _TIME),
        b" " * 8,
        b"0".ljust(101, b"\0"),
        b"ustar\x0000".ljust(72, b"\0"),
        b"%07o\0%07o\0" % (0, 0),
        prefix.encode("ascii").ljust(155, b"\0"),
    )
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def padding(size: int) -> int:
    """Return the number of bytes that fill up the last block of a file."""
    return -size % BLOCK


def walk(read: Callable[[int], bytes], skip: Callable[[Entry], None]) -> Iterator[Entry]:
    """Iterate over the files of a tar, in order. `skip` seeks past the bytes of one and its
    padding.

    Reads to the end, so that a truncated tar is noticed.
    """
    seen: set[str] = set()
    while True:
        block = read(BLOCK)
        if len(block) < BLOCK:
            raise BadInput("The archive ends too early.", "Get a complete copy of it.")
        if not block.strip(b"\0"):
            return
        entry = _entry(block)
        if entry is None:
            continue
        if entry.path in seen:
            raise BadInput(f"{entry.path}: is in the archive twice.")
        seen.add(entry.path)
        yield entry
        skip(entry)


def check_path(path: str) -> str:
    """Refuse a path that could leave the folder that it is unpacked to."""
    parts = path.split("/")
    if not _NAME.fullmatch(path) or any(part in ("", ".", "..") for part in parts):
        raise BadInput(f"{path[:200]!r}: is not a name that an export has.")
    return path


def _entry(block: bytes) -> Entry | None:
    """Parse a header block; None for a folder, which is not needed."""
    declared = _number(block[148:156], "checksum")
    if declared != sum(block[:148]) + 8 * 32 + sum(block[156:]):
        raise BadInput("The archive is damaged: a header does not add up.")
    name = _text(block[:100])
    prefix = _text(block[345:500]) if block[257:262] == b"ustar" else ""
    path = f"{prefix}/{name}" if prefix else name
    kind, size = block[156:157], _number(block[124:136], "size")
    if kind == _FOLDER:
        if size:
            raise BadInput(f"{path[:200]!r}: is a folder with content.")
        check_path(path.rstrip("/").removeprefix("./") or "x")
        return None
    if kind not in _FILE:
        what = _REFUSED.get(kind, "not a plain file")
        raise BadInput(f"{path[:200]!r}: is {what}, which an export does not have.")
    return Entry(check_path(path.removeprefix("./")), size)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _number(field: bytes, what: str) -> int:
    digits = _OCTAL.fullmatch(field)
    if digits is None:
        raise BadInput(f"The archive is damaged: a {what} is not a number.")
    return int(digits[1], 8)


# ── the folder ──────────────────────────────────────────────────────────────────────────────────


class Piece(NamedTuple):
    """Position of bytes in the archive."""

    path: str
    offset: int
    size: int


class Folder:
    """An archive on disk, indexed by names. Nothing is unpacked."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = LARGEST_TEXTS
        self._taken: set[str] = set()
        self.pieces: dict[str, Piece] = {}
        for entry in walk(file.read, self._skip):
            if len(self.pieces) == MOST_ENTRIES:
                raise BadInput(f"The archive has more than {MOST_ENTRIES} files.")
            self.pieces[entry.path] = Piece(entry.path, file.tell(), entry.size)

    def below(self, folder: str) -> list[str]:
        return sorted(path for path in self.pieces if path.startswith(f"{folder}/"))

    def take(self, path: str) -> Piece:
        """Return the position of a file, and mark it as known: unknown files are refused at the
        end."""
        self._taken.add(path)
        try:
            return self.pieces[path]
        except KeyError:
            raise BadInput(f"{path}: is missing.", "Export the company again.") from None

    def read(self, path: str, most: int = LARGEST_TEXT) -> bytes:
        piece = self.take(path)
        self._left -= piece.size
        if piece.size > most or self._left < 0:
            raise BadInput(f"{path}: is too large for what it is.")
        return self.at(piece.offset, piece.size)

    def at(self, offset: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, offset)

    def lines(self, path: str) -> Iterator[tuple[str, Any]]:
        for number, row in enumerate(self.read(path, LARGEST_TEXTS).splitlines(), 1):
            where = f"{path}, line {number}"
            try:
                yield where, json.loads(row)
            except (ValueError, RecursionError):
                raise BadInput(f"{where}: is not JSON.") from None

    def check_all_taken(self, *also: str) -> None:
        for path in self.pieces:
            if path not in self._taken and path not in also:
                raise BadInput(f"{path}: is not part of an export.", "Remove it.")

    def _skip(self, entry: Entry) -> None:
        behind = self._file.tell() + entry.size + padding(entry.size)
        if behind > self._file.seek(0, os.SEEK_END):
            raise BadInput(f"{entry.path}: is cut off.", "Get a complete copy of the archive.")
        self._file.seek(behind)
