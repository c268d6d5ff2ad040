"""The rule of waits before there were waits of a desk, beside that of today, in random histories.

Before, a request that named no outcome held up those that its run was started for, or else all that
its agent could work on. `Before` keeps that rule. Nothing that it would start an agent for is lost;
and what starts one now and did not before has one reason: news about an outcome that only a wait of
the desk concerns.
"""

import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from remit.model.execution.run import NUDGES
from remit.services.execution import run_queue, running
from remit.services.identity import as_system
from remit.services.messaging import questions
from remit.services.work import outcomes
from remit.store.execution import leases
from remit.testing.clock import VirtualClock
from tests.company import Company, Member, Run
from tests.mailing import send, take
from tests.working import claim, end, ready

STEPS = 250


@dataclass
class Before:
    """What the rule before made of the history so far, for one agent."""

    #: By question: what it held up, and whether it named that.
    held: dict[str, set[str]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    #: Outcomes with news because a wait for them ended.
    freed: set[str] = field(default_factory=set)

    def asked(self, question: str, started_for: set[str], able: set[str]) -> None:
        self.held[question] = (started_for & able) or able

    def answered(self, question: str) -> None:
        self.freed |= self.held.pop(question)

    def rests(self) -> set[str]:
        return set().union(*self.held.values())


class History:
    """A company in which one agent works, asks, is answered and gets more to do."""

    def __init__(self, company: Company, clock: VirtualClock, seed: int) -> None:
        self.company, self.clock, self.chance = company, clock, random.Random(seed)
        self.agent: Member = company.agent("dev", adapter_type="scripted", perpetual=True)
        self.before = Before()
        self.run: Run | None = None
        self.started_for: set[str] = set()
        self.questions: list[str] = []
        #: How often news starts the agent under both rules, and only today.
        self.same, self.more = 0, 0

    def able(self) -> set[str]:
        """The outcomes that the agent can work on."""
        rows = self.company.sql(
            "SELECT id FROM outcomes WHERE owner_id = ? AND status = 'open' AND open_prereqs = 0"
            " AND NOT perpetual AND kind = 'work'",
            self.agent.id,
        )
        return {outcome for (outcome,) in rows}

    def with_news(self) -> set[str]:
        rows = self.company.sql(
            "SELECT id FROM outcomes WHERE owner_id = ? AND news > seen AND kind = 'work'",
            self.agent.id,
        )
        return {outcome for (outcome,) in rows} & self.able()

    def step(self) -> str:
        name = self.chance.choice(
            ["give", "write", "ask", "ask about", "make", "finish", "end", "end", "answer", "wait"]
        )
        getattr(self, name.replace(" ", "_"))()
        return name

    def give(self) -> None:
        self.company.call(self.company.board, outcomes.create, parent=self.agent.id, title="A part")

    def write(self) -> None:
        send(self.company, self.company.board, "agent:dev", "Think of something.")

    def working(self) -> Run | None:
        """The run of the agent, which begins if anything is due."""
        if self.run is None and self.agent.id in ready(self.company):
            self.run = claim(self.company, self.agent)
            ((named,),) = self.company.sql("SELECT outcome_ids FROM runs WHERE id = ?", self.run.id)
            self.started_for = set(json.loads(named))
            take(self.company, self.run)
        return self.run

    def ask(self, **more: Any) -> None:
        run = self.working()
        if run is None:
            return
        question = self.company.call(
            run.caller, questions.ask, question="Red?", to="board", **more
        )["id"]
        self.questions.append(question)
        if more:
            self.before.held[question] = {more["outcome"]}
            self.before.named.add(more["outcome"])
        else:
            self.before.asked(question, self.started_for, self.able())

    def ask_about(self) -> None:
        if self.working() is not None and (able := sorted(self.able())):
            self.ask(outcome=self.chance.choice(able))

    def make(self) -> None:
        if (run := self.working()) is not None:
            self.company.call(run.caller, outcomes.create, parent=self.agent.id, title="My own")

    def finish(self) -> None:
        run = self.working()
        if run is not None and (able := sorted(self.able())):
            self.company.call(run.caller, outcomes.complete, outcome=self.chance.choice(able))

    def end(self) -> None:
        if self.run is not None:
            end(self.company, self.run)
            self.run = None
            self.before.freed.clear()

    def answer(self) -> None:
        if self.questions:
            question = self.questions.pop(self.chance.randrange(len(self.questions)))
            self.company.call(self.company.board, questions.answer, question=question, answer="Yes")
            self.before.answered(question)

    def wait(self) -> None:
        self.clock.advance(self.chance.choice(NUDGES))
        self.company.call(as_system(), run_queue.sweep, company=self.company.id)

    def compare(self) -> None:
        """Compare what either rule starts the agent for."""

        def look(tx: Any) -> list[Any]:
            lease = tx.one(leases.LEASE, agent=self.agent.id)
            return running.due_of(tx, self.agent.id, lease, self.clock.now())

        able, rests = self.able(), self.before.rests()
        due = self.company.app.database.submit_read(look).result()
        by_news = {one.id for one in due if one.news > one.seen and one.kind == "work"}
        expected = ((self.with_news() | self.before.freed) & able) - rests
        if expected and self.run is None:
            assert any(one.kind == "work" for one in due), "what it would start for is lost"
        rows = {outcome for (outcome,) in self.company.sql("SELECT outcome_id FROM wait_outcomes")}
        self.more += len(by_news - expected)
        self.same += len(by_news & expected)
        for more in by_news - expected:
            assert more in rests, "nothing held it up before"
            assert more not in rows, "a request about it is undecided"


@pytest.mark.requirement("FX-55", "FX-01")
@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_the_rule_before_would_start_is_lost(
    small: Company, clock: VirtualClock, seed: int
) -> None:
    history = History(small, clock, seed)
    for number in range(STEPS):
        done = history.step()
        try:
            history.compare()
        except AssertionError as error:
            raise AssertionError(f"step {number}, {done}: {error}") from error
    assert history.same
    assert history.more
