"""Decisions by e-mail: in words, confirmed where the person is signed in, and bound to what they
saw. A mailbox's password is enough to forge an e-mail."""

from __future__ import annotations

from typing import Any

import pytest

from remit.channels import parts
from remit.channels.email import Email
from remit.clock import DAY, HOUR
from remit.errors import BadInput, Conflict, NotFound, Refused
from remit.ids import short
from remit.model.messaging.chat import MAX_PARTS
from remit.services.chat import accounts, confirmations
from remit.services.governance import approvals
from remit.services.identity import as_linked
from remit.services.organisation import halts
from remit.services.people import companies
from remit.services.record import events
from remit.services.screens import needs_you
from remit.testing.clock import VirtualClock
from tests.company import Company
from tests.mail_office import MailOffice
from tests.statement_stage import a_write

#: Room in a part for its author, and for the result.
_ROOM = 40 + 370

pytestmark = pytest.mark.requirement("FX-24")


@pytest.fixture
def office(small: Company) -> MailOffice:
    made = MailOffice(small)
    made.link()
    return made


def named(approval: Any, revision: int = 1) -> str:
    return f"{short(approval['id'])} r{revision}"


def awaited(office: MailOffice) -> list[Any]:
    rows = office.c.call(office.board, needs_you.listing, company=office.c.id)
    return [row for row in rows if row["kind"] == "confirmation"]


def actions(office: MailOffice, prefix: str) -> list[Any]:
    found = office.c.call(office.board, events.listing, company=office.c.id)
    return [event for event in found if event["action"].startswith(prefix)]


def halted(office: MailOffice) -> bool:
    return bool(office.c.call(office.c.board, halts.listing, company=office.c.id))


@pytest.mark.parametrize(
    ("words", "becomes"),
    [
        ("approve {}", "approved"),
        ("/approve {}.", "approved"),
        ("Reject {} too dear", "rejected"),
        ("return {}: say when", "revision_requested"),
    ],
)
def test_a_request_is_decided_in_words_once_its_person_confirms_it(
    office: MailOffice, words: str, becomes: str
) -> None:
    asked = office.asked()
    shown = "\n".join([office.mail("/needs"), *office.answers()])
    assert f"approve {named(asked)}" in shown, "the e-mail says how it is decided"
    answer = office.mail(words.format(named(asked)))
    assert answer.startswith("Not done yet: ")
    assert office.status(asked) == "pending"
    [row] = awaited(office)
    assert short(row["id"]) in answer
    assert "Move" in row["title"]
    done = office.confirm()
    assert office.status(asked) == becomes
    assert (done["ended_why"], awaited(office)) == ("confirmed", [])
    note = {"rejected": "too dear", "revision_requested": "say when"}.get(becomes)
    assert (
        office.c.call(office.board, approvals.show, approval=asked["id"])["decision_note"] == note
    )
    assert (
        actions(office, "confirmation.confirm")[0]["actor"]
        == actions(office, "approval.")[0]["actor"]
    )


def test_a_decision_is_confirmed_once_and_asked_for_once(office: MailOffice) -> None:
    asked, before = office.asked(), len(actions(office, "approval.approve"))
    office.mail("/needs")
    office.mail(f"approve {named(asked)}")
    office.mail(f"approve {named(asked)}")
    [row] = office.waiting()
    confirm: dict[str, Any] = {"confirmation": short(row["id"])}
    office.c.call(office.board, confirmations.confirm, **confirm)
    for again in (confirmations.confirm, confirmations.dismiss):
        with pytest.raises(Conflict, match="confirmed already"):
            office.c.call(office.board, again, confirmation=row["id"])
    assert len(actions(office, "approval.approve")) == before + 1
    assert "No undecided request" in office.mail(f"approve {named(asked)}")


def test_what_was_revised_meanwhile_is_not_decided(office: MailOffice) -> None:
    asked = office.asked()
    office.mail("/needs")
    office.mail(f"approve {named(asked)}")
    [row] = office.waiting()
    office.c.call(office.board, approvals.request_revision, approval=asked["id"])
    changed: dict[str, Any] = {"approval": asked["id"], "payload": {"cost": 7_000_000}}
    office.c.call(office.c.ceo.caller, approvals.resubmit, **changed)
    with pytest.raises(Conflict, match="revised meanwhile"):
        office.c.call(office.board, confirmations.confirm, confirmation=row["id"])
    assert (office.status(asked), awaited(office)) == ("pending", [])
    assert "Send /needs" in office.mail(f"approve {named(asked)}")
    assert office.mail(f"approve {named(asked, 2)}") != "", "it was not shown yet"
    assert len(office.waiting()) == 1
    office.mail("/needs")
    assert office.mail(f"approve {named(asked, 2)}").startswith("Not done yet")


def test_a_decision_that_is_not_confirmed_in_time_is_dropped(
    office: MailOffice, clock: VirtualClock
) -> None:
    asked = office.asked()
    office.mail("/needs")
    office.mail(f"approve {named(asked)}")
    [row] = office.waiting()
    clock.advance(DAY - HOUR)
    assert awaited(office)
    clock.advance(HOUR)
    assert (awaited(office), office.waiting()) == ([], [])
    with pytest.raises(Conflict, match="not confirmed in time"):
        office.c.call(office.board, confirmations.confirm, confirmation=row["id"])
    assert office.status(asked) == "pending"


def test_nobody_else_confirms_a_decision_and_no_chat_account_does(office: MailOffice) -> None:
    asked = office.asked()
    office.mail("/needs")
    office.mail(f"approve {named(asked)}")
    [row] = office.waiting()
    about: dict[str, Any] = {"confirmation": row["id"]}
    bob = office.c.user("Bob")
    [account] = office.c.call(office.board, accounts.mine)
    linked = as_linked(account["id"], office.c.id)
    for caller in (bob, office.c.ceo.caller, linked):
        for verb in (confirmations.confirm, confirmations.dismiss):
            with pytest.raises(NotFound):
                office.c.call(caller, verb, **about)
    assert office.c.call(bob, confirmations.mine) == []
    assert office.status(asked) == "pending"


def test_a_dismissed_decision_does_nothing(office: MailOffice) -> None:
    office.mail("/stop all")
    [row] = office.waiting()
    office.c.call(office.board, confirmations.dismiss, confirmation=row["id"])
    assert not halted(office)
    with pytest.raises(Conflict, match="dismissed already"):
        office.c.call(office.board, confirmations.confirm, confirmation=row["id"])
    assert len(actions(office, "confirmation.dismiss")) == 1


@pytest.mark.parametrize("command", ["/stop", "/stop all", "/go", "/abort", "/new"])
def test_a_command_that_changes_something_waits(office: MailOffice, command: str) -> None:
    if command == "/go":
        office.c.call(office.board, halts.stop, agent=office.c.ceo.id)
    before = halted(office)
    assert office.mail(command).startswith(f"Not done yet: {command} ")
    assert halted(office) is before
    if command in ("/stop", "/stop all", "/go"):
        assert office.confirm()["done"]
        assert halted(office) is not before


def test_talking_by_mail_waits_for_nothing(office: MailOffice) -> None:
    for text in ("/status", "/now", "/needs", "/help", "Please look into it.", "return 123456 now"):
        office.mail(text)
    assert office.waiting() == []


def test_the_board_alone_has_decisions_take_effect_at_once(office: MailOffice) -> None:
    about: dict[str, Any] = {"company": office.c.id, "mail_decisions": "direct"}
    with pytest.raises(Refused):
        office.c.call(office.c.ceo.caller, companies.change, **about)
    asked = office.asked()
    office.mail("/needs")
    office.decide("direct")
    assert "Approved" in office.mail(f"approve {named(asked)}")
    assert (office.status(asked), office.waiting()) == ("approved", [])
    office.mail("/stop all")
    assert halted(office)


@pytest.mark.requirement("FX-61")
def test_only_what_the_mail_showed_whole_is_approved_there(
    office: MailOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = office.asked(title="Move", words="x " * 5_000)
    [shown] = [text for text in _needs(office) if "To decide, reply" in text]
    stated = shown.partition("\n\nTo decide, reply")[0]
    sizes = range(len(stated) // MAX_PARTS, len(shown))
    # A size at which the request fits, and what is said below it does not.
    between = next(size for size in sizes if len(parts.split(stated, size)) <= MAX_PARTS)
    assert len(parts.split(shown, between)) > MAX_PARTS
    for size in (between - 20, between):
        monkeypatch.setattr(Email, "longest_shown", size + _ROOM)
        [cut] = [text for text in _needs(office) if "too long to be shown" in text]
        assert "\napprove " not in cut
        assert "not shown whole" in office.mail(f"approve {named(long)}")
        assert office.waiting() == []
    monkeypatch.undo()
    _needs(office)
    assert office.mail(f"approve {named(long)}").startswith("Not done yet")


def _needs(office: MailOffice) -> list[str]:
    before = len(office.answers())
    office.mail("/needs")
    return office.answers()[before:]


def test_what_is_too_long_for_a_mail_is_rejected_there(
    office: MailOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Email, "longest_shown", 1_000)
    long = office.asked(title="Move", words="x " * 5_000)
    office.mail("/needs")
    assert office.mail(f"reject {named(long)}").startswith("Not done yet")


def test_a_request_is_decided_by_mail_only_where_it_was_shown(office: MailOffice) -> None:
    asked = office.asked()
    assert "No undecided request" in office.mail(f"approve {named(asked)}")
    office.mail("/needs")
    assert "which revision" in office.mail(f"approve {short(asked['id'])}")
    assert "Revision 9" in office.mail(f"approve {named(asked, 9)}")
    assert office.waiting() == []


@pytest.mark.requirement("FX-61")
def test_what_would_be_applied_otherwise_by_now_is_not_approved_in_words(
    office: MailOffice,
) -> None:
    written = a_write(office.c)
    office.mail("/needs")
    [sha] = office.c.sql("SELECT sha256 FROM files WHERE description = 'Rule book'")[0]
    [file] = office.c.sql("SELECT blob_file_id FROM approvals WHERE id = ?", written["id"])[0]
    seen: Any = {"file": file, "version": 1, "sha256": sha}
    office.c.wait(office.c.app.library.write(office.c.board, b"One\nNew\nThree\n", **seen))
    assert "not what would be applied now" in office.mail(f"approve {named(written)}")
    assert office.waiting() == []


@pytest.mark.requirement("FX-61")
def test_what_cannot_be_stated_whole_is_not_approved_in_words(office: MailOffice) -> None:
    written = a_write(office.c)
    [place] = office.c.sql(
        "SELECT blob_file_id, blob_sha256 FROM approvals WHERE id = ?", written["id"]
    )
    office.c.app.library.blobs.discard(*place)
    [shown] = [text for text in _needs(office) if "To decide, reply" in text]
    assert "\napprove " not in shown
    assert "not shown whole" in office.mail(f"approve {named(written)}")
    assert office.waiting() == []


@pytest.mark.requirement("FX-61")
def test_the_title_of_a_request_is_spelled(office: MailOffice) -> None:
    office.asked(title="Move\u3164on⟨U+200B⟩")
    [shown] = [text for text in _needs(office) if "To decide, reply" in text]
    title = shown.partition("\n")[0]
    assert title.endswith(
        "Move⟨U+3164 HANGUL FILLER⟩on⟨U+27E8 MATHEMATICAL LEFT ANGLE BRACKET⟩U+200B⟩"
    )


def test_digits_that_several_requests_begin_with_decide_nothing(office: MailOffice) -> None:
    first, second = office.asked(), office.asked(title="Stay")
    office.mail("/needs")
    digits = first["id"].replace("-", "")[:8]
    assert second["id"].replace("-", "").startswith(digits)
    assert "Give more digits" in office.mail(f"approve {digits} r1")
    assert office.waiting() == []


def test_who_may_not_decide_is_told_so_and_asked_for_nothing(small: Company) -> None:
    office = MailOffice(small)
    office.board = small.user("viewer", "observer")
    office.link()
    assert "Not done yet" not in office.mail("/stop all")
    assert office.waiting() == []


def test_no_account_is_linked_where_nobody_vouches_for_senders(office: MailOffice) -> None:
    with pytest.raises(BadInput, match="cannot prove who speaks"):
        office.code("webhook")


def test_a_code_of_somebody_without_a_part_links_nothing_here(small: Company) -> None:
    office = MailOffice(small)
    office.board = small.second_company().board
    assert "not good here" in office.mail(office.code())
    assert office.waiting() == []


def test_a_forged_mail_in_the_mailbox_decides_nothing_and_is_seen(office: MailOffice) -> None:
    """By APPEND, with the mailbox's password: no header tells it from one that was delivered."""
    asked = office.asked()
    office.mail("/needs")
    office.mail(f"approve {named(asked)}")
    office.mail("/stop all")
    assert (office.status(asked), halted(office)) == ("pending", False)
    assert len(awaited(office)) == 2, "the person sees what was asked in their name"
    assert office.mail("/status") != "", "the control: the sender counts as the person"


def test_an_address_is_linked_when_its_person_confirms_it(small: Company) -> None:
    office = MailOffice(small)
    answer = office.mail(office.code())
    assert answer.startswith("Not done yet: Link Ann <ann@people.example>")
    assert small.call(small.board, accounts.mine) == []
    office.confirm()
    [account] = small.call(small.board, accounts.mine)
    assert account["account"] == "ann@people.example"
    office.decide("direct")
    office.mail(office.code(), sender="Bo <bo@people.example>")
    assert len(small.call(small.board, accounts.mine)) == 2
