"""Budgets: reserved down the tree, spent turn by turn, returned, raised, and seen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.clock import DAY, from_iso, month_of, next_month, to_iso
from remit.errors import BadInput, Conflict, RemitError
from remit.model.execution.budget import CENT, Kind, shown
from remit.services.execution import run_queue, runs
from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.identity import as_system
from remit.services.messaging import inbox
from remit.services.organisation import agents, permissions, reorganise
from remit.services.people import companies
from remit.services.record import events
from remit.services.screens import needs_you
from remit.services.spending import budgets
from remit.services.work import delegation, outcomes
from remit.testing.clock import VirtualClock
from tests.budgeting import Books, budget_of, left, set_budget, spend, work_off
from tests.company import Answer, Company, Member, opened
from tests.governance import approve, hire, letters
from tests.mailing import send
from tests.organisation import work
from tests.test_archive import export, import_, packed, unpacked
from tests.working import (
    at_work,
    claim,
    end,
    held,
    is_awake,
    let_sleep,
    listed,
    over,
    program,
    ready,
    told,
    why_idle,
)
from tests.working import shown as shown_run

#: What a last turn takes here beyond the topmost account, at most.
OVERSHOOT = 5


@pytest.fixture
def company(company: Company) -> Iterator[Company]:
    yield company
    assert Books(company).wrong(OVERSHOOT) == []


def refused(company: Company, caller: Any, verb: Any, /, **given: Any) -> RemitError:
    with pytest.raises(RemitError) as caught:
        company.call(caller, verb, **given)
    return caught.value


def agent(company: Company, name: str, boss: str = "ceo", **limits: Any) -> Member:
    names = {"cents": "budget_monthly_cents", "tokens": "budget_monthly_tokens"}
    known = {names.get(key, key): value for key, value in limits.items()}
    known.setdefault("adapter_type", "scripted")
    return company.agent(name, boss=boss, **known)


def actions(company: Company) -> list[str]:
    found = company.call(company.board, events.listing, company=company.id, limit=500)
    return [one["action"] for one in found if one["action"].startswith("budget.")]


def waiting_stops(company: Company) -> list[Answer]:
    found = company.call(company.board, needs_you.listing, company=company.id)
    return [one for one in found if one["kind"] == "budget_stop"]


# ── months ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("at", "first", "following"),
    [
        ("2026-01-31T23:59:59.999999+00:00", "2026-01-01", "2026-02-01"),
        ("2026-02-01T00:00:00+00:00", "2026-02-01", "2026-03-01"),
        ("2024-02-29T12:00:00+00:00", "2024-02-01", "2024-03-01"),
        ("2026-12-31T23:00:00-05:00", "2027-01-01", "2027-02-01"),
    ],
)
def test_months_are_those_of_the_calendar_in_utc(at: str, first: str, following: str) -> None:
    moment = from_iso(at)
    assert to_iso(month_of(moment))[:10] == first
    assert to_iso(next_month(moment))[:10] == following
    assert month_of(next_month(moment) - 1) == month_of(moment)


def test_amounts_are_said_in_words() -> None:
    assert shown(Kind.TOKENS, 12_000) == "12,000 tokens"
    assert shown(Kind.MONEY, 1_234 * CENT) == "$12.34"
    assert shown(Kind.MONEY, 5) == "$0.000005"


# ── down the tree ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-09")
def test_a_budget_comes_out_of_the_nearest_one_above(company: Company) -> None:
    set_budget(company, company.ceo, cents=1_000, tokens=500)
    lead = agent(company, "lead", cents=600)
    helper = agent(company, "helper", "lead")  # has none, so its reports reserve from lead
    agent(company, "deep", "helper", cents=250, tokens=100)
    assert budget_of(company, company.ceo)["money"]["reserved"] == 600 * CENT
    assert budget_of(company, company.ceo)["tokens"]["reserved"] == 100  # lead has no tokens
    assert left(company, lead, "money") == 350 * CENT
    assert left(company, helper, "money") == 350 * CENT
    assert budget_of(company, helper)["money"]["paid_by"]["name"] == "lead"
    error = refused(
        company,
        company.board,
        agents.create,
        company=company.id,
        name="more",
        reports_to="helper",
        budget_monthly_cents=351,
    )
    assert (type(error), error.reason) == (Conflict, "budget_exceeded")
    assert error.sentence == (
        "$3.51 more is wanted out of lead's budget of $6.00 a month, of which $3.50 is left."
    )
    assert error.step == "Ask for less, or have the budget of lead raised first."
    assert error.details["left"] == 350 * CENT
    agent(company, "more", "helper", cents=350)
    assert left(company, lead, "money") == 0
    set_budget(company, company.ceo, cents=5_000)  # nobody is above the root agent
    assert (
        refused(
            company,
            company.board,
            configuration.change,
            agent="more",
            changes={"budgetMonthlyCents": 351},
        ).reason
        == "budget_exceeded"
    )
    set_budget(company, lead, cents=700)
    assert left(company, lead, "money") == 100 * CENT
    assert {"budget.reserve", "budget.raise"} <= set(actions(company))


@pytest.mark.requirement("FX-20")
def test_a_turn_whose_cost_nobody_says_is_estimated_from_earlier_runs(company: Company) -> None:
    lead = agent(company, "lead")
    assert work_off(company, lead, tokens=1000)["about_micros"] == 0
    assert work_off(company, lead, tokens=1000, cents=5)["about_micros"] == 0
    assert work_off(company, lead, tokens=200)["about_micros"] == 10_000
    assert company.sql("SELECT count(*) FROM runs WHERE cost_estimated")[0][0] == 0


def test_without_a_budget_anywhere_nothing_is_limited(company: Company) -> None:
    lead = agent(company, "lead")
    company.call(
        company.board, companies.change, company=company.id, limits={"companyCentsPerDay": "none"}
    )
    assert left(company, lead) is None
    answer = work_off(company, lead, tokens=10**9, cents=10**6)
    assert answer == {"left": {}, "over": None, "about_micros": 0}
    seen = budget_of(company, lead)
    assert (seen["tokens"]["spent_by_itself"], seen["tokens"]["paid_by"]) == (10**9, None)


def test_who_gets_a_budget_later_takes_over_those_below(company: Company) -> None:
    set_budget(company, company.ceo, tokens=100)
    lead = agent(company, "lead")
    agent(company, "deep", "lead", tokens=40)
    change: dict[str, Any] = {"agent": "lead", "changes": {"budgetMonthlyTokens": 30}}
    error = refused(company, company.board, configuration.change, **change)
    assert error.reason == "budget_exceeded"  # less than those below it have
    change["changes"] = {"budgetMonthlyTokens": 101}
    assert refused(company, company.board, configuration.change, **change).reason == (
        "budget_exceeded"
    )
    set_budget(company, lead, tokens=90)
    assert (left(company, company.ceo), left(company, lead)) == (10, 50)
    set_budget(company, lead, tokens=None)
    assert left(company, company.ceo) == 60


def test_less_than_was_passed_on_is_refused_and_less_than_was_spent_stops(
    company: Company,
) -> None:
    set_budget(company, company.ceo, tokens=100)
    lead = agent(company, "lead", tokens=80)
    agent(company, "deep", "lead", tokens=30)
    work_off(company, lead, tokens=20)
    error = refused(
        company,
        company.board,
        configuration.change,
        agent="lead",
        changes={"budgetMonthlyTokens": 29},
    )
    assert error.sentence == (
        "lead has passed 30 tokens of its budget on, so it cannot be 29 tokens."
    )
    set_budget(company, lead, tokens=35)  # 20 are spent: 5 of them in it, 15 are its boss's
    assert left(company, lead) == 0
    assert left(company, company.ceo) == 100 - 35 - 15


@pytest.mark.requirement("BX-09")
def test_what_is_unspent_returns_when_an_agent_goes(company: Company) -> None:
    set_budget(company, company.ceo, tokens=100)
    lead = agent(company, "lead", tokens=60)
    deep = agent(company, "deep", "lead", tokens=20)
    work_off(company, lead, tokens=10)
    work_off(company, deep, tokens=5)
    company.call(company.board, agents.terminate, agent="deep")
    assert left(company, lead) == 60 - 10 - 5
    company.call(company.board, agents.terminate, agent="lead")
    assert left(company, company.ceo) == 85
    assert budget_of(company, company.ceo)["tokens"]["spent"] == 15


def test_a_hire_holds_its_budget_from_the_start_and_gives_it_back_when_refused(
    database_url: str, tmp_path: Path
) -> None:
    with opened(
        database_url, tmp_path / "home", VirtualClock(), asks_before_hiring=True
    ) as company:
        set_budget(company, company.ceo, tokens=100)
        made = hire(company, company.ceo.caller, "one", budget_monthly_tokens=70)
        assert left(company, company.ceo) == 30
        with pytest.raises(Conflict, match=r"of which 30 tokens is left"):
            hire(company, company.ceo.caller, "two", budget_monthly_tokens=31)
        company.call(company.board, approvals.reject, approval=made["approval"]["id"])
        assert left(company, company.ceo) == 100
        second = hire(company, company.ceo.caller, "two", budget_monthly_tokens=100)
        approve(company, second["approval"])
        assert left(company, company.ceo) == 0
        assert Books(company).wrong() == []


@pytest.mark.requirement("BX-09")
def test_two_at_once_do_not_get_more_than_there_is(company: Company) -> None:
    set_budget(company, company.ceo, tokens=100)
    one, two = agent(company, "one"), agent(company, "two")
    gate = company.app.gate
    wishes = [
        gate(
            boss.caller,
            hiring.hire,
            company=None,
            name=f"h{number}",
            reports_to=boss.id,
            adapter_type="scripted",
            budget_monthly_tokens=30,
        )
        for number, boss in enumerate([one, two, one, two, one, two])
    ]
    for member in (one, two):
        company.call(company.board, permissions.change, agent=member.id, can_create=True)
    results = company.together(wishes)
    won = [one for one in results if not isinstance(one, BaseException)]
    lost = [one for one in results if isinstance(one, RemitError)]
    assert (len(won), [error.reason for error in lost]) == (3, ["budget_exceeded"] * 3)
    assert left(company, company.ceo) == 10


def test_an_agent_moves_only_where_its_budget_fits(company: Company) -> None:
    set_budget(company, company.ceo, tokens=100)
    agent(company, "left", tokens=40)
    right = agent(company, "right", tokens=30)
    mover = agent(company, "mover", "left", tokens=35)
    operation = {"op": "move", "agent": "mover", "to": "right"}
    given: dict[str, Any] = {"company": company.id, "operations": [operation]}
    for verb in (reorganise.reorganise, reorganise.preview):
        error = refused(company, company.board, verb, **given)
        assert (error.reason, error.step) == (
            "budget_exceeded",
            "Ask for less, or have the budget of right raised first.",
        )
    set_budget(company, right, tokens=50)
    moved = company.call(company.board, reorganise.reorganise, **given)
    assert left(company, right) == 15
    company.call(company.board, reorganise.undo, company=company.id, event=moved["event_id"])
    assert left(company, right) == 50
    assert left(company, mover) == 35


def test_a_layer_comes_and_goes_with_what_it_reserved(company: Company) -> None:
    set_budget(company, company.ceo, tokens=100)
    agent(company, "layer", tokens=90)
    agent(company, "deep", "layer", tokens=80)
    given: dict[str, Any] = {"company": company.id}
    gone = company.call(
        company.board,
        reorganise.reorganise,
        **given,
        operations=[{"op": "remove_layer", "agent": "layer"}],
    )
    assert left(company, company.ceo) == 20
    agent(company, "other", tokens=15)
    error = refused(company, company.board, reorganise.undo, **given, event=gone["event_id"])
    assert error.reason == "budget_exceeded"  # what it had is somebody else's by now
    company.call(company.board, agents.terminate, agent="other")
    company.call(company.board, reorganise.undo, **given, event=gone["event_id"])
    assert left(company, company.ceo) == 10


# ── for an outcome ──────────────────────────────────────────────────────────────────────────────


def handed(company: Company, giver: Member, to: Member, **budget: Any) -> str:
    part = work(company, giver.caller, giver.id)
    company.call(giver.caller, delegation.delegate, outcome=part, to=to.name, budget=budget)
    return part


@pytest.mark.requirement("BX-09")
@pytest.mark.parametrize("ends", ["complete", "close", "reclaim", "terminate"])
def test_what_is_set_aside_for_an_outcome_returns_with_it(company: Company, ends: str) -> None:
    set_budget(company, company.ceo, tokens=100, cents=100)
    lead = agent(company, "lead", tokens=10)
    part = handed(company, company.ceo, lead, tokens=50, money_cents=20)
    assert (left(company, company.ceo), left(company, lead)) == (40, 60)
    assert left(company, lead, "money") == 20 * CENT  # it has none of its own: held to that
    work_off(company, lead, tokens=30, cents=5)
    seen = budget_of(company, lead)["tokens"]
    assert [(one["outcome_id"], one["spent"], one["left"]) for one in seen["reservations"]] == [
        (part, 30, 20)
    ]
    board = company.board
    if ends == "complete":
        company.call(company.ceo.caller, outcomes.complete, outcome=part)
    elif ends == "close":
        company.call(company.ceo.caller, outcomes.close, outcome=part, rationale="x")
    elif ends == "reclaim":
        company.call(company.ceo.caller, delegation.reclaim, outcome=part, reason="x")
    else:
        company.call(board, agents.terminate, agent="lead")
    assert left(company, company.ceo) == 100 - 30 - (0 if ends == "terminate" else 10)
    assert budget_of(company, company.ceo)["money"]["spent"] == 5 * CENT
    assert "budget.return" in actions(company)


def test_what_is_set_aside_is_refused_when_it_is_not_there(company: Company) -> None:
    set_budget(company, company.ceo, tokens=100)
    lead = agent(company, "lead", tokens=70)
    deep = agent(company, "deep", "lead")
    part = work(company, company.ceo.caller, company.ceo.id)
    give: dict[str, Any] = {"outcome": part, "to": "lead"}
    mistakes: list[Any] = [{"tokens": 0}, {"tokens": True}, {"tokens": "5"}, {"other": 1}, [], "5"]
    mistakes += [{"money_cents": 1.5}, {"tokens": 10**13}]
    for wrong in mistakes:
        error = refused(company, company.ceo.caller, delegation.delegate, **give, budget=wrong)
        assert isinstance(error, BadInput), wrong
    error = refused(company, company.ceo.caller, delegation.delegate, **give, budget={"tokens": 31})
    assert error.reason == "budget_exceeded"
    assert company.call(company.board, outcomes.show, outcome=part)["delegated"] is False
    # Who has only what was set aside for an outcome does not divide it.
    money = handed(company, company.ceo, lead, money_cents=10)
    inner = work(company, lead.caller, money)
    error = refused(
        company,
        lead.caller,
        delegation.delegate,
        outcome=inner,
        to="deep",
        budget={"money_cents": 5},
    )
    assert (error.reason, error.step.split(":")[0]) == (
        "budget_exceeded",
        "Delegate without a budget",
    )
    company.call(lead.caller, delegation.delegate, outcome=inner, to="deep", budget={"tokens": 70})
    assert (left(company, lead), left(company, deep)) == (0, 70)
    work_off(company, deep, cents=4)
    assert left(company, lead, "money") == 6 * CENT


def test_what_is_set_aside_outlives_the_month_and_counts_in_each_as_spent_there(
    company: Company,
) -> None:
    set_budget(company, company.ceo, tokens=100)
    lead = agent(company, "lead")
    part = handed(company, company.ceo, lead, tokens=60)
    work_off(company, lead, tokens=25)
    assert left(company, company.ceo) == 40
    company.clock.advance(next_month(company.clock.now()) - company.clock.now())  # type: ignore[attr-defined]
    assert (left(company, company.ceo), left(company, lead)) == (65, 35)
    work_off(company, lead, tokens=5)
    assert left(company, company.ceo) == 65
    company.call(company.ceo.caller, outcomes.close, outcome=part, rationale="x")
    assert left(company, company.ceo) == 95
    assert budget_of(company, company.ceo)["tokens"]["spent"] == 5


def test_a_hire_for_an_outcome_gets_what_was_approved_with_it(
    database_url: str, tmp_path: Path
) -> None:
    with opened(
        database_url, tmp_path / "home", VirtualClock(), asks_before_hiring=True
    ) as company:
        set_budget(company, company.ceo, tokens=100)
        part = work(company, company.ceo.caller, company.ceo.id)
        give: dict[str, Any] = {"outcome": part, "hire": {"name": "new", "adapter_type": "llm"}}
        caller = company.ceo.caller
        assert (
            refused(company, caller, delegation.delegate, **give, budget={"tokens": 101}).reason
            == "budget_exceeded"
        )
        made = company.call(caller, delegation.delegate, **give, budget={"tokens": 80})
        assert made["approval"]["payload"]["setAside"] == {"tokens": 80}
        assert left(company, company.ceo) == 100
        set_budget(company, company.ceo, tokens=70)
        with pytest.raises(Conflict, match="80 tokens more is wanted"):
            approve(company, made["approval"])
        set_budget(company, company.ceo, tokens=90)
        approve(company, made["approval"])
        assert left(company, company.ceo) == 10
        assert Books(company).wrong() == []


# ── at work ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def lead(company: Company) -> Member:
    set_budget(company, company.ceo, tokens=1_000)
    made = agent(company, "lead", tokens=100, perpetual=True)
    let_sleep(company, company.ceo, made)
    return made


def stop(company: Company, lead: Member) -> None:
    """Mail, and a run that it ends because nothing is left."""
    send(company, company.board, "agent:lead", "Please do it.")
    run = claim(company, lead)
    company.call(run.caller, inbox.turn)
    spend(company, run, 60)
    assert spend(company, run, 105)["over"] == "The budget of lead is used up (tokens)."
    end(company, run, "failed", exit_reason="budget", error="used up", tokens_in=105)


@pytest.mark.requirement("BX-09", "BX-18")
def test_who_has_nothing_left_stands_still_until_the_month_is_over(
    company: Company, lead: Member
) -> None:
    stop(company, lead)
    (run,) = listed(company, lead)
    assert (run["status"], run["exit_reason"], run["tokens_in"]) == ("failed", "budget", 105)
    assert why_idle(company, lead) == "budget"
    assert held(company, lead).due_at == next_month(company.clock.now())
    assert (held(company, lead).failures, lead.id in ready(company)) == (0, False)
    # 5 more than there were: the last turn's, and they are the boss's.
    assert (left(company, lead), left(company, company.ceo)) == (0, 1_000 - 100 - 5)
    # The mail came back, and nothing counts as an attempt.
    (attempt,) = company.sql("SELECT attempt, status FROM deliveries WHERE agent_id = ?", lead.id)
    assert attempt == (1, "queued")
    (item,) = waiting_stops(company)
    assert (item["title"], item["agent_id"]) == ("The budget of lead is used up (tokens)", lead.id)
    kinds = {one["kind"] for one in company.call(company.board, needs_you.listing)}
    assert "failed_run" not in kinds
    assert [one["subject"] for one in letters(company, company.ceo)] == [
        "The budget of lead is used up"
    ]
    # Something new does not start it either, and nobody is told again.
    send(company, company.board, "agent:lead", "And this.")
    assert lead.id in ready(company)
    error = refused(
        company,
        as_system(),
        run_queue.claim,
        agent=lead.id,
        run=company.app.ids.new(),
        workspace="/nowhere",
        worker="w",
    )
    assert (error.reason, type(error)) == ("budget", Conflict)
    company.call(as_system(), budgets.hold, agent=lead.id)
    assert lead.id not in ready(company)
    assert letters(company, company.ceo) == []
    let_sleep(company, company.ceo)
    # The rounds of a worker leave it alone; a clock that was set back does not.
    assert company.call(as_system(), run_queue.misdated) == []
    company.call(as_system(), run_queue.redate, agent=lead.id)
    assert lead.id not in ready(company)
    company.clock.advance(-40 * DAY)  # type: ignore[attr-defined]
    assert company.call(as_system(), run_queue.misdated) == [lead.id]
    company.clock.advance(40 * DAY)  # type: ignore[attr-defined]
    # The clock brings the next month.
    following = company.call(as_system(), run_queue.next_ready).ready
    assert following == next_month(company.clock.now())
    company.clock.advance(following - company.clock.now())  # type: ignore[attr-defined]
    assert ready(company) == [lead.id]
    # Who looks late finds that there is something to spend again.
    assert company.call(as_system(), budgets.hold, agent=lead.id)["held"] is False
    assert ready(company) == [lead.id]
    again = claim(company, lead)
    assert waiting_stops(company) == []
    assert left(company, lead) == 100
    end(company, again)


@pytest.mark.requirement("BX-09")
@pytest.mark.parametrize("how", ["raise", "approval", "outcome", "boss"])
def test_who_stood_still_goes_on_when_there_is_something_again(
    company: Company, lead: Member, how: str
) -> None:
    stop(company, lead)
    company.clock.advance(DAY)  # type: ignore[attr-defined]
    if how == "raise":
        set_budget(company, lead, tokens=150)
    elif how == "approval":
        asked = company.call(
            lead.caller,
            approvals.request,
            company=None,
            kind="budget",
            payload={"budgetMonthlyTokens": 5_000},
        )
        with pytest.raises(Conflict, match=r"of which 895 tokens is left"):
            approve(company, asked)
        assert why_idle(company, lead) == "budget"
        company.call(company.board, approvals.request_revision, approval=asked["id"])
        company.call(
            lead.caller,
            approvals.resubmit,
            approval=asked["id"],
            payload={"budgetMonthlyTokens": 200},
        )
        approve(company, asked)
    elif how == "outcome":
        handed(company, company.ceo, lead, tokens=10)
    else:
        set_budget(company, lead, tokens=None)  # it lives on its boss's budget then
    assert is_awake(company, lead)
    assert lead.id in ready(company)
    assert waiting_stops(company) == []
    end(company, claim(company, lead))


def test_who_stood_still_for_want_of_a_boss_goes_on_when_somebody_gives_back(
    company: Company,
) -> None:
    set_budget(company, company.ceo, tokens=100)
    agent(company, "saver", tokens=60)
    one, two = agent(company, "one"), agent(company, "two")
    let_sleep(company, company.ceo, one, two)
    for member in (one, two):
        send(company, company.board, f"agent:{member.name}", "Please do it.")
    run = claim(company, one)
    spend(company, run, 45)
    end(company, run, "failed", exit_reason="budget", error="used up")
    company.call(as_system(), budgets.hold, agent=two.id)
    # One cause, told once to who is above it, and once on the list.
    assert told(company).count("The budget of ceo is used up") == 1
    (item,) = waiting_stops(company)
    assert item["title"] == "The budget of ceo is used up (tokens); 2 agents wait"
    assert not {one.id, two.id} & set(ready(company))
    company.call(company.board, agents.terminate, agent="saver")
    assert {one.id, two.id} <= set(ready(company))
    assert waiting_stops(company) == []


def test_a_run_that_its_own_settings_ended_failed_like_any_other(
    company: Company, lead: Member
) -> None:
    send(company, company.board, "agent:lead", "Please do it.")
    run = claim(company, lead)
    end(company, run, "failed", exit_reason="budget", error="maxBudgetUsd", tokens_in=5)
    assert held(company, lead).failures == 1
    assert why_idle(company, lead) == "backoff"


@pytest.mark.requirement("BX-09")
@pytest.mark.parametrize("how", ["cancel", "lost", "terminate", "stop"])
def test_what_a_run_took_is_kept_however_it_ended(company: Company, lead: Member, how: str) -> None:
    send(company, company.board, "agent:lead", "Please do it.")
    run = claim(company, lead)
    spend(company, run, 40)
    if how == "cancel":
        company.call(company.board, runs.cancel, run=run.id)
    elif how == "lost":
        end(company, run, "lost", exit_reason="lost")
    elif how == "stop":
        company.call(company.board, agents.stop, agent="lead")
    else:
        company.call(company.board, agents.terminate, agent="lead")
    assert shown_run(company, run)["tokens_in"] == 40
    # What its worker learns later is counted as well, and once.
    for _ in range(2):
        spend(company, run, 55)
    assert shown_run(company, run)["tokens_in"] == 55
    assert Books(company).spent["tokens"] == 55
    assert budget_of(company, company.ceo)["tokens"]["spent"] == (55 if how == "terminate" else 0)


def test_only_remit_itself_says_what_a_run_took(company: Company, lead: Member) -> None:
    run = claim(company, lead) if is_awake(company, lead) else company.run(lead)
    for caller in (company.board, lead.caller, run.caller):
        error = refused(company, caller, budgets.spend, run=run.id, total={"tokens_in": 1})
        assert error.reason == "not_found"
        assert refused(company, caller, budgets.hold, agent=lead.id).reason == "not_found"
    company.call(as_system(), runs.end, run=run.id)


def test_a_program_is_charged_at_its_end_and_not_started_again_when_it_is_over(
    database_url: str, tmp_path: Path
) -> None:
    with opened(database_url, tmp_path / "home") as company:
        usage = '{"usage": {"tokens_in": 60, "tokens_out": 50, "cost_micros": 7}}'
        dev = program(company, "dev", f"echo '{usage}'")
        set_budget(company, dev, tokens=100)
        send(company, company.board, "agent:dev", "One.")
        at_work(company, over(company, dev))
        (run,) = listed(company, dev)
        assert (run["status"], run["tokens_in"], run["tokens_out"]) == ("completed", 60, 50)
        assert left(company, dev) == 0
        send(company, company.board, "agent:dev", "Two.")
        at_work(company, lambda: company.sql("SELECT 1 FROM budget_stops"))
        assert len(listed(company, dev)) == 1
        assert why_idle(company, dev) == "budget"
        set_budget(company, dev, tokens=1_000)
        at_work(company, over(company, dev, 2))
        assert left(company, dev) == 1_000 - 220


# ── looking ─────────────────────────────────────────────────────────────────────────────────────


def test_who_may_see_a_budget(company: Company, lead: Member) -> None:
    other, deep = agent(company, "other"), agent(company, "deep", "lead")
    for caller in (company.board, lead.caller, company.ceo.caller):
        assert company.call(caller, budgets.show, agent=lead.id)["name"] == "lead"
    for member in (other, deep):
        assert refused(company, member.caller, budgets.show, agent=lead.id).reason in (
            "not_found",
            "not_below_you",
            "refused",
            "not_above",
        )
    assert company.call(deep.caller, budgets.mine)["tokens"]["paid_by"]["name"] == "lead"
    neighbour = company.second_company()
    assert refused(company, neighbour.board, budgets.show, agent=lead.id).reason == "not_found"

    def names(caller: Any, **more: Any) -> list[str]:
        found = company.call(caller, budgets.listing, company=company.id, **more)
        return [one["name"] for one in found]

    work_off(company, deep, tokens=1)
    assert names(company.board) == ["ceo", "lead", "deep"]
    assert names(lead.caller) == ["lead", "deep"]
    assert names(other.caller) == []
    assert names(company.board, limit=1) == ["ceo"]
    assert names(company.user("part", scope=lead.id)) == ["lead", "deep"]


def test_budgets_travel_with_a_company_and_are_checked_where_it_arrives(
    company: Company, tmp_path: Path
) -> None:
    set_budget(company, company.ceo, tokens=1_000)
    agent(company, "lead", tokens=100, cents=5)
    folder = unpacked(export(company))
    home = tmp_path / "elsewhere"
    with opened(f"sqlite:///{home}/remit.db", home) as there:
        import_(there, packed(folder), name="Arrived")
        books = Books(there)
        assert books.wrong() == []
        assert sorted(books.limit.values()) == [100, 1_000, 5 * CENT]
    for path, content in folder.items():
        folder[path] = content.replace(
            b"budget_monthly_tokens = 1000\n", b"budget_monthly_tokens = 99\n"
        )
    home = tmp_path / "refused"
    with (
        opened(f"sqlite:///{home}/remit.db", home) as there,
        pytest.raises(Conflict, match="out of ceo's budget of 99 tokens"),
    ):
        import_(there, packed(folder), name="Arrived")
