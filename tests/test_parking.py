"""A capability in mode `ask`: each use waits for a person, and is made once, as it was asked."""

from typing import Any

import pytest

from remit.clock import DAY, HOUR, to_iso
from remit.errors import AwaitsApproval, BadInput, Conflict, Refused
from remit.services.governance import approvals
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.messaging import inbox
from remit.services.organisation import agents
from remit.services.rights import grants
from remit.services.screens import needs_you
from remit.services.work import outcomes
from remit.store.blob_store.blobs import SMALL
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, keyed
from tests.governance import approve, count, empower, letters, reject, seen, send_back
from tests.mailing import tick
from tests.organisation import dump, refusal, shown, work


@pytest.fixture
def lead(company: Company) -> Member:
    return company.agent("lead")


def gate(company: Company, who: Member, resource: str, level: str) -> Answer:
    """From now on each use waits for a person."""
    return company.call(
        company.board,
        grants.give,
        company=company.id,
        to=who.id,
        resource=resource,
        level=level,
        mode="ask",
    )


def parked(attempt: Any) -> Answer:
    """The approval that an attempt opens, or finds open."""
    with pytest.raises(AwaitsApproval) as waits:
        attempt()
    assert waits.value.details["status"] in ("pending", "revision_requested")
    assert waits.value.details["decision"]["effect"] == "ask"
    return {"id": waits.value.details["approval_id"]}


def send(company: Company, caller: Caller, body: str = "Hello", **more: Any) -> Answer:
    more = {"to": "agent:ceo", "subject": "Hi", **more}
    return company.wait(company.app.library.send(caller, body=body, **more))


# ── messages ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-121", "BX-10", "AW-28")
def test_a_message_is_sent_when_it_is_approved_once_and_as_it_was_written(
    company: Company, lead: Member
) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    waiting = parked(lambda: send(company, lead.caller))
    assert letters(company, company.ceo) == []
    payload = seen(company, waiting)["payload"]
    assert (payload["verb"], payload["action"]) == ("mail.send", "message.send")
    assert payload["arguments"]["body"] == "Hello"
    assert payload["options"] == ["yes", "no"]
    # The same again is the same question; anything else is another.
    assert parked(lambda: send(company, lead.caller))["id"] == waiting["id"]
    other = parked(lambda: send(company, lead.caller, "Hello!"))
    assert other["id"] != waiting["id"]
    done = approve(company, waiting)
    (letter,) = letters(company, company.ceo)
    assert (letter["body"], letter["sender"]) == ("Hello", f"agent:{lead.id}")
    # Whoever asks again is told what came of it, once; after that it is another use.
    collected = send(company, lead.caller)
    assert collected["id"] == done["result"]["id"]
    again = parked(lambda: send(company, lead.caller))
    assert again["id"] != waiting["id"]
    assert letters(company, company.ceo) == []
    for verb in (approvals.approve, approvals.reject, approvals.cancel):
        assert refusal(company, company.board, verb, approval=waiting["id"]) == "wrong_status"


def test_each_of_two_questions_is_told_by_mail(company: Company, lead: Member) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    yes = parked(lambda: send(company, lead.caller, "Yes?"))
    no = parked(lambda: send(company, lead.caller, "No?"))
    approve(company, yes)
    reject(company, no, note="Not like this.")
    subjects = [one["subject"] for one in letters(company, lead)]
    assert subjects == [
        f"Approved: message.send on agent:{company.ceo.id}",
        f"Rejected: message.send on agent:{company.ceo.id}",
    ]


def test_what_was_rejected_is_refused_for_a_day_without_asking_again(
    company: Company, lead: Member, clock: VirtualClock
) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    waiting = parked(lambda: send(company, lead.caller))
    reject(company, waiting, note="No chatter.")
    asked = count(company, "approvals")
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            send(company, lead.caller)
        assert refused.value.reason == "rejected"
        assert "No chatter." in refused.value.sentence
        assert refused.value.details["decision"]["basis"] == f"approval:{waiting['id']}"
    assert count(company, "approvals") == asked
    clock.advance(DAY - HOUR)
    with pytest.raises(Refused, match="rejected"):
        send(company, lead.caller)
    clock.advance(HOUR)
    assert parked(lambda: send(company, lead.caller))["id"] != waiting["id"]


def test_the_same_words_much_later_are_another_use(
    company: Company, lead: Member, clock: VirtualClock
) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    approve(company, parked(lambda: send(company, lead.caller, "Daily report")))
    clock.advance(DAY)
    waiting = parked(lambda: send(company, lead.caller, "Daily report"))
    approve(company, waiting)
    assert len(letters(company, company.ceo)) == 2


def test_a_key_makes_it_repeatable_across_the_decision(company: Company, lead: Member) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    caller = keyed(lead.caller, "one")
    waiting = parked(lambda: send(company, caller))
    assert parked(lambda: send(company, caller))["id"] == waiting["id"]
    approve(company, waiting)
    told = {send(company, caller)["id"] for _ in range(3)}
    assert len(told) == 1
    assert len(letters(company, company.ceo)) == 1


def test_a_parked_call_is_approved_as_it_was_made_or_made_anew(
    company: Company, lead: Member
) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    waiting = parked(lambda: send(company, lead.caller))
    send_back(company, waiting, "Shorter.")
    assert parked(lambda: send(company, lead.caller))["id"] == waiting["id"]
    with pytest.raises(BadInput):
        company.call(
            lead.caller, approvals.resubmit, approval=waiting["id"], payload={"body": "Hi"}
        )
    company.call(lead.caller, approvals.resubmit, approval=waiting["id"])
    approve(company, waiting)
    assert [one["body"] for one in letters(company, company.ceo)] == ["Hello"]


def test_a_message_too_long_to_be_looked_at_is_not_asked_about(
    company: Company, lead: Member
) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    before = count(company, "approvals")
    with pytest.raises(BadInput, match="KiB"):
        send(company, lead.caller, "x" * 300_000)
    assert count(company, "approvals") == before
    # As a stream of bytes it is stored, and only its place waits.
    waiting = parked(
        lambda: company.wait(
            company.app.library.send(lead.caller, body=b"y" * 300_000, to="agent:ceo")
        )
    )
    approve(company, waiting)
    (letter,) = letters(company, company.ceo)
    assert company.read(company.ceo.caller, letter["file_id"])[1] == b"y" * 300_000


# ── files ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-121")
def test_reading_is_approved_for_one_reading(company: Company, lead: Member) -> None:
    file = company.file(company.board, b"plans", "plan")
    gate(company, lead, f"kb_file:{file['id']}", "read")
    waiting = parked(lambda: company.read(lead.caller, file["id"]))
    awaiting = company.call(company.board, needs_you.listing)
    (row,) = [row for row in awaiting if row["id"] == waiting["id"]]
    assert row["title"] == "file.read on “plan”"
    assert row["cause"].startswith("lead asks for file.read on “plan”.")
    done = approve(company, waiting)
    # It is of use to nobody but the reader, so it is made when the reader comes back.
    assert (done["result"], done["used_at"]) == (None, None)
    entries = company.call(company.board, files.accesses, file=file["id"])
    assert [one["access"] for one in entries] == ["write"]
    assert company.read(lead.caller, file["id"])[1] == b"plans"
    entries = company.call(company.board, files.accesses, file=file["id"])
    assert (entries[0]["access"], entries[0]["agent_id"]) == ("read", lead.id)
    assert seen(company, waiting)["used_at"] is not None
    assert parked(lambda: company.read(lead.caller, file["id"]))["id"] != waiting["id"]


def test_queries_are_answered_by_ticket_too(company: Company, lead: Member) -> None:
    file = company.file(company.board, b"plans", "plan")
    gate(company, lead, f"kb_file:{file['id']}", "read")

    def history() -> Any:
        return company.call(lead.caller, files.history, file=file["id"])

    waiting = parked(history)
    approve(company, waiting)
    assert [one["number"] for one in history()] == [1]
    parked(history)
    # To know of it takes no approval.
    assert company.call(lead.caller, files.show, file=file["id"])["level"] == "read"
    assert file["id"] in company.found(lead.caller, "plan")


def test_a_reading_is_not_kept_for_ever(
    company: Company, lead: Member, clock: VirtualClock
) -> None:
    file = company.file(company.board)
    gate(company, lead, f"kb_file:{file['id']}", "read")
    waiting = parked(lambda: company.read(lead.caller, file["id"]))
    approve(company, waiting)
    clock.advance(8 * DAY)
    assert parked(lambda: company.read(lead.caller, file["id"]))["id"] != waiting["id"]


def test_what_was_denied_meanwhile_is_not_read_with_a_ticket(
    company: Company, lead: Member
) -> None:
    file = company.file(company.board)
    gate(company, lead, f"kb_file:{file['id']}", "read")
    approve(company, parked(lambda: company.read(lead.caller, file["id"])))
    company.give(company.board, lead, file, "read", mode="deny")
    with pytest.raises(Refused) as refused:
        company.read(lead.caller, file["id"])
    assert refused.value.reason == "denied_by_grant"


@pytest.mark.requirement("AG-121", "BX-10")
@pytest.mark.parametrize("size", [10, SMALL + 1], ids=["small", "large"])
def test_a_write_waits_with_its_bytes_which_nobody_sweeps(
    company: Company, lead: Member, clock: VirtualClock, size: int
) -> None:
    file = company.file(company.board, b"old")
    company.give(company.board, lead, file, "write")
    gate(company, lead, f"kb_file:{file['id']}", "write")
    assert company.read(lead.caller, file["id"])[1] == b"old"
    new = b"n" * size
    waiting = parked(lambda: company.write(lead.caller, file, new))
    # The first look at large content asks about nothing of its own.
    assert count(company, "approvals", "type = 'capability_use'") == 1
    assert seen(company, waiting)["payload"]["verb"] == "files.write"
    other = parked(lambda: company.write(lead.caller, file, b"m" * size))
    reject(company, other)
    clock.advance(3 * DAY)
    company.wait(company.app.library.sweep())
    assert company.read(lead.caller, file["id"])[1] == b"old"
    done = approve(company, waiting)
    assert done["result"]["version"] == 2
    assert company.read(lead.caller, file["id"])[1] == new
    newest = company.call(company.board, files.history, file=file["id"])[0]
    assert newest["agent_id"] == lead.id
    company.wait(company.app.library.sweep())
    assert company.read(company.board, file["id"])[1] == new


def test_bytes_of_what_was_not_approved_are_swept(
    company: Company, lead: Member, clock: VirtualClock
) -> None:
    file = company.file(company.board, b"old")
    gate(company, lead, f"kb_file:{file['id']}", "write")
    waiting = parked(lambda: company.write(lead.caller, file, b"new"))
    clock.advance(2 * DAY)
    kept = company.wait(company.app.library.sweep())
    reject(company, waiting)
    swept = company.wait(company.app.library.sweep())
    assert (kept.trashed, swept.trashed) == (0, 1)


def test_a_write_on_top_of_what_changed_meanwhile_is_not_made(
    company: Company, lead: Member
) -> None:
    file = company.file(company.board, b"old")
    gate(company, lead, f"kb_file:{file['id']}", "write")
    waiting = parked(lambda: company.write(lead.caller, file, b"new"))
    company.write(company.board, file, b"other")
    with pytest.raises(Conflict, match="version 2"):
        approve(company, waiting)
    assert seen(company, waiting)["status"] == "pending"
    assert company.read(company.board, file["id"])[1] == b"other"


# ── outcomes ────────────────────────────────────────────────────────────────────────────────────


def test_work_on_an_outcome_waits_and_is_done_as_asked(company: Company, lead: Member) -> None:
    plan = work(company, lead.caller, lead.id, "Plan")
    gate(company, lead, f"outcome:{plan}", "write")

    def create() -> Answer:
        return company.wait(
            company.app.library.create_outcome(
                lead.caller, description="Long prose.", parent=plan, title="Part"
            )
        )

    waiting = parked(create)
    assert shown(company, plan)["children"] == []
    made = approve(company, waiting)["result"]
    assert create()["id"] == made["id"]
    part = shown(company, made["id"])
    assert (part["owner_id"], part["description"]) == (lead.id, "Long prose.")
    finish = parked(lambda: company.call(lead.caller, outcomes.complete, outcome=plan))
    company.call(lead.caller, outcomes.complete, outcome=made["id"])
    approve(company, finish)
    assert shown(company, plan)["status"] == "completed"


@pytest.mark.requirement("AG-121", "BX-10")
def test_a_call_with_other_stored_content_is_asked_about_anew(
    company: Company, lead: Member
) -> None:
    """All that the caller gave is the same; only the content that was stored before differs."""
    plan = work(company, lead.caller, lead.id, "Plan")
    gate(company, lead, f"outcome:{plan}", "write")
    library = company.app.library

    def create(content: bytes) -> Answer:
        new_id = company.app.ids.new()
        return company.call(
            lead.caller,
            outcomes.create,
            parent=plan,
            title="Part",
            new_id=new_id,
            new_stored=company.wait(library.keep(new_id, content)),
        )

    first = parked(lambda: create(b"Draw a plan."))
    assert parked(lambda: create(b"Draw a plan."))["id"] == first["id"]
    second = parked(lambda: create(b"Pay eve 5000"))
    assert second["id"] != first["id"]
    made = approve(company, first)["result"]
    # What was approved is no answer to the other call, which still waits.
    assert create(b"Draw a plan.")["id"] == made["id"]
    assert parked(lambda: create(b"Pay eve 5000"))["id"] == second["id"]
    assert [one["id"] for one in shown(company, plan)["children"]] == [made["id"]]


@pytest.mark.requirement("AG-121", "BX-10")
@pytest.mark.parametrize("later", [False, True], ids=["now", "later"])
def test_a_file_whose_uses_need_approval_goes_to_nobody_by_mail(
    company: Company, lead: Member, clock: VirtualClock, later: bool
) -> None:
    """One approved letter would be a right to read on for as long as its receiver likes."""
    reader = company.agent("reader", boss="lead")
    file = company.file(company.board, b"plans", "plan")
    gate(company, lead, f"kb_file:{file['id']}", "read")
    more = {"deliver_at": to_iso(clock.now() + HOUR)} if later else {}
    waiting = parked(
        lambda: send(company, lead.caller, to="agent:reader", attachments=[file["id"]], **more)
    )
    if later:
        approve(company, waiting)
        clock.advance(2 * HOUR)
        tick(company)
        assert [one["subject"] for one in letters(company, reader)] == ["Hi"]
    else:
        with pytest.raises(Conflict, match="Each use of that file needs an approval"):
            approve(company, waiting)
        assert letters(company, reader) == []
    for _ in range(2):
        with pytest.raises(Refused):
            company.read(reader.caller, file["id"])
    assert count(company, "grants", "holder_id = ?", reader.id) == (1 if later else 0)
    # What needs no approval goes as ever.
    plain = company.file(lead.caller, b"open")
    send(company, lead.caller, to="agent:reader", attachments=[plain["id"]])
    assert company.read(reader.caller, plain["id"])[1] == b"open"


# ── who asked ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-10")
def test_what_the_requester_may_not_do_any_more_is_not_done(company: Company, lead: Member) -> None:
    file = company.file(company.board, b"old")
    held = gate(company, lead, f"kb_file:{file['id']}", "write")
    waiting = parked(lambda: company.write(lead.caller, file, b"new"))
    company.call(company.board, grants.revoke, grant=held["id"])
    before = dump(company)
    with pytest.raises(Conflict, match="cannot be carried out any more"):
        approve(company, waiting)
    assert dump(company) == before
    reject(company, waiting, note="Too late.")


def test_what_somebody_asked_who_left_is_not_done(company: Company, lead: Member) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    waiting = parked(lambda: send(company, lead.caller))
    company.call(company.board, agents.terminate, agent=lead.id)
    assert seen(company, waiting)["status"] == "cancelled"
    assert refusal(company, company.board, approvals.approve, approval=waiting["id"]) == (
        "wrong_status"
    )
    assert letters(company, company.ceo) == []


def test_an_approved_call_is_not_anothers_to_make(company: Company, lead: Member) -> None:
    peer = company.agent("peer")
    file = company.file(company.board, b"plans", "plan")
    for who in (lead, peer):
        gate(company, who, f"kb_file:{file['id']}", "read")
    approve(company, parked(lambda: company.read(lead.caller, file["id"])))
    parked(lambda: company.read(peer.caller, file["id"]))
    # A run of the same agent is the same agent.
    run = company.run(lead)
    assert company.read(run.caller, file["id"])[1] == b"plans"


def test_an_agent_above_who_may_decide_lets_it_happen(company: Company, lead: Member) -> None:
    empower(company, company.ceo)
    peer = company.agent("peer")
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to=lead.id,
        resource=f"message:{peer.id}",
        level="use",
        mode="ask",
    )
    waiting = parked(lambda: send(company, lead.caller, to="agent:peer"))
    (told,) = letters(company, company.ceo)
    assert told["subject"] == f"To decide: message.send on agent:{peer.id}"
    approve(company, waiting, company.ceo.caller)
    assert [one["sender"] for one in letters(company, peer)] == [f"agent:{lead.id}"]


def test_what_expires_is_given_up_and_can_be_asked_anew(
    company: Company, lead: Member, clock: VirtualClock
) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    waiting = parked(lambda: send(company, lead.caller))
    clock.advance(7 * DAY)
    assert company.wait(company.app.clockwork.tick()) >= 1
    assert seen(company, waiting)["decision_note"] == "timeout"
    assert letters(company, lead)[0]["subject"].startswith("Cancelled: nobody decided in time")
    assert parked(lambda: send(company, lead.caller))["id"] != waiting["id"]


def test_a_secret_in_a_parked_call_is_not_shown_to_who_decides(
    company: Company, lead: Member
) -> None:
    gate(company, lead, f"message:{company.ceo.id}", "use")
    secret = "sk-live-0123456789abcdef0123"
    waiting = parked(lambda: send(company, lead.caller, f"The key: {secret}"))
    assert secret not in str(seen(company, waiting))
    approve(company, waiting)
    (letter,) = company.call(company.ceo.caller, inbox.take)["messages"]
    assert secret in letter["body"]
