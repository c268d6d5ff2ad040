"""What awaits a person, in one list; and what agents left open, themselves or below."""

from typing import Any

import pytest

from remit.clock import HOUR, MINUTE, to_iso
from remit.services.identity import Caller
from remit.services.messaging import pending_items, questions, schedules
from remit.services.organisation import agents
from remit.services.people import users
from remit.services.record import events
from remit.services.screens import needs_you
from remit.services.work import outcomes, submitting
from remit.testing.clock import VirtualClock
from tests.budgeting import set_budget, spend
from tests.company import Company, Member
from tests.governance import ask, reject
from tests.mailing import ack, end, look, send, take, unread
from tests.organisation import refusal, work

#: For rules that no database has a part in.
rules = pytest.mark.parametrize("company", ["sqlite"], indirect=True)


def needs(at: Company, caller: Caller, /, **more: Any) -> list[tuple[str, str]]:
    found = at.call(caller, needs_you.listing, **more)
    return [(one["kind"], one["title"]) for one in found]


def fail(company: Company, member: Member, times: int = 1) -> None:
    for _ in range(times):
        run = company.run(member)
        take(company, run)
        end(company, run, "failed", fault="message")


@pytest.mark.requirement("BX-18", "AG-86")
def test_everything_that_awaits_a_person_is_in_one_list_oldest_first(
    company: Company, clock: VirtualClock
) -> None:
    worker, spender = company.agent("worker"), company.agent("spender")
    alone = company.agent("alone", None, title="Alone")
    assert needs(company, company.board) == []
    send(company, company.ceo.caller, "agent:worker", "poison", subject="Poison")
    clock.advance(MINUTE)
    company.call(worker.caller, questions.ask, question="May I?", to="board")
    clock.advance(MINUTE)
    send(company, worker.caller, "board", "It rains.", subject="Weather")
    clock.advance(MINUTE)
    fail(company, worker, 3)
    clock.advance(MINUTE)
    send(company, worker.caller, "board", "It pours.")
    clock.advance(MINUTE)
    wish = ask(company, worker.caller, "A second desk")
    clock.advance(MINUTE)
    set_budget(company, spender, tokens=10)
    send(company, company.ceo.caller, "agent:spender", "Please do it.")
    run = company.run(spender)
    take(company, run)
    spend(company, run, 11)
    end(company, run, "failed", exit_reason="budget", error="used up", tokens_in=11)
    clock.advance(MINUTE)
    company.call(alone.caller, submitting.submit, outcome=alone.id, note="Done.")
    assert needs(company, company.board) == [
        ("question", "May I?"),
        ("mail", "Weather"),
        ("dead_letter", "Poison"),
        ("mail", "Letter from worker"),
        ("approval", "A second desk"),
        ("budget_stop", "The budget of spender is used up (tokens)"),
        ("submission", "What alone is for"),
    ]
    ids = {one["title"]: one for one in company.call(company.board, needs_you.listing)}
    assert ids["May I?"]["agent_id"] == worker.id
    assert ids["Weather"]["since"] == to_iso(clock.now() - 5 * MINUTE)
    # Each goes when it is dealt with.
    company.call(company.board, questions.answer, question=ids["May I?"]["id"], answer="Yes.")
    ack(company, company.board, *unread(company, company.board))
    company.call(company.board, pending_items.discard, message=ids["Poison"]["id"])
    reject(company, wish)
    set_budget(company, spender, tokens=None)
    run = company.run(spender)
    take(company, run)
    end(company, run)
    company.call(company.board, outcomes.complete, outcome=alone.id)
    assert needs(company, company.board) == []


@pytest.mark.requirement("BX-18")
def test_each_person_sees_their_part(company: Company) -> None:
    a, b = company.agent("a"), company.agent("b")
    below = company.agent("below", "a")
    over_a = company.user("over-a", scope="a")
    over_b = company.user("over-b", scope="b")
    watcher = company.user("watcher", role="observer")
    for member in (a, b, below):
        send(company, company.board, f"agent:{member.name}", "poison", subject=member.name)
        fail(company, member, 3)
        company.call(member.caller, questions.ask, question=f"{member.name}?", to="board")
        send(company, member.caller, "board", "news", subject=f"{member.name}!")
    send(company, company.board, "user:watcher", "hello", subject="Hello")

    def expected(*names: str) -> set[tuple[str, str]]:
        return {
            item
            for name in names
            for item in (
                ("mail", f"{name}!"),
                ("question", f"{name}?"),
                ("dead_letter", name),
            )
        }

    assert set(needs(company, company.board)) == expected("a", "b", "below")
    assert set(needs(company, over_a)) == expected("a", "below")
    assert set(needs(company, over_b)) == expected("b")
    assert needs(company, watcher) == [("mail", "Hello")]
    assert refusal(company, a.caller, needs_you.listing) == "invalid"


@pytest.mark.requirement("BX-18")
def test_the_list_covers_all_companies_of_a_person(company: Company) -> None:
    neighbour = company.second_company()
    company.call(
        company.board, users.add, company=neighbour.id, name="auditor", role="board", scope=None
    )
    auditor = company.user("auditor-2")
    send(company, company.ceo.caller, "board", "here", subject="Here")
    send(company, neighbour.agent.caller, "board", "there", subject="There")
    both = company.call(company.board, needs_you.listing)
    assert {(one["title"], one["company_id"]) for one in both} == {
        ("Here", company.id),
        ("There", neighbour.id),
    }
    assert needs(company, company.board, company=company.id) == [("mail", "Here")]
    assert needs(company, company.board, company=neighbour.id) == [("mail", "There")]
    assert needs(company, auditor) == [("mail", "Here")]
    assert needs(company, neighbour.board) == [("mail", "There")]
    assert refusal(company, neighbour.board, needs_you.listing, company=company.id) == "not_found"


@pytest.mark.requirement("HH-38")
def test_loose_ends_are_ones_own_and_of_everybody_below(
    company: Company, clock: VirtualClock
) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    worker = company.agent("worker", "lead")
    chief = company.user("chief", scope="lead")
    later = to_iso(clock.now() + HOUR)
    for member in (company.ceo, lead, peer, worker):
        company.call(member.caller, questions.ask, question=f"{member.name}?", to="board")
        company.call(member.caller, schedules.add, body="x", at=later)
        send(company, member.caller, f"agent:{member.name}", "later", deliver_at=later)
    send(company, lead.caller, "agent:worker", "poison")
    fail(company, worker, 3)

    def ends(caller: Caller, **more: Any) -> set[tuple[str, str]]:
        found = company.call(caller, pending_items.loose_ends, **more)["loose_ends"]
        names = {member.id: member.name for member in (company.ceo, lead, peer, worker)}
        return {(names[one["agent_id"]], one["kind"]) for one in found}

    def of(*names: str) -> set[tuple[str, str]]:
        kinds = ("question", "schedule", "deferred_mail")
        dead = {("worker", "dead_letter")} if "worker" in names else set()
        return {(name, kind) for name in names for kind in kinds} | dead

    assert ends(worker.caller) == of("worker")
    assert ends(lead.caller) == ends(chief, agent="lead") == of("lead", "worker")
    assert ends(company.ceo.caller) == of("ceo", "lead", "peer", "worker")
    assert ends(company.ceo.caller, agent="lead") == of("lead", "worker")
    assert refusal(company, lead.caller, pending_items.loose_ends, agent="peer") == "not_found"
    assert refusal(company, worker.caller, pending_items.loose_ends, agent="lead") == "not_found"
    assert refusal(company, chief, pending_items.loose_ends, agent="peer") == "outside_scope"
    # Whatever is listed can be cancelled by whom it is listed for.
    listed = company.call(lead.caller, pending_items.loose_ends)["loose_ends"]
    for one in listed:
        if one["kind"] != "dead_letter":
            company.call(lead.caller, pending_items.cancel, thread=one["id"])
    assert ends(lead.caller) == {("worker", "dead_letter")}


@pytest.mark.requirement("HH-38")
@rules
def test_a_dead_letter_is_revived_from_above_and_not_by_its_receiver(company: Company) -> None:
    company.agent("lead")
    worker = company.agent("worker", "lead")
    peer = company.agent("peer")
    sent = send(company, company.board, "agent:worker", "poison")
    fail(company, worker, 3)
    assert (
        refusal(company, worker.caller, pending_items.revive, message=sent["id"]) == "not_below_you"
    )
    assert refusal(company, peer.caller, pending_items.revive, message=sent["id"]) == "not_found"
    company.call(company.ceo.caller, pending_items.revive, message=sent["id"])
    assert [one["attempt"] for one in look(company, worker)] == [1]
    fine = send(company, company.board, "agent:worker", "fine")
    assert refusal(company, company.board, pending_items.discard, message=fine["id"]) == "conflict"


def test_mail_leaves_history_and_the_record_in_order(company: Company, clock: VirtualClock) -> None:
    worker = company.agent("worker")
    task = work(company, worker.caller, worker.id, "A task")
    before = clock.now()
    held = company.call(company.board, events.grants_at, company=company.id, at=to_iso(before))
    clock.advance(HOUR)
    send(company, company.ceo.caller, "agent:worker", "hello")
    run = company.run(worker)
    ack(company, run.caller, *take(company, run))
    end(company, run)
    clock.advance(HOUR)
    send(company, company.ceo.caller, "agent:worker", "hello again")
    then = to_iso(before)
    assert company.call(company.board, events.grants_at, company=company.id, at=then) == held
    assert len(company.call(company.board, events.org_at, company=company.id, at=then)) == 2
    assert company.call(company.board, events.version_at, file=task, at=to_iso(before)) == 1
    shown = company.call(company.board, outcomes.show, outcome=task)
    assert (shown["status"], shown["version"]) == ("open", 1)
    company.call(company.board, agents.terminate, agent="worker")
    assert company.call(company.board, events.verify, company=company.id)["ok"]


def test_mail_for_a_seat_awaits_the_person_who_holds_it(company: Company) -> None:
    person = company.user("sam", "observer")
    desk = company.agent("desk", adapter_type="human")
    other = company.agent("other", adapter_type="human")
    ((sam,),) = company.sql("SELECT id FROM users WHERE name = 'sam'")
    company.sql("UPDATE agents SET seat_user_id = ? WHERE id = ?", sam, desk.id)
    send(company, company.board, "agent:desk", "text", subject="For the desk")
    send(company, company.board, "agent:other", "text", subject="For the other")
    assert needs(company, person) == [("mail", "For the desk")]
    ack(company, desk.caller, *look(company, desk))
    assert needs(company, person) == []
    assert look(company, other)
