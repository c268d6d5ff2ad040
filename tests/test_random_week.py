"""A week of random days: agents with changing habits, people who answer or do not, stops and ends.

Whatever happens, no request of a person is left without an end, a reason, or a row that awaits its
person.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from remit.clock import DAY, HOUR
from remit.errors import RemitError
from remit.services.governance import approvals
from remit.services.messaging import inbox, questions, threads, wish_withdrawal
from remit.services.organisation import agents, halts
from remit.services.screens import needs_you
from remit.services.work import outcomes, submitting
from remit.testing import (
    AgentDied,
    Member,
    RunFailed,
    Simulation,
    ToolRefused,
    Turn,
    check,
)
from remit.testing.invariants import check_requests
from tests.test_fruitless import HABITS as LONELY
from tests.test_fruitless import TOO_MANY, WISH

DAYS = 7
MANY = pytest.mark.campaign("each week takes seconds; the tests play a few of them")


# ── habits ──────────────────────────────────────────────────────────────────────────────────────


def wishes_of(turn: Turn) -> list[Any]:
    return [letter for letter in turn.mail if letter.sender.startswith("user:")]


def tried(turn: Turn, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool; it may be refused, but not because it was called wrongly."""
    try:
        return turn.call(tool, **arguments)
    except ToolRefused as refusal:
        if refusal.code == "invalid":
            raise AssertionError(str(refusal)) from refusal
        return {}


def hires_for_it(turn: Turn) -> None:
    for letter in wishes_of(turn):
        made = turn.call("outcome_create", parent_id=turn.agent.id, title=f"{WISH} {letter.id}")
        hire = {"name": f"temp-{turn.sim.chance.randrange(10**6)}", "role": "engineer"}
        tried(turn, "delegate", outcome_id=made["id"], hire=hire)


def passes_it_on(turn: Turn) -> None:
    """To a colleague, by letter, who does whatever its habit is."""
    others = [member for member in turn.sim.members.values() if member is not turn.agent]
    for letter in wishes_of(turn):
        to = turn.sim.chance.choice(others).address
        tried(turn, "mail_send", to=to, body=letter.body)


def hands_in(turn: Turn) -> None:
    """Makes an outcome of it and completes that, or hands in what it was given."""
    for letter in wishes_of(turn):
        made = turn.call("outcome_create", parent_id=turn.agent.id, title=f"{WISH} {letter.id}")
        tried(turn, "outcome_complete", id=made["id"])
    for outcome in turn.call("outcome_list", status="open")["outcomes"]:
        tried(turn, "outcome_submit", id=outcome["id"], note="Here it is.")


def asks_its_boss(turn: Turn) -> None:
    for _ in wishes_of(turn):
        tried(turn, "ask", question="Which colour?", to="boss")


def finds_its_provider_overloaded(_: Turn) -> None:
    raise RunFailed("API Error: 529", fault="overload", exit_reason="overloaded")


def works_on_files_alone(turn: Turn) -> None:
    raise RunFailed("It took 100 turns.", **TOO_MANY, changed_files=str(turn.agent.turns))


def says_it_in_its_last_words(turn: Turn) -> None:
    turn.words = "I have looked at it, and all is well."


def dies_half_way(turn: Turn) -> None:
    if wishes_of(turn):
        turn.call("outcome_create", parent_id=turn.agent.id, title=f"{WISH} {turn.run}")
    raise AgentDied("out of memory")


HABITS: tuple[Callable[[Turn], None], ...] = (
    *LONELY,
    *(hires_for_it, passes_it_on, hands_in, asks_its_boss, finds_its_provider_overloaded),
    *(works_on_files_alone, says_it_in_its_last_words, dies_half_way),
)


# ── people ──────────────────────────────────────────────────────────────────────────────────────


class RandomWeek:
    def __init__(self, seed: int) -> None:
        self.sim = Simulation(seed)
        self.chance = self.sim.chance
        self.staff = [self.sim.root]
        for number in range(4):
            boss = self.chance.choice(self.staff)
            self.staff.append(self.sim.agent(f"dev-{number}", boss=boss))
        self.letters: list[str] = []
        self.stopped: list[str] = []

    def day(self) -> None:
        sim, until = self.sim, self.sim.clock.now() + DAY
        for member in sim.members.values():
            member.script = self.chance.choice(HABITS)
        for _ in range(self.chance.randint(1, 3)):
            self._wish(self.chance.choice(self.staff))
        for _ in range(3):
            self._person()
            sim.run(patience=8 * HOUR)
            for member in sim.members.values():  # somebody who was hired
                if member.script.__name__ == "idle":
                    member.script = self.chance.choice(HABITS)
        sim.clock.advance(max(0, until - sim.clock.now()))

    def _wish(self, to: Member) -> None:
        with contextlib.suppress(RemitError):  # it may have been terminated
            self.letters.append(self.sim.send(to, WISH)["id"])

    def _person(self) -> None:
        """Do some of what awaits the person, and now and then something else."""
        for row in self.sim.ask(needs_you.listing):
            if self.chance.random() < 0.4:
                with contextlib.suppress(RemitError):
                    self._decide(row)
        for act, chance in (
            (self._stop, 0.2),
            (self._go, 0.4),
            (self._pause, 0.2),
            (self._take_back, 0.1),
            (self._terminate, 0.05),
        ):
            if self.chance.random() < chance:
                with contextlib.suppress(RemitError):
                    act()

    def _decide(self, row: dict[str, Any]) -> None:
        yes = self.chance.random() < 0.7
        match row["kind"]:
            case "question":
                self.sim.do(questions.answer, question=row["id"], answer="Blue")
            case "approval" if yes:
                self.sim.do(approvals.approve, approval=row["id"], note="Yes")
            case "approval":
                self.sim.do(approvals.reject, approval=row["id"], note="No")
            case "submission" if yes:
                self.sim.do(outcomes.complete, outcome=row["id"])
            case "submission":
                self.sim.do(submitting.send_back, outcome=row["id"], note="Not yet.")
            case "mail":
                self.sim.do(inbox.acknowledge, ids=[row["id"]])

    def _stop(self) -> None:
        who = self.chance.choice(self.staff)
        self.sim.do(halts.stop, company=self.sim.company, agent=who.id, note="Holiday")
        self.stopped.append(who.id)

    def _go(self) -> None:
        if self.stopped:
            self.sim.do(halts.go, company=self.sim.company, agent=self.stopped.pop())

    def _pause(self) -> None:
        who = self.chance.choice(self.staff)
        paused = self.sim.status(who) == "paused"
        self.sim.do(agents.resume if paused else agents.pause, agent=who.id)

    def _take_back(self) -> None:
        if self.letters:
            self.sim.do(wish_withdrawal.cancel, message=self.chance.choice(self.letters))

    def _terminate(self) -> None:
        self.sim.do(agents.terminate, agent=self.chance.choice(self.staff[1:]).id)


def play(seed: int) -> None:
    week = RandomWeek(seed)
    with week.sim as sim:
        for _ in range(DAYS):
            week.day()
        # Nobody does anything for some days more.
        sim.run(patience=2 * DAY)
        sim.clock.advance(DAY)
        check(sim)
        check_requests(sim)
        sent = sim.ask(threads.listing, company=sim.company, sent=True, limit=1000)
        found = {one["id"]: one for one in sent}
        nameless = [letter for letter in week.letters if not found[letter]["sentence"]]
        assert nameless == []


@pytest.mark.requirement("FX-62", "FX-64")
@pytest.mark.parametrize("seed", [4, 5])
def test_in_a_week_of_random_days_no_request_is_left_behind(seed: int) -> None:
    play(seed)


@MANY
@pytest.mark.parametrize("seed", range(6, 106))
def test_in_many_weeks_of_random_days_no_request_is_left_behind(seed: int) -> None:
    play(seed)
