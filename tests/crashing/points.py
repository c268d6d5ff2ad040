"""Where a process may die in the middle of a call, and how it is made to.

| Point | What was done by then | What a kill leaves |
|---|---|---|
| `KEPT` | the value of a secret is in its file | nothing but the file, which is tidied away |
| `TOKEN_WRITTEN` | a new board token is in its file | nothing but the file, which is used |
| `STORED` | bytes are synced, under a name of their own | nothing but the bytes, which are swept |
| `PLACED` | bytes have their place in the blobs | nothing but the bytes, which are swept |
| `DONE` | the verb has run, the answer is stored, all in an open transaction | nothing |
| `HALF` | SQLite has written all but the end of the commit into its log | nothing |
| `SENT` | PostgreSQL was told to commit, and has not answered | nothing or everything |
| `COMMITTED` | the commit is done, and nobody was told | everything |
| `REMOVING` | the same, and what it replaced is to be deleted next | everything; that is tidied |
"""

import os
import resource
import signal
from pathlib import Path
from typing import Any

import remit.app
from remit.runtime.secrets.values import Vault
from remit.services.command import Gate
from remit.store.blob_store.blobs import LocalBlobs
from remit.store.engine.migrate import is_sqlite, sqlite_path

# Where a process may die, in the order in which it comes there.
KEPT = "a value is kept and no row names it"
TOKEN_WRITTEN = "a token is in its file and not known to the database"
STORED = "bytes are on the disk and have no place"
PLACED = "bytes have their place and no row names them"
DONE = "all is done and nothing committed"
HALF = "the commit is half written"
SENT = "the commit is on its way and nobody waits for it"
COMMITTED = "it is committed and nobody was told"
REMOVING = "it is committed and what it replaced is still there"
#: What each is for: a kill leaves nothing, everything, or one of the two.
LEAVES = {
    KEPT: "nothing",
    TOKEN_WRITTEN: "nothing",
    STORED: "nothing",
    PLACED: "nothing",
    DONE: "nothing",
    HALF: "nothing",
    SENT: "either",
    COMMITTED: "everything",
    REMOVING: "everything",
}


def put(place: object, name: str, value: object) -> None:
    setattr(place, name, value)  # in a process that ends with this call


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Watch:
    """Counts the points that a call comes by, and ends the process at one of them."""

    def __init__(self, verb: str, url: str, point: str, which: int, length: int) -> None:
        """`which` of several times; `length` is how much of the log comes onto the disk."""
        self._verb, self._url, self._point = verb, url, point
        self._which, self._length = which, length
        self.seen: dict[str, int] = {}
        #: How long the write-ahead log was after the commit.
        self.wal = 0
        self._replies: list[Any] = []
        self._committed = False

    def at(self, point: str) -> None:
        self.seen[point] = self.seen.get(point, 0) + 1
        if point == self._point and self.seen[point] == self._which:
            die()

    def begin(self) -> None:
        self._watch_gate()
        self._watch_blobs()
        self._watch_files()

    def _watch_gate(self) -> None:
        execute, opened = Gate._execute, Gate._open

        def executed(gate: Any, ctx: Any, caller: Any, called: Any, *more: Any) -> Any:
            reply = execute(gate, ctx, caller, called, *more)
            tx = ctx.tx
            if tx.writable and called.name == self._verb:
                self._replies.append(reply)
                self.at(DONE)
                if self._point == HALF:
                    self._cut_the_disk()
                if self._point == SENT:
                    put(tx._connection, "commit", lambda: _send_commit(tx._connection))
            return reply

        def opening(gate: Any, reply: Any) -> Any:
            if any(reply is one for one in self._replies):
                self._committed = True
                self.wal = _wal_of(self._url)
                self.at(COMMITTED)
            return opened(gate, reply)

        put(Gate, "_execute", executed)
        put(Gate, "_open", opening)

    def _cut_the_disk(self) -> None:
        """The kernel ends the process when the log grows beyond this, in the middle of a write."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._length,) * 2)

    def _watch_blobs(self) -> None:
        place = LocalBlobs._place

        def placing(blobs: Any, path: str, file_id: str, sha256: str) -> None:
            self.at(STORED)
            place(blobs, path, file_id, sha256)
            self.at(PLACED)

        put(LocalBlobs, "_place", placing)

    def _watch_files(self) -> None:
        write, discard, token = Vault._write, Vault.discard, remit.app._write_token

        def writing(vault: Any, company: str, raw: bytes) -> str:
            kept = write(vault, company, raw)
            self.at(KEPT)
            return kept

        async def discarding(vault: Any, place: str | None) -> None:
            if self._committed and place is not None:
                self.at(REMOVING)
            await discard(vault, place)

        def token_writing(path: Path) -> str:
            written = token(path)
            self.at(TOKEN_WRITTEN)
            return written

        put(Vault, "_write", writing)
        put(Vault, "discard", discarding)
        put(remit.app, "_write_token", token_writing)


def _wal_of(url: str) -> int:
    path = Path(f"{sqlite_path(url)}-wal") if is_sqlite(url) else None
    return path.stat().st_size if path is not None and path.exists() else 0


def _send_commit(connection: Any) -> None:
    """Say COMMIT, and be gone before the server answers."""
    server = connection.pgconn
    server.send_query(b"COMMIT")
    while server.flush():
        pass
    die()
