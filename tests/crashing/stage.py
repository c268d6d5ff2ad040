"""Processes that make one call each, made to be killed at one point of it.

A stage has everything imported and forks a process whenever it is told to, so that one costs
milliseconds. A process keeps nothing for the next one: whatever survives it is in the database, in
the home folder, or lost. Clock, ids and tokens are played, so that two processes that do the same
leave the same rows, to the byte.
"""

import asyncio
import json
import os
import random
import resource
import secrets
import select
import signal
import sys
import traceback
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from remit.app import App
from remit.clock import DAY
from remit.errors import RemitError
from remit.ids import Ids
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.services.people import companies, instance
from remit.services.record import events
from remit.settings import load
from remit.store.engine.database import open_database
from remit.testing.clock import A_DAY, VirtualClock
from tests import cli_forks
from tests.crashing.call import THEN, Call
from tests.crashing.harms import HARMS
from tests.crashing.points import Watch, put
from tests.crashing.ways import WAYS
from tests.rootless import remove_root

#: Preparing takes a second; a machine that has much else to do takes fifty times as long.
SECONDS = 240.0
#: Everything that is swept by its age is old enough then, whatever the day of the test.
MUCH_LATER = A_DAY + 36_500 * DAY
KEY = "the-same-request"


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
    #: Which of several times that it comes there.
    which: int = 1
    #: How many bytes of the write-ahead log come onto the disk.
    length: int = 0
    #: What is broken in it; nothing unless the matrix itself is tried.
    harm: str = ""
    #: Which situations a company is prepared for; all, unless said.
    names: list[str] = field(default_factory=list)


class Stage:
    """The process that forks the others, seen from the test."""

    def __init__(self) -> None:
        self._process = cli_forks.instances().told("tests.crashing.stage")
        self._buffer = b""

    def close(self) -> None:
        self._process.close()

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
        if order.harm:
            HARMS[order.harm]()
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
    put(secrets, "token_urlsafe", lambda length: tokens.randbytes(length).hex())
    put(secrets, "choice", tokens.choice)
    clock = VirtualClock(THEN + call.later)
    watch = Watch(call.verb, order.url, order.point, order.which, order.length)
    watch.begin()
    database = open_database(order.url)
    ids = Ids(clock, chance.getrandbits)
    settings = load({"REMIT_HOME": order.home, "REMIT_DATABASE_URL": order.url})
    app = App(settings, clock, ids=ids, database=database)
    caller = as_system() if not call.token else Caller(call.token)
    if call.account:
        caller = Caller("", account=call.account)
    if call.keyed:
        caller = Caller(caller.token, KEY, caller.system, account=caller.account)
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
    from tests.crashing.situations import build

    return await asyncio.to_thread(build, order.url, Path(order.home), order.names)


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


async def _outdated(order: Order) -> dict[str, Any]:
    """One that was last started with another version of Remit."""
    app = App(load({"REMIT_HOME": order.home, "REMIT_DATABASE_URL": order.url}))
    await app.first_start()
    await app.gate(as_system(), instance.start_version, version="0.1.0")
    await app.aclose()
    return {}


async def _rootless(order: Order) -> dict[str, Any]:
    """One that was started, and whose root agent is gone."""
    app = App(load({"REMIT_HOME": order.home, "REMIT_DATABASE_URL": order.url}))
    await app.first_start()
    board = Caller(app.settings.board_token_file.read_text().strip())
    ceo = await app.gate(board, agents.show, agent="ceo")
    await remove_root(app, ceo["id"])
    await app.aclose()
    return {}


_ACTIONS = {
    "call": _call,
    "restart": _restart,
    "company": _company,
    "nothing": _nothing,
    "lost": _lost,
    "outdated": _outdated,
    "rootless": _rootless,
}
