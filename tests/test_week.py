"""A week in a company that is left alone: every wish is answered, and nothing runs for nothing."""

import pytest

from remit.clock import HOUR, MINUTE, SECOND, Micros
from tests.week import POISON, Week

#: What Remit may add to the time that people, providers and runs take.
ADDED: Micros = 10 * MINUTE
MOST_RUNS_FOR_NEWS = 1.5
MOST_BY_CLOCK = 0.02
WEEKS = pytest.mark.campaign("a week takes half a minute; the tests play four days of one")


def check(week: Week) -> None:
    """What holds at the end of every week, whatever went wrong in it."""
    late = {
        wish.number: wish.left_to_remit(week.holds) / MINUTE if wish.answered_at else None
        for wish in week.wishes.values()
        if wish.answered_at is None or wish.left_to_remit(week.holds) > ADDED
    }
    assert late == {}
    assert week.dead() == [POISON]
    assert week.sql("SELECT name FROM agents WHERE status = 'error'") == []
    assert week.runs <= MOST_RUNS_FOR_NEWS * week.news()
    assert week.by_clock() <= MOST_BY_CLOCK * week.runs
    waited = sorted(week.latencies)
    assert waited[int(0.95 * len(waited))] <= SECOND
    # Each planted trouble ended as it should.
    assert week.open_outcomes("waits for its twin") == []
    assert week.open_outcomes("never judges") == []
    assert week.told("Agents wait for each other") >= 1
    assert week.cut_off >= 6
    assert week.started_while_stopped == 0
    assert week.most_probes == (0 if week.says_until_when else 1)


@pytest.mark.requirement("FX-01", "FX-05", "FX-07", "FX-08", "FX-10", "FX-13")
def test_four_days_of_a_company_that_is_left_alone_come_to_a_good_end() -> None:
    with Week(seed=1, days=4, wishes=20) as week:
        week.troubles(closed=5 * HOUR, asleep=4 * HOUR, halted=HOUR)
        week.play()
        check(week)


@WEEKS
@pytest.mark.parametrize("seed", range(100))
def test_a_week_of_a_company_that_is_left_alone_comes_to_a_good_end(seed: int) -> None:
    with Week(seed=seed) as week:
        week.troubles(closed=5 * HOUR, asleep=8 * HOUR, halted=HOUR)
        week.play()
        check(week)
