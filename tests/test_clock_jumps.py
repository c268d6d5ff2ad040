"""A clock that is set an hour forward and back while programs run: nothing is lost or run twice."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from remit.adapters import registry
from remit.adapters.contract import adopt
from remit.adapters.running import RunContext, RunResult
from remit.channels import registry as channel_registry
from remit.channels.contract import Parcel
from remit.clock import HOUR, SECOND, Micros, SystemClock, to_iso
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.outbox import Outbox, Posts
from remit.runtime.delivery.receiving import IntakeLoop, Receivers
from remit.runtime.runs import worker as worker_module
from remit.runtime.runs.worker import Worker
from remit.services.chat import accounts, intake, posts, receivers
from remit.services.connections import outbox
from remit.services.execution import run_queue
from remit.services.identity import as_system
from remit.testing.channels import MemoryChannel
from tests import background
from tests.company import Company, Member
from tests.mailing import look, send
from tests.organisation import problems
from tests.test_chat import Chat, words_of
from tests.working import (
    at_work,
    held,
    listed,
    over,
    processes_with,
    program,
    statuses,
    with_worker,
)

#: Longer than workers need to look at their leases a few times.
A_WHILE = 2.5


TWICE = pytest.mark.campaign("there and back is tried each time, from either side")


class SettableClock(SystemClock):
    """The clock of this machine, which somebody sets."""

    def __init__(self) -> None:
        self.off_by: Micros = 0

    def now(self) -> Micros:
        return super().now() + self.off_by


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def company(small: Company) -> Company:
    return small


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "SWEEP_SECONDS", 0.3)


def waiting(company: Company, name: str = "dev") -> tuple[Member, str]:
    """An agent that works until it is told that it can end."""
    mark = f"mark-{company.app.ids.new()}"
    dev = program(company, name, f"while [ ! -e $HOME/go ]; do sleep 0.05; done; : {mark}")
    return dev, mark


@pytest.mark.parametrize(
    "jumps",
    [
        (HOUR, -HOUR),
        (-HOUR, HOUR),
        pytest.param((HOUR, HOUR), marks=TWICE),
        pytest.param((-HOUR, -HOUR), marks=TWICE),
    ],
)
def test_a_run_goes_on_while_the_clock_is_set(
    company: Company, clock: SettableClock, jumps: tuple[Micros, Micros]
) -> None:
    dev, mark = waiting(company)
    send(company, company.board, "agent:dev")

    async def story(worker: Worker) -> None:
        while not (pids := processes_with(mark)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        for jump in jumps:
            clock.off_by += jump
            await asyncio.sleep(A_WHILE)
            assert statuses(company, dev) == ["running"]
            assert min(pids) in processes_with(mark)
        (company.app.settings.home / "agents" / dev.id / "go").touch()
        while worker.busy:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    with_worker(company, story, lease=SECOND)
    assert statuses(company, dev) == ["completed"]
    assert look(company, dev) == []
    assert problems(company) == []


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_run_has_the_time_that_it_was_given_whatever_the_clock_says(
    company: Company, clock: SettableClock, jump: Micros
) -> None:
    mark = f"mark-{company.app.ids.new()}"
    dev = program(company, "dev", f"sleep 600; : {mark}", config={"timeoutSeconds": 3})
    send(company, company.board, "agent:dev")
    began = 0.0

    def seen() -> bool:
        nonlocal began
        if not began and processes_with(mark):
            began = time.monotonic()
            clock.off_by += jump
        return over(company, dev)()

    at_work(company, seen)
    assert 2 < time.monotonic() - began < 12
    assert listed(company, dev)[-1]["exit_reason"] == "timeout"


def test_who_was_woken_before_the_clock_was_set_back_does_not_wait_an_hour(
    company: Company, clock: SettableClock
) -> None:
    dev = program(company, "dev", "exit 0")
    send(company, company.board, "agent:dev")
    clock.off_by -= HOUR
    at_work(company, over(company, dev))
    assert statuses(company, dev) == ["completed"]


def test_a_pause_after_a_failure_stays_a_pause(company: Company, clock: SettableClock) -> None:
    dev = program(company, "dev", "exit 1")
    send(company, company.board, "agent:dev")
    at_work(company, over(company, dev))
    clock.off_by -= HOUR
    began = time.monotonic()
    at_work(company, over(company, dev, 2))
    # Two seconds, counted anew; not an hour, and not at once.
    assert 1 < time.monotonic() - began < 15
    assert held(company, dev).failures == 2
    # The other way round it is over sooner, and the next one is as long as ever.
    clock.off_by += 2 * HOUR
    at_work(company, over(company, dev, 3))
    assert held(company, dev).due_at > clock.now() + 20 * SECOND


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_dead_worker_is_noticed_whatever_the_clock_says(
    company: Company, clock: SettableClock, jump: Micros
) -> None:
    dev = program(company, "dev", "exit 0")
    send(company, company.board, "agent:dev")
    run = company.app.ids.new()
    folder = str(company.app.settings.workspaces / run)
    company.call(
        as_system(), run_queue.claim, agent=dev.id, run=run, workspace=folder, worker="dead"
    )
    clock.off_by += jump
    at_work(company, over(company, dev, 2), lease=SECOND)
    assert statuses(company, dev) == ["lost", "completed"]
    assert problems(company) == []


def test_what_was_put_off_comes_when_the_clock_says_so(
    company: Company, clock: SettableClock
) -> None:
    dev = program(company, "dev", "exit 0")
    later = to_iso(clock.now() + HOUR // 2)
    send(company, company.board, "agent:dev", deliver_at=later)
    assert look(company, dev) == []
    clock.off_by += HOUR
    company.wait(company.app.clockwork.tick())
    clock.off_by -= HOUR  # what has come does not go again
    company.wait(company.app.clockwork.tick())
    at_work(company, over(company, dev))
    assert statuses(company, dev) == ["completed"]
    assert problems(company) == []


class Patient:
    """An adapter that works until it is told that it can end."""

    type = "patient"
    background = True
    at_it = threading.Event()
    may_end = threading.Event()

    class Config(BaseModel):
        pass

    def check(self) -> bool:
        return True

    async def run(self, context: RunContext) -> RunResult:
        self.at_it.set()
        while not self.may_end.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return RunResult(True, text=context.turn)


@pytest.mark.requirement("FX-15")
@pytest.mark.parametrize("jump", [24 * HOUR, -HOUR])
def test_a_background_job_is_not_begun_again_because_the_clock_was_set(
    company: Company, clock: SettableClock, jump: Micros, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a night in which the machine slept: by the clock every lease is over at once."""
    monkeypatch.setattr(registry.installed, "_plugins", {"patient": adopt(Patient)})
    Patient.at_it.clear()
    Patient.may_end.clear()
    dev = company.agent("dev", adapter_type="patient", perpetual=True)
    background.ask(company, dev, "Once.")
    slept: list[float] = []

    def look() -> bool:
        if Patient.at_it.is_set() and not slept:
            clock.off_by += jump
            slept.append(time.monotonic())
        if slept and time.monotonic() - slept[0] > 1:  # two looks at the leases of others
            Patient.may_end.set()
        return background.over(company)()

    background.carried_out(company, look, lease=SECOND // 2)
    assert background.events(company) == ["job.start", "job.end"]


# ── chats ───────────────────────────────────────────────────────────────────────────────────────

DAY_ON, HOUR_BACK = 24 * HOUR, -HOUR


@pytest.fixture
def chat(company: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(channel_registry.installed, "_plugins", {"memory": MemoryChannel()})
    yield Chat(company)
    MemoryChannel.outsides.clear()


def lines(chat: Chat, **more: Any) -> list[Any]:
    """The loops of a process that talks to chats."""
    gate, connector = chat.c.app.gate, Connector(chat.c.app.vault.value)
    return [
        IntakeLoop(gate, chat.c.app.ids, connector, **more),
        Posts(gate, connector, **more),
        Outbox(gate, connector, **more),
        Receivers(gate, connector, **more),
    ]


def left(chat: Chat) -> int:
    tables = ("channel_intake", "channel_posts", "channel_deliveries")
    waiting = "SELECT count(*) FROM {} WHERE status IN ('queued', 'leased')"
    return sum(chat.c.sql(waiting.format(one))[0][0] for one in tables)


def in_line(chat: Chat) -> None:
    """Something of each: what came, an answer of Remit's, and one of the agent's."""
    chat.link("ann")
    chat.outside.say("/help")
    chat.store()
    chat.c.wait(chat.intake.tick())
    send(chat.c, chat.agent.caller, "channel:memory:room", "Good morning.")
    chat.outside.say("Hello?", "eve")
    chat.store()


def seen_once(chat: Chat) -> None:
    assert left(chat) == 0
    [help_] = [one for one in chat.outside.seen("with-ann") if "/abort" in one.text]
    [said] = chat.outside.seen("room")
    for one, text in ((help_, "/abort"), (said, "Good morning.")):
        assert one.text.count(text) == 1
    assert [one["body"] for one in chat.letters()] == ["Hello?"]


@pytest.mark.requirement("FX-24", "FX-26")
@pytest.mark.parametrize("jump", [DAY_ON, HOUR_BACK])
@pytest.mark.parametrize("failed", [False, True], ids=["new", "tried"])
def test_what_waits_in_the_lines_of_a_chat_does_not_wait_for_the_clock(
    chat: Chat, clock: SettableClock, jump: Micros, failed: bool
) -> None:
    in_line(chat)
    if failed:
        chat.outside.failures += ["busy"] * 2
        chat.c.wait(chat.posts.tick())
        chat.c.wait(lines(chat)[2].tick())
        [[item]] = chat.c.sql("SELECT id FROM channel_intake WHERE status = 'queued'")
        held = chat.c.call(as_system(), intake.claim, intake=item, worker="w")
        assert held is not None
        about: Any = {"intake": item, "epoch": held["epoch"]}
        chat.c.call(as_system(), intake.failed, **about, why="it broke")
        assert left(chat) == 3
    clock.off_by += jump
    for loop in lines(chat)[:3]:
        chat.c.wait(loop.tick())
    seen_once(chat)


@pytest.mark.requirement("FX-24", "FX-26")
@pytest.mark.parametrize("jump", [DAY_ON, HOUR_BACK])
def test_who_was_killed_while_it_talked_to_a_chat_is_missed_whatever_the_clock_says(
    chat: Chat, clock: SettableClock, jump: Micros
) -> None:
    """Beside others, on PostgreSQL, nobody else knows that a process is gone."""
    in_line(chat)
    gone: Any = {"worker": "gone"}
    verb: Any
    for table, key, verb, noun in (
        ("channel_intake", "id", intake.claim, "intake"),
        ("channel_posts", "id", posts.claim, "post"),
        ("channel_deliveries", "message_id", outbox.claim, "message"),
    ):
        queued = "SELECT {} FROM {} WHERE status = 'queued'"
        [[item]] = chat.c.sql(queued.format(key, table))
        assert chat.c.call(as_system(), verb, **{noun: item}, **gone) is not None
    clock.off_by += jump
    chat.outside.say("Still there?", "bob")
    begun = time.monotonic()
    loops = lines(chat, lease=SECOND // 2)

    async def story() -> None:
        for loop in loops:
            loop.start()
        try:
            async with asyncio.timeout(20):
                while len(chat.c.sql("SELECT 1 FROM channel_intake")) < 4 or left(chat):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            for loop in loops:
                await loop.stop()

    chat.c.wait(story())
    assert 0.5 < time.monotonic() - begun < 15
    assert left(chat) == 0
    assert [one["body"] for one in chat.letters()] == ["Hello?", "Still there?"]
    for place in ("with-ann", "room"):
        # Nobody knows whether it got through before, so it says that it may be there already.
        assert words_of(chat.outside.seen(place)[-1]).startswith("(again) ")
    assert len(chat.outside.seen("room")) == 1


@pytest.mark.requirement("FX-15", "FX-24")
@pytest.mark.parametrize("jump", [DAY_ON, HOUR_BACK])
def test_what_somebody_sends_to_a_chat_now_is_not_sent_by_another_for_the_clock(
    chat: Chat, clock: SettableClock, jump: Micros
) -> None:
    """By the clock its lease is over; by the clock that nobody can set, who has it is at work."""
    at_it, may_end = asyncio.Event(), asyncio.Event()

    class Slow(MemoryChannel):
        async def deliver(self, parcel: Parcel) -> str | None:
            at_it.set()
            await may_end.wait()
            return await super().deliver(parcel)

    channel_registry.installed._plugins["memory"] = Slow()  # type: ignore[index]
    send(chat.c, chat.agent.caller, "channel:memory:room", "Good morning.")
    lease = SECOND // 2
    ours, theirs = (lines(chat, name=name, lease=lease)[2] for name in ("ours", "theirs"))

    async def story() -> None:
        ours.start()
        async with asyncio.timeout(20):
            await at_it.wait()
            theirs.start()
            clock.off_by += jump
            await asyncio.sleep(3 * lease / SECOND)  # a worker that is gone is missed by then
            may_end.set()
            while left(chat):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await ours.stop()
        await theirs.stop()

    chat.c.wait(story())
    [shown] = chat.outside.seen("room")
    assert shown.text == "ceo:\nGood morning."
    assert chat.c.sql("SELECT attempt, worker FROM channel_deliveries") == [(1, "ours")]


@pytest.mark.requirement("FX-25")
@pytest.mark.parametrize("jump", [DAY_ON, HOUR_BACK])
def test_a_code_lasts_no_longer_because_the_clock_was_set(
    chat: Chat, clock: SettableClock, jump: Micros
) -> None:
    code = chat.c.call(chat.c.board, accounts.code, kind="memory")["code"]
    clock.off_by += jump
    assert "not good" in chat.say(code)
    assert "is linked to" in chat.link("ann")


@pytest.mark.requirement("FX-24")
def test_a_channel_that_asked_for_a_pause_is_listened_to_when_the_clock_is_set_back(
    chat: Chat, clock: SettableClock
) -> None:
    about: Any = {"binding": chat.binding, "epoch": chat.epoch}
    chat.c.call(as_system(), receivers.ended, **about, problem="gone", retry_after=10 * HOUR)
    assert chat.c.call(as_system(), receivers.ready) == []
    clock.off_by -= HOUR
    assert chat.c.call(as_system(), receivers.ready) == [chat.binding]
