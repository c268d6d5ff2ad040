"""A clock that is set an hour forward and back while programs run: nothing is lost or run twice."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from pydantic import BaseModel

from remit.adapters import registry
from remit.adapters.contract import adopt
from remit.adapters.running import RunContext, RunResult
from remit.clock import HOUR, SECOND, Micros, SystemClock, to_iso
from remit.runtime.delivery.outbox import Outbox
from remit.runtime.runs import worker as worker_module
from remit.runtime.runs.worker import Worker
from remit.services.connections import outbox
from remit.services.execution import run_queue
from remit.services.identity import as_system
from tests import background
from tests.company import Company, Member
from tests.mailing import look, send
from tests.organisation import problems
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


@pytest.mark.requirement("FX-15")
def test_mail_to_a_channel_that_is_on_its_way_is_not_sent_again_for_the_clock() -> None:
    """Its lease is over by the clock; whoever holds it is this process, which knows better."""
    asked: list[str] = []

    class Gate:
        async def __call__(self, _: object, verb: object, **more: object) -> object:
            if verb is outbox.expired:
                return [("ours", 1), ("theirs", 1)]
            if verb is outbox.take_over:
                asked.append(str(more["message"]))
            return []

    async def no_secret(_: str, name: str) -> str:
        raise AssertionError(name)

    async def story() -> None:
        sending = Outbox(Gate(), no_secret)  # type: ignore[arg-type]
        sending._begin(("ours", 1), None, asyncio.sleep(0))
        await sending._dispatch()

    asyncio.run(story())
    assert asked == ["theirs"]
