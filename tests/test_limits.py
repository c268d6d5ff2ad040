"""Limits that hold without any setting: who is not started, until when, and who may raise it."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from remit.clock import DAY, HOUR, MINUTE, SECOND, from_iso, moment, next_day, to_iso
from remit.errors import BadInput, Conflict, RemitError
from remit.model.execution.budget import CENT, DOLLAR
from remit.model.execution.limit import (
    DEFAULTS,
    Limit,
    Limits,
    changed,
    command_that_raises,
    stored,
)
from remit.services.execution import run_queue, run_start, runaway, runs
from remit.services.identity import as_system
from remit.services.messaging import inbox
from remit.services.organisation import idleness
from remit.services.people import companies
from remit.services.record import events
from remit.services.screens import needs_you
from remit.services.spending import limits
from remit.services.work import outcomes
from remit.store.engine.migrate import sqlite_path
from remit.store.engine.statement import SQLITE
from remit.store.execution import leases
from remit.store.execution import limits as statements
from remit.testing.clock import VirtualClock
from tests.budgeting import budget_of, set_budget, spend, work_off
from tests.company import Answer, Company, Member, Run, opened
from tests.mailing import send
from tests.test_archive import export, import_, packed, unpacked
from tests.working import (
    at_work,
    claim,
    end,
    listed,
    over,
    program,
    ready,
    shown,
    why_idle,
)

Clock = VirtualClock


def worker(company: Company, name: str = "dev", boss: str = "ceo", **more: Any) -> Member:
    return company.agent(name, boss, adapter_type="scripted", perpetual=True, **more)


def set_limits(company: Company, **given: object) -> Answer:
    return company.call(company.board, companies.change, company=company.id, limits=given)


def needs(company: Company, *kinds: str, caller: Any = None) -> list[Answer]:
    found = company.call(caller or company.board, needs_you.listing, company=company.id)
    return [one for one in found if one["kind"] in kinds]


def reached(company: Company) -> list[Answer]:
    found = company.call(company.board, events.listing, company=company.id, limit=500)
    return [one for one in found if one["action"] == "limit.reach"]


def one_run(company: Company, member: Member, **taken: Any) -> Run:
    """A letter and the run that it starts."""
    send(company, company.board, f"agent:{member.id}")
    run = claim(company, member)
    end(company, run, **taken)
    return run


def refused(company: Company, member: Member) -> RemitError:
    """What a worker is told that wants to start somebody; it remembers that, as a worker does."""
    with pytest.raises(Conflict) as caught:
        claim(company, member)
    if caught.value.reason == limits.REACHED:
        assert company.call(as_system(), limits.hold, agent=member.id)
    return caught.value


# ── as they are set ─────────────────────────────────────────────────────────────────────────────


def test_limits_are_read_as_people_write_them() -> None:
    assert stored("{}") == Limits()
    assert Limits().view() == {limit.value: DEFAULTS[limit] for limit in Limit}
    text = changed("{}", {"agentRunsPerHour": "120", "turns_per_run": 7})
    assert (stored(text).agent_runs_per_hour, stored(text).turns_per_run) == (120, 7)
    for off in (0, None, "none", "None", "0", ""):
        assert stored(changed(text, {"agentRunsPerHour": off})).agent_runs_per_hour is None
    assert stored(changed(text, {"identicalCalls": 3})).agent_runs_per_hour == 120
    wrong: object
    for wrong in (-1, 1.5, True, "many", "-3", [], 10**16, "9" * 30):
        with pytest.raises(BadInput, match="agentRunsPerHour"):
            changed("{}", {"agentRunsPerHour": wrong})
    unknown: object
    for unknown in ({"runs": 3}, {7: 3}, [], "agentRunsPerHour=3"):
        with pytest.raises(BadInput) as caught:
            changed("{}", unknown)
        assert "agentRunsPerHour" in caught.value.step


@pytest.mark.requirement("FX-11")
def test_a_new_company_has_limits_and_only_its_board_changes_them(company: Company) -> None:
    dev = worker(company)
    assert company.call(company.board, companies.show, company=company.id)["limits"] == {
        "turns_per_run": 100,
        "identical_calls": 10,
        "failed_calls": 25,
        "agent_runs_per_hour": 60,
        "agent_tokens_per_day": 20_000_000,
        "company_runs_per_hour": 300,
        "company_cents_per_day": 5_000,
    }
    now = set_limits(company, agentRunsPerHour=120, turnsPerRun="none")["limits"]
    assert (now["agent_runs_per_hour"], now["turns_per_run"]) == (120, None)
    part = company.user("partner", scope=dev.id)
    observer = company.user("watcher", role="observer")
    for caller in (dev.caller, company.ceo.caller, company.run(dev).caller, part, observer):
        with pytest.raises(RemitError):
            company.call(
                caller, companies.change, company=company.id, limits={"agentRunsPerHour": 999}
            )
    with pytest.raises(Conflict):
        company.call(
            company.board,
            companies.change,
            company=company.id,
            limits={"agentRunsPerHour": 1},
            expected={"limits": {"agent_runs_per_hour": 60}},
        )
    found = company.call(company.board, companies.show, company=company.id)["limits"]
    assert found["agent_runs_per_hour"] == 120


def test_an_export_has_the_limits_that_were_set(small: Company, tmp_path: Path) -> None:
    now = set_limits(small, agentRunsPerHour=7, turnsPerRun="none")["limits"]
    folder = unpacked(export(small))
    with opened(f"sqlite:///{tmp_path}/there.db", tmp_path / "there") as there:
        made = import_(there, packed(folder), name="Arrived")
        assert there.call(there.board, companies.show, company=made["id"])["limits"] == now
    head = folder["company.toml"].decode()
    folder["company.toml"] = head.replace("agent_runs_per_hour = 7", "runs = 7").encode()
    with (
        opened(f"sqlite:///{tmp_path}/other.db", tmp_path / "other") as there,
        pytest.raises(BadInput, match=r"company\.toml: limits are refused: .*'runs'"),
    ):
        import_(there, packed(folder), name="Arrived")


# ── runs within an hour ─────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-11")
def test_an_agent_waits_until_the_hour_allows_a_run_and_its_board_is_told_once(
    company: Company, clock: Clock
) -> None:
    dev, other = worker(company), worker(company, "other")
    set_limits(company, agentRunsPerHour=3)
    first = clock.now()
    for _ in range(3):
        one_run(company, dev)
        clock.advance(10 * MINUTE)
    send(company, company.board, f"agent:{dev.id}", "Once more")
    send(company, company.board, f"agent:{other.id}", "You are free")
    assert set(ready(company)) == {dev.id, other.id}
    error = refused(company, dev)
    opens = moment(first + HOUR)
    assert error.reason == "limit"
    assert error.sentence == f"dev has had 3 runs within an hour. It goes on at {opens}."
    assert "`remit company set --limit agentRunsPerHour=6`" in error.step
    assert ready(company) == [other.id]
    idle = company.call(company.board, idleness.why_idle, agent=dev.id)
    assert idle["reason"] == "limit"
    assert opens in idle["sentence"]
    assert "remit company set --limit agentRunsPerHour=6" in idle["sentence"]
    (item,) = needs(company, "limit")
    assert (item["agent_id"], item["title"]) == (dev.id, error.sentence)
    assert (item["cause"], item["next"]) == (
        "agentRunsPerHour=3",
        "remit run list --agent dev, then remit company set --limit agentRunsPerHour=6",
    )
    # News does not get around it, and nobody is asked about the agent in vain.
    send(company, company.board, f"agent:{dev.id}", "And again")
    assert dev.id not in ready(company)
    assert len(reached(company)) == 1
    # The first run is an hour ago: one is possible, and the next is not; that is nothing new.
    clock.advance(first + HOUR - clock.now())
    assert dev.id in ready(company)
    one_run(company, dev)
    send(company, company.board, f"agent:{dev.id}", "More")
    assert moment(first + HOUR + 10 * MINUTE) in refused(company, dev).sentence
    assert len(reached(company)) == len(needs(company, "limit")) == 1
    clock.advance(2 * HOUR)
    assert needs(company, "limit") == []
    one_run(company, dev)
    assert len(reached(company)) == 1


def test_reaching_it_in_a_later_hour_is_told_again(company: Company, clock: Clock) -> None:
    dev = worker(company)
    set_limits(company, agentRunsPerHour=1)
    for number in range(1, 4):
        one_run(company, dev)
        send(company, company.board, f"agent:{dev.id}")
        refused(company, dev)
        assert len(reached(company)) == number
        clock.advance(HOUR + SECOND)


@pytest.mark.requirement("FX-11")
def test_a_raise_lets_it_go_on_at_once(company: Company) -> None:
    dev = worker(company)
    set_limits(company, agentRunsPerHour=1)
    one_run(company, dev)
    send(company, company.board, f"agent:{dev.id}")
    refused(company, dev)
    # Another limit is none of its business.
    set_limits(company, agentTokensPerDay=5)
    assert ready(company) == []
    (item,) = needs(company, "limit")
    set_limits(company, **{item["limit"]: item["raise_to"]})
    assert needs(company, "limit") == []
    assert ready(company) == [dev.id]
    claim(company, dev)


@pytest.mark.requirement("FX-11")
def test_a_company_waits_as_a_whole_and_others_do_not(company: Company, clock: Clock) -> None:
    members = [worker(company, f"dev-{number}") for number in range(6)]
    set_limits(company, companyRunsPerHour=3)
    for member in members:
        send(company, company.board, f"agent:{member.id}")
    neighbour = company.second_company()
    company.wait(
        company.app.library.send(neighbour.board, body="Hello", to=f"agent:{neighbour.agent.id}")
    )
    for member in members[:3]:
        end(company, claim(company, member))
    others = set(ready(company)) - {one.id for one in members}
    assert set(ready(company)) - others == {one.id for one in members[3:]}
    error = refused(company, members[3])
    assert error.sentence.startswith("The company has had 3 runs within an hour.")
    # One look was enough for all who wait; another company goes on.
    assert set(ready(company)) == others != set()
    assert [why_idle(company, one) for one in members[3:]] == ["limit"] * 3
    (item,) = needs(company, "limit")
    assert (item["agent_id"], item["limit"]) == (None, "company_runs_per_hour")
    clock.advance(HOUR)
    for member in members[3:]:
        end(company, claim(company, member))


@pytest.mark.requirement("FX-11")
def test_of_two_workers_that_want_the_last_run_of_the_hour_one_gets_it(company: Company) -> None:
    members = [worker(company, f"dev-{number}") for number in range(5)]
    set_limits(company, companyRunsPerHour=2)
    one_run(company, members[0])
    for member in members:
        send(company, company.board, f"agent:{member.id}")

    def start(member: Member, worker: str) -> Any:
        return company.app.gate(
            as_system(),
            run_queue.claim,
            agent=member.id,
            run=company.app.ids.new(),
            workspace="",
            worker=worker,
        )

    found = company.together([start(one, f"w{number}") for number, one in enumerate(members)])
    won = [one for one in found if not isinstance(one, BaseException)]
    assert len(won) == 1
    reasons = {one.reason for one in found if isinstance(one, RemitError)}
    assert reasons == {"limit"}


def test_a_worker_waits_for_the_limit_and_goes_on_when_it_is_raised(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        dev = program(company, "dev", "exit 0")
        set_limits(company, agentRunsPerHour=1)
        send(company, company.board, "agent:dev", "One.")
        at_work(company, over(company, dev))
        send(company, company.board, "agent:dev", "Two.")
        at_work(company, lambda: company.sql("SELECT 1 FROM limits_reached"))
        assert len(listed(company, dev)) == 1
        assert why_idle(company, dev) == "limit"
        set_limits(company, agentRunsPerHour=2)
        at_work(company, over(company, dev, 2))
        assert [run["status"] for run in listed(company, dev)] == ["completed"] * 2


def test_without_a_limit_nobody_counts(company: Company) -> None:
    dev = worker(company)
    set_limits(company, agentRunsPerHour="none", companyRunsPerHour=0)
    for _ in range(70):
        one_run(company, dev)


def test_a_clock_that_was_set_back_makes_nobody_wait_longer_than_an_hour(
    small: Company, clock: Clock
) -> None:
    dev = worker(small)
    set_limits(small, agentRunsPerHour=1)
    clock.advance(3 * HOUR)
    one_run(small, dev)
    clock.advance(-3 * HOUR)
    send(small, small.board, f"agent:{dev.id}")
    assert moment(clock.now() + HOUR) in refused(small, dev).sentence


def test_what_a_claim_asks_and_who_is_ready_is_found_in_indexes(small: Company) -> None:
    found = {
        statements.NTH_RUN_OF_AGENT: "ix_runs_agent_id",
        statements.NTH_RUN_OF_COMPANY: "ix_runs_company_id",
        statements.NTH_RUN_FOR_PLACE: "ix_messages_company_id (company_id=? AND id>?)",
        statements.NTH_RUN_FOR_STRANGERS: "ix_messages_company_id (company_id=? AND id>?)",
        statements.TOKENS_OF_AGENT: "(agent_id=? AND day=?)",
        statements.MONEY_OF_COMPANY: "ix_spending_company_id",
        statements.QUIET_RUNS: "ix_runs_live",
        leases.READY: "uq_limits_reached_subject",
    }
    names = ("now", "each", "limit", "agent", "company", "later", "day", "before", "since")
    given = {**dict.fromkeys(names, 1), "channel": "channel:memory:room"}
    connection = sqlite3.connect(sqlite_path(small.url))
    for statement, index in found.items():
        sql, constants = statement.compiled(SQLITE)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", {**given, **constants})
        plan = [row[3] for row in rows]
        assert any(index in step for step in plan), plan
        assert not any(step.startswith(("SCAN runs", "SCAN limits", "SCAN sp")) for step in plan)
    connection.close()


# ── tokens and money in a day ───────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-11")
def test_who_used_its_tokens_of_a_day_waits_for_the_next(company: Company, clock: Clock) -> None:
    dev, other = worker(company), worker(company, "other")
    set_limits(company, agentTokensPerDay=1_000)
    one_run(company, dev, tokens_in=900, tokens_out=99)
    one_run(company, dev, tokens_in=1)
    send(company, company.board, f"agent:{dev.id}")
    error = refused(company, dev)
    assert error.sentence == (
        f"dev has used its 1,000 tokens of today. It goes on at {moment(next_day(clock.now()))}."
    )
    assert why_idle(company, dev) == "limit"
    assert budget_of(company, dev)["limits"]["tokens_today"] == 1_000
    assert budget_of(company, dev)["limits"]["held_until"] == to_iso(next_day(clock.now()))
    one_run(company, other, tokens_in=999)
    clock.advance(next_day(clock.now()) - clock.now())
    assert needs(company, "limit") == []
    one_run(company, dev, tokens_in=5)
    assert budget_of(company, dev)["limits"]["tokens_today"] == 5


@pytest.mark.requirement("FX-11")
def test_the_money_of_a_day_stops_the_company_and_its_runs(company: Company, clock: Clock) -> None:
    dev, other = worker(company), worker(company, "other")
    set_limits(company, companyCentsPerDay=100)
    for member in (dev, other):
        send(company, company.board, f"agent:{member.id}")
    run, beside = claim(company, dev), claim(company, other)
    company.call(beside.caller, inbox.take)
    answer = spend(company, run, tokens=10, cents=60)
    assert (answer["left"]["money"], answer["over"]) == (40 * CENT, None)
    given = {"run": beside.id, "token": beside.caller.token}
    briefing = company.call(as_system(), run_start.briefing, **given)
    assert briefing.left["money"] == 40 * CENT
    answer = spend(company, beside, tokens=10, cents=45)
    assert answer["over"].startswith("The company has spent its $1.00 of today.")
    failures = "SELECT failures FROM agent_leases WHERE agent_id = ?"
    end(company, beside, "failed", exit_reason="budget", error=answer["over"])
    # It ended as a budget ends one: no failure, and its mail was not tried in vain.
    assert company.sql(failures, other.id) == [(0,)]
    assert company.sql("SELECT status, attempt FROM deliveries WHERE agent_id = ?", other.id) == [
        ("queued", 1)
    ]
    assert ready(company) == []
    (item,) = needs(company, "limit")
    assert (item["limit"], item["raise_to_shown"]) == ("company_cents_per_day", "$2.00")
    end(company, run)
    send(company, company.board, f"agent:{dev.id}")
    assert why_idle(company, dev) == why_idle(company, other) == "limit"
    assert ready(company) == []
    set_limits(company, companyCentsPerDay=200)
    assert set(ready(company)) == {dev.id, other.id}
    one_run(company, dev, cost_micros=2 * DOLLAR)
    assert refused(company, other).reason == "limit"
    clock.advance(next_day(clock.now()) - clock.now())
    assert other.id in ready(company)
    claim(company, other)


def test_a_budget_is_held_beside_a_limit(company: Company) -> None:
    dev = worker(company)
    set_budget(company, dev, cents=10)
    run = company.run(dev)
    assert spend(company, run, cents=4)["left"]["money"] == 6 * CENT
    set_limits(company, companyCentsPerDay=7)
    assert spend(company, run, cents=5)["left"]["money"] == 2 * CENT


def test_only_who_may_raise_a_limit_is_asked_to(company: Company) -> None:
    dev = worker(company)
    part = company.user("partner", scope=dev.id)
    observer = company.user("watcher", role="observer")
    set_limits(company, agentRunsPerHour=1)
    one_run(company, dev)
    send(company, company.board, f"agent:{dev.id}")
    refused(company, dev)
    assert len(needs(company, "limit")) == 1
    assert needs(company, "limit", caller=part) == needs(company, "limit", caller=observer) == []
    for caller in (company.board, dev.caller, part):
        with pytest.raises(RemitError, match="nothing here"):
            company.call(caller, limits.hold, agent=dev.id)
        with pytest.raises(RemitError, match="nothing here"):
            company.call(caller, runaway.end, run=company.app.ids.new(), error="no")
    assert not company.call(as_system(), limits.hold, agent=company.ceo.id)


# ── runs that run away, and runs that are silent ────────────────────────────────────────────────


@pytest.mark.requirement("FX-11")
@pytest.mark.parametrize(
    ("reason", "limit"),
    [
        ("max_turns", Limit.TURNS_PER_RUN),
        ("repetition", Limit.IDENTICAL_CALLS),
        ("failed_calls", Limit.FAILED_CALLS),
    ],
)
def test_a_run_that_a_limit_ended_awaits_somebody_with_the_command(
    company: Company, reason: str, limit: Limit
) -> None:
    dev = worker(company)
    send(company, company.board, f"agent:{dev.id}")
    run = claim(company, dev)
    company.call(run.caller, outcomes.create, parent=dev.id, title="A part")
    end(company, run, "failed", exit_reason=reason, error="It was too much.")
    (item,) = needs(company, "runaway")
    assert item["title"] == "A run of dev was ended: It was too much"
    look = f"remit run tail {run.id}"
    # It got something done, so a higher limit may help; looking at it comes first.
    assert item["next"] == f"{look}, then {command_that_raises(limit, DEFAULTS[limit])}"
    assert needs(company, "failed_run") == []
    set_limits(company, **{limit.value: "none"})
    (item,) = needs(company, "runaway")
    assert item["next"] == look


@pytest.mark.requirement("FX-64")
@pytest.mark.parametrize("reason", ["max_turns", "repetition"])
def test_a_run_without_an_effect_is_not_offered_a_higher_limit(
    company: Company, reason: str
) -> None:
    dev = worker(company)
    letter = send(company, company.board, f"agent:{dev.id}")
    run = claim(company, dev)
    company.call(run.caller, inbox.take)
    end(company, run, "failed", exit_reason=reason, error="It was too much.")
    (item,) = needs(company, "runaway")
    assert item["next"] == f"remit run tail {run.id}, then remit cancel {letter['id']}"


def test_a_run_that_repeats_itself_is_ended_with_what_it_took(company: Company) -> None:
    dev = worker(company)
    send(company, company.board, f"agent:{dev.id}")
    run = claim(company, dev)
    spend(company, run, tokens=70)
    assert company.call(run.caller, runaway.watched) == (run.id, 10, 25)
    assert company.call(dev.caller, runaway.watched).run_id is None
    company.call(as_system(), runaway.end, run=run.id, error="It called x 10 times in a row.")
    found = shown(company, run)
    assert (found["status"], found["exit_reason"]) == ("failed", "repetition")
    assert found["tokens_in"] == 70
    with pytest.raises(RemitError):
        company.call(run.caller, runaway.watched)
    with pytest.raises(Conflict):
        company.call(as_system(), runaway.end, run=run.id, error="again")


@pytest.mark.requirement("FX-11")
def test_a_run_without_a_sign_of_life_awaits_somebody(company: Company, clock: Clock) -> None:
    dev, other = worker(company), worker(company, "other")
    for member in (dev, other):
        send(company, company.board, f"agent:{member.id}")
    run, beside = claim(company, dev), claim(company, other)
    clock.advance(14 * MINUTE)
    piece = {"number": 1, "at": clock.now(), "stream": "stdout", "text": "I am at it.\n"}
    company.call(as_system(), run_queue.append_log, run=beside.id, pieces=[piece])
    clock.advance(6 * MINUTE)
    (item,) = needs(company, "silent_run")
    assert (item["id"], item["agent_id"]) == (run.id, dev.id)
    assert item["title"] == "dev has given no sign of life for 20 minutes"
    assert item["next"] == f"remit run cancel {run.id}"
    # What is in the record is a sign of life as well.
    send(company, run.caller, "board", "I think.")
    assert needs(company, "silent_run") == []
    clock.advance(16 * MINUTE)
    assert {one["id"] for one in needs(company, "silent_run")} == {run.id, beside.id}
    company.call(company.board, runs.cancel, run=run.id)
    assert [one["id"] for one in needs(company, "silent_run")] == [beside.id]


# ── what was spent belongs to every run ─────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-12")
@pytest.mark.parametrize("how", ["cancelled", "lost", "failed", "repeats"])
def test_a_run_that_was_cut_off_costs_about_what_the_ones_before_did(
    company: Company, how: str
) -> None:
    dev = worker(company)
    one_run(company, dev, tokens_in=900, tokens_out=100, cost_micros=5_000)
    send(company, company.board, f"agent:{dev.id}")
    run = claim(company, dev)
    spend(company, run, tokens=200)
    if how == "cancelled":
        company.call(company.board, runs.cancel, run=run.id)
    elif how == "repeats":
        company.call(as_system(), runaway.end, run=run.id, error="It called x 10 times.")
    else:
        end(company, run, how, exit_reason=how)
    found = shown(company, run)
    assert (found["cost_usd"], found["cost_estimated"]) == (0.001, True)
    # The turn in which it was cut off is told of later, and counted once.
    for _ in range(2):
        spend(company, run, tokens=300)
    assert shown(company, run)["cost_usd"] == 0.0015
    assert budget_of(company, dev)["money"]["spent_by_itself"] == 6_500
    # An estimate is nothing to estimate by.
    assert company.sql("SELECT count(*) FROM runs WHERE cost_estimated")[0][0] == 1


@pytest.mark.requirement("FX-12")
def test_what_somebody_says_that_it_cost_is_believed(company: Company) -> None:
    dev, other = worker(company), worker(company, "other")
    send(company, company.board, f"agent:{other.id}")
    run = claim(company, other)
    end(company, run, "failed", tokens_in=50, exit_reason="crashed")
    assert shown(company, run)["cost_usd"] == 0  # nobody here knows what a token costs
    one_run(company, dev, tokens_in=100, cost_micros=1_000)
    send(company, company.board, f"agent:{dev.id}")
    run = claim(company, dev)
    end(company, run, "failed", tokens_in=50, cost_micros=7, exit_reason="budget")
    assert (shown(company, run)["cost_usd"], shown(company, run)["cost_estimated"]) == (7e-6, False)
    # A run that ended well and costs nothing costs nothing.
    run = one_run(company, dev, tokens_in=10)
    assert shown(company, run)["cost_usd"] == 0
    # By the others with the same adapter, where the agent's own runs say nothing.
    send(company, company.board, f"agent:{other.id}")
    run = claim(company, other)
    end(company, run, "lost", tokens_in=50, exit_reason="lost")
    assert shown(company, run)["cost_usd"] == pytest.approx(1007 / 150 * 50 / 1e6, abs=1e-6)


@pytest.mark.requirement("FX-12")
@pytest.mark.parametrize("kind", ["tokens", "money"])
def test_a_budget_that_is_set_later_counts_what_the_month_has_spent(
    company: Company, clock: Clock, kind: str
) -> None:
    lead, dev = worker(company, "lead"), worker(company, "dev", "lead")
    own = worker(company, "own", "lead")
    unit = CENT if kind == "money" else 1
    name = "cents" if kind == "money" else "tokens"
    set_budget(company, own, **{name: 50})
    work_off(company, lead, **{name: 10})
    clock.advance(DAY)
    for member, amount in ((lead, 20), (dev, 5), (own, 7)):
        work_off(company, member, **{name: amount})
    set_budget(company, lead, **{name: 100})
    side = budget_of(company, lead)[kind]
    # What has its own budget is reserved; what the others spent on both days is spent.
    assert (side["spent"], side["reserved"], side["left"]) == (35 * unit, 50 * unit, 15 * unit)
    set_budget(company, company.ceo, **{name: 1_000})
    work_off(company, company.ceo, **{name: 3})
    side = budget_of(company, company.ceo)[kind]
    assert (side["spent"], side["left"]) == (3 * unit, 897 * unit)
    # Below a budget, its month moves down with those who spent it.
    other = worker(company, "other")
    work_off(company, other, **{name: 40})
    assert budget_of(company, company.ceo)[kind]["spent"] == 43 * unit
    set_budget(company, other, **{name: 60})
    assert budget_of(company, other)[kind]["left"] == 20 * unit
    side = budget_of(company, company.ceo)[kind]
    assert (side["spent"], side["left"]) == (3 * unit, 837 * unit)
    # A new month begins with nothing spent.
    clock.advance(from_iso(side_until(company, lead)) - clock.now())
    assert budget_of(company, lead)[kind]["left"] == 50 * unit


def side_until(company: Company, member: Member) -> str:
    until: str = budget_of(company, member)["until"]
    return until


@pytest.mark.requirement("FX-12")
def test_who_gets_a_budget_that_is_spent_already_stops(company: Company) -> None:
    dev = worker(company)
    send(company, company.board, f"agent:{dev.id}")
    run = claim(company, dev)
    assert spend(company, run, tokens=100)["over"] is None
    set_budget(company, dev, tokens=60)
    assert spend(company, run, tokens=101)["over"] == "The budget of dev is used up (tokens)."
    assert budget_of(company, dev)["tokens"]["spent"] == 101
