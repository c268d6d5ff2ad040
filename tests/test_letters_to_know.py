"""Letters of Remit that leave nothing to do start no run, and are read in the next one."""

from __future__ import annotations

import pytest

from remit.clock import DAY, HOUR, MINUTE, SECOND
from remit.services.execution import run_queue, run_start
from remit.services.identity import as_system
from remit.services.messaging import threads, wish_withdrawal
from remit.services.organisation import agents, idleness
from remit.services.work import outcomes, submitting
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, Run
from tests.governance import approve, ask, reject
from tests.mailing import end, look, send, take
from tests.organisation import given, work
from tests.working import claim, held, is_awake, ready


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def starts(company: Company) -> list[str]:
    """The names of those who are started now, the clock's agents included."""
    for waiting in company.call(as_system(), run_queue.forgotten):
        company.call(as_system(), run_queue.sweep, company=waiting)
    for agent in ready(company):
        company.call(as_system(), run_queue.settle, agent=agent)
    names = {
        agent["id"]: agent["name"]
        for agent in company.call(company.board, agents.listing, company=company.id)
    }
    return sorted(names[agent] for agent in ready(company))


def briefed(company: Company, who: Member) -> tuple[Run, run_start.Briefing]:
    run = company.run(who)
    return run, company.call(as_system(), run_start.briefing, run=run.id, token=run.caller.token)


def accepted(company: Company) -> Member:
    """An agent with nothing to do whose work was accepted."""
    lead = company.agent("lead", boss=None, perpetual=True)
    dev = company.agent("dev", "lead", perpetual=True)
    page = work(company, lead.caller, lead.id, "The page")
    given(company, lead.caller, page, dev)
    run = company.run(dev)
    take(company, run)
    company.call(run.caller, submitting.submit, outcome=page, note="Done.")
    end(company, run)
    run = company.run(lead)
    take(company, run)
    company.call(run.caller, outcomes.complete, outcome=page, note="Well done.")
    end(company, run)
    return dev


@pytest.mark.requirement("FX-63", "HH-42")
def test_an_accepted_agent_is_not_started_and_reads_it_with_its_next_work(
    company: Company, clock: VirtualClock
) -> None:
    dev = accepted(company)
    assert "dev" not in starts(company)
    why = company.call(company.board, idleness.why_idle, agent="dev")["sentence"]
    assert "to know" in why
    send(company, company.board, "agent:dev", "Do it again.")
    assert "dev" in starts(company)
    run, told = briefed(company, dev)
    assert 'to-know:\n- "Accepted: The page": "' in told.situation
    assert "Well done." in told.situation
    assert "Accepted" not in told.turn.text
    assert "pending-envelopes: 1\n" in told.turn.text
    end(company, run)
    # It is read once.
    send(company, company.board, "agent:dev", "And again.")
    assert "Accepted" not in briefed(company, dev)[1].situation


@pytest.mark.requirement("FX-63")
def test_a_letter_to_know_that_nobody_read_for_a_day_starts_one_run(
    company: Company, clock: VirtualClock
) -> None:
    dev = accepted(company)
    clock.advance(DAY - HOUR)
    assert "dev" not in starts(company)
    clock.advance(HOUR)
    assert "dev" in starts(company)
    run = claim(company, dev)
    told = company.call(as_system(), run_start.briefing, run=run.id, token=run.caller.token)
    assert "Accepted: The page" in told.situation
    assert told.turn.ids == []
    end(company, run)
    clock.advance(10 * DAY)
    assert "dev" not in starts(company)


@pytest.mark.requirement("FX-63")
def test_a_letter_to_know_is_shown_again_if_the_run_was_lost(
    company: Company, clock: VirtualClock
) -> None:
    dev = accepted(company)
    send(company, company.board, "agent:dev", "Do it again.")
    run, told = briefed(company, dev)
    assert "Accepted" in told.situation
    end(company, run, "lost", exit_reason="lost")
    run, told = briefed(company, dev)
    assert "Accepted" in told.situation
    assert "begun" not in told.situation
    end(company, run)


@pytest.mark.requirement("FX-63")
def test_a_failed_run_that_is_tried_again_does_not_start_the_boss(
    company: Company, clock: VirtualClock
) -> None:
    lead = company.agent("lead", boss=None, perpetual=True)
    dev = company.agent("dev", "lead", perpetual=True)
    send(company, company.board, "agent:dev", "Do it.")
    run = claim(company, dev)
    take(company, run)
    end(company, run, "failed", error="It broke.")
    assert "lead" not in starts(company)
    assert [one["subject"] for one in look(company, lead)] == ["A run of dev failed"]


@pytest.mark.requirement("FX-63")
def test_a_failed_run_with_work_that_nobody_retries_starts_the_boss(
    company: Company, clock: VirtualClock
) -> None:
    company.agent("lead", boss=None, perpetual=True)
    dev = company.agent("dev", "lead", perpetual=True)
    send(company, company.board, "agent:dev", "Once only.", at_most_once=True)
    run = claim(company, dev)
    take(company, run)
    end(company, run, "failed", error="It broke.")
    assert "lead" in starts(company)


@pytest.mark.requirement("FX-63", "FX-62")
def test_a_letter_to_know_keeps_no_request_in_work(company: Company, clock: VirtualClock) -> None:
    lead = company.agent("lead", boss=None, perpetual=True)
    dev = company.agent("dev", "lead", perpetual=True)
    letter = send(company, company.board, "agent:lead", "I wish for a page.")
    run = company.run(lead)
    take(company, run)
    page = work(company, run.caller, lead.id, "The page")
    given(company, run.caller, page, dev)
    end(company, run)
    run = company.run(dev)
    take(company, run)
    company.call(run.caller, submitting.submit, outcome=page, note="Done.")
    end(company, run)
    run = company.run(lead)
    take(company, run)
    company.call(run.caller, outcomes.complete, outcome=page, note="Well done.")
    send(company, run.caller, "board", "It is there.", reply_to=letter["id"])
    end(company, run)
    sent = company.call(company.board, threads.listing, company=company.id, sent=True)
    assert [one["state"] for one in sent] == ["answered"]
    assert [one["subject"] for one in look(company, dev)] == ["Accepted: The page"]


@pytest.mark.requirement("FX-63")
def test_a_letter_that_was_taken_back_starts_nobody(company: Company, clock: VirtualClock) -> None:
    lead = company.agent("lead", boss=None, perpetual=True)
    letter = send(company, company.board, "agent:lead", "I wish for a page.")
    run = company.run(lead)
    take(company, run)
    work(company, run.caller, lead.id, "The page")
    end(company, run)
    company.call(company.board, wish_withdrawal.cancel, message=letter["id"])
    assert "lead" not in starts(company)
    _, told = briefed(company, lead)
    assert "Taken back" in told.situation


# ── decisions ───────────────────────────────────────────────────────────────────────────────────


def decide_two(company: Company) -> tuple[Member, Answer, Answer]:
    dev = company.agent("dev", boss=None, perpetual=True)
    run = company.run(dev)
    asked = ask(company, run.caller, "One?"), ask(company, run.caller, "Two?")
    end(company, run)
    return dev, *asked


@pytest.mark.requirement("FX-63")
def test_two_decisions_within_a_minute_are_read_in_one_run(
    company: Company, clock: VirtualClock
) -> None:
    dev, one, two = decide_two(company)
    approve(company, one)
    assert starts(company) == []
    clock.advance(20 * SECOND)
    assert starts(company) == []
    reject(company, two)
    assert starts(company) == ["dev"]
    run = claim(company, dev)
    assert len(take(company, run)) == 2
    end(company, run)
    assert starts(company) == []


@pytest.mark.requirement("FX-63")
def test_a_decision_is_read_after_a_minute_if_the_other_does_not_come(
    company: Company, clock: VirtualClock
) -> None:
    dev, one, _ = decide_two(company)
    approve(company, one)
    assert is_awake(company, dev)
    clock.advance(MINUTE)
    assert starts(company) == ["dev"]


@pytest.mark.requirement("FX-63")
def test_mail_meanwhile_starts_the_agent_at_once(company: Company, clock: VirtualClock) -> None:
    dev, one, _ = decide_two(company)
    approve(company, one)
    send(company, company.board, "agent:dev", "Now, please.")
    assert held(company, dev).due_at == clock.now()
    assert starts(company) == ["dev"]
