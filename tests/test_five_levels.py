"""A boss is stopped, paused, or taken away while five levels below are at work.

Control is of one agent: those below go on, and what they write to their boss waits for it. Only
when the mandate of a boss is taken back does everything below end with it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import Conflict, Refused
from remit.runtime.runs import processes
from remit.runtime.runs.worker import Worker
from remit.services.command import Verb
from remit.services.execution import runs
from remit.services.organisation import agents
from remit.services.people import users
from remit.services.work import delegation
from tests.company import Company, Member
from tests.mailing import look, send
from tests.organisation import problems
from tests.working import looked_again, processes_with, program, statuses, with_worker

LEVELS = 5
SLOTS = LEVELS + 2


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def company(small: Company) -> Company:
    return small


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.5)


class Chain:
    """A boss and five levels below it, each with a program that goes on until it is told."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.marks: dict[str, str] = {}
        self.boss = self._one("boss", "ceo")
        self.below: list[Member] = []
        for level in range(1, LEVELS + 1):
            above = self.below[-1].name if self.below else "boss"
            self.below.append(self._one(f"level{level}", above))
        for member in self.all:
            send(company, company.board, f"agent:{member.id}", "Work.")

    def _one(self, name: str, boss: str) -> Member:
        mark = self.marks[name] = f"mark-{self.company.app.ids.new()}"
        script = f"while [ ! -e $HOME/go ]; do sleep 0.05; done; : {mark}"
        return program(self.company, name, script, boss=boss)

    @property
    def all(self) -> list[Member]:
        return [self.boss, *self.below]

    def is_at_work(self, member: Member) -> bool:
        return bool(processes_with(self.marks[member.name]))

    def let_go(self, member: Member) -> None:
        (self.company.app.settings.home / "agents" / member.id / "go").touch()

    async def call(self, caller: Any, verb: Verb[..., Any], **given: Any) -> Any:
        return await self.company.app.gate(caller, verb, **given)

    async def begun(self) -> dict[str, int]:
        """The first process of each; what a shell forks comes and goes."""
        await until(lambda: all(self.is_at_work(member) for member in self.all))
        return {name: min(processes_with(mark)) for name, mark in self.marks.items()}


async def until(look_: Any, seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(look_):  # noqa: ASYNC110
            await asyncio.sleep(0.03)


def test_those_below_a_stopped_boss_go_on_and_what_they_write_waits_for_it(
    company: Company,
) -> None:
    chain = Chain(company)
    first, last = chain.below[0], chain.below[-1]

    async def story(worker: Worker) -> None:
        before = await chain.begun()
        await chain.call(company.ceo.caller, agents.stop, agent=chain.boss.id)
        await until(lambda: not chain.is_at_work(chain.boss))
        # What a boss may not is not changed by its being stopped.
        with pytest.raises(Refused):
            await chain.call(last.caller, agents.start, agent=chain.boss.id)
        await company.app.library.send(
            first.caller, to=f"agent:{chain.boss.id}", body="Done?", subject="waiting"
        )
        await looked_again(worker)
        for member in chain.below:
            assert before[member.name] in processes_with(chain.marks[member.name])
            assert statuses(company, member) == ["running"]
            chain.let_go(member)
        await until(lambda: worker.busy == 0)
        # It is kept from starting, with mail and all.
        await looked_again(worker)
        assert statuses(company, chain.boss) == ["cancelled"]
        chain.let_go(chain.boss)
        await chain.call(company.ceo.caller, agents.start, agent=chain.boss.id)
        await until(lambda: statuses(company, chain.boss) == ["cancelled", "completed"])

    with_worker(company, story, slots=SLOTS)
    for member in chain.below:
        assert statuses(company, member) == ["completed"]
    assert all(look(company, member) == [] for member in chain.all)
    assert problems(company) == []


@pytest.mark.requirement("HH-27")
def test_control_reaches_all_five_levels_and_one_at_a_time(company: Company) -> None:
    chain = Chain(company)

    async def story(worker: Worker) -> None:
        before = await chain.begun()
        # A pause lets the run go on, of a boss as of anybody.
        await chain.call(company.ceo.caller, agents.pause, agent=chain.boss.id)
        with pytest.raises(Conflict):  # nobody would be above those below
            await chain.call(company.ceo.caller, agents.terminate, agent=chain.boss.id)
        for number, member in enumerate(chain.below):
            live = await chain.call(chain.boss.caller, runs.listing, company=None, agent=member.id)
            assert [run["status"] for run in live] == ["running"]
            await chain.call(chain.boss.caller, agents.stop, agent=member.id)
            await until(lambda member=member: not chain.is_at_work(member))
            for other in (chain.boss, *chain.below[number + 1 :]):
                assert before[other.name] in processes_with(chain.marks[other.name])
        assert statuses(company, chain.boss) == ["running"]
        for member in chain.below:
            chain.let_go(member)
            await company.app.library.send(company.board, to=f"agent:{member.id}", body="Go on.")
        await looked_again(worker)
        assert worker.busy == 1  # who is stopped is not started by its mail
        for member in chain.below:
            await chain.call(chain.boss.caller, agents.start, agent=member.id)
        chain.let_go(chain.boss)
        await until(lambda: worker.busy == 0 and all(map(ended_well, chain.below)))

    def ended_well(member: Member) -> bool:
        return statuses(company, member) == ["cancelled", "completed"]

    with_worker(company, story, slots=SLOTS)
    assert statuses(company, chain.boss) == ["completed"]
    assert all(look(company, member) == [] for member in chain.below)
    assert problems(company) == []


def test_everything_below_ends_with_a_boss_whose_mandate_is_taken_back(company: Company) -> None:
    chain = Chain(company)

    async def story(worker: Worker) -> None:
        await chain.begun()
        for member in chain.all:
            await company.app.library.send(company.board, to=f"agent:{member.id}", body="Later.")
        await chain.call(
            company.ceo.caller, delegation.reclaim, outcome=chain.boss.id, reason="no use"
        )
        await until(lambda: not any(map(chain.is_at_work, chain.all)))
        await until(lambda: worker.busy == 0)

    with_worker(company, story, slots=SLOTS)
    for member in chain.all:
        assert statuses(company, member) == ["cancelled"]
        with pytest.raises(Exception, match="token"):
            company.call(member.caller, users.me)
    gone = company.sql("SELECT status FROM agents WHERE name LIKE 'level_' OR name = 'boss'")
    assert gone == [("terminated",)] * (LEVELS + 1)
    # Mail that nobody took up awaits a person.
    dead = company.sql("SELECT count(*) FROM deliveries WHERE status = 'dead'")
    assert dead == [(LEVELS + 1,)]
    assert not list(company.app.settings.workspaces.iterdir())
    assert problems(company) == []
