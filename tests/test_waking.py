"""Whatever gives an agent something to do wakes it in the same transaction, and nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, MINUTE, SECOND, to_iso
from remit.errors import RemitError
from remit.services.execution import run_queue, runs
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.messaging import pending_items, questions
from remit.services.organisation import agents, reorganise
from remit.services.work import delegation, outcomes
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, opened
from tests.governance import approve, ask, hire
from tests.mailing import send, take, tick
from tests.working import (
    at_work,
    claim,
    end,
    held,
    is_awake,
    let_sleep,
    over,
    program,
    ready,
    statuses,
)


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Company]:
    """With the clock on the wall, for workers."""
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        yield company


KIND = {"adapter_type": "scripted"}


def named(company: Company, name: str) -> str:
    return f"{name}-{company.app.ids.new()[-6:]}"


def worker(company: Company, name: str = "dev", boss: str = "ceo", **more: Any) -> Member:
    """An agent with a standing task: without mail and parts it has nothing to do."""
    made = company.agent(named(company, name), boss, perpetual=True, **{**KIND, **more})
    let_sleep(company, made)
    return made


def part(company: Company, member: Member, title: str = "part", **more: Any) -> Answer:
    return company.call(member.caller, outcomes.create, parent=member.id, title=title, **more)


def change(company: Company, by: Member, outcome: Answer, **more: Any) -> None:
    now = company.call(company.board, outcomes.show, outcome=outcome["id"])
    company.call(by.caller, outcomes.change, outcome=now["id"], version=now["version"], **more)


Story = Callable[[Company, VirtualClock], tuple[Member, Callable[[], object]]]


def mail(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    return dev, lambda: send(company, company.board, f"agent:{dev.id}")


def mail_that_comes_due(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    send(company, company.board, f"agent:{dev.id}", deliver_at=to_iso(clock.now() + HOUR))
    assert not is_awake(company, dev)
    clock.advance(HOUR)
    return dev, lambda: tick(company)


def an_outcome(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    return dev, lambda: part(company, dev)


def one_that_is_reopened(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    done = part(company, dev)
    company.call(dev.caller, outcomes.complete, outcome=done["id"])
    return dev, lambda: company.call(dev.caller, outcomes.reopen, outcome=done["id"])


def what_it_waited_for(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    other = worker(company, "other", boss=dev.id)
    blocker = part(company, other)
    part(company, dev, blocked_by=[other.id])
    mine = part(company, dev, "mine")
    change(company, dev, mine, blocked_by=[blocker["id"]])
    return dev, lambda: company.call(other.caller, outcomes.complete, outcome=blocker["id"])


def the_last_part(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    whole = part(company, dev)
    inner = company.call(dev.caller, outcomes.create, parent=whole["id"], title="inner")
    return dev, lambda: company.call(
        dev.caller, outcomes.close, outcome=inner["id"], rationale="no"
    )


def not_blocked_any_more(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    other = worker(company, "other", boss=dev.id)
    blocker = part(company, other)
    mine = part(company, dev, blocked_by=[blocker["id"]])
    return dev, lambda: change(company, dev, mine, blocked_by=[])


def not_deferred_any_more(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    mine = part(company, dev, deferred_until=to_iso(clock.now() + HOUR))
    return dev, lambda: change(company, dev, mine, deferred_until="")


def a_part_that_goes_elsewhere(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    whole, elsewhere = part(company, dev), part(company, dev, "elsewhere")
    inner = company.call(dev.caller, outcomes.create, parent=whole["id"], title="inner")
    company.call(dev.caller, outcomes.close, outcome=elsewhere["id"], rationale="for now")
    company.call(dev.caller, outcomes.close, outcome=inner["id"], rationale="for now")
    company.call(dev.caller, outcomes.reopen, outcome=elsewhere["id"])
    company.call(dev.caller, outcomes.reopen, outcome=inner["id"])
    later = to_iso(clock.now() + HOUR)
    change(company, dev, inner, deferred_until=later)
    change(company, dev, elsewhere, deferred_until=later)
    return dev, lambda: change(company, dev, inner, parents=[elsewhere["id"]])


def one_that_is_handed_over(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    other = worker(company, "other", boss=dev.id)
    mine = part(company, dev)
    return other, lambda: company.call(
        dev.caller, delegation.delegate, outcome=mine["id"], to=other.id
    )


def one_that_is_reclaimed(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    other = worker(company, "other", boss=dev.id)
    mine = part(company, dev)
    company.call(dev.caller, delegation.delegate, outcome=mine["id"], to=other.id)
    return dev, lambda: company.call(
        dev.caller, delegation.reclaim, outcome=mine["id"], reason="too slow"
    )


def what_a_worker_keeps_after_a_reclaim(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    other = worker(company, "other", boss=dev.id)
    mine = part(company, dev)
    company.call(dev.caller, delegation.delegate, outcome=mine["id"], to=other.id)
    part(company, other, "its own")
    claim(company, other)
    return other, lambda: company.call(
        dev.caller, delegation.reclaim, outcome=mine["id"], reason="too slow"
    )


def what_somebody_left_who_is_gone(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    other = worker(company, "other", boss=dev.id)
    shared = part(company, dev)
    theirs = part(company, other, "theirs")
    change(company, other, theirs, parents=[other.id])
    change(company, dev, shared, deferred_until=to_iso(clock.now() + HOUR))
    return dev, lambda: company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "remove_layer", "agent": other.id}],
    )


def a_hire(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    company.sql("UPDATE companies SET require_board_approval_for_new_agents = true")
    name = named(company, "fresh")
    asked = hire(company, company.ceo.caller, name, purpose="Work", perpetual=False)
    fresh = Member(asked["agent"]["id"], "fresh", company.board)
    return fresh, lambda: approve(company, asked["approval"])


def a_resumption(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    company.call(company.board, agents.pause, agent=dev.id)
    send(company, company.board, f"agent:{dev.id}")
    return dev, lambda: company.call(company.board, agents.resume, agent=dev.id)


def an_answer(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    asked = company.call(dev.caller, questions.ask, question="May I?", to="board")
    return dev, lambda: company.call(
        company.board, questions.answer, question=asked["id"], answer="yes"
    )


def a_decision(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    asked = ask(company, dev.caller)
    return dev, lambda: approve(company, asked)


def a_dead_letter_put_back(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = worker(company)
    sent = send(company, company.board, f"agent:{dev.id}")
    for _ in range(3):
        run = company.run(dev)
        take(company, run)
        end(company, run, "failed", fault="message")
    return dev, lambda: company.call(company.board, pending_items.revive, message=sent["id"])


def a_program_in_a_persons_seat(
    company: Company, clock: VirtualClock
) -> tuple[Member, Callable[[], object]]:
    dev = company.agent(named(company, "dev"), perpetual=True)
    send(company, company.board, f"agent:{dev.id}")
    operation = {"op": "seat", "agent": dev.id, "adapter_type": "scripted"}
    return dev, lambda: company.call(
        company.board, reorganise.reorganise, company=company.id, operations=[operation]
    )


def other_settings(company: Company, clock: VirtualClock) -> tuple[Member, Callable[[], object]]:
    dev = company.agent(named(company, "dev"), perpetual=True)
    send(company, company.board, f"agent:{dev.id}")
    return dev, lambda: company.call(
        company.board, configuration.change, agent=dev.id, changes={"title": "Another"}
    )


STORIES: tuple[Story, ...] = (
    mail,
    mail_that_comes_due,
    an_outcome,
    one_that_is_reopened,
    what_it_waited_for,
    the_last_part,
    not_blocked_any_more,
    not_deferred_any_more,
    a_part_that_goes_elsewhere,
    one_that_is_handed_over,
    one_that_is_reclaimed,
    what_a_worker_keeps_after_a_reclaim,
    what_somebody_left_who_is_gone,
    a_hire,
    a_resumption,
    an_answer,
    a_decision,
    a_dead_letter_put_back,
    a_program_in_a_persons_seat,
    other_settings,
)


@pytest.mark.requirement("AG-72", "HB-29", "AG-64")
def test_whatever_gives_an_agent_something_to_do_wakes_it(
    company: Company, clock: VirtualClock
) -> None:
    for story in STORIES:
        member, happens = story(company, clock)
        let_sleep(company, member)
        happens()
        assert is_awake(company, member), story.__name__
        clock.advance(HOUR)
        assert member.id in ready(company), story.__name__


@pytest.mark.requirement("AG-72")
def test_what_is_refused_wakes_nobody(company: Company) -> None:
    dev = worker(company)
    stranger = worker(company, "stranger", boss=dev.id)
    with pytest.raises(RemitError):
        company.call(stranger.caller, outcomes.create, parent=company.ceo.id, title="yours")
    with pytest.raises(RemitError):
        send(company, stranger.caller, "agent:ceo", attachments=["nothing"])
    assert not is_awake(company, dev)
    assert not is_awake(company, company.ceo)


@pytest.mark.requirement("BX-15")
def test_nobody_is_started_who_cannot_be(company: Company, clock: VirtualClock) -> None:
    paused = worker(company, "paused")
    person = company.agent("person", perpetual=True, adapter_type="human")
    gone = worker(company, "gone")
    company.sql("UPDATE companies SET require_board_approval_for_new_agents = true")
    asked = hire(company, company.ceo.caller, "asked-for")["agent"]
    send(company, company.board, f"agent:{paused.id}")
    company.call(company.board, agents.pause, agent=paused.id)
    send(company, company.board, f"agent:{paused.id}")
    send(company, company.board, "agent:person")
    send(company, company.board, f"agent:{gone.id}")
    company.call(company.board, agents.terminate, agent=gone.id)
    clock.advance(1)
    assert ready(company) == []
    assert company.call(as_system(), run_queue.forgotten) == []
    waiting_hire = Member(asked["id"], "asked-for", company.board)
    for member in (paused, person, gone, waiting_hire):
        with pytest.raises(RemitError):
            claim(company, member)


@pytest.mark.requirement("BX-15")
def test_who_was_woken_for_nothing_is_let_sleep(company: Company, clock: VirtualClock) -> None:
    dev = worker(company)
    mine = part(company, dev)
    company.call(dev.caller, outcomes.complete, outcome=mine["id"])
    assert is_awake(company, dev)
    with pytest.raises(RemitError, match="nothing to do"):
        claim(company, dev)
    company.call(as_system(), run_queue.settle, agent=dev.id)
    assert not is_awake(company, dev)
    # But not who got something meanwhile.
    send(company, company.board, f"agent:{dev.id}")
    company.call(as_system(), run_queue.settle, agent=dev.id)
    assert is_awake(company, dev)


@pytest.mark.requirement("AG-72")
def test_the_sweep_wakes_whom_everybody_forgot(company: Company, clock: VirtualClock) -> None:
    dev, other = worker(company), worker(company, "other")
    send(company, company.board, f"agent:{dev.id}")
    part(company, other)
    company.sql("DELETE FROM agent_leases WHERE agent_id = ?", dev.id)
    let_sleep(company, other)
    assert ready(company) == []
    assert company.call(as_system(), run_queue.forgotten) == [company.id]
    woken = company.call(as_system(), run_queue.sweep, company=company.id)["woken"]
    assert sorted(woken) == sorted([dev.id, other.id])
    assert sorted(ready(company)) == sorted([dev.id, other.id])
    assert company.call(as_system(), run_queue.forgotten) == []


@pytest.mark.requirement("HB-61")
def test_the_sweep_leaves_alone_whom_somebody_stopped(
    company: Company, clock: VirtualClock
) -> None:
    dev = worker(company)
    part(company, dev)
    run = claim(company, dev)
    company.call(company.board, runs.cancel, run=run.id)
    clock.advance(HOUR)
    assert company.call(as_system(), run_queue.forgotten) == []
    assert ready(company) == []
    # Something new is a reason to begin again.
    send(company, company.board, f"agent:{dev.id}")
    assert ready(company) == [dev.id]


@pytest.mark.requirement("BX-16")
def test_new_mail_starts_who_has_nothing_new_and_ends_a_pause_after_a_failure_once(
    company: Company, clock: VirtualClock
) -> None:
    dev = worker(company)
    part(company, dev)
    end(company, claim(company, dev))
    assert dev.id not in ready(company)
    send(company, company.board, f"agent:{dev.id}")
    assert dev.id in ready(company)
    end(company, claim(company, dev), "failed", error="broken")
    assert held(company, dev).due_at > clock.now()
    send(company, company.board, f"agent:{dev.id}")
    assert held(company, dev).due_at == clock.now()
    # The same failure again, and again something new: now it waits its turn.
    company.sql("UPDATE agent_leases SET due_at = ? WHERE agent_id = ?", clock.now() + 5, dev.id)
    send(company, company.board, f"agent:{dev.id}")
    assert held(company, dev).due_at == clock.now() + 5
    clock.advance(MINUTE)
    assert dev.id in ready(company)


def test_of_each_company_those_come_first_that_wait_longest(
    company: Company, clock: VirtualClock
) -> None:
    mine = []
    for number in range(6):
        clock.advance(SECOND)
        mine.append(company.agent(f"a{number}", adapter_type="scripted").id)
    clock.advance(SECOND)
    other = company.second_company()
    stranger = company.call(
        other.board,
        agents.create,
        company=other.id,
        name="s",
        adapter_type="scripted",
        purpose="Work",
        perpetual=False,
    )
    # However many wait there, the other company is among the first.
    assert set(ready(company, each=2, limit=3)) == {mine[0], mine[1], stranger["id"]}
    assert ready(company)[0] == mine[0]


def test_who_is_ready_is_found_by_an_index(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        from remit.store.engine.statement import SQLITE
        from remit.store.execution.accounts import BROKEN_ELSEWHERE, NEXT_PROBE, TO_CHECK, TO_PROBE
        from remit.store.execution.due import NEXT_LOOK
        from remit.store.execution.leases import (
            FIRST_HELD_BY,
            FORGOTTEN,
            IN_ERROR,
            NEXT_READY,
            READY,
        )

        for statement, index in (
            (READY, "ix_agent_leases_due"),
            (NEXT_READY, "ix_agent_leases_due"),
            (NEXT_LOOK, "ix_outcomes_look_at"),
            (FORGOTTEN, "ix_outcomes_heard"),
            (FORGOTTEN, "ix_outcomes_look_at"),
            # Those who wait for something closed are kept apart.
            (READY, "due_at<?"),
            (FIRST_HELD_BY, "ix_agent_leases_held_by"),
            (TO_PROBE, "ix_accounts_held"),
            (TO_CHECK, "ix_accounts_held"),
            (BROKEN_ELSEWHERE, "ix_accounts_held"),
            (NEXT_PROBE, "ix_accounts_held"),
            (IN_ERROR, "ix_agents_error"),
        ):
            sql, constants = statement.compiled(SQLITE)
            given = {**constants, "now": 1, "each": 1, "limit": 1, "account": "a", "worker": "w"}
            for name, value in given.items():
                literal = f"'{value}'" if isinstance(value, str) else str(value)
                sql = sql.replace(f":{name}", literal)
            plan = " ".join(str(row) for row in company.sql(f"EXPLAIN QUERY PLAN {sql}"))
            assert index in plan, plan


@pytest.mark.requirement("HB-29")
def test_what_was_put_off_is_begun_when_its_time_comes(real: Company) -> None:
    dev = program(real, "dev", "exit 0")
    soon = to_iso(real.clock.now() + SECOND // 2)
    part(real, dev, deferred_until=soon)
    assert not is_awake(real, dev)
    at_work(real, over(real, dev))
    assert statuses(real, dev) == ["completed"]


@pytest.mark.requirement("HB-29")
def test_a_start_finds_what_was_left(real: Company) -> None:
    dev = program(real, "dev", "exit 0")
    send(real, real.board, "agent:dev")
    real.sql("DELETE FROM agent_leases")
    at_work(real, over(real, dev))
    assert statuses(real, dev) == ["completed"]


@pytest.mark.requirement("BX-15")
def test_with_nothing_to_do_nothing_is_started(real: Company) -> None:
    dev = program(real, "dev", "exit 0")
    began = real.clock.now()
    at_work(real, lambda: real.clock.now() > began + SECOND, seconds=5)
    assert statuses(real, dev) == []
