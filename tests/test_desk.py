"""Requests about a whole desk, and what starting and ending a run cost however much is on it."""

import json
from typing import Any

import pytest

from remit.clock import HOUR
from remit.model.execution.run import NUDGES
from remit.services.execution import run_queue, run_start
from remit.services.governance import approvals
from remit.services.hiring import hiring
from remit.services.identity import as_system
from remit.services.messaging import questions
from remit.services.organisation import agents, idleness
from remit.services.people import companies
from remit.services.screens import needs_you
from remit.services.work import outcomes
from remit.testing.clock import VirtualClock
from tests import cost
from tests.company import Answer, Company, Member, Run
from tests.mailing import look, messaging, send, take
from tests.working import REVIEWS, claim, end, ready, why_idle

#: Open outcomes on a full desk; a run is shown fifty.
FULL = 5000
SHOWN = 50
MAY_HIRE = '{"canCreateAgents":true}'


def lead(company: Company, parts: int = 0, name: str = "lead") -> Member:
    """An agent with a perpetual mandate, which saw the parts of it, and is at rest."""
    member = company.agent(name, adapter_type="scripted", perpetual=True)
    fill(company, member, parts)
    settle(company, member)
    return member


def fill(company: Company, member: Member, parts: int) -> None:
    """Put outcomes on an agent's desk; more than a few are copies, on SQLite."""
    few = min(parts, 3)
    made = [
        company.call(company.board, outcomes.create, parent=member.id, title="Part")["id"]
        for _ in range(few)
    ]
    if parts == few:
        return
    ((number,),) = company.sql("SELECT count(*) FROM outcomes")
    columns = [row[1] for row in company.sql("PRAGMA table_info(outcomes)")]
    others = ", ".join(name for name in columns if name != "id")
    company.sql(
        "WITH RECURSIVE number(n) AS (SELECT ? UNION ALL SELECT n + 1 FROM number WHERE n < ?)"  # noqa: S608
        f" INSERT INTO outcomes (id, {others})"
        f" SELECT printf('01890000-0000-7000-8000-%012x', n), {others}"
        " FROM number, outcomes WHERE id = ?",
        *(number + 1, number + parts - few),
        made[0],
    )


def settle(company: Company, member: Member) -> None:
    """As if the agent had seen all that is on its desk."""
    company.sql("UPDATE outcomes SET seen = news WHERE owner_id = ?", member.id)
    company.sql(
        "UPDATE agent_leases SET look_at = NULL, look_for = NULL, idle_runs = 0,"
        " done_seq = wake_seq WHERE agent_id = ?",
        member.id,
    )


def run_by_mail(company: Company, member: Member) -> Run:
    send(company, company.board, f"agent:{member.name}", "Think of something.")
    run = claim(company, member)
    take(company, run)
    return run


def asks(company: Company, run: Run, **more: Any) -> Answer:
    return company.call(run.caller, questions.ask, question="Red?", to="board", **more)


def sweep(company: Company) -> None:
    company.call(as_system(), run_queue.sweep, company=company.id)


def rows(company: Company) -> int:
    return int(company.sql("SELECT count(*) FROM wait_outcomes")[0][0])


def look_of(company: Company, member: Member) -> tuple[str | None, int | None, bool]:
    ((what_for, at, rests),) = company.sql(
        "SELECT look_for, look_at, rests FROM agent_leases WHERE agent_id = ?", member.id
    )
    return what_for, at, bool(rests)


# ── a wait of the desk ──────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-55", "FX-01")
def test_a_request_that_is_about_nothing_holds_nothing_and_pauses_the_nudges(
    company: Company, clock: VirtualClock
) -> None:
    dev = lead(company)
    run = run_by_mail(company, dev)
    company.call(run.caller, outcomes.create, parent=dev.id, title="A part")
    asked = asks(company, run)
    end(company, run)
    assert rows(company) == 0
    assert why_idle(company, dev) == "waiting"
    clock.advance(30 * HOUR)
    sweep(company)
    assert dev.id not in ready(company)
    # What comes to the desk later is not held up.
    company.call(company.board, outcomes.create, parent=dev.id, title="Something else")
    assert dev.id in ready(company)
    run = claim(company, dev)
    end(company, run)
    clock.advance(HOUR)
    sweep(company)
    assert dev.id not in ready(company)
    company.call(company.board, questions.answer, question=asked["id"], answer="Yes")
    run = claim(company, dev)
    assert [letter["body"] for letter in take(company, run)] == ["You asked: Red?\n\nAnswer: Yes\n"]
    end(company, run)
    what_for, _, rests = look_of(company, dev)
    assert (what_for, rests) == ("nudge", False)
    clock.advance(NUDGES[0])
    sweep(company)
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-55", "FX-01")
def test_a_request_in_a_run_for_news_holds_up_what_the_run_was_started_for(
    company: Company,
) -> None:
    dev = lead(company, 3)
    part = company.call(company.board, outcomes.create, parent=dev.id, title="A part")["id"]
    asks(company, claim(company, dev))
    assert company.sql("SELECT outcome_id FROM wait_outcomes") == [(part,)]


@pytest.mark.requirement("FX-55")
@pytest.mark.parametrize("act", ["makes", "goes on", "nothing"])
def test_own_work_after_a_request_ends_the_pause(
    company: Company, clock: VirtualClock, act: str
) -> None:
    dev = lead(company)
    run = run_by_mail(company, dev)
    company.call(run.caller, outcomes.create, parent=dev.id, title="Before")
    asked = asks(company, run)
    if act == "makes":
        company.call(run.caller, outcomes.create, parent=dev.id, title="After")
    elif act == "goes on":
        company.call(run.caller, agents.submit_log, summary="More.", go_on=True)
    end(company, run)
    clock.advance(NUDGES[0])
    sweep(company)
    assert (dev.id in ready(company)) == (act != "nothing")
    if act == "nothing":
        return
    # It goes on as often as it is nudged, and no more.
    for _ in NUDGES[1:]:
        run = claim(company, dev)
        company.file(run.caller, b"a finding", "what somebody wants to read")
        company.call(run.caller, agents.submit_log, summary="More.", go_on=True)
        end(company, run)
    run = claim(company, dev)
    company.file(run.caller, b"a finding", "what somebody wants to read")
    company.call(run.caller, agents.submit_log, summary="More.", go_on=True)
    end(company, run)
    assert dev.id not in ready(company)
    assert look_of(company, dev)[0] == "review"
    company.call(company.board, questions.answer, question=asked["id"], answer="Yes")
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-55")
def test_a_newer_request_goes_on_pausing_when_an_older_one_is_decided(
    company: Company, clock: VirtualClock
) -> None:
    dev = lead(company)
    run = run_by_mail(company, dev)
    company.call(run.caller, outcomes.create, parent=dev.id, title="A part")
    first, second = asks(company, run), asks(company, run)
    end(company, run)
    company.call(company.board, questions.answer, question=first["id"], answer="Yes")
    run = claim(company, dev)
    take(company, run)
    end(company, run)
    clock.advance(NUDGES[-1])
    sweep(company)
    assert dev.id not in ready(company)
    company.call(company.board, questions.answer, question=second["id"], answer="Yes")
    assert look_of(company, dev)[2] is False


@pytest.mark.requirement("FX-55", "FX-16")
def test_the_agent_is_told_what_it_asked_and_people_for_whom_it_waits(company: Company) -> None:
    dev = lead(company, 1)
    run = run_by_mail(company, dev)
    asked = asks(company, run)
    told = company.call(
        as_system(), run_start.briefing, run=run.id, token=run.caller.token
    ).situation
    (line,) = [line for line in told.splitlines() if f"question:{asked['id']}" in line]
    assert "waits for the board to answer a question since " in line
    end(company, run)
    said = company.call(company.board, idleness.why_idle, agent="lead")
    assert said["sentence"].startswith("It waits for the board to answer a question since ")
    items = company.call(company.board, needs_you.listing, company=company.id)
    assert [item["agent_id"] for item in items if item["kind"] == "question"] == [dev.id]


@pytest.mark.requirement("FX-55", "FX-01")
def test_a_circle_through_desks_is_told(company: Company) -> None:
    messaging(company, "team")
    one = company.agent("one", adapter_type="scripted", perpetual=True)
    other = company.agent("other", adapter_type="scripted", perpetual=True)
    for member in (one, other):
        fill(company, member, 1)
        settle(company, member)
    first, second = run_by_mail(company, one), run_by_mail(company, other)
    to_other = send(company, first.caller, "agent:other", "Who begins?", expects_reply=True)
    assert "cycle" not in to_other
    told = send(company, second.caller, "agent:one", "You begin.", expects_reply=True)
    assert sorted(told["cycle"]["agents"]) == ["one", "other"]
    assert [letter["subject"] for letter in look(company, company.ceo)] == [
        "Agents wait for each other"
    ]


@pytest.mark.requirement("FX-55")
def test_undoing_an_end_and_an_export_keep_the_scope_of_a_wait(
    company: Company,
) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    end(company, claim(company, dev))
    settle(company, dev)
    asks(company, run_by_mail(company, dev))
    company.call(company.board, outcomes.complete, outcome=dev.id)
    company.call(company.board, outcomes.reopen, outcome=dev.id)
    assert rows(company) == 0
    assert [bool(desk) for (desk,) in company.sql("SELECT desk FROM waits")] == [True]
    assert look_of(company, dev)[2] is True


# ── reviews ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-55", "FX-06")
def test_a_review_is_of_fifty_at_most_hourly_and_each_judge_gets_one_letter(
    small: Company, clock: VirtualClock
) -> None:
    company = small
    dev = lead(company, 2 * SHOWN)
    end(company, run_by_mail(company, dev))
    clock.advance(NUDGES[0])
    sweep(company)
    end(company, claim(company, dev))  # without progress, so that the nudges end
    reviewed: list[set[str]] = []
    for _ in range(2):
        clock.advance(HOUR)
        sweep(company)
        run = claim(company, dev)
        (named,) = company.sql("SELECT outcome_ids, occasion FROM runs WHERE id = ?", run.id)
        reviewed.append(set(json.loads(named[0])))
        assert named[1] == "review"
        end(company, run)
        assert dev.id not in ready(company)
    assert [len(some) for some in reviewed] == [SHOWN, SHOWN]
    assert reviewed[0].isdisjoint(reviewed[1])
    for _ in range(4 * len(REVIEWS)):
        clock.advance(24 * HOUR)
        sweep(company)
        if dev.id in ready(company):
            end(company, claim(company, dev))
    subjects = [letter["subject"] for letter in look(company, company.ceo)]
    assert subjects == [f"{SHOWN} outcomes of lead do not move"] * 2
    clock.advance(2400 * HOUR)
    sweep(company)
    assert dev.id not in ready(company)


# ── what it costs ───────────────────────────────────────────────────────────────────────────────


def costs(small: Company, name: str, parts: int) -> dict[str, tuple[int, int, int]]:
    """Statements, changed rows and steps of what an agent with so much on its desk does."""
    ask: Any = {"require_board_approval_for_new_agents": True}
    small.call(small.board, companies.change, company=small.id, **ask)
    dev = lead(small, parts, name)
    small.sql("UPDATE agents SET permissions = ? WHERE id = ?", MAY_HIRE, dev.id)
    number = iter(range(100))
    seen: dict[str, tuple[int, int, int]] = {}

    def counted(name: str, work: Any) -> Any:
        with cost.counted() as done:
            answer = work()
        seen[name] = (done.statements, done.rows, done.steps)
        return answer

    def hire(run: Run) -> Answer:
        hired = f"{dev.name}-{next(number)}"
        return small.call(
            run.caller, hiring.hire, company=None, name=hired, adapter_type="scripted"
        )

    run = run_by_mail(small, dev)
    first = hire(run)
    small.call(small.board, approvals.approve, approval=first["approval"]["id"])
    end(small, run)
    run = run_by_mail(small, dev)
    asked = counted("ask", lambda: asks(small, run))
    wanted = counted("hire", lambda: hire(run))
    counted("end of a run", lambda: end(small, run))
    counted(
        "answer",
        lambda: small.call(small.board, questions.answer, question=asked["id"], answer="Yes"),
    )
    counted(
        "approve",
        lambda: small.call(small.board, approvals.approve, approval=wanted["approval"]["id"]),
    )
    run = counted("start of a run", lambda: claim(small, dev))
    return seen


@pytest.mark.requirement("FX-55")
def test_asking_deciding_starting_and_ending_cost_the_same_with_a_full_desk(
    small: Company,
) -> None:
    empty = costs(small, "first", SHOWN + 10)
    full = costs(small, "second", FULL)
    for name, (statements, changed, steps) in empty.items():
        more = full[name]
        assert more[0] <= statements, (name, statements, more)
        assert more[1] <= changed, (name, changed, more)
        assert more[2] <= 2 * steps + 1000, (name, steps, more)
