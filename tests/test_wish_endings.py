"""Every request of a person ends, and visibly, whoever works on it and however that goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from remit.adapters.scripted import NO_MODEL
from remit.clock import DAY, HOUR, MINUTE, to_iso
from remit.model.messaging.mail import Mark
from remit.services.messaging import threads
from remit.services.organisation import agents, halts
from remit.services.screens import needs_you
from remit.services.work import delegation, outcomes, submitting
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, Run
from tests.governance import approve, hire, reject
from tests.mailing import send, take, tick, unread
from tests.organisation import given, member, work
from tests.working import end

WISH = "I wish for a page about us."


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


class Passed(NamedTuple):
    """A wish that was passed on: the letter, who works on it, and the outcome made of it."""

    letter: Answer
    worker: Member
    outcome: str


def wished(company: Company) -> tuple[Answer, Run]:
    letter = send(company, company.board, "agent:ceo", WISH)
    return letter, next_run(company, company.ceo)


def state(company: Company, letter: Answer) -> str:
    sent = company.call(company.board, threads.listing, company=company.id, sent=True)
    (found,) = [one for one in sent if one["id"] == letter["id"]]
    return str(found["state"])


def awaiting(company: Company) -> list[str]:
    found = company.call(company.board, needs_you.listing, company=company.id)
    return [one["kind"] for one in found]


def next_run(company: Company, who: Member) -> Run:
    """The next run of an agent, with its mail."""
    run = company.run(who)
    take(company, run)
    return run


def status(company: Company, who: Member) -> str:
    return str(company.call(company.board, agents.show, agent=who.id)["status"])


# ── the ways in which a wish is passed on ───────────────────────────────────────────────────────


def alone(company: Company) -> Passed:
    letter, run = wished(company)
    outcome = work(company, run.caller, company.ceo.id, "The page")
    end(company, run)
    return Passed(letter, company.ceo, outcome)


def to_a_report(company: Company) -> Passed:
    writer = company.agent("writer", adapter_type="scripted", perpetual=True)
    letter, run = wished(company)
    outcome = work(company, run.caller, company.ceo.id, "The page")
    given(company, run.caller, outcome, writer)
    end(company, run)
    return Passed(letter, writer, outcome)


def to_somebody_hired(company: Company) -> Passed:
    """Hired for good: the mandate of the new agent stays open when the page is written."""
    letter, run = wished(company)
    asked = hire(company, run.caller, "writer", purpose="Write what is needed", perpetual=True)
    end(company, run, final_response="I asked for a writer.")
    assert asked["approval"] is not None
    assert state(company, letter) == "waiting"
    approve(company, asked["approval"])
    writer = member(company, asked["agent"])
    run = next_run(company, company.ceo)
    outcome = work(company, run.caller, company.ceo.id, "The page")
    given(company, run.caller, outcome, writer)
    end(company, run)
    return Passed(letter, writer, outcome)


def delegated_with_a_hire(company: Company) -> Passed:
    letter, run = wished(company)
    outcome = work(company, run.caller, company.ceo.id, "The page")
    answer = company.call(run.caller, delegation.delegate, outcome=outcome, hire={"name": "writer"})
    end(company, run)
    assert state(company, letter) == "waiting"
    approve(company, answer["approval"])
    run = next_run(company, company.ceo)
    end(company, run)
    return Passed(letter, member(company, answer["agent"]), outcome)


WAYS: list[Callable[[Company], Passed]] = [
    alone,
    to_a_report,
    to_somebody_hired,
    delegated_with_a_hire,
]


def done(company: Company, passed: Passed) -> Run:
    """The work is done and judged; answers the run of the boss that may still write."""
    if passed.worker.id == company.ceo.id:
        run = next_run(company, company.ceo)
        company.call(run.caller, outcomes.complete, outcome=passed.outcome, note="Written")
        return run
    run = next_run(company, passed.worker)
    page = company.file(run.caller, b"<h1>Us</h1>", "The page")
    company.call(run.caller, submitting.submit, outcome=passed.outcome, evidence=[page["id"]])
    end(company, run)
    run = next_run(company, company.ceo)
    company.call(run.caller, outcomes.complete, outcome=passed.outcome, note="I read it")
    return run


# ── how it goes on ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-62")
@pytest.mark.parametrize("way", WAYS)
def test_who_writes_has_answered(
    way: Callable[[Company], Passed], company: Company, clock: VirtualClock
) -> None:
    passed = way(company)
    assert state(company, passed.letter) == "in_work"
    run = done(company, passed)
    send(company, run.caller, "board", "Your page is there.", reply_to=passed.letter["id"])
    end(company, run)
    assert state(company, passed.letter) == "answered"
    clock.advance(HOUR)
    tick(company)
    assert [one["body"] for one in unread(company, company.board)] == ["Your page is there."]


@pytest.mark.requirement("FX-62")
@pytest.mark.parametrize("way", WAYS)
def test_where_everybody_forgets_to_write_remit_does(
    way: Callable[[Company], Passed], company: Company, clock: VirtualClock
) -> None:
    passed = way(company)
    end(company, done(company, passed))
    clock.advance(3 * MINUTE)
    tick(company)
    (result,) = unread(company, company.board)
    assert (result["mark"], result["reply_to"]) == (Mark.RESULT, passed.letter["id"])
    assert "The page" in result["body"]
    assert state(company, passed.letter) == "answered"
    assert awaiting(company) == ["mail"]


@pytest.mark.requirement("FX-62")
@pytest.mark.parametrize("way", WAYS)
def test_where_the_worker_dies_it_awaits_its_person_after_a_day(
    way: Callable[[Company], Passed], company: Company, clock: VirtualClock
) -> None:
    passed = way(company)
    run = next_run(company, passed.worker)
    end(company, run, "lost", exit_reason="lost")
    assert state(company, passed.letter) == "in_work"
    assert "unanswered" not in awaiting(company)
    clock.advance(DAY + MINUTE)
    (row,) = [
        one
        for one in company.call(company.board, needs_you.listing, company=company.id)
        if one["kind"] == "unanswered"
    ]
    assert row["id"] == passed.letter["id"]
    assert row["cause"].startswith("Nothing has happened to it since ")
    # The work goes on: no row any more.
    end(company, done(company, passed))
    clock.advance(3 * MINUTE)
    tick(company)
    assert "unanswered" not in awaiting(company)


@pytest.mark.requirement("FX-62")
@pytest.mark.parametrize("way", WAYS)
def test_where_the_worker_is_stopped_it_awaits_its_person_after_a_day(
    way: Callable[[Company], Passed], company: Company, clock: VirtualClock
) -> None:
    passed = way(company)
    company.call(company.board, halts.stop, company=company.id, note="Over the weekend")
    assert state(company, passed.letter) == "in_work"
    clock.advance(DAY + MINUTE)
    assert "unanswered" in awaiting(company)
    company.call(company.board, halts.go, company=company.id)
    end(company, done(company, passed))
    clock.advance(3 * MINUTE)
    tick(company)
    assert state(company, passed.letter) == "answered"


@pytest.mark.requirement("FX-62")
def test_a_hire_that_is_rejected_ends_the_wish_with_the_words_of_the_boss(
    company: Company, clock: VirtualClock
) -> None:
    letter, run = wished(company)
    asked = hire(company, run.caller, "writer", purpose="Write what is needed", perpetual=True)
    end(company, run, final_response="I asked for a writer.")
    reject(company, asked["approval"])
    run = next_run(company, company.ceo)
    end(company, run, final_response="Without a writer there is no page.")
    assert state(company, letter) == "answered"
    assert [one["body"] for one in unread(company, company.board)] == [
        "Without a writer there is no page."
    ]


@pytest.mark.requirement("FX-62")
def test_what_was_put_off_or_is_being_worked_on_is_not_said_to_stand_still(
    company: Company, clock: VirtualClock
) -> None:
    passed = alone(company)
    later = company.app.clock.now() + 3 * DAY
    run = next_run(company, company.ceo)
    company.call(
        run.caller,
        outcomes.change,
        outcome=passed.outcome,
        version=1,
        deferred_until=to_iso(later),
    )
    end(company, run)
    clock.advance(2 * DAY)
    assert "unanswered" not in awaiting(company)
    clock.advance(DAY + HOUR)
    run = next_run(company, company.ceo)
    clock.advance(2 * DAY)
    assert "unanswered" not in awaiting(company)


# ── states that are true ────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-62")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Red or blue?", "asks_back"),
        ("I can do that. Which one do you **mean?**", "asks_back"),
        ("You asked: red or blue? It is blue.", "answered"),
    ],
)
def test_a_question_in_return_is_no_answer(words: str, expected: str, small: Company) -> None:
    letter, run = wished(small)
    end(small, run, final_response=words)
    assert state(small, letter) == expected


@pytest.mark.requirement("FX-62")
def test_an_agent_without_a_model_answers_nothing(small: Company) -> None:
    letter, run = wished(small)
    said = NO_MODEL.format(name="ceo")
    send(small, run.caller, "board", said, reply_to=letter["id"])
    end(small, run)
    assert state(small, letter) == "unanswered"
    assert "unanswered" not in awaiting(small)  # the letter that says so is in the list


@pytest.mark.requirement("FX-62")
def test_a_run_that_used_a_shell_did_something(small: Company) -> None:
    _, run = wished(small)
    end(small, run, final_response="I built it.", acted=True)
    _, run = wished(small)
    end(small, run, final_response="I thought about it.")
    assert [one["mark"] for one in unread(small, small.board)] == [Mark.LAST_WORDS, Mark.REPORT]


# ── what nobody can act on any more ─────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-62")
def test_what_a_colleague_answered_is_off_the_list_of_the_others(small: Company) -> None:
    colleague = small.user("cleo")
    letter = send(small, small.ceo.caller, "board", "Who takes this?")
    assert [one["id"] for one in unread(small, colleague)] == [letter["id"]]
    send(small, small.board, "agent:ceo", "I do.", reply_to=letter["id"])
    assert unread(small, small.board) == unread(small, colleague) == []
    (read,) = unread(small, colleague, everything=True)
    assert read["id"] == letter["id"]


@pytest.mark.requirement("FX-62")
def test_a_reminder_goes_with_the_decision_that_it_asked_for(
    company: Company, clock: VirtualClock
) -> None:
    run = company.run(company.ceo)
    asked = hire(company, run.caller, "writer", purpose="Write", perpetual=True)
    end(company, run)
    clock.advance(DAY + MINUTE)
    tick(company)
    (reminder,) = unread(company, company.board)
    assert reminder["subject"].startswith("Still awaited: ")
    approve(company, asked["approval"])
    assert unread(company, company.board) == []


@pytest.mark.requirement("FX-62")
def test_a_failed_run_of_an_agent_that_is_gone_awaits_nobody(small: Company) -> None:
    helper = small.agent("helper", adapter_type="scripted", perpetual=True)
    send(small, small.ceo.caller, "agent:helper", "Please")
    run = next_run(small, helper)
    end(small, run, "failed", error="It broke.")
    assert awaiting(small) == ["failed_run"]
    small.call(small.board, agents.terminate, agent=helper.id)
    assert "failed_run" not in awaiting(small)
