"""Accounts and set-ups: one fault closes them for everybody, one run finds out, all go on."""

import asyncio
import shlex
from pathlib import Path
from typing import Any

import pytest

from remit.adapters.running import RunResult
from remit.adapters.setup.probe import Tried, is_answered
from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros, from_iso
from remit.errors import Conflict, NotFound, Refused
from remit.model.execution.account import (
    LONGEST_BELIEVED,
    PROBES,
    RAMP,
    UNASKED,
    account_for,
    closed,
    setup_for,
)
from remit.model.execution.fault import Fault
from remit.runtime.runs import worker as workers
from remit.runtime.runs.execution import Claimed
from remit.runtime.runs.worker import Worker
from remit.services.connections import secrets
from remit.services.execution import (
    account_faults,
    accounts,
    error_recovery,
    provider_questions,
    run_queue,
    runs,
)
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox
from remit.services.organisation import agents, halts, idleness
from remit.services.record import events
from remit.services.screens import needs_you
from remit.testing.clock import VirtualClock
from tests.agent_stage import until
from tests.company import Answer, Company, Member, Run
from tests.mailing import ack, send, take, unread
from tests.working import NOWHERE, claim, end, held, told, why_idle, written

MODEL: dict[str, Any] = {"adapter_type": "claude", "adapter_config": {"secretRef": "key"}}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def worker(company: Company, name: str, **more: Any) -> Member:
    """An agent that uses the company's key, with a letter to read."""
    made = company.agent(name, perpetual=True, **{**MODEL, **more})
    send(company, company.board, f"agent:{name}", f"for {name}")
    return made


def fails(company: Company, run: Run, fault: Fault, until: Micros | None = None) -> None:
    more = {} if until is None else {"fault_until": until}
    end(company, run, "failed", fault=fault.value, error=f"It said {fault}.", **more)


def ready(company: Company, name: str = "w") -> list[str]:
    found = company.call(as_system(), run_queue.ready, worker=name)
    return [one.agent_id for one in found]


def refused(company: Company, member: Member, name: str = "w") -> str:
    with pytest.raises(Conflict) as caught:
        claim(company, member, worker=name)
    return caught.value.reason


def start_all(company: Company, name: str = "w") -> list[Run]:
    """What a worker does with those who are ready."""
    begun = []
    for agent in ready(company, name):
        member = Member(agent, "", company.ceo.caller)
        try:
            begun.append(claim(company, member, worker=name))
        except Conflict as refusal:
            if refusal.reason == accounts.HELD:
                company.call(as_system(), accounts.wait, agent=agent, worker=name)
    return begun


def listed(company: Company) -> list[Answer]:
    return company.call(company.board, accounts.listing, company=company.id)


def the_account(company: Company) -> Answer:
    (found,) = [one for one in listed(company) if one["kind"] == "account"]
    return found


def needs(company: Company, *kinds: str) -> list[Answer]:
    found = company.call(company.board, needs_you.listing, company=company.id)
    return [one for one in found if one["kind"] in kinds]


@pytest.mark.requirement("FX-10")
def test_one_fault_closes_an_account_for_everybody_and_one_good_answer_opens_it(
    company: Company, clock: VirtualClock
) -> None:
    one, two, three = (worker(company, name) for name in ("one", "two", "three"))
    other = worker(company, "other", adapter_config={"secretRef": "another"})
    run = claim(company, one)
    take(company, run)
    until = clock.now() + 5 * HOUR
    fails(company, run, Fault.RATE, until)
    account = the_account_named(company, "claude:key")
    assert (account["state"], account["fault"]) == ("closed", "rate")
    assert from_iso(account["until"]) == until
    assert refused(company, two) == accounts.HELD
    assert [started.agent_id for started in start_all(company)] == [other.id]
    assert ready(company) == []
    assert account_of(company, "claude:key")["waiting"] == 3
    assert why_idle(company, two) == "held"
    sentence = company.call(company.board, idleness.why_idle, agent=two.id)["sentence"]
    assert "claude:key" in sentence
    assert f"until {account['until'][:19]}Z" in sentence

    clock.advance(5 * HOUR)
    assert len(ready(company)) == 1
    (probe,) = start_all(company)
    assert ready(company) == []
    for member in (one, two, three):
        if member.id != probe.agent_id:
            assert refused(company, member) == accounts.HELD
    company.call(as_system(), account_faults.answered, run=probe.id)
    assert account_of(company, "claude:key")["state"] == "open"
    waiting_ones = {one.id, two.id, three.id} - {probe.agent_id}
    assert set(ready(company)) == waiting_ones
    assert len(start_all(company)) == 1  # not all at once
    clock.advance(SECOND)
    assert len(start_all(company)) == 1
    # It was told once, and is nothing to look at any more.
    assert written(company) == ["claude:key cannot be used: rate"]
    assert told(company) == []


@pytest.mark.requirement("FX-62")
def test_who_read_that_an_account_is_closed_is_told_that_it_works_again(
    company: Company, clock: VirtualClock
) -> None:
    one = worker(company, "one")
    fails(company, claim(company, one), Fault.BILLING)
    (letter,) = unread(company, company.board)
    ack(company, company.board, letter)
    clock.advance(HOUR)
    (probe,) = start_all(company)
    company.call(as_system(), account_faults.answered, run=probe.id)
    assert told(company) == ["claude:key works again"]
    assert written(company)[-1] == "claude:key cannot be used: billing"


def the_account_named(company: Company, name: str) -> Answer:
    return account_of(company, name)


def account_of(company: Company, name: str) -> Answer:
    listed: list[Answer] = company.call(company.board, accounts.listing, company=company.id)
    return next(one for one in listed if one["name"] == name)


@pytest.mark.requirement("FX-10")
def test_at_most_one_run_tries_a_closed_account_however_many_workers_want_to(
    company: Company, clock: VirtualClock
) -> None:
    members = [worker(company, f"agent{number}") for number in range(6)]
    fails(company, claim(company, members[0]), Fault.RATE)
    start_all(company)
    clock.advance(PROBES[0])

    async def at_once() -> Any:
        return await asyncio.gather(
            *(
                company.app.gate(
                    as_system(),
                    run_queue.claim,
                    agent=member.id,
                    run=company.app.ids.new(),
                    workspace="/nowhere",
                    worker=f"w{number}",
                )
                for number, member in enumerate(members)
            ),
            return_exceptions=True,
        )

    answers = company.wait(at_once())
    begun = [one for one in answers if isinstance(one, dict)]
    assert len(begun) == 1
    assert begun[0]["probe"]
    assert {one.reason for one in answers if isinstance(one, Conflict)} == {accounts.HELD}


@pytest.mark.requirement("FX-10")
def test_a_failing_account_is_tried_at_growing_intervals_by_one_after_the_other(
    small: Company, clock: VirtualClock
) -> None:
    members = [worker(small, name) for name in ("one", "two")]
    fails(small, claim(small, members[0]), Fault.RATE)
    start_all(small)
    tried = []
    for number, pause in enumerate([*PROBES, PROBES[-1], PROBES[-1]]):
        clock.advance(pause - SECOND)
        assert ready(small) == [], f"too early after {number} failures"
        clock.advance(SECOND)
        (probe,) = start_all(small)
        tried.append(probe.agent_id)
        fails(small, probe, Fault.RATE)
    assert PROBES[-1] == 15 * MINUTE
    assert set(tried[:2]) == {member.id for member in members}
    assert the_account(small)["state"] == "failing"
    # However long it lasts: no letter is lost, nobody is switched off or slowed down.
    assert set(small.sql("SELECT status, attempt FROM deliveries WHERE agent_id IS NOT NULL")) == {
        ("queued", 1)
    }
    assert all(held(small, member).failures == 0 for member in members)
    assert told(small) == ["claude:key cannot be used: rate"]
    assert len(needs(small, "held")) == 1
    assert needs(small, "failed_run", "dead_letter", "agent_error") == []


@pytest.mark.requirement("FX-10")
def test_what_a_provider_says_is_believed_for_a_day_at_most(
    small: Company, clock: VirtualClock
) -> None:
    one = worker(small, "one")
    fails(small, claim(small, one), Fault.RATE, clock.now() + 30 * DAY)
    start_all(small)
    clock.advance(LONGEST_BELIEVED - SECOND)
    assert ready(small) == []
    clock.advance(SECOND)
    (probe,) = start_all(small)
    end(small, probe)
    assert the_account(small)["state"] == "open"


def test_a_clock_that_is_set_back_keeps_no_account_closed(
    small: Company, clock: VirtualClock
) -> None:
    one = worker(small, "one")
    fails(small, claim(small, one), Fault.RATE, clock.now() + 5 * HOUR)
    start_all(small)
    clock.advance(-40 * DAY)
    small.call(as_system(), run_queue.redate, agent=one.id)
    assert ready(small) == [one.id]


def test_a_run_that_was_under_way_when_it_closed_says_until_when_and_nothing_else(
    small: Company, clock: VirtualClock
) -> None:
    one, two, three = (worker(small, name) for name in ("one", "two", "three"))
    first, second, third = (claim(small, member) for member in (one, two, three))
    fails(small, first, Fault.OVERLOAD)
    before = the_account(small)
    fails(small, second, Fault.OVERLOAD)
    assert the_account(small)["tried_at"] == before["tried_at"]
    until = clock.now() + HOUR
    fails(small, third, Fault.RATE, until)
    after = the_account(small)
    assert (after["state"], from_iso(after["tried_at"])) == ("closed", until)
    assert len(told(small)) <= 1


@pytest.mark.parametrize("status", ["cancelled", "lost", "failed"])
def test_a_run_that_found_out_nothing_lets_another_one_try(
    small: Company, clock: VirtualClock, status: str
) -> None:
    one, two = (worker(small, name) for name in ("one", "two"))
    fails(small, claim(small, one), Fault.AUTH)
    start_all(small)
    clock.advance(PROBES[0])
    (probe,) = start_all(small)
    if status == "cancelled":
        small.call(small.board, runs.cancel, run=probe.id)
    else:
        end(small, probe, status)
    assert the_account(small)["state"] == "failing"
    clock.advance(PROBES[0])
    # The ceo, who is told of a failure, needs no account.
    again = [run for run in start_all(small) if run.agent_id in (one.id, two.id)]
    assert len(again) == 1
    end(small, again[0])
    assert the_account(small)["state"] == "open"


def test_what_only_one_run_says_while_others_are_answered_is_its_own(
    company: Company, clock: VirtualClock
) -> None:
    one, two = (worker(company, name) for name in ("one", "two"))
    poisoned = claim(company, one)
    clock.advance(SECOND)
    end(company, claim(company, two))
    clock.advance(SECOND)
    fails(company, poisoned, Fault.NETWORK)
    assert the_account(company)["state"] == "open"
    assert held(company, one).failures == 1
    clock.advance(2 * SECOND)
    fails(company, claim(company, one), Fault.NETWORK)  # nobody was answered since
    assert the_account(company)["state"] == "failing"


@pytest.mark.requirement("FX-10")
def test_a_new_key_a_word_of_the_board_and_other_settings_have_it_tried_at_once(
    small: Company, clock: VirtualClock
) -> None:
    one, two = (worker(small, name) for name in ("one", "two"))
    fails(small, claim(small, one), Fault.AUTH)
    start_all(small)
    assert ready(small) == []
    here: Any = {"company": small.id}
    small.call(small.board, secrets.put, **here, name="key", source="env", place="A_KEY")
    (probe,) = start_all(small)
    fails(small, probe, Fault.AUTH)
    assert ready(small) == []
    tried = small.call(small.board, accounts.retry, account="claude:key", **here)
    assert tried["name"] == "claude:key"
    (probe,) = start_all(small)
    fails(small, probe, Fault.AUTH)
    changes = {"adapterConfig": {"secretRef": "another"}}
    small.call(small.board, configuration.change, agent="two", changes=changes)
    assert ready(small) == [two.id]


def test_only_who_may_configure_has_an_account_tried_and_agents_see_none(
    small: Company, clock: VirtualClock
) -> None:
    one = worker(small, "one")
    here: Any = {"company": small.id}
    fails(small, claim(small, one), Fault.AUTH)
    with pytest.raises(Refused):
        small.call(one.caller, accounts.retry, account="claude:key")
    with pytest.raises(Refused):
        small.call(one.caller, accounts.listing)
    observer = small.user("observer", role="observer")
    assert small.call(observer, accounts.listing, **here)
    with pytest.raises(Refused):
        small.call(observer, accounts.retry, account="claude:key", **here)
    with pytest.raises(NotFound):
        small.call(small.board, accounts.retry, account="nobody's", **here)
    assert small.call(small.ceo.caller, accounts.listing)
    end(small, _probe(small, clock))
    with pytest.raises(Conflict):
        small.call(small.board, accounts.retry, account="claude:key", **here)
    for_remit: list[tuple[Any, dict[str, Any]]] = [
        (account_faults.answered, {"run": "x"}),
        (account_faults.to_check, {"worker": "w"}),
        (account_faults.checked, {"account": "x", "usable": True}),
        (accounts.wait, {"agent": "one", "worker": "w"}),
        (error_recovery.to_check, {}),
        (error_recovery.checked, {"agent": "one", "usable": True}),
    ]
    for verb, given in for_remit:
        with pytest.raises(NotFound):
            small.call(small.board, verb, **given)


def _probe(company: Company, clock: VirtualClock) -> Run:
    clock.advance(PROBES[-1])
    (probe,) = start_all(company) or start_all(company)
    return probe


def test_those_who_are_stopped_do_not_try_for_others(small: Company, clock: VirtualClock) -> None:
    one, two = (worker(small, name) for name in ("one", "two"))
    fails(small, claim(small, one), Fault.RATE)
    start_all(small)
    small.call(small.board, halts.stop, agent="one")
    clock.advance(PROBES[0])
    assert ready(small) == [two.id]


@pytest.mark.requirement("FX-09")
def test_a_set_up_is_closed_on_one_worker_until_its_check_passes(
    company: Company, clock: VirtualClock
) -> None:
    one, two = (worker(company, name) for name in ("one", "two"))
    fails(company, claim(company, one, worker="broken"), Fault.SETUP)
    assert start_all(company, "broken") == []
    assert ready(company, "broken") == []
    assert why_idle(company, two) == "held"
    # Somewhere else it works.
    assert set(ready(company, "sound")) == {one.id, two.id}
    run = claim(company, one, worker="sound")
    end(company, run)
    # Here it is looked at, later and later.
    assert company.call(as_system(), account_faults.to_check, worker="broken") == []
    clock.advance(PROBES[0])
    (setup,) = company.call(as_system(), account_faults.to_check, worker="broken")
    assert (setup.adapter_type, setup.config) == ("claude", {"secretRef": "key"})
    assert company.call(as_system(), account_faults.to_check, worker="sound") == []
    answer: dict[str, Any] = {"account": setup.id, "cause": "It is not installed."}
    company.call(as_system(), account_faults.checked, **answer, usable=False)
    clock.advance(PROBES[0])
    assert company.call(as_system(), account_faults.to_check, worker="broken") == []
    clock.advance(PROBES[1])
    company.call(as_system(), account_faults.checked, **answer, usable=True)
    assert ready(company, "broken") == [two.id]
    with pytest.raises(Conflict):
        company.call(as_system(), account_faults.checked, **answer, usable=True)
    assert written(company) == ["claude on worker broken cannot be used: setup"]
    assert told(company) == []


def test_a_set_up_whose_check_passes_and_that_does_not_work_is_tried_less_and_less(
    small: Company, clock: VirtualClock
) -> None:
    """As a program that answers to --version and rejects a flag."""
    one = worker(small, "one")
    pauses = []
    for _ in range(4):
        fails(small, claim(small, one), Fault.SETUP)
        began = clock.now()
        while not (found := small.call(as_system(), account_faults.to_check, worker="w")):
            clock.advance(SECOND)
        pauses.append(clock.now() - began)
        small.call(as_system(), account_faults.checked, account=found[0].id, usable=True)
    assert pauses == list(PROBES[:4])
    assert len(written(small)) == 1


def test_settings_that_fail_on_a_set_up_that_works_for_others_hold_nobody_else(
    small: Company, clock: VirtualClock
) -> None:
    """As a setting that its program refuses at the start, whenever it is told."""
    odd, other = worker(small, "odd"), worker(small, "other")
    fails(small, claim(small, odd), Fault.SETUP)
    assert start_all(small) == []
    clock.advance(PROBES[0])
    (setup,) = small.call(as_system(), account_faults.to_check, worker="w")
    small.call(as_system(), account_faults.checked, account=setup.id, usable=True)
    # Nobody has shown yet that it works.
    fails(small, claim(small, odd), Fault.SETUP)
    assert start_all(small) == []
    clock.advance(PROBES[1])
    small.call(as_system(), account_faults.checked, account=setup.id, usable=True)
    end(small, claim(small, other))
    send(small, small.board, "agent:other", "again")
    clock.advance(RAMP)
    fails(small, claim(small, odd), Fault.SETUP)
    assert why_idle(small, odd) == "backoff"
    assert other.id in ready(small)
    assert not [row for row in listed(small) if row["state"] != "open"]
    # A set-up that breaks later holds everybody, whoever meets it first.
    clock.advance(HOUR)
    fails(small, claim(small, other), Fault.SETUP)
    assert not {run.agent_id for run in start_all(small)} & {odd.id, other.id}
    assert why_idle(small, odd) == "held"


def test_a_set_up_is_tested_as_it_is_and_not_as_the_adapter_comes(small: Company) -> None:
    mine = worker(small, "mine", adapter_config={"command": "/opt/my claude"})
    fails(small, claim(small, mine), Fault.SETUP)
    told_why = small.call(small.board, idleness.why_idle, agent="mine")["sentence"]
    assert "`remit adapter test --agent mine`" in told_why
    (row,) = [row for row in listed(small) if row["kind"] == "setup"]
    assert """claude --config '{"command": "/opt/my claude"}'`""" in row["step"]


def test_a_set_up_that_nobody_needs_any_more_is_forgiven(
    small: Company, clock: VirtualClock
) -> None:
    one = worker(small, "one", adapter_type="process", adapter_config={"command": "/no/such"})
    fails(small, claim(small, one), Fault.SETUP)
    small.call(small.board, agents.terminate, agent="one")
    clock.advance(PROBES[0])
    (found,) = small.call(as_system(), account_faults.to_check, worker="w")
    assert found.config is None


@pytest.mark.requirement("FX-10")
def test_what_a_run_depends_on_is_told_apart_by_address_and_credential() -> None:
    def account(adapter: str, **config: Any) -> str:
        return account_for("c", adapter, config, 0).name  # type: ignore[arg-type]

    assert account("claude") == "claude"
    assert account("claude", secretRef="key") == "claude:key"
    assert account("claude", baseUrl="https://u:p@gate.example/v1?k=1") == "claude@gate.example/v1"
    assert account("llm", provider="openai", secretRef="key") == "llm:key@openai"
    assert account("http", url="https://a.example/run") == "http@a.example/run"
    own = [account("claude", env={"ANTHROPIC_API_KEY": key}) for key in ("one", "two", "one")]
    assert own[0] == own[2] != own[1]
    assert "one" not in own[0].replace("-one", "")
    gate = account("claude", env={"ANTHROPIC_BASE_URL": "https://gate.example"})
    assert gate == "claude@gate.example"
    made = [
        account_for(company, "claude", {}, 0).id  # type: ignore[arg-type]
        for company in ("a", "b")
    ]
    assert made[0] != made[1]
    places = {
        setup_for("c", "process", config, where, 0).name  # type: ignore[arg-type]
        for where in ("here", "there")
        for config in ({"command": "sh", "args": ["a"]}, {"command": "sh", "args": ["b"]})
    }
    assert len(places) == 4


def test_a_set_up_is_told_by_its_program_and_its_worker() -> None:
    usual = setup_for("c", "claude", {}, "desk", 0)  # type: ignore[arg-type]
    own = setup_for("c", "process", {"command": "/opt/try"}, "desk", 0)  # type: ignore[arg-type]
    failed = closed(own, Fault.SETUP, None, "It is not installed.", SECOND, probed=False)
    assert (usual.title, own.title) == (
        "claude on worker desk",
        "process (/opt/try) on worker desk",
    )
    assert accounts.sentence(failed) == (
        "process (/opt/try) on worker desk has not worked since 1970-01-01T00:00:01Z: "
        '"It is not installed". It is tried again at 1970-01-01T00:00:06Z.'
    )


@pytest.mark.requirement("FX-10")
def test_the_record_says_when_an_account_closed_and_opened(
    small: Company, clock: VirtualClock
) -> None:
    one = worker(small, "one")
    fails(small, claim(small, one), Fault.BILLING)
    end(small, _probe(small, clock))
    found = small.call(small.board, events.listing, company=small.id, limit=100)
    told_of = [one for one in found if one["action"].startswith("account.")]
    assert [one["action"] for one in told_of] == ["account.open", "account.close"]
    assert told_of[1]["details"]["fault"] == "billing"


# ── with a worker ───────────────────────────────────────────────────────────────────────────────


class Provider:
    """What answers every run: nobody until a time, then everybody."""

    def __init__(self, clock: VirtualClock, opens: Micros) -> None:
        self.clock, self.opens = clock, opens
        self.trying = self.most_trying = 0
        self.answered: list[str] = []
        self.refused = 0

    async def execute(self, app: Any, url: str, claimed: Claimed) -> RunResult:
        del url
        await app.gate(Caller(claimed.token), inbox.turn)
        self.trying += claimed.probe
        self.most_trying = max(self.most_trying, self.trying)
        try:
            await asyncio.sleep(0)
            if self.clock.now() < self.opens:
                self.refused += 1
                return RunResult(
                    False,
                    reason="rate_limited",
                    error="usage limit reached",
                    fault=Fault.RATE,
                    until=self.opens,
                )
            if claimed.probe:
                await app.gate(as_system(), account_faults.answered, run=claimed.run_id)
            self.answered.append(claimed.agent_id)
            return RunResult(True, "Done.")
        finally:
            self.trying -= claimed.probe


@pytest.fixture
def many(small: Company) -> Company:
    """200 agents on one account, each with a letter."""
    for number in range(200):
        name = f"agent{number}"
        small.agent(name, perpetual=True, **MODEL)
        send(small, small.board, f"agent:{name}", "Work.")
    return small


@pytest.mark.requirement("FX-08", "FX-10")
@pytest.mark.slow
def test_200_agents_on_an_account_that_is_closed_for_five_hours(
    many: Company, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = clock.now() + 5 * HOUR
    provider = Provider(clock, opens)
    monkeypatch.setattr(workers, "execute", provider.execute)

    def count(sql: str) -> int:
        return int(many.sql(sql)[0][0])

    async def story() -> None:
        worker = Worker(many.app, NOWHERE, slots=200)
        worker.start()
        try:
            waiting_ones = "SELECT count(*) FROM agent_leases WHERE held_by IS NOT NULL"
            await until(lambda: count(waiting_ones) == 200, 60)
            first = provider.refused
            for _ in range(5):
                clock.advance(HOUR - SECOND)
                worker.wake()
                await asyncio.sleep(0.02)
            assert clock.now() < opens
            assert provider.refused == first  # the time that it named was believed
            clock.advance(opens - clock.now())
            worker.wake()
            await until(lambda: provider.answered and count(waiting_ones) == 0)
            assert clock.now() <= opens + 10 * SECOND  # all are eligible
            assert len(provider.answered) <= 2  # not at once
            clock.advance(10 * SECOND)
            worker.wake()
            await until(lambda: len(set(provider.answered)) == 200 and not worker.busy, 60)
        finally:
            await worker.stop()

    many.wait(story())
    assert provider.most_trying == 1
    assert set(many.sql("SELECT status FROM deliveries WHERE agent_id IS NOT NULL")) == {("done",)}
    assert count_status(many, "error") == count_status(many, "paused") == 0
    assert [one for one in written(many) if one] == ["claude:key cannot be used: rate"]


def count_status(company: Company, status: str) -> int:
    return int(company.sql("SELECT count(*) FROM agents WHERE status = ?", status)[0][0])


def test_a_worker_looks_at_what_is_broken_and_lets_it_go_on_by_itself(
    small: Company, clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "agent"
    config = {"command": str(program)}
    one = worker(small, "one", adapter_type="process", adapter_config=config)
    run = claim(small, one, worker="local")
    fails(small, run, Fault.SETUP)
    provider = Provider(clock, 0)
    monkeypatch.setattr(workers, "execute", provider.execute)

    async def story() -> None:
        worker = Worker(small.app, NOWHERE)
        clock.advance(PROBES[0])
        await worker._mend()
        assert not provider.answered
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
        clock.advance(PROBES[1])
        await worker._mend()
        worker.start()
        try:
            await until(lambda: provider.answered)
        finally:
            await worker.stop()

    small.wait(story())
    assert provider.answered == [one.id]


# ── a free question ─────────────────────────────────────────────────────────────────────────────


def to_ask(company: Company) -> list[str]:
    return [question.account for question in company.call(as_system(), provider_questions.to_ask)]


def unreachable(company: Company, fault: Fault = Fault.NETWORK) -> tuple[Member, str]:
    """An agent whose provider does not answer, and the account."""
    one = worker(company, "one")
    run = claim(company, one)
    take(company, run)
    fails(company, run, fault)
    return one, str(the_account_named(company, "claude:key")["id"])


@pytest.mark.requirement("FX-10")
@pytest.mark.parametrize("fault", [Fault.NETWORK, Fault.OVERLOAD])
def test_a_provider_is_asked_each_minute_and_no_run_is_started_until_it_answers(
    company: Company, clock: VirtualClock, fault: Fault
) -> None:
    one, account = unreachable(company, fault)
    assert to_ask(company) == []
    clock.advance(PROBES[0])
    assert ready(company) == []
    for _ in range(30):
        assert to_ask(company) == [account]
        assert company.call(as_system(), provider_questions.begin, account=account)
        # One asks; who does not report is followed by another.
        assert not company.call(as_system(), provider_questions.begin, account=account)
        assert to_ask(company) == []
        assert ready(company) == []
        assert refused(company, one) == accounts.HELD
        clock.advance(MINUTE)
    company.call(as_system(), provider_questions.asked, account=account, answered=True)
    assert ready(company) == [one.id]
    (probe,) = start_all(company)
    company.call(as_system(), account_faults.answered, run=probe.id)
    assert account_of(company, "claude:key")["state"] == "open"


@pytest.mark.requirement("FX-10")
def test_a_provider_that_answers_the_question_and_refuses_runs_is_probed_at_growing_pauses(
    company: Company, clock: VirtualClock
) -> None:
    _, account = unreachable(company, Fault.OVERLOAD)
    pauses = []
    for _ in range(len(PROBES) + 1):
        since = clock.now()
        while not to_ask(company):
            clock.advance(SECOND)
        pauses.append(clock.now() - since)
        company.call(as_system(), provider_questions.begin, account=account)
        company.call(as_system(), provider_questions.asked, account=account, answered=True)
        (probe,) = start_all(company)
        fails(company, probe, Fault.OVERLOAD)
    assert pauses == [*PROBES, PROBES[-1]]


@pytest.mark.requirement("BX-18")
def test_a_closed_account_is_named_in_the_commands_about_it(company: Company) -> None:
    strange = worker(company, "two", adapter_config={"command": "a'b", "secretRef": "key"})
    broken = claim(company, strange, worker="w")
    fails(company, broken, Fault.SETUP)
    unreachable(company, Fault.AUTH)
    rows = company.call(company.board, needs_you.listing, company=company.id)
    steps = {row["title"]: row["next"] for row in rows if row["kind"] == "held"}
    assert steps.pop("claude:key cannot be used") == "remit account retry claude:key"
    (other,) = steps.values()
    assert shlex.split(other)[3] == "setup:claude:a'b@w"
    for named in ("claude:key", "setup:claude:a'b@w"):
        assert company.call(company.board, accounts.retry, account=named)["name"] == named


def question(company: Company) -> provider_questions.Question:
    (found,) = company.call(as_system(), provider_questions.to_ask)
    return found


@pytest.mark.requirement("FX-10", "BX-18")
@pytest.mark.parametrize("fault", [Fault.NETWORK, Fault.OVERLOAD])
def test_the_board_is_told_once_of_a_provider_that_answers_nothing_for_ten_minutes(
    company: Company, clock: VirtualClock, fault: Fault
) -> None:
    one, account = unreachable(company, fault)
    clock.advance(PROBES[0])
    while not question(company).to_be_told:
        with pytest.raises(Conflict):
            company.call(as_system(), provider_questions.unanswered, account=account)
        company.call(as_system(), provider_questions.begin, account=account)
        clock.advance(MINUTE)
    assert told(company) == []
    assert clock.now() - from_iso(account_of(company, "claude:key")["since"]) <= 11 * MINUTE

    company.call(as_system(), provider_questions.unanswered, account=account, cause="529")
    assert told(company) == [f"claude:key cannot be used: {fault}"]
    (letter,) = unread(company, company.board)
    assert "its provider is asked each minute" in letter["body"]
    for _ in range(60):  # not again, however long it lasts
        assert not question(company).to_be_told
        company.call(as_system(), provider_questions.begin, account=account)
        clock.advance(MINUTE)

    # Somebody has read it, so the good news follows the bad.
    ack(company, company.board, letter)
    company.call(as_system(), provider_questions.asked, account=account, answered=True)
    assert ready(company) == [one.id]
    (probe,) = start_all(company)
    company.call(as_system(), account_faults.answered, run=probe.id)
    assert told(company) == ["claude:key works again"]


@pytest.mark.requirement("FX-10")
def test_a_worker_reports_a_provider_that_goes_on_answering_nothing(
    small: Company, clock: VirtualClock
) -> None:
    nobody = {"baseUrl": "http://127.0.0.1:1", "env": {"ANTHROPIC_API_KEY": "none"}}
    one = worker(small, "one", adapter_type="claude", adapter_config=nobody)
    run = claim(small, one)
    take(small, run)
    fails(small, run, Fault.NETWORK)
    asking = Worker(small.app, NOWHERE)
    for _ in range(9):
        clock.advance(MINUTE)
        small.wait(asking._ask_providers())
        assert told(small) == []
    for _ in range(5):
        clock.advance(MINUTE)
        small.wait(asking._ask_providers())
    (subject,) = told(small)
    assert subject.endswith("cannot be used: network")


@pytest.mark.requirement("FX-10")
def test_a_provider_that_answers_within_ten_minutes_is_no_news(
    company: Company, clock: VirtualClock
) -> None:
    _, account = unreachable(company, Fault.OVERLOAD)
    clock.advance(9 * MINUTE)
    assert not question(company).to_be_told
    company.call(as_system(), provider_questions.begin, account=account)
    company.call(as_system(), provider_questions.asked, account=account, answered=True)
    (probe,) = start_all(company)
    company.call(as_system(), account_faults.answered, run=probe.id)
    clock.advance(HOUR)
    assert told(company) == []


@pytest.mark.requirement("FX-10")
@pytest.mark.parametrize("fault", [Fault.AUTH, Fault.BILLING, Fault.RATE])
def test_after_other_faults_nobody_is_asked(
    company: Company, clock: VirtualClock, fault: Fault
) -> None:
    unreachable(company, fault)
    clock.advance(HOUR)
    assert to_ask(company) == []
    assert len(ready(company)) == 1


@pytest.mark.requirement("FX-10")
def test_a_provider_is_not_asked_while_nobody_waits_for_it(
    company: Company, clock: VirtualClock
) -> None:
    one, account = unreachable(company)
    clock.advance(HOUR)
    assert to_ask(company) == [account]
    company.call(company.board, agents.pause, agent=one.id)
    assert to_ask(company) == []
    company.call(company.board, agents.resume, agent=one.id)
    start_all(company)
    assert to_ask(company) == [account]


@pytest.mark.requirement("FX-10")
def test_an_account_whose_provider_no_worker_asks_is_probed_by_a_run(
    company: Company, clock: VirtualClock
) -> None:
    one, _ = unreachable(company)
    clock.advance(PROBES[0] + UNASKED - SECOND)
    assert ready(company) == []
    clock.advance(SECOND)
    assert ready(company) == [one.id]


@pytest.mark.requirement("FX-10")
def test_a_person_can_have_it_tried_without_a_question(
    company: Company, clock: VirtualClock
) -> None:
    one, account = unreachable(company)
    company.call(company.board, accounts.retry, account=account)
    assert ready(company) == [one.id]
    with pytest.raises(Conflict):
        company.call(as_system(), provider_questions.asked, account=account, answered=True)


@pytest.mark.parametrize(
    ("tried", "answered"),
    [
        (None, None),
        (Tried(None, "A login is not tried."), None),
        (Tried(True, "It answered."), True),
        (Tried(False, "It does not answer."), False),
        (Tried(False, "It has an error.", facts={"status": 529}), False),
        (Tried(False, "Too many requests.", facts={"status": 429}), False),
        (Tried(False, "It refuses the key.", facts={"status": 401}), None),
        (Tried(False, "It knows no list.", facts={"status": 501}), None),
    ],
)
def test_only_an_answer_or_a_question_that_cannot_be_asked_lets_a_run_start(
    tried: Tried | None, answered: bool | None
) -> None:
    assert is_answered(tried) is answered
    if tried is not None and tried.facts.get("status") == 529:
        assert is_answered(tried, for_long=True) is None
