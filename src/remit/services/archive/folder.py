"""The folder of an export, read from an archive on disk."""

import json
import os
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from remit.errors import BadInput
from remit.services.archive import tar

MOST_ENTRIES = 1_000_000
LARGEST_TEXT = 16 * 1024 * 1024
#: Largest sum of all texts, which are in memory together.
LARGEST_TEXTS = 256 * 1024 * 1024


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
        for entry in tar.walk(file.read, self._skip):
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

    def _skip(self, entry: tar.Entry) -> None:
        behind = self._file.tell() + entry.size + tar.padding(entry.size)
        if behind > self._file.seek(0, os.SEEK_END):
            raise BadInput(f"{entry.path}: is cut off.", "Get a complete copy of the archive.")
        self._file.seek(behind)
