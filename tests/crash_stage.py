"""Processes that make one call each, made to be killed at one point of it.

A stage has everything imported and forks a process whenever it is told to, so that one costs
milliseconds. A process keeps nothing for the next one: whatever survives it is in the database, in
the home folder, or lost. Clock, ids and tokens are played, so that two processes that do the same
leave the same rows, to the byte.
"""

import asyncio
import contextlib
import gc
import json
import os
import pkgutil
import random
import resource
import secrets
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import remit.services
import remit.store
from remit.app import App
from remit.clock import DAY, HOUR
from remit.errors import RemitError
from remit.ids import Ids
from remit.runtime import runs as live_runs
from remit.runtime.secrets import Vault
from remit.services import companies, events
from remit.services.command import Gate, verb_named
from remit.services.identity import Caller, as_system
from remit.settings import load
from remit.store.blobs import LocalBlobs
from remit.store.database import open_database
from remit.store.migrate import is_sqlite, sqlite_path
from remit.store.statement import POSTGRESQL, SQLITE, Statement
from remit.testing.clock import A_DAY, VirtualClock

ROOT = Path(__file__).parent.parent
SECONDS = 60.0
#: The moment of every call, after all that was prepared for it.
THEN = A_DAY + HOUR
#: Everything that is swept by its age is old enough then, whatever the day of the test.
MUCH_LATER = A_DAY + 36_500 * DAY
KEY = "the-same-request"

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


@dataclass(frozen=True)
class Call:
    """One call that changes something, in a situation in which it succeeds."""

    verb: str
    given: dict[str, Any] = field(default_factory=dict)
    #: A token; without one Remit itself calls.
    token: str = ""
    #: How it is called where bytes, files or folders come along with it.
    through: str = ""
    #: So much later than the others.
    later: int = 0
    #: What the repeat of a call is not told again.
    shown_once: tuple[str, ...] = ()
    #: Why a repeat is refused: what the call was made with, or for, is gone.
    refused: str = ""
    #: Whether it is refused at once, because somebody is asked; that is what it leaves.
    asks: bool = False
    #: Whether a key makes it one request; what only looks takes none, and Remit looks by itself.
    keyed: bool = True
    #: Whether it leaves anything at all; a preview does not.
    leaves: bool = True
    #: On an instance that was not started ("nothing"), or whose token is gone ("lost").
    home: str = "company"


@dataclass
class Order:
    """What one process is to do."""

    url: str
    home: str
    what: str = "call"
    call: dict[str, Any] = field(default_factory=dict)
    #: The same seed makes the same ids and tokens.
    seed: str = ""
    #: Where it is to die; nowhere unless said.
    point: str = ""
    #: How many bytes of the write-ahead log come onto the disk.
    bytes: int = 0
    #: Which of several bytes that are stored.
    which: int = 1


class Stage:
    """The process that forks the others, seen from the test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash_stage"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._buffer = b""

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def run(self, order: Order) -> dict[str, Any]:
        """Fork a process and wait for its end: how it ended, and what it said before."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
        self._process.stdin.flush()
        place = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            assert select.select([place], [], [], SECONDS)[0], "the stage says nothing"
            arrived = os.read(place, 1 << 16)
            assert arrived, "the stage is gone"
            self._buffer += arrived
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


def main() -> None:
    _warm_up()
    for line in sys.stdin:
        order = Order(**json.loads(line))
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(out)
            _be(order, into)
        os.close(into)
        with os.fdopen(out, "rb") as said:
            words = said.read()  # until nobody is left who could say something
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        found = {"code": code, "strays": _is_there(pid), **json.loads(words or b"{}")}
        os.write(1, json.dumps(found).encode() + b"\n")


def _warm_up() -> None:
    """Once, and not by each process: what is imported late, and what statements say."""
    for name in ("remit.store.postgres", "sqlalchemy.dialects.postgresql.psycopg"):
        import_module(name)
    for package in (remit.services, remit.store):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "migrations" not in found.name:
                module = import_module(found.name)
                for statement in vars(module).values():
                    if isinstance(statement, Statement):
                        statement.compiled(SQLITE)
                        statement.compiled(POSTGRESQL)
    gc.collect()
    gc.freeze()  # what is here already is not looked at again, in any of the processes


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _be(order: Order, into: int) -> None:
    code = 1
    try:
        os.setpgid(0, 0)  # so that whatever it starts and leaves can be told
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        said = asyncio.run(asyncio.wait_for(_ACTIONS[order.what](order), SECONDS / 2))
        with os.fdopen(into, "wb") as words:
            words.write(json.dumps(said, default=_plain).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


# ── what a process does ─────────────────────────────────────────────────────────────────────────


async def _call(order: Order) -> dict[str, Any]:
    call = Call(**order.call)
    chance, tokens = random.Random(order.seed), random.Random(f"{order.seed} tokens")
    # Seeded, so that the same call leaves the same; names of files stay nobody else's.
    _put(secrets, "token_urlsafe", lambda length: tokens.randbytes(length).hex())
    clock = VirtualClock(THEN + call.later)
    watch = Watch(call.verb, order)
    watch.begin()
    database = open_database(order.url)
    ids = Ids(clock, chance.getrandbits)
    settings = load({"REMIT_HOME": order.home, "REMIT_DATABASE_URL": order.url})
    app = App(settings, clock, ids=ids, database=database)
    caller = as_system() if not call.token else Caller(call.token)
    if call.keyed:
        caller = Caller(caller.token, KEY, caller.system)
    said: dict[str, Any] = {}
    try:
        said["answer"] = await WAYS[call.through](app, caller, call)
    except RemitError as error:
        said["refused"] = {"reason": error.reason, "as": error.as_text(), **error.details}
    said |= {"seen": watch.seen, "wal": watch.wal}
    await app.aclose()
    return said


async def _restart(order: Order) -> dict[str, Any]:
    """Begin like an instance among others, tidy up like one, and go through the whole record."""
    clock = VirtualClock(MUCH_LATER)
    app = App(load({"REMIT_HOME": order.home, "REMIT_DATABASE_URL": order.url}), clock)
    await app.first_start(alone=False)
    for _ in range(2):  # what is swept goes by way of the trash
        await app.tidy()
    board = Caller(app.settings.board_token_file.read_text().strip())
    verdicts = [
        await app.gate(board, events.verify, company=one["id"])
        for one in await app.gate(board, companies.listing)
    ]
    await app.aclose()
    return {"faults": [one for one in verdicts if not one["ok"]], "companies": len(verdicts)}


async def _company(order: Order) -> dict[str, Any]:
    from tests import crash_situations

    return await asyncio.to_thread(crash_situations.build, order.url, Path(order.home))


async def _nothing(order: Order) -> dict[str, Any]:
    """An instance with its schema that nobody has started yet."""
    App(load({"REMIT_HOME": order.home, "REMIT_DATABASE_URL": order.url})).close()
    return {}


async def _lost(order: Order) -> dict[str, Any]:
    """One that was started, and whose token somebody removed."""
    app = App(load({"REMIT_HOME": order.home, "REMIT_DATABASE_URL": order.url}))
    await app.first_start()
    app.settings.board_token_file.unlink()
    await app.aclose()
    return {}


_ACTIONS = {
    "call": _call,
    "restart": _restart,
    "company": _company,
    "nothing": _nothing,
    "lost": _lost,
}


async def _through_gate(app: App, caller: Caller, call: Call) -> Any:
    return await app.gate(caller, verb_named(call.verb), **call.given)


async def _create_file(app: App, caller: Caller, call: Call) -> Any:
    given = {**call.given, "source": call.given["source"].encode()}
    return await app.library.create(caller, given.pop("source"), **given)


async def _write_file(app: App, caller: Caller, call: Call) -> Any:
    given = {**call.given, "source": call.given["source"].encode()}
    return await app.library.write(caller, given.pop("source"), **given)


async def _read_file(app: App, caller: Caller, call: Call) -> Any:
    view, content = await app.library.read(caller, **call.given)
    return [view, content.decode()]


async def _send(app: App, caller: Caller, call: Call) -> Any:
    return await app.library.send(caller, **call.given)


async def _upload(app: App, caller: Caller, call: Call) -> Any:
    """A body that comes in pieces, larger than what is kept in memory."""

    async def pieces() -> AsyncIterator[bytes]:
        for piece in range(5):
            yield bytes([65 + piece]) * 100_000

    return await app.library.send(caller, body=pieces(), **call.given)


async def _create_outcome(app: App, caller: Caller, call: Call) -> Any:
    return await app.library.create_outcome(caller, **call.given)


async def _set_secret(app: App, caller: Caller, call: Call) -> Any:
    return await app.vault.put(caller, **call.given)


async def _remove_secret(app: App, caller: Caller, call: Call) -> Any:
    return await app.vault.remove(caller, **call.given)


async def _import(app: App, caller: Caller, call: Call) -> Any:
    whole = Path(app.settings.home).parent.joinpath("archive").read_bytes()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(whole), 1 << 16):
            yield whole[start : start + (1 << 16)]

    return await app.archive.import_(caller, pieces(), **call.given)


async def _export(app: App, caller: Caller, call: Call) -> Any:
    outline = await app.archive.export(caller, **call.given)
    return sum([len(piece) async for piece in app.archive.stream(outline)]) > 0


async def _begin_run(app: App, caller: Caller, call: Call) -> Any:
    run = await live_runs.begin(app.gate, app.ids, app.settings.workspaces, **call.given)
    return {"id": run.id}


async def _first_start(app: App, caller: Caller, call: Call) -> Any:
    await app.first_start()
    who = Caller(app.settings.board_token_file.read_text().strip())
    return [one["name"] for one in await app.gate(who, companies.listing)]


WAYS: dict[str, Callable[[App, Caller, Call], Any]] = {
    "": _through_gate,
    "library.create": _create_file,
    "library.write": _write_file,
    "library.read": _read_file,
    "library.send": _send,
    "upload": _upload,
    "library.create_outcome": _create_outcome,
    "vault.put": _set_secret,
    "vault.remove": _remove_secret,
    "archive.import_": _import,
    "archive.export": _export,
    "runs.begin": _begin_run,
    "app.first_start": _first_start,
}


# ── where it dies ───────────────────────────────────────────────────────────────────────────────


def _put(place: object, name: str, value: object) -> None:
    setattr(place, name, value)  # in a process that ends with this call


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Watch:
    """Counts the points that a call comes by, and ends the process at one of them."""

    def __init__(self, verb: str, order: Order) -> None:
        self._verb, self._order, self._point = verb, order, order.point
        self.seen: dict[str, int] = {}
        #: How long the write-ahead log was after the commit.
        self.wal = 0
        self._replies: list[Any] = []
        self._committed = False

    def at(self, point: str) -> None:
        self.seen[point] = self.seen.get(point, 0) + 1
        if point == self._point and self.seen[point] == self._order.which:
            die()

    def begin(self) -> None:
        self._watch_gate()
        self._watch_blobs()
        self._watch_files()

    def _watch_gate(self) -> None:
        execute, opened = Gate._execute, Gate._open

        def executed(gate: Any, tx: Any, caller: Any, called: Any, *more: Any) -> Any:
            reply = execute(gate, tx, caller, called, *more)
            if tx.writable and called.name == self._verb:
                self._replies.append(reply)
                self.at(DONE)
                if self._point == HALF:
                    self._cut_the_disk()
                if self._point == SENT:
                    _put(tx._connection, "commit", lambda: _send_commit(tx._connection))
            return reply

        def opening(gate: Any, reply: Any) -> Any:
            if any(reply is one for one in self._replies):
                self._committed = True
                self.wal = _wal_of(self._order.url)
                self.at(COMMITTED)
            return opened(gate, reply)

        _put(Gate, "_execute", executed)
        _put(Gate, "_open", opening)

    def _cut_the_disk(self) -> None:
        """The kernel ends the process when the log grows beyond this, in the middle of a write."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._order.bytes,) * 2)

    def _watch_blobs(self) -> None:
        place = LocalBlobs._place

        def placing(blobs: Any, path: str, file_id: str, sha256: str) -> None:
            self.at(STORED)
            place(blobs, path, file_id, sha256)
            self.at(PLACED)

        _put(LocalBlobs, "_place", placing)

    def _watch_files(self) -> None:
        import remit.app

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

        _put(Vault, "_write", writing)
        _put(Vault, "discard", discarding)
        _put(remit.app, "_write_token", token_writing)


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


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
