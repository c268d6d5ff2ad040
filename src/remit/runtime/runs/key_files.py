"""Files with keys in a folder that a run works in, to be hidden from it; their names tell.

A file that git tracks there, unchanged, is shown: its content is in the repository, which the run
has anyway, and an empty file in its place would end up in commits.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from remit.errors import TooLarge
from remit.model.connections.folder import holds_keys

#: Each is a mount of its own.
MOST = 500
_GIT = ".git"
#: A folder `.env` with this file is an environment of Python, and no place for keys.
_OF_PYTHON = "pyvenv.cfg"
_LARGEST_INDEX = 64 << 20
_LARGEST_FILE = 1 << 20
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def found(folder: Path) -> list[Path]:
    """Return the files and folders with keys below a folder; a link counts as what it leads to, if
    that lies below the folder, too."""
    keys = {path for named in _named(folder) if (path := _meant(folder, named)) is not None}
    keys = {path for path in keys if not keys.intersection(path.parents)}
    if len(keys) > MOST:
        raise TooLarge(
            f"{folder} has {len(keys)} files whose names say that they hold keys.",
            f"Remove or rename some: more than {MOST} cannot be hidden.",
            code="too_many_keys",
        )
    return sorted(keys)


def hides(folder: Path, path: Path) -> bool:
    """Return whether a path below a folder is hidden from the run that works there."""
    return any(key == path or key in path.parents for key in found(folder))


def _named(folder: Path) -> Iterator[Path]:
    pending = [folder]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.name == _GIT:
                    continue  # branches may have any name
                if holds_keys(entry.name):
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))


def _meant(folder: Path, named: Path) -> Path | None:
    """Return what to hide because of a name, or None."""
    real = Path(os.path.realpath(named))
    if folder not in real.parents or not real.exists():
        return None  # a link that leads out leads nowhere in the sandbox
    if real.is_dir():
        return None if (real / _OF_PYTHON).is_file() else real
    return None if _is_in_repository(folder, real) else real


# ── git ───────────────────────────────────────────────────────────────────────────────────────────
#
# The index of git is read as what it is, bytes that a run can write: an entry only shows a file if
# it has the hash of its present content. Just the first entry of a path counts, so that an index
# with many guesses does not tell which of them is right.

_INDEX_HEAD = struct.Struct(">4sII")
#: After ten numbers of the file's status: SHA-1 and flags.
_SHA_AT, _FLAGS_AT, _NAME_AT = 40, 60, 62
_EXTENDED = 0x4000
_VERSIONS = (2, 3)


def _is_in_repository(folder: Path, file: Path) -> bool:
    """Return whether the repository around a file tracks exactly its present content."""
    for above in file.parents:
        if (above / _GIT).is_dir():
            content = _content(file, _LARGEST_FILE)
            index = _content(above / _GIT / "index", _LARGEST_INDEX)
            if content is None or index is None:
                return False
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
            return _tracked(index, os.fsencode(file.relative_to(above))) == blob.digest()
        if above == folder:
            break
    return False


def _tracked(index: bytes, path: bytes) -> bytes | None:
    """Return the hash of a path in an index of git; None if it is not there or cannot be read."""
    with contextlib.suppress(struct.error, IndexError, ValueError):
        signature, version, count = _INDEX_HEAD.unpack_from(index)
        if signature != b"DIRC" or version not in _VERSIONS:
            return None
        at = _INDEX_HEAD.size
        for _ in range(count):
            (flags,) = struct.unpack_from(">H", index, at + _FLAGS_AT)
            begin = at + _NAME_AT + (2 if flags & _EXTENDED else 0)
            end = index.index(b"\0", begin)
            if index[begin:end] == path:
                return index[at + _SHA_AT : at + _FLAGS_AT]
            at += (end - at) // 8 * 8 + 8
    return None


def _content(file: Path, most: int) -> bytes | None:
    """Return the content of a plain file that the run can write, and exchange for anything."""
    try:
        opened = os.open(file, _FILE)
    except OSError:
        return None
    with os.fdopen(opened, "rb") as stream:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return None
        content = stream.read(most + 1)
    return content if len(content) <= most else None
