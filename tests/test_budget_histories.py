"""Random companies that hire, raise, spend, hand over, move and part; no account is exceeded."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from remit.clock import DAY, next_month
from remit.errors import RemitError
from remit.model.execution.budget import CENT
from remit.services.hiring import configuration
from remit.services.organisation import agents, reorganise
from remit.services.work import delegation, outcomes
from remit.testing.clock import VirtualClock
from tests.budgeting import Books, set_budget, work_off
from tests.company import Company, Member
from tests.organisation import work
from tests.selection import histories

MOST_AGENTS = 9
ROOT_TOKENS, ROOT_CENTS = 1_000, 100
AMOUNTS = st.one_of(st.none(), st.integers(0, 600))
TURN = 90

pick = st.integers(0, 1_000)


def check(error: RemitError, *reasons: str) -> None:
    assert error.reason in ("budget_exceeded", *reasons), error


class Companies(RuleBasedStateMachine):
    tried = 0
    refused = 0

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        home = Path(self._folder.name)
        self.clock = VirtualClock()
        self.company = Company(f"sqlite:///{home}/remit.db", home, self.clock)
        self.root = self.company.ceo
        set_budget(self.company, self.root, cents=ROOT_CENTS, tokens=ROOT_TOKENS)
        self.members: list[Member] = [self.root]
        self.open: list[str] = []
        #: What a last turn may have taken beyond the root's account.
        self.overshoot = 0

    def teardown(self) -> None:
        self.company.close()
        self._folder.cleanup()

    def member(self, number: int) -> Member:
        return self.members[number % len(self.members)]

    def other(self, number: int) -> Member | None:
        return self.members[1 + number % (len(self.members) - 1)] if self.members[1:] else None

    def books(self) -> Books:
        return Books(self.company)

    def fits(self, boss: str, kind: str, more: int) -> bool:
        books = self.books()
        above = boss if (boss, kind) in books.limit else books.above(boss, kind)
        return above is None or more <= books.left(above, kind)

    # ── what happens ────────────────────────────────────────────────────────────────────────

    @rule(boss=pick, tokens=AMOUNTS, cents=AMOUNTS)
    def hire(self, boss: int, tokens: int | None, cents: int | None) -> None:
        if len(self.members) >= MOST_AGENTS:
            return
        above = self.member(boss)
        fits = (tokens is None or self.fits(above.id, "tokens", tokens)) and (
            cents is None or self.fits(above.id, "money", cents * CENT)
        )
        type(self).tried += 1
        name = f"a{self.company.app.ids.new()[-6:]}x"
        try:
            made = self.company.agent(
                name, boss=above.id, budget_monthly_tokens=tokens, budget_monthly_cents=cents
            )
        except RemitError as error:
            check(error)
            assert not fits
            type(self).refused += 1
        else:
            assert fits
            self.members.append(made)

    @rule(who=pick, tokens=AMOUNTS)
    def set_limit(self, who: int, tokens: int | None) -> None:
        """Raise, lower, give one or take it away."""
        chosen = self.other(who)
        if chosen is None:
            return
        books = self.books()
        key = (chosen.id, "tokens")
        boss = books.boss[chosen.id]
        assert boss is not None
        expected = None
        if key in books.limit and tokens is not None:
            passed_on = books.accounts[key][1] + books.set_aside(*key)
            more = tokens - books.limit[key]
            expected = tokens >= passed_on and (more <= 0 or self.fits(boss, "tokens", more))
        try:
            changed = {"budgetMonthlyTokens": tokens}
            self.company.call(
                self.company.board, configuration.change, agent=chosen.id, changes=changed
            )
        except RemitError as error:
            check(error)
            assert expected is not True
            assert tokens is not None
        else:
            assert expected is not False

    @rule(who=pick, tokens=st.integers(0, TURN), cents=st.integers(0, 9))
    def spend(self, who: int, tokens: int, cents: int) -> None:
        """A turn is begun while something is left, and may go beyond it."""
        worker = self.member(who)
        answer = work_off(self.company, worker, tokens, cents)
        now = self.books()
        for kind in ("money", "tokens"):
            self.overshoot = max(self.overshoot, -now.left(self.root.id, kind))
        if answer["left"]["tokens"] <= 0 or answer["left"]["money"] <= 0:
            assert answer["over"]

    @rule(boss=pick, who=pick, tokens=st.integers(1, 300))
    def hand_over(self, boss: int, who: int, tokens: int) -> None:
        books = self.books()
        reports = [one for one in self.members if books.boss[one.id] == self.member(boss).id]
        if not reports:
            return
        giver, receiver = self.member(boss), reports[who % len(reports)]
        part = work(self.company, giver.caller, giver.id)
        try:
            self.company.call(
                giver.caller,
                delegation.delegate,
                outcome=part,
                to=receiver.id,
                budget={"tokens": tokens},
            )
        except RemitError as error:
            check(error)
            self.company.call(giver.caller, outcomes.close, outcome=part, rationale="not now")
        else:
            self.open.append(part)

    @rule(which=pick, back=st.booleans())
    def end_outcome(self, which: int, back: bool) -> None:
        if not self.open:
            return
        part = self.open.pop(which % len(self.open))
        board = self.company.board
        shown = self.company.call(board, outcomes.show, outcome=part)
        if shown["status"] != "open" or not shown["delegated"]:
            return
        if back:
            self.company.call(board, delegation.reclaim, outcome=part, reason="enough")
        else:
            self.company.call(board, outcomes.close, outcome=part, rationale="enough")

    @rule(who=pick)
    def part(self, who: int) -> None:
        chosen = self.other(who)
        books = self.books()
        if chosen is None or any(books.boss[one.id] == chosen.id for one in self.members):
            return
        self.company.call(self.company.board, agents.terminate, agent=chosen.id)
        self.members.remove(chosen)

    @rule(who=pick, to=pick)
    def move(self, who: int, to: int) -> None:
        chosen, boss = self.other(who), self.member(to)
        if chosen is None:
            return
        operation = {"op": "move", "agent": chosen.id, "to": boss.id}
        try:
            self.company.call(
                self.company.board,
                reorganise.reorganise,
                company=self.company.id,
                operations=[operation],
            )
        except RemitError as error:
            check(error, "cycle", "conflict")

    @rule(days=st.integers(1, 40))
    def time_passes(self, days: int) -> None:
        if self.clock.now() + days * DAY >= next_month(self.clock.now()):
            self.overshoot = 0
        self.clock.advance(days * DAY)

    # ── what must always hold ───────────────────────────────────────────────────────────────

    @invariant()
    def no_account_is_exceeded_and_the_books_agree(self) -> None:
        books = self.books()
        assert books.wrong(self.overshoot) == []

    @invariant()
    def everything_that_was_spent_was_paid_once(self) -> None:
        books = self.books()
        for kind in ("money", "tokens"):
            assert books.counted(kind) == books.spent[kind], kind


@pytest.mark.requirement("BX-09")
@pytest.mark.timeout(600)
@histories(12, 60)
def test_whatever_happens_the_children_never_have_more_than_their_boss(examples: int) -> None:
    Companies.tried = Companies.refused = 0
    run_state_machine_as_test(
        Companies,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Companies.tried > 1.5 * examples
    assert Companies.refused > examples // 6
