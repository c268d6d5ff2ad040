"""Faults have a place: what each leads to, and that a letter dies of its own faults only."""

from dataclasses import asdict
from typing import Any

import pytest

from remit.clock import DAY, HOUR, MINUTE, SECOND
from remit.errors import BadInput, Conflict, NotFound
from remit.model.execution.fault import (
    _BY_REASON,
    CONSEQUENCES,
    CUT_SHORT,
    NEEDS_PROOF,
    UNMENDABLE,
    Fault,
    Holds,
    Tells,
    fault_of,
)
from remit.model.messaging.mail import MOST_ATTEMPTS, MOST_FAULTS_TOGETHER
from remit.services.execution import error_recovery, run_queue, run_start, runs
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.messaging import inbox, pending_items, threads
from remit.services.organisation import agents, idleness
from remit.services.screens import needs_you, record_page
from remit.services.work import outcomes
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, Run
from tests.mailing import bodies, look, send, take
from tests.working import claim, end, held, shown, told, why_idle

KIND = {"adapter_type": "scripted"}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def worker(company: Company, name: str = "dev", **more: Any) -> Member:
    return company.agent(name, perpetual=True, **{**KIND, **more})


def letters(company: Company, *texts: str, to: str = "dev") -> None:
    for text in texts:
        send(company, company.board, f"agent:{to}", text)


def deliveries(company: Company, member: Member) -> list[tuple[Any, ...]]:
    return company.sql(
        "SELECT status, attempt, begun, faults FROM deliveries WHERE agent_id = ? ORDER BY id",
        member.id,
    )


def runs_with_mail(company: Company, member: Member, clock: VirtualClock) -> tuple[Run, list[str]]:
    """The next run of an agent, whenever it may start, and what it takes up."""
    clock.advance(HOUR)
    run = claim(company, member)
    return run, bodies(take(company, run))


# ── the table ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-09")
def test_the_table_says_of_every_fault_what_it_leads_to() -> None:
    def row(fault: Fault) -> tuple[Any, ...]:
        return tuple(asdict(CONSEQUENCES[fault]).values())

    of_agent = (False, True, True, None, True, Tells.BOSS)
    slow = (False, True, False, None, True, Tells.BOSS)
    of_account = (False, False, False, Holds.ACCOUNT, True, Tells.BOARD)
    #: counts, backs off, isolates, holds, begun, tells
    expected: dict[Fault, tuple[Any, ...]] = {
        Fault.MESSAGE: (True, False, False, None, True, Tells.BOSS),
        Fault.AGENT: of_agent,
        Fault.REPETITION: of_agent,
        Fault.LOST: of_agent,
        Fault.TURNS: slow,
        Fault.CONTEXT: slow,
        Fault.SETUP: (False, False, False, Holds.SETUP, False, Tells.BOARD),
        Fault.AUTH: of_account,
        Fault.RATE: of_account,
        Fault.OVERLOAD: of_account,
        Fault.BILLING: of_account,
        Fault.NETWORK: of_account,
        Fault.STOPPED: (False, False, False, None, True, Tells.NOBODY),
    }
    assert {fault: row(fault) for fault in Fault} == expected
    assert set(CONSEQUENCES) == set(Fault)
    for fault, consequence in CONSEQUENCES.items():
        # Nothing is put into two places, and nothing but a stop goes without a word.
        places = (consequence.counts, consequence.backs_off, consequence.holds is not None)
        assert sum(places) <= 1
        assert (consequence.tells is Tells.NOBODY) == (fault is Fault.STOPPED)
        assert (consequence.tells is Tells.BOARD) == (consequence.holds is not None)
    assert {fault for fault in Fault if CONSEQUENCES[fault].counts} == {Fault.MESSAGE}
    assert CUT_SHORT.isdisjoint(NEEDS_PROOF)
    assert all(CONSEQUENCES[fault].holds is Holds.ACCOUNT for fault in NEEDS_PROOF)


@pytest.mark.requirement("FX-09")
def test_what_is_not_recognised_is_the_agents() -> None:
    for fault in Fault:
        assert fault_of(fault.value, "timeout") is fault
    for reason, fault in _BY_REASON.items():
        assert fault_of(None, reason) is fault
        assert fault_of("nonsense", reason) is fault
    for unknown in ("timeout", "crashed", "memory", "exit", "", None, "internal"):
        assert fault_of(None, unknown) is Fault.AGENT
    assert all(fault_of(None, reason) is Fault.SETUP for reason in UNMENDABLE)


# ── letters ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-08")
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.MESSAGE])
def test_only_faults_of_the_letter_count_however_often_others_come(
    small: Company, clock: VirtualClock, fault: Fault
) -> None:
    dev = worker(small)
    letters(small, "first", "second")
    for _ in range(2 * MOST_ATTEMPTS):
        clock.advance(2 * DAY)
        small.sql("UPDATE agent_leases SET held_by = NULL, due_at = 0 WHERE agent_id = ?", dev.id)
        small.sql("UPDATE accounts SET probe_at = 0")
        small.sql("UPDATE agents SET status = 'idle' WHERE id = ?", dev.id)
        small.sql("UPDATE accounts SET state = 'open', since = NULL WHERE kind = 'setup'")
        run = claim(small, dev)
        take(small, run)
        status = "lost" if fault in (Fault.LOST, Fault.STOPPED) else "failed"
        reason = {"exit_reason": "stopped"} if fault is Fault.STOPPED else {}
        end(small, run, status, fault=fault.value, **reason)
        assert shown(small, run)["fault"] == fault
    begun = int(CONSEQUENCES[fault].begun)
    assert {(one[0], one[1], int(one[2])) for one in deliveries(small, dev)} == {
        ("queued", 1, begun)
    }


@pytest.mark.requirement("FX-08")
def test_a_letter_that_breaks_whoever_reads_it_is_found_and_set_aside(
    company: Company, clock: VirtualClock
) -> None:
    dev = worker(company)
    letters(company, "one", "poison", "two")
    handed: list[list[str]] = []
    for _ in range(20):
        clock.advance(HOUR)
        try:
            run = claim(company, dev)
        except Conflict:  # there is nothing left to do
            break
        found = bodies(take(company, run))
        assert bodies(take(company, run)) == found  # asking again gives no more
        handed.append(found)
        end(company, run, "failed" if "poison" in found else "completed", error="It crashed.")
    together = [["one", "poison", "two"]] * MOST_FAULTS_TOGETHER
    assert handed == [*together, ["one"], ["poison"], ["two"], ["poison"]]
    assert [one[0] for one in deliveries(company, dev)] == ["done", "dead", "done"]
    (dead,) = [
        one
        for one in company.call(company.board, needs_you.listing, company=company.id)
        if one["kind"] == "dead_letter"
    ]
    assert inbox.BROKE in dead["cause"]
    assert why_idle(company, dev) == "no_work"


@pytest.mark.requirement("FX-08")
def test_new_letters_are_not_held_up_by_one_that_fails_alone(
    small: Company, clock: VirtualClock
) -> None:
    dev = worker(small)
    letters(small, "poison")
    for _ in range(MOST_FAULTS_TOGETHER + 1):
        run, found = runs_with_mail(small, dev, clock)
        assert found == ["poison"]
        end(small, run, "failed", error="It crashed.")
    # With nothing else to compare with it may be the agent, so it is not given up.
    assert deliveries(small, dev)[0][0] == "queued"
    letters(small, "later", "much later")
    run, found = runs_with_mail(small, dev, clock)
    assert found == ["poison"]
    end(small, run, "failed", error="It crashed.")
    run, found = runs_with_mail(small, dev, clock)
    assert found == ["later", "much later"]
    end(small, run)
    run, found = runs_with_mail(small, dev, clock)
    assert found == ["poison"]
    end(small, run, "failed", error="It crashed.")
    assert [one[0] for one in deliveries(small, dev)] == ["dead", "done", "done"]


def test_a_letter_that_was_handled_alone_is_as_good_as_others(
    small: Company, clock: VirtualClock
) -> None:
    dev = worker(small)
    letters(small, "one", "two")
    for _ in range(MOST_FAULTS_TOGETHER):
        run, _ = runs_with_mail(small, dev, clock)
        end(small, run, "failed", error="It crashed.")
    for expected in ("one", "two"):
        run, found = runs_with_mail(small, dev, clock)
        assert found == [expected]
        end(small, run)
    assert [one[0] for one in deliveries(small, dev)] == ["done", "done"]


def test_in_one_run_the_next_suspect_comes_when_the_first_is_dealt_with(
    small: Company, clock: VirtualClock
) -> None:
    dev = worker(small)
    letters(small, "one", "two")
    for _ in range(MOST_FAULTS_TOGETHER):
        run, _ = runs_with_mail(small, dev, clock)
        end(small, run, "failed", error="It crashed.")
    run, found = runs_with_mail(small, dev, clock)
    small.call(run.caller, inbox.acknowledge, ids=[one["id"] for one in take(small, run)])
    assert (found, bodies(take(small, run))) == (["one"], ["two"])
    end(small, run)


@pytest.mark.requirement("FX-08")
def test_an_adapter_that_blames_a_letter_has_it_tried_alone_and_three_times(
    small: Company, clock: VirtualClock
) -> None:
    dev = worker(small)
    letters(small, "one", "bad")
    seen = []
    for _ in range(6):
        run, found = runs_with_mail(small, dev, clock)
        seen.append(found)
        if "bad" in found:
            end(small, run, "failed", fault="message", error="It cannot be read.")
        else:
            end(small, run)
        if deliveries(small, dev)[1][0] == "dead":
            break
    assert seen == [["one", "bad"], ["one"], ["bad"], ["bad"], ["bad"]]
    assert held(small, dev).failures == 0


@pytest.mark.requirement("FX-08")
@pytest.mark.parametrize("fault", [Fault.TURNS, Fault.CONTEXT])
def test_a_run_cut_short_gives_its_mail_back_and_goes_on_at_once_if_it_got_on(
    small: Company, clock: VirtualClock, fault: Fault
) -> None:
    dev = worker(small)
    letters(small, "long")
    run = claim(small, dev)
    take(small, run)
    small.call(run.caller, outcomes.create, parent=dev.id, title="A part")
    end(small, run, "failed", fault=fault.value, error="No more.")
    (found,) = look(small, dev)
    assert (found["attempt"], found["may_have_been_handled"]) == (1, True)
    shown = small.call(small.board, threads.inbox_of, agent=dev.id)
    assert [one["may_have_been_handled"] for one in shown] == [True]
    assert held(small, dev).failures == 0
    again = claim(small, dev)
    text = small.call(again.caller, inbox.turn).text
    assert "begun: yes (an earlier run may have handled this)" in text


def test_mail_that_is_to_be_tried_once_is_tried_once(small: Company) -> None:
    dev = worker(small)
    send(small, small.board, "agent:dev", "once", at_most_once=True)
    run = claim(small, dev)
    take(small, run)
    end(small, run, "failed", fault="rate")
    assert deliveries(small, dev)[0][0] == "done"


@pytest.mark.requirement("FX-08")
def test_letters_that_died_of_others_faults_come_back_with_one_command(
    company: Company, clock: VirtualClock
) -> None:
    dev, gone = worker(company), worker(company, "gone")
    letters(company, "of before", "poison", "mine")
    letters(company, "too late", to="gone")
    company.call(company.board, agents.terminate, agent=gone.id)
    died = "UPDATE deliveries SET status = 'dead', ended_at = 5, ended_why = ? WHERE id = ?"
    numbers = [one for (one,) in company.sql(_IDS, dev.id)]
    for number, why in zip(numbers, ("failed 3 times", inbox.BROKE), strict=False):
        company.sql(died, why, number)
    listed = company.call(company.board, pending_items.revivable, company=company.id)
    assert [(one["agent_id"], one["why"]) for one in listed] == [(dev.id, "failed 3 times")]
    answer = company.call(company.board, pending_items.revive_all, company=company.id)
    assert answer["revived"] == [listed[0]["id"]]
    assert [one[0] for one in deliveries(company, dev)] == ["queued", "dead", "queued"]
    assert company.call(company.board, pending_items.revive_all, company=company.id) == {
        "revived": []
    }
    # An agent brings back what is for itself and those below it, and nobody else's.
    company.sql(died, "failed 3 times", numbers[0])
    assert company.call(gone_sibling(company), pending_items.revive_all) == {"revived": []}
    run = claim(company, dev)
    assert bodies(take(company, run)) == ["mine"]


_IDS = "SELECT id FROM deliveries WHERE agent_id = ? ORDER BY id"


def gone_sibling(company: Company) -> Any:
    return worker(company, "sibling").caller


# ── runs ────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_keeps_its_fault_and_until_when_and_a_good_one_has_none(
    small: Company, clock: VirtualClock
) -> None:
    dev = worker(small)
    letters(small, "text")
    run = claim(small, dev)
    end(small, run, "failed", fault="rate", fault_until=clock.now() + HOUR, error="Wait.")
    found = shown(small, run)
    assert (found["fault"], found["fault_until"] is not None) == ("rate", True)
    clock.advance(HOUR)
    run = claim(small, dev)
    end(small, run, fault="agent", fault_until=5)
    assert (shown(small, run)["fault"], shown(small, run)["fault_until"]) == (None, None)


@pytest.mark.requirement("FX-09")
def test_an_agent_elsewhere_names_the_fault_itself(small: Company, clock: VirtualClock) -> None:
    dev = worker(small, adapter_type="http", adapter_config={"url": "https://a.example/run"})
    letters(small, "text")
    run = claim(small, dev)
    said: dict[str, Any] = {"run": run.id, "ok": False, "error": "Too much."}
    with pytest.raises(Exception, match="is not a fault"):
        small.call(run.caller, runs.report, **said, fault="nonsense")
    small.call(run.caller, runs.report, **said, fault="rate", until="2030-01-01T00:00:00Z")
    found: Any = small.call(as_system(), runs.read_report, run=run.id)
    assert found["fault"] == "rate"
    assert found["fault_until"] == 1893456000 * SECOND
    with pytest.raises(Conflict, match="reported already"):
        small.call(run.caller, runs.report, run=run.id)


def test_a_report_is_of_a_run_that_is_under_way_and_counts_forwards(small: Company) -> None:
    dev = worker(small, adapter_type="http", adapter_config={"url": "https://a.example/run"})
    letters(small, "text")
    run = claim(small, dev)
    with pytest.raises(BadInput, match="not below zero"):
        small.call(run.caller, runs.report, run=run.id, tokens_in=-1)
    with pytest.raises(NotFound):
        small.call(small.board, runs.report, run=run.id)
    with pytest.raises(NotFound):
        small.call(as_system(), runs.read_report, run=dev.id)
    small.call(run.caller, runs.report, run=run.id, ok=False)
    found: Any = small.call(as_system(), runs.read_report, run=run.id)
    assert (found["ok"], found["fault"]) == (False, None)


def test_a_run_that_somebody_ended_was_not_reported(small: Company) -> None:
    dev = worker(small, adapter_type="http", adapter_config={"url": "https://a.example/run"})
    letters(small, "text")
    run = claim(small, dev)
    small.call(small.board, runs.cancel, run=run.id)
    # The worker goes on waiting, is cancelled, and says so at `cancelUrl`.
    assert small.call(as_system(), runs.read_report, run=run.id) is None


def test_what_remit_tests_in_an_hour_is_one_line_of_the_record(small: Company) -> None:
    for dev in [worker(small, name) for name in ("one", "two", "three")]:
        letters(small, "text", to=dev.name)
        end(small, claim(small, dev), "failed", exit_reason="no_adapter", error="No such.")
        small.call(as_system(), error_recovery.checked, agent=dev.id, usable=True)
    lines = small.call(small.board, record_page.page, company=small.id)["lines"]
    told = [one for one in lines if one["events"] and one["events"][0]["action"] == "agent.check"]
    assert [(one["times"], one["others"]) for one in told] == [(1, 2)]


# ── agents that a person has to see to ──────────────────────────────────────────────────────────


def in_error(company: Company) -> list[Answer]:
    found = company.call(company.board, needs_you.listing, company=company.id)
    return [one for one in found if one["kind"] == "agent_error"]


@pytest.mark.parametrize("reason", sorted(UNMENDABLE))
def test_what_a_person_must_mend_ends_in_error_and_ends_by_itself(
    company: Company, clock: VirtualClock, reason: str
) -> None:
    dev = worker(company)
    letters(company, "text")
    end(company, claim(company, dev), "failed", exit_reason=reason, error="There is no such.")
    assert company.call(company.board, agents.show, agent="dev")["status"] == "error"
    (row,) = in_error(company)
    assert "There is no such" in row["title"]
    assert why_idle(company, dev) == "stopped"
    sentence = company.call(company.board, idleness.why_idle, agent="dev")["sentence"]
    assert "remit adapter test --agent dev" in sentence
    assert "remit agent resume dev" in sentence
    assert company.call(as_system(), error_recovery.to_check) == []
    clock.advance(MINUTE)
    (found,) = company.call(as_system(), error_recovery.to_check)
    assert (found.id, found.adapter_type) == (dev.id, "scripted")
    company.call(
        as_system(), error_recovery.checked, agent=dev.id, usable=False, cause="Still not."
    )
    assert company.call(as_system(), error_recovery.to_check) == []
    clock.advance(MINUTE)
    company.call(as_system(), error_recovery.checked, agent=dev.id, usable=True)
    assert in_error(company) == []
    run = claim(company, dev)
    assert bodies(take(company, run)) == ["text"]
    end(company, run)
    assert held(company, dev).failures == 0
    with pytest.raises(Exception, match="not in error"):
        company.call(as_system(), error_recovery.checked, agent=dev.id, usable=True)


def test_an_agent_of_which_everything_fails_for_a_day_is_for_a_person(
    small: Company, clock: VirtualClock
) -> None:
    dev = worker(small)
    letters(small, "text")
    began = clock.now()
    while small.call(small.board, agents.show, agent="dev")["status"] != "error":
        end(small, claim(small, dev), "failed", error="It crashed.")
        clock.advance(HOUR)
        assert clock.now() - began < 2 * DAY
    assert clock.now() - began >= DAY
    assert len(in_error(small)) == 1
    assert deliveries(small, dev)[0][0] == "queued"
    # The check passes; if it fails again, it is for a person again, and if not, all is well.
    for status, after in (("failed", "error"), ("completed", "idle")):
        clock.advance(HOUR)
        small.call(as_system(), error_recovery.checked, agent=dev.id, usable=True)
        end(small, claim(small, dev), status, error="It crashed.")
        assert small.call(small.board, agents.show, agent="dev")["status"] == after


@pytest.mark.requirement("FX-06")
def test_what_a_run_had_made_when_it_was_lost_is_gone_on_with(
    company: Company, clock: VirtualClock
) -> None:
    """Its mandate waits for the parts, and of the parts nobody else knows."""
    dev = worker(company)
    part = company.call(dev.caller, outcomes.create, parent=dev.id, title="Whole")["id"]
    run = claim(company, dev)
    for number in range(2):
        company.call(run.caller, outcomes.create, parent=part, title=f"Part {number}")
    end(company, run, "lost", exit_reason="lost", error="the instance stopped")
    clock.advance(HOUR)
    company.call(as_system(), run_queue.sweep, company=company.id)
    again = claim(company, dev)
    given = {"run": again.id, "token": again.caller.token}
    assert "Part 0" in company.call(as_system(), run_start.briefing, **given).situation


@pytest.mark.requirement("FX-06")
def test_two_failures_with_days_of_nothing_between_them_are_not_failing_all_the_time(
    small: Company, clock: VirtualClock
) -> None:
    dev = worker(small)
    letters(small, "One.")
    end(small, claim(small, dev), "lost", exit_reason="crashed", error="It broke.")
    clock.advance(HOUR)
    run = claim(small, dev)
    small.call(run.caller, inbox.acknowledge, ids=[one["id"] for one in take(small, run)])
    end(small, run, "lost", exit_reason="lost", error="the instance stopped")
    clock.advance(3 * DAY)
    letters(small, "Two.")
    end(small, claim(small, dev), "lost", exit_reason="lost", error="the instance stopped")
    assert in_error(small) == []
    assert small.call(small.board, agents.show, agent="dev")["status"] == "idle"


def test_other_settings_end_the_error(small: Company, clock: VirtualClock) -> None:
    dev = worker(small)
    letters(small, "text")
    end(small, claim(small, dev), "failed", exit_reason="no_adapter", error="There is none.")
    changes = {"adapterConfig": {"timeoutSeconds": 30}}
    small.call(small.board, configuration.change, agent="dev", changes=changes)
    ready = small.call(as_system(), run_queue.ready)
    assert dev.id in [one.agent_id for one in ready]


def test_a_boss_hears_of_faults_of_agents_and_not_of_those_of_the_world(
    small: Company, clock: VirtualClock
) -> None:
    root = small.ceo
    letters(small, "text", to="ceo")
    small.sql("UPDATE agents SET adapter_type = 'scripted' WHERE id = ?", root.id)
    end(small, claim(small, root), "failed", fault="overload", error="High demand.")
    assert told(small) == []
    clock.advance(MINUTE)
    end(small, claim(small, root), "failed", fault="agent", error="It crashed.")
    assert told(small) == ["A run of ceo failed"]
