"""Processes that send, take up, answer and acknowledge mail, made to be killed.

A stage has everything imported and forks a life whenever it is told to, so that starting one costs
milliseconds. A life says what was acknowledged to it as soon as it was; it keeps nothing for the
next one, so whatever survives it is in the database.
"""

import asyncio
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from remit.app import App
from remit.clock import to_iso
from remit.errors import Conflict, Unauthenticated
from remit.runtime.runs import lifecycle
from remit.services.command import Gate
from remit.services.identity import Caller
from remit.services.messaging import inbox
from remit.services.work import outcomes
from tests import cli_forks
from tests.company import settings

#: The last life does all that those before it did not come to; on a busy machine, nearly all.
SECONDS = 240.0
#: Every so many messages one is for later.
DEFERRED_EVERY = 5
#: How long a worker waits for more, in seconds; longer than anything is deferred.
IDLE = 0.2
#: Where a life may end: before a verb runs, with its transaction open, or with its answer lost.
MOMENTS = ("before", "inside", "after")
VERBS = (
    "mail.send",
    "runs.start",
    "inbox.take",
    "inbox.acknowledge",
    "runs.end",
    "schedules.run_due",
)


@dataclass
class Life:
    """What one process is to do."""

    url: str
    home: str
    #: Who sends: the token, and the number of the next message.
    senders: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: How many each of them sends in all.
    letters: int = 0
    #: The token and the id of the agent that works; nobody works without.
    worker: str = ""
    worker_id: str = ""
    #: Where it ends by its own hand: verb, moment, and which of the calls.
    crash: tuple[str, str, int] | None = None
    #: Whether it begins like an instance, which takes all runs that it finds for lost.
    starts: bool = True
    #: Do the same again whenever another process's run was in the way this often.
    steals_after: int = 0


class Stage:
    """The process that forks lives, seen from the test."""

    def __init__(self) -> None:
        self._process = cli_forks.instances().told("tests.mail_stage")
        self._buffer = b""

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def begin(self, life: Life) -> int:
        """Fork; answers the process to kill."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(life)).encode() + b"\n")
        self._process.stdin.flush()
        kind, pid, _ = self._next()
        assert kind == "born", kind
        return int(pid)

    def end(self) -> tuple[int, list[list[Any]]]:
        """Wait until the life is over: how it ended, and all that it said."""
        messages: list[list[Any]] = []
        while True:
            message = self._next()
            if message[0] == "died":
                return os.waitstatus_to_exitcode(message[1]), messages
            messages.append(message)

    def _next(self) -> list[Any]:
        assert self._process.stdout is not None
        place = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([place], [], [], SECONDS)
            assert ready, "the stage says nothing"
            arrived = os.read(place, 1 << 16)
            assert arrived, "the stage is gone"
            self._buffer += arrived
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: list[Any] = json.loads(line)
        return message


def say(*what: object) -> None:
    """What happened, and when, by the clock that all processes share."""
    os.write(1, json.dumps([*what, time.monotonic_ns()]).encode() + b"\n")


def main() -> None:
    for order in sys.stdin:
        pid = os.fork()
        if not pid:
            # By itself, before it says anything else.
            say("born", os.getpid())
            code = 1
            try:
                asyncio.run(asyncio.wait_for(_live(Life(**json.loads(order))), SECONDS / 2))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        say("died", os.waitpid(pid, 0)[1])


async def _live(life: Life) -> None:
    if life.crash is not None:
        arm(*life.crash)
    app = App(settings(life.url, Path(life.home)))
    if life.starts:
        await app.first_start()
    say("ready")
    sending = [
        asyncio.create_task(_send(app, name, token, number, life.letters))
        for name, (token, number) in life.senders.items()
    ]
    done = asyncio.Event()
    clock = asyncio.create_task(_watch_the_clock(app, done))
    if life.worker:
        await _work(app, life, sending)
    await asyncio.gather(*sending)
    done.set()
    await clock
    await app.aclose()


def arm(verb: str, moment: str, which: int) -> None:
    """Make this process end itself, as by kill -9, at a point around a commit."""
    counted = 0
    execute, opened = Gate._execute, Gate._open

    def reached(name: str) -> bool:
        nonlocal counted
        counted += name == verb
        return name == verb and counted == which

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    answers: list[Any] = []

    def executed(self: Any, ctx: Any, caller: Any, called: Any, *more: Any) -> Any:
        now = ctx.tx.writable and reached(called.name)
        if now and moment == "before":
            die()
        reply = execute(self, ctx, caller, called, *more)
        if now and moment == "inside":
            die()
        if now:
            answers.append(reply)
        return reply

    def opening(self: Any, reply: Any) -> Any:
        if any(reply is answer for answer in answers):
            die()
        return opened(self, reply)

    setattr(Gate, "_execute", executed)  # noqa: B010  the type checker objects to the plain way
    setattr(Gate, "_open", opening)  # noqa: B010


def body_of(sender: str, number: int) -> str:
    return f"{sender} {number}\n" * (number % 7 + 1)


def is_deferred(number: int) -> bool:
    return number % DEFERRED_EVERY == 0


async def _send(app: App, name: str, token: str, number: int, letters: int) -> None:
    """Number after number. A key makes sure that none is sent twice, however often it is tried."""
    while number < letters:
        caller = Caller(token, f"{name}-{number}")
        sent = await app.gate.first_answer(caller)
        if sent is None:
            later = to_iso(app.clock.now() + 20_000) if is_deferred(number) else None
            arguments = {"to": "agent:worker", "subject": f"{name}-{number}", "deliver_at": later}
            sent = await app.library.send(caller, body=body_of(name, number), **arguments)
        say("sent", name, number, sent["id"])
        number += 1


async def _watch_the_clock(app: App, done: asyncio.Event) -> None:
    while not done.is_set():
        await app.clockwork.tick()
        await asyncio.sleep(0.005)


async def _work(app: App, life: Life, sending: Sequence[asyncio.Task[None]]) -> None:
    """While there is something to do: a run that takes mail up, answers and acknowledges it."""
    me, idle_since, in_the_way = Caller(life.worker), time.monotonic(), 0
    while True:
        if not await app.gate(me, outcomes.listing, actionable=True):
            if all(task.done() for task in sending) and time.monotonic() > idle_since + IDLE:
                return
            await asyncio.sleep(0.003)
            continue
        idle_since = time.monotonic()
        try:
            run = await lifecycle.begin(app.gate, app.ids, app.settings.workspaces, life.worker_id)
        except Conflict:  # another process has a run of this agent
            in_the_way += 1
            await asyncio.sleep(0.003)
            if life.steals_after and in_the_way % life.steals_after == 0:
                await lifecycle.recover(app.gate, app.settings.workspaces, app.kept)
            continue
        try:
            await _run(app, Caller(run.token), run.id)
            await lifecycle.finish(app.gate, run)
            say("ended", run.id)
        except (Unauthenticated, Conflict):
            say("lost", run.id)


async def _run(app: App, me: Caller, run: str) -> None:
    taken = (await app.gate(me, inbox.take, limit=5))["messages"]
    for letter in taken:
        say("leased", letter["subject"], letter["attempt"], run)
    for letter in taken:
        say("processed", letter["subject"], letter["body"])
        key = Caller(me.token, f"reply-{letter['id']}")
        answer = {"to": letter["sender"], "reply_to": letter["id"], "subject": "re"}
        await app.library.send(key, body=f"to {letter['subject']}", **answer)
        await app.gate(me, inbox.acknowledge, ids=[letter["id"]])
        say("acknowledged", letter["subject"], run)
