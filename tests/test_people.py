"""People: their sessions, their first token, and settings that several change at once."""

import json
from typing import Any

import pytest

from remit.clock import DAY, HOUR
from remit.errors import BadInput, Conflict, NotFound, Unauthenticated
from remit.services.command import Verb
from remit.services.execution import run_queue
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox
from remit.services.organisation import agents
from remit.services.people import companies, sessions, users
from remit.services.record import events
from remit.services.screens import front_page, org_page
from remit.testing.clock import VirtualClock
from tests.budgeting import set_budget
from tests.company import Answer, Company
from tests.mailing import end, send
from tests.rootless import remove_root
from tests.working import claim


def signed_in(company: Company, who: Caller) -> Caller:
    link = company.call(who, sessions.create_link)["token"]
    return Caller(company.call(as_system(), sessions.redeem, link=link)["token"])


def is_good(company: Company, caller: Caller) -> bool:
    try:
        company.call(caller, users.me)
    except Unauthenticated:
        return False
    return True


# ── sessions ────────────────────────────────────────────────────────────────────────────────────


def test_a_person_lists_their_own_sessions_and_knows_which_is_this(
    company: Company, clock: VirtualClock
) -> None:
    old = signed_in(company, company.board)
    clock.advance(6 * DAY)
    new = signed_in(company, company.board)
    signed_in(company, company.user("ann"))
    assert [one["current"] for one in company.call(new, sessions.mine)] == [True, False]
    assert [one["current"] for one in company.call(old, sessions.mine)] == [False, True]
    # A caller with a token is signed in nowhere.
    assert not any(one["current"] for one in company.call(company.board, sessions.mine))
    clock.advance(2 * DAY)
    assert len(company.call(new, sessions.mine)) == 1
    assert all("token" not in one for one in company.call(new, sessions.mine))


def test_an_ended_session_opens_nothing_and_others_still_do(company: Company) -> None:
    here, there = signed_in(company, company.board), signed_in(company, company.board)
    (other,) = (one for one in company.call(here, sessions.mine) if not one["current"])
    company.call(here, sessions.end_one, session=other["id"])
    assert is_good(company, here)
    assert not is_good(company, there)
    with pytest.raises(NotFound):
        company.call(here, sessions.end_one, session=other["id"])
    last = company.call(company.board, events.listing, company=company.id, limit=1)[0]
    assert (last["action"], last["details"]) == ("session.end", {"session": other["id"]})


def test_nobody_ends_what_is_not_their_own_session(company: Company) -> None:
    ann = company.user("ann")
    hers = signed_in(company, ann)
    (session,) = company.call(hers, sessions.mine)
    token = company.call(company.board, users.tokens, company=company.id, user="board")[0]
    for caller, wanted in ((company.board, session["id"]), (company.board, token["id"])):
        with pytest.raises(NotFound):
            company.call(caller, sessions.end_one, session=wanted)
    for verb in (sessions.end, sessions.end_one):
        with pytest.raises(NotFound):
            company.call(company.board, verb, session="<script>")
    # Not even with the session itself in hand.
    with pytest.raises(NotFound):
        company.call(company.board, sessions.end, session=hers.token)
    with pytest.raises(NotFound):
        company.call(company.ceo.caller, sessions.mine)
    assert is_good(company, hers)


def test_ending_all_others_ends_unused_links_and_leaves_this_one_and_the_tokens(
    company: Company,
) -> None:
    here, there = signed_in(company, company.board), signed_in(company, company.board)
    ann = signed_in(company, company.user("ann"))
    link = company.call(company.board, sessions.create_link)["token"]
    assert company.call(here, sessions.end_others) == {"ended": 1}
    assert [is_good(company, one) for one in (here, there, ann, company.board)] == [
        True,
        False,
        True,
        True,
    ]
    with pytest.raises(Unauthenticated):
        company.call(as_system(), sessions.redeem, link=link)
    assert company.call(here, sessions.end_others) == {"ended": 0}


# ── settings ────────────────────────────────────────────────────────────────────────────────────


def test_of_two_changes_that_expect_the_same_the_second_is_refused(company: Company) -> None:
    gate = company.app.gate
    work = [
        gate(
            company.board,
            companies.change,
            company=company.id,
            messaging=wanted,
            expected={"messaging": "chain"},
        )
        for wanted in ("team", "open")
    ]
    answers = company.together(work)
    lost = [one for one in answers if isinstance(one, Conflict)]
    won = [one for one in answers if isinstance(one, dict)]
    assert (len(lost), len(won)) == (1, 1)
    assert "messaging" in lost[0].sentence
    now = company.call(company.board, companies.show, company=company.id)
    assert now["messaging"] == won[0]["messaging"]
    company.call(
        company.board,
        companies.change,
        company=company.id,
        chat_llm_model="x",
        expected={"chat_llm_model": None},
    )


# ── at a glance ─────────────────────────────────────────────────────────────────────────────────


def test_who_has_a_part_sees_who_is_at_work_there_and_with_what(company: Company) -> None:
    lead, other = company.agent("lead"), company.agent("other")
    below = company.agent("below", "lead")
    partner = company.user("partner", scope="lead")
    started = {one.name: company.run(one) for one in (lead, other, below)}
    send(company, company.board, "agent:below", subject="Launch")
    send(company, company.board, "agent:other", subject="Secret")
    for name in ("below", "other"):
        company.call(started[name].caller, inbox.take)

    def at_work(who: Caller) -> dict[str, str]:
        listed = company.call(who, front_page.now, company=company.id)["listed"]
        return {one["name"]: one["doing"] for one in listed if one["word"] == "working"}

    seen = at_work(partner)
    assert seen == {"lead": "by hand", "below": "What below is for"}
    assert at_work(company.board).keys() == {*seen, "other"}
    for run in started.values():
        end(company, run, "failed")
    assert at_work(partner) == {}
    failed = company.call(partner, front_page.newest_runs, company=company.id, failed=True)
    assert {one["agent_id"] for one in failed} == {lead.id, below.id}
    tops = [
        company.call(who, front_page.roots, company=company.id) for who in (partner, company.board)
    ]
    assert [[one["name"] for one in top] for top in tops] == [["lead"], ["ceo"]]
    refused = [
        one
        for one in company.call(company.board, events.listing, company=company.id, limit=100)
        if not one["allowed"]
    ]
    assert refused == []


def test_a_glance_is_for_people_of_the_company(company: Company) -> None:
    elsewhere = company.second_company()
    looks: list[Verb[..., Any]] = [front_page.roots, front_page.newest_runs]
    for verb in (*looks, front_page.now):
        with pytest.raises(NotFound):
            company.call(elsewhere.board, verb, company=company.id)
    company.wait(remove_root(company.app, company.ceo.id))
    assert company.call(company.board, front_page.roots, company=company.id) == []


def test_the_front_page_says_what_a_run_works_on_and_what_it_said_last(small: Company) -> None:
    dev = small.agent("dev")
    run = small.run(dev)
    send(small, small.board, "agent:dev", subject="Launch")
    small.call(run.caller, inbox.take)
    small.sql("UPDATE runs SET outcome_ids = '[]' WHERE id = ?", run.id)

    def line() -> Answer:
        listed = small.call(small.board, front_page.now, company=small.id)["listed"]
        return next(one for one in listed if one["name"] == "dev")

    assert (line()["doing"], line()["last"]) == ("Launch", "")
    # Of an outcome that was purged meanwhile there is nothing to tell.
    gone = json.dumps([small.app.ids.new()])
    small.sql("UPDATE runs SET outcome_ids = ? WHERE id = ?", gone, run.id)
    assert line()["doing"] == "Launch"
    for number, text in enumerate(["Reading the plan.\n", "\n  \n"], 1):
        piece = {"number": number, "at": small.clock.now(), "stream": "stdout", "text": text}
        small.call(as_system(), run_queue.append_log, run=run.id, pieces=[piece])
    assert line()["last"] == "Reading the plan."
    piece = {"number": 3, "at": small.clock.now(), "stream": "stdout", "text": "so " * 100}
    small.call(as_system(), run_queue.append_log, run=run.id, pieces=[piece])
    assert line()["last"].startswith("so so")
    assert line()["last"].endswith("…")


def test_a_glance_at_a_large_company_stops_at_what_fits(small: Company) -> None:
    for name in ("one", "two", "three"):
        small.call(small.board, agents.pause, agent=small.agent(name).id)
    send(small, small.board, "agent:ceo")
    seen = small.call(small.board, front_page.now, company=small.id, most=0)
    assert (seen["listed"], seen["not_listed"], seen["agents"]) == ([], 4, 4)


def test_the_trend_counts_money_by_hours_and_against_the_budgets_of_the_roots(
    small: Company,
) -> None:
    dev = small.agent("dev")
    send(small, small.board, "agent:dev")
    end(small, claim(small, dev), cost_micros=30_000)

    def trend(back: str) -> Answer:
        return small.call(small.board, front_page.trend, company=small.id, back=back)

    hours = trend("24h")
    assert (hours["span"], len(hours["money"]), hours["money"][-1]) == (HOUR, 24, 30_000)
    assert hours["month_limit"] is None
    set_budget(small, small.ceo, cents=700)
    assert trend("14d")["month_limit"] == 7_000_000
    with pytest.raises(BadInput, match="no such range"):
        trend("1y")
    with pytest.raises(BadInput, match="This is for people"):
        small.call(small.ceo.caller, front_page.trend, company=small.id)


def test_in_a_large_company_those_at_the_top_say_why_they_do_not_work(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in view when all below them is folded away."""
    monkeypatch.setattr(org_page, "MOST_ASKED", 2)
    paused = [small.agent(f"paused-{number}") for number in range(3)]
    for one in paused:
        small.call(small.board, agents.pause, agent=one.id)
    seen = small.call(small.board, org_page.lines, company=small.id)
    assert "waits for 3 other outcomes" in seen[small.ceo.id]["why"]
    assert [bool(seen[one.id]["why"]) for one in paused] == [True, False, False]
