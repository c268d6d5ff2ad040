"""Kept conversations of agents: nothing but their programs may write to them.

    REMIT_HOME/agents/<agent>/…               the files, which a run can write
    REMIT_HOME/conversations/<agent>.json     their sizes and digests, which no run can reach

Lines from before a run are unchanged after it. During a run the files are read as they grow, so
that a line which was seen once cannot be changed either; at its end each new line has to be one
that the program writes. Otherwise the next run begins a new conversation.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from remit import threads
from remit.adapters.conversation import Conversation
from remit.ids import random_name
from remit.runtime.runs import homes

#: The model takes longer to answer; until then no program of the agent runs.
LOOK_SECONDS = 0.1
#: Longest new part of a conversation that is read line by line.
_MOST = 256 << 20
_PIECE = 1 << 20
#: The id by which a program resumes a conversation is in the name of its file.
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CHANGED = "what stood there was changed"


def record_of(root: Path, agent: str) -> Path:
    return root / "conversations" / f"{agent}.json"


class Growing:
    """A file as far as it was read, with the digest of that."""

    def __init__(self) -> None:
        self.size = 0
        self.digest = hashlib.sha256()

    def read_on(self, path: Path, limit: int | None = None) -> None:
        """Read from where the last look ended."""
        with _opened(path) as fd:
            os.lseek(fd, self.size, os.SEEK_SET)
            while limit is None or self.size < limit:
                most = _PIECE if limit is None else min(_PIECE, limit - self.size)
                if not (piece := os.read(fd, most)):
                    return
                self.digest.update(piece)
                self.size += len(piece)

    def is_still(self, path: Path) -> bool:
        """Return whether the file begins with what was read of it."""
        again = Growing()
        with contextlib.suppress(OSError):
            again.read_on(path, self.size)
        return (again.size, again.digest.digest()) == (self.size, self.digest.digest())


class Kept:
    """The conversations of one agent on this machine, watched during a run."""

    def __init__(self, root: Path, agent: str, home: Path, of: Conversation) -> None:
        self._record, self._folder, self._of = record_of(root, agent), home / of.folder, of
        self._seen: dict[str, Growing] = {}
        #: Where the lines of this run begin, by file.
        self._begins: dict[str, int] = {}
        self._watching: asyncio.Task[None] | None = None

    def problem(self) -> str | None:
        """Return why the files are not as the last run left them; None if they are."""
        try:
            known: dict[str, list[Any]] = json.loads(self._record.read_text())
        except (OSError, ValueError):
            return "nobody knows how it was left"
        if set(self._there()) - set(known):
            return "a file was added"
        for name, (size, digest) in known.items():
            growing = Growing()
            with contextlib.suppress(OSError):
                growing.read_on(self._folder / name)
            if (growing.size, growing.digest.hexdigest()) != (size, digest):
                return _CHANGED
        return None

    async def watch(self, *, resumed: bool) -> None:
        """Read the files as they grow, from now on; those of before count as seen if they are
        resumed, and are gone otherwise."""
        await threads.FILES.run(self._begin, resumed)
        self._watching = asyncio.create_task(self._watch())

    def _begin(self, resumed: bool) -> None:
        if resumed:
            self._look()
        else:
            homes.forget(self._folder.parent, self._of.folder, ())
        self._begins = {name: growing.size for name, growing in self._seen.items()}
        # Until the run has ended well nobody knows how the files are left.
        self._record.unlink(missing_ok=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await threads.FILES.run(self._look)

    def _look(self) -> None:
        for name in self._there():
            with contextlib.suppress(OSError):
                self._seen.setdefault(name, Growing()).read_on(self._folder / name)

    async def end(self, turn: str) -> str | None:
        """Return why the conversation cannot be resumed; None if it can, which is recorded. Called
        when all programs of the run have ended."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        return await threads.FILES.run(self._end, turn)

    def _end(self, turn: str) -> str | None:
        if any(not growing.is_still(self._folder / name) for name, growing in self._seen.items()):
            return _CHANGED
        self._look()
        ids = [matches[-1] for name in self._seen if (matches := _ID.findall(name))]
        if len(set(ids)) < len(ids):
            # The program resumes by the id, and may take either.
            return "a second file of a conversation was added"
        for name, growing in self._seen.items():
            lines = self._lines(name, growing)
            if (why := self._of.problem(lines, turn)) is not None:
                return why
        self._store()
        return None

    def _lines(self, name: str, growing: Growing) -> Iterator[object]:
        """Yield the entries that were added to a file in this run."""
        begins = self._begins.get(name, 0)
        if growing.size - begins > _MOST:
            yield None
            return
        with _opened(self._folder / name) as fd:
            os.lseek(fd, begins, os.SEEK_SET)
            with os.fdopen(os.dup(fd), "rb") as file:
                for line in file.read(growing.size - begins).splitlines():
                    try:
                        yield json.loads(line)
                    except ValueError:
                        yield None

    def _store(self) -> None:
        left = {
            name: [growing.size, growing.digest.hexdigest()] for name, growing in self._seen.items()
        }
        self._record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._record.with_name(f".{random_name()}")
        aside.write_text(json.dumps(left))
        aside.replace(self._record)

    def _there(self) -> list[str]:
        """Return the files of conversations, by their paths in the folder."""
        there: list[str] = []
        tops = {pattern.partition("/")[0] for pattern in self._of.files}
        for top in sorted(tops):
            for folder, _, names in os.walk(self._folder / top):
                paths = (
                    os.path.relpath(os.path.join(folder, name), self._folder) for name in names
                )
                there += [
                    path
                    for path in paths
                    if any(fnmatchcase(path, pattern) for pattern in self._of.files)
                ]
        return there


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """Context manager: a regular file that the agent can write; no link and no special file."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("it is no regular file")
        yield fd
    finally:
        os.close(fd)
