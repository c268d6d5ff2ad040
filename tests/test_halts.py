"""Stop and go: what a halt covers, what it holds, who makes it and who lifts it."""

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from remit.clock import HOUR
from remit.errors import RemitError
from remit.services.changes import checking, errands, reviews
from remit.services.connections import outbox, repo_checks
from remit.services.execution import job_queue, run_queue, runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import schedules
from remit.services.organisation import agents, halts, idleness, reorganise
from remit.services.record import events
from remit.services.screens import front_page, needs_you, overview
from remit.store.engine.migrate import sqlite_path
from remit.store.engine.statement import SQLITE
from remit.store.execution import leases
from tests import background
from tests.change_stage import add_repo, claimed, give, propose
from tests.channel_stage import bind
from tests.company import Answer, Company, Member, keyed, opened
from tests.mailing import look, send, take, tick
from tests.working import claim, held, later, listed, ready, shown, why_idle

pytestmark = pytest.mark.requirement("FX-13")


@pytest.fixture
def team(company: Company) -> dict[str, Member]:
    """ceo, lead and dev below each other, and ops beside the lead; all but the ceo are started."""
    return {
        "ceo": company.ceo,
        "lead": company.agent("lead", adapter_type="scripted"),
        "dev": company.agent("dev", boss="lead", adapter_type="scripted"),
        "ops": company.agent("ops", adapter_type="scripted"),
    }


def stop(
    company: Company, agent: Member | None = None, by: Caller | None = None, **more: Any
) -> Answer:
    where: Any = {"agent": agent.id} if agent else {"company": company.id}
    return company.call(by or company.board, halts.stop, **where, **more)


def go(company: Company, agent: Member | None = None, by: Caller | None = None) -> Answer:
    where: Any = {"agent": agent.id} if agent else {"company": company.id}
    return company.call(by or company.board, halts.go, **where)


def refused(at: Company, caller: Caller, verb: Any, /, **given: Any) -> str:
    with pytest.raises(RemitError) as caught:
        at.call(caller, verb, **given)
    return caught.value.reason


def names(company: Company, team: dict[str, Member]) -> set[str]:
    """Who is ready."""
    there = set(ready(company))
    return {name for name, member in team.items() if member.id in there}


def rows(company: Company) -> int:
    return int(company.sql("SELECT count(*) FROM halts")[0][0])


# ── what it covers ──────────────────────────────────────────────────────────────────────────────


def test_nobody_of_a_stopped_company_is_ready_and_all_are_when_it_goes_on(
    company: Company, team: dict[str, Member]
) -> None:
    assert names(company, team) == {"lead", "dev", "ops"}
    halt = stop(company, note="Audit")
    assert (halt["level"], halt["agent"], halt["note"], halt["already"]) == (
        "company",
        None,
        "Audit",
        False,
    )
    assert names(company, team) == set()
    for name in ("lead", "dev", "ops"):
        assert refused(company, as_system(), run_queue.claim, **_claiming(company, team[name])) == (
            "stopped"
        )
    go(company)
    assert names(company, team) == {"lead", "dev", "ops"}
    claim(company, team["dev"])


def _claiming(company: Company, member: Member) -> dict[str, str]:
    run = company.app.ids.new()
    return {"agent": member.id, "run": run, "workspace": "/nowhere", "worker": "w"}


def test_a_subtree_stands_still_and_the_others_go_on(
    company: Company, team: dict[str, Member]
) -> None:
    stop(company, team["lead"])
    assert names(company, team) == {"ops"}
    claim(company, team["ops"])
    assert rows(company) == 1


def test_another_company_is_not_touched(company: Company, team: dict[str, Member]) -> None:
    other = company.second_company()
    stop(company)
    company.call(other.agent.caller, overview.me)
    assert company.call(other.board, halts.listing, company=other.id) == []
    assert refused(company, other.board, halts.stop, company=company.id) == "not_found"
    assert refused(company, other.board, halts.go, company=company.id) == "not_found"


def test_who_is_hired_or_moved_below_a_halt_is_stopped_and_who_leaves_it_is_not(
    company: Company, team: dict[str, Member]
) -> None:
    stop(company, team["lead"])
    new = company.agent("new", boss="lead", adapter_type="scripted")
    assert why_idle(company, new) == "halted"
    run = claim(company, team["ops"])
    _move(company, "ops", "lead")
    assert shown(company, run)["exit_reason"] == "stopped"
    assert names(company, team) == set()
    _move(company, "dev", "ceo")
    assert names(company, team) == {"dev"}


def _move(company: Company, agent: str, boss: str) -> None:
    company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "move", "agent": agent, "to": boss}],
    )


def test_finding_the_ready_ones_reads_no_table_of_agents_or_halts_through(
    small: Company,
) -> None:
    """A halt is looked for in an index, and the tree by the bosses of who is asked about."""
    statement, constants = leases.READY.compiled(SQLITE)
    given = {**constants, "now": 1, "each": 9, "limit": 9}
    with closing(sqlite3.connect(sqlite_path(small.url))) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", given)]
    assert any("ix_halts_company_id" in step for step in plan)
    assert any("SEARCH b USING" in step for step in plan)
    assert not [step for step in plan if re.match("SCAN (a|b|h|w|halts|agents)\\b", step)]


# ── what it holds ───────────────────────────────────────────────────────────────────────────────


def test_live_runs_end_as_stopped_and_lose_nothing(
    company: Company, team: dict[str, Member]
) -> None:
    dev = team["dev"]
    send(company, company.board, "agent:dev", "Please.")
    run = claim(company, dev)
    (letter,) = take(company, run)
    before = held(company, dev)
    halt = stop(company)
    assert halt["runs_ended"] == 1
    ended = shown(company, run)
    assert (ended["status"], ended["exit_reason"]) == ("lost", "stopped")
    assert refused(company, run.caller, overview.me) == "unauthenticated"
    after = held(company, dev)
    assert (after.failures, after.idle_runs, after.lease_until) == (
        before.failures,
        before.idle_runs,
        None,
    )
    go(company)
    assert dev.id in ready(company)
    again = claim(company, dev)
    (same,) = take(company, again)
    assert (same["id"], same["attempt"], same["may_have_been_handled"]) == (letter["id"], 1, True)
    # Neither its boss nor the board is told of a failure.
    assert look(company, team["lead"]) == []
    assert company.call(company.board, needs_you.listing) == []
    assert (
        company.call(company.board, front_page.newest_runs, company=company.id, failed=True) == []
    )


def test_a_run_cannot_be_stopped_into_a_dead_letter(
    company: Company, team: dict[str, Member]
) -> None:
    send(company, company.board, "agent:dev", "Please.")
    for _ in range(5):
        take(company, claim(company, team["dev"]))
        stop(company, team["dev"])
        go(company, team["dev"])
    (letter,) = take(company, claim(company, team["dev"]))
    assert letter["attempt"] == 1


def test_the_end_that_a_worker_reports_later_changes_nothing(
    company: Company, team: dict[str, Member]
) -> None:
    run = claim(company, team["dev"])
    stop(company)
    assert company.call(as_system(), run_queue.over, runs=[run.id]) == [run.id]
    piece = {"number": 1, "at": 1, "stream": "stdout", "text": "last words"}
    company.call(as_system(), run_queue.append_log, run=run.id, pieces=[piece])
    assert refused(company, as_system(), runs.end, run=run.id) == "conflict"
    assert shown(company, run)["exit_reason"] == "stopped"


def test_a_run_is_not_begun_by_hand_either(company: Company, team: dict[str, Member]) -> None:
    stop(company, team["lead"])
    given: Any = {"run": company.app.ids.new(), "workspace": None}
    assert refused(company, as_system(), runs.start, agent=team["dev"].id, **given) == "stopped"


def test_the_tokens_of_agents_are_held_and_those_of_people_are_not(
    company: Company, team: dict[str, Member]
) -> None:
    stop(company, team["lead"], note="Wait for me")
    with pytest.raises(RemitError) as caught:
        company.call(team["dev"].caller, overview.me)
    assert (caught.value.reason, caught.value.status) == ("stopped", 403)
    assert "Wait for me" in caught.value.sentence
    assert "started again" in caught.value.step
    company.call(team["ops"].caller, overview.me)
    company.call(company.board, agents.show, agent=team["dev"].id)
    send(company, company.board, "agent:dev", "For later.")
    go(company, team["lead"])
    assert [one["body"] for one in look(company, team["dev"])] == ["For later."]


def test_jobs_go_back_in_line_and_wait(company: Company, team: dict[str, Member]) -> None:
    background.ask(company, team["dev"])
    (job,) = company.call(as_system(), job_queue.ready)
    company.call(as_system(), job_queue.claim, job=job, worker="w")
    halt = stop(company, team["lead"])
    assert halt["jobs_put_back"] == 1
    assert company.sql("SELECT status, attempts FROM jobs") == [("queued", 0)]
    assert company.call(as_system(), job_queue.lost, held=[(job, 1)]) == [(job, 1)]
    assert company.call(as_system(), job_queue.ready) == []
    assert refused(company, as_system(), job_queue.claim, job=job, worker="w") == "stopped"
    go(company, team["lead"])
    assert company.call(as_system(), job_queue.ready) == [job]
    assert company.call(as_system(), job_queue.claim, job=job, worker="w")["epoch"] == 2


def test_mail_to_a_channel_waits(company: Company, team: dict[str, Member]) -> None:
    bind(company, team["dev"], "https://chat.example.org/in")
    sent = send(company, team["dev"].caller, "channel:webhook:room", "Hello")
    stop(company)
    assert company.call(as_system(), outbox.ready) == []
    assert company.call(as_system(), outbox.claim, message=sent["id"], worker="w") is None
    go(company)
    assert [one for one, _ in company.call(as_system(), outbox.ready)] == [sent["id"]]


def test_checks_go_back_in_line_and_merges_wait(company: Company, team: dict[str, Member]) -> None:
    add_repo(company)
    give(company, team["dev"])
    asked: dict[str, Any] = {"repo": "site", "check": "test", "command": "true"}
    company.call(company.board, repo_checks.set_check, company=company.id, **asked)
    made = propose(company, company.run(team["dev"]))
    published = claimed(company)
    done = {"errand": published["errand"], "epoch": published["epoch"]}
    company.call(as_system(), errands.delivered, **done)
    ((check, _),) = company.call(as_system(), checking.ready)
    company.call(as_system(), checking.claim, check=check, worker="w")
    seen = {"change": made["change"], "head": made["commit"], "base": made["base"]}
    company.call(company.board, reviews.merge, **seen)
    ((errand, _),) = company.call(as_system(), reviews.ready)
    company.call(as_system(), errands.claim, errand=errand, worker="w")
    stop(company, team["lead"])
    # Whoever runs the check is told that it is not wanted, and whoever merges does not push.
    assert company.call(as_system(), checking.renew, held=[(check, 1)]) == [(check, 1)]
    assert company.sql("SELECT status, attempt FROM change_checks") == [("queued", 0)]
    held_ = {"errand": errand, "epoch": 1}
    assert refused(company, as_system(), reviews.intend, **held_, commit="d" * 40) == "stopped"
    company.call(as_system(), errands.put_back, **held_)
    for ready_ in (checking.ready, reviews.ready):
        assert company.call(as_system(), ready_) == []
    assert company.call(as_system(), checking.claim, check=check, worker="w") is None
    assert company.call(as_system(), errands.claim, errand=errand, worker="w") is None
    go(company, team["lead"])
    assert [one for one, _ in company.call(as_system(), checking.ready)] == [check]
    assert [one for one, _ in company.call(as_system(), reviews.ready)] == [errand]


def test_schedules_that_fell_due_are_sent_once(company: Company, team: dict[str, Member]) -> None:
    dev = team["dev"]
    company.call(dev.caller, schedules.add, body="Look around.", cron="0 * * * *")
    stop(company, team["lead"])
    for _ in range(5):
        later(company, HOUR)
        tick(company)
    following = company.call(as_system(), schedules.next_due)
    assert following is None
    go(company, team["lead"])
    tick(company)
    assert [one["body"] for one in look(company, dev)] == ["Look around."]
    following = company.call(as_system(), schedules.next_due)
    assert following is not None
    assert company.clock.now() < following <= company.clock.now() + HOUR


def test_what_waits_after_a_failure_waits_no_less(
    company: Company, team: dict[str, Member]
) -> None:
    dev = team["dev"]
    run = claim(company, dev)
    company.call(as_system(), runs.end, run=run.id, status="failed", report={"error": "broke"})
    due = held(company, dev).due_at
    assert due > company.clock.now()
    stop(company)
    go(company)
    assert (held(company, dev).due_at, held(company, dev).failures) == (due, 1)


def test_cancelling_a_run_stays_what_it_was(company: Company, team: dict[str, Member]) -> None:
    send(company, company.board, "agent:dev", "Please.")
    run = claim(company, team["dev"])
    take(company, run)
    company.call(company.board, agents.abort, agent=team["dev"].id)
    assert shown(company, run)["status"] == "cancelled"
    assert look(company, team["dev"]) == []


# ── one halt each, lifted one by one ────────────────────────────────────────────────────────────


def test_stopping_twice_is_one_halt(company: Company, team: dict[str, Member]) -> None:
    first = stop(company, team["lead"], note="First")
    again = stop(company, team["lead"], note="Second")
    assert (again["id"], again["note"], again["already"]) == (first["id"], "First", True)
    assert rows(company) == 1
    key = keyed(company.board, "one")
    once = company.call(key, halts.stop, company=company.id)
    assert company.call(key, halts.stop, company=company.id) == once
    assert rows(company) == 2


def test_going_on_lifts_one_halt_and_leaves_the_others(
    company: Company, team: dict[str, Member]
) -> None:
    stop(company)
    stop(company, team["lead"])
    left = go(company)["left"]
    assert [one["agent"] for one in left] == ["lead"]
    assert names(company, team) == {"ops"}
    stop(company)
    go(company, team["lead"])
    assert names(company, team) == set()
    with pytest.raises(RemitError) as caught:
        go(company, team["lead"])
    assert caught.value.reason == "not_stopped"
    assert "`remit resume`" in caught.value.step
    go(company)
    assert names(company, team) == {"lead", "dev", "ops"}
    assert refused(company, company.board, halts.go, company=company.id) == "not_stopped"


def test_each_stop_and_go_is_in_the_record(company: Company, team: dict[str, Member]) -> None:
    run = claim(company, team["dev"])
    stop(company, team["lead"], note="Why not")
    go(company, team["lead"])
    found = company.call(company.board, events.listing, company=company.id, limit=4)
    assert [(one["action"], one["resource"]) for one in reversed(found)][-3:] == [
        ("halt.stop", f"agent:{team['lead'].id}"),
        ("run.end", f"run:{run.id}"),
        ("halt.go", f"agent:{team['lead'].id}"),
    ]
    company.call(company.board, events.verify, company=company.id)


def test_a_halt_is_there_after_a_restart(company: Company, team: dict[str, Member]) -> None:
    stop(company)
    with opened(company.url, company.home, company.clock) as again:
        assert ready(again) == []
        assert [one["level"] for one in again.call(again.board, halts.listing)] == ["company"]


def test_who_is_gone_or_not_yet_there_is_not_stopped(company: Company) -> None:
    gone = company.agent("gone")
    company.call(company.board, agents.terminate, agent=gone.id)
    assert refused(company, company.board, halts.stop, agent=gone.id) == "conflict"


# ── who may ─────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_stops_only_who_works_below_it(company: Company, team: dict[str, Member]) -> None:
    lead, dev, ops, ceo = (team[name] for name in ("lead", "dev", "ops", "ceo"))
    for other in (lead, ops, ceo):
        assert refused(company, lead.caller, halts.stop, agent=other.id) == "not_below_you"
    assert refused(company, lead.caller, halts.stop, company=company.id) == "not_below_you"
    assert refused(company, lead.caller, halts.go, company=company.id) == "not_below_you"
    stop(company, dev, by=lead.caller)
    assert why_idle(company, dev) == "halted"
    assert refused(company, dev.caller, halts.go, agent=dev.id) == "stopped"
    go(company, dev, by=lead.caller)
    assert rows(company) == 0


def test_no_agent_lifts_what_a_person_stopped(company: Company, team: dict[str, Member]) -> None:
    lead, dev = team["lead"], team["dev"]
    stop(company, dev)
    for above in (lead, team["ceo"]):
        assert refused(company, above.caller, halts.go, agent=dev.id) == "stopped_by_person"
    # Nor by stopping it again itself.
    stop(company, dev, by=lead.caller)
    assert refused(company, lead.caller, halts.go, agent=dev.id) == "stopped_by_person"
    go(company, dev)


def test_a_person_takes_over_what_an_agent_stopped(
    company: Company, team: dict[str, Member]
) -> None:
    lead, dev = team["lead"], team["dev"]
    stop(company, dev, by=lead.caller)
    taken = stop(company, dev, note="Mine now")
    assert (taken["already"], taken["by"].partition(":")[0], taken["note"]) == (
        True,
        "user",
        "Mine now",
    )
    assert refused(company, lead.caller, halts.go, agent=dev.id) == "stopped_by_person"


def test_a_halt_belongs_to_the_highest_who_asked_for_it(
    company: Company, team: dict[str, Member]
) -> None:
    lead, dev, ceo = team["lead"], team["dev"], team["ceo"]
    stop(company, dev, by=ceo.caller)
    assert refused(company, lead.caller, halts.go, agent=dev.id) == "stopped_from_above"
    go(company, dev, by=ceo.caller)
    stop(company, dev, by=lead.caller)
    assert stop(company, dev, by=ceo.caller)["by"] == f"agent:{ceo.id}"
    assert refused(company, lead.caller, halts.go, agent=dev.id) == "stopped_from_above"
    go(company, dev, by=ceo.caller)
    stop(company, dev, by=lead.caller)
    go(company, dev, by=ceo.caller)


def test_people_stop_their_own_part(company: Company, team: dict[str, Member]) -> None:
    part = company.user("part", scope="lead")
    observer = company.user("observer", role="observer")
    assert refused(company, observer, halts.stop, company=company.id) == "observer"
    assert refused(company, part, halts.stop, company=company.id) == "outside_scope"
    assert refused(company, part, halts.stop, agent=team["ops"].id) == "outside_scope"
    stop(company, team["dev"], by=part)
    stop(company, team["ops"])
    stop(company)
    seen = company.call(part, halts.listing, company=company.id)
    assert [(one["agent"], one["may_lift"]) for one in seen] == [(None, False), ("dev", True)]
    assert refused(company, part, halts.go, company=company.id) == "outside_scope"
    assert refused(company, observer, halts.go, company=company.id) == "observer"
    go(company, team["dev"], by=part)


def test_no_agent_lifts_the_pause_of_a_person(company: Company, team: dict[str, Member]) -> None:
    lead, dev = team["lead"], team["dev"]
    lifting = (agents.resume, agents.start, agents.restart)
    for pausing in (agents.pause, agents.stop):
        company.call(company.board, pausing, agent=dev.id)
        company.call(lead.caller, agents.stop, agent=dev.id)  # does not make it the lead's
        for verb in lifting:
            assert refused(company, lead.caller, verb, agent=dev.id) == "paused_by_person"
        company.call(company.board, agents.resume, agent=dev.id)
    company.call(lead.caller, agents.pause, agent=dev.id)
    company.call(lead.caller, agents.resume, agent=dev.id)


# ── who is told ─────────────────────────────────────────────────────────────────────────────────


def test_why_an_agent_is_idle_names_the_halt_and_the_command(
    company: Company, team: dict[str, Member]
) -> None:
    stop(company, team["lead"], note="Audit")
    told = company.call(company.board, idleness.why_idle, agent=team["dev"].id)
    assert told["reason"] == "halted"
    for word in ("lead and everybody below it", "stopped by", "(Audit)", "`remit resume lead`"):
        assert word in told["sentence"]
    stop(company)
    told = company.call(company.board, idleness.why_idle, agent=team["dev"].id)
    assert "The company was stopped" in told["sentence"]
    assert "`remit resume`" in told["sentence"]
    assert listed(company) == []
