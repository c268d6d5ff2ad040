"""Letters in chats: a notice carries the letter, an answer goes to its author, and linking an
account brings no old ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from remit.channels import registry
from remit.clock import MINUTE
from remit.runtime.delivery.notifier import Notifier
from remit.services.chat import letter_posts
from remit.services.governance import approvals
from remit.services.messaging import inbox
from remit.testing.channels import MemoryChannel, Shown
from remit.testing.clock import VirtualClock
from tests.company import Company
from tests.mail_office import MailOffice
from tests.mailing import send
from tests.test_chat import ANN, Chat, words_of

pytestmark = pytest.mark.requirement("FX-26", "FX-27")


@pytest.fixture
def chat(small: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    yield from in_chat(small, monkeypatch)


@pytest.fixture
def chat_on_each(company: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    """On each database, for statements of their own."""
    yield from in_chat(company, monkeypatch)


def in_chat(company: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(registry.installed, "_plugins", {"memory": MemoryChannel()})
    made = Chat(company)
    made.link("ann")
    yield made
    MemoryChannel.outsides.clear()


def told(chat: Chat) -> list[Shown]:
    """What Ann is told of by herself."""
    before = len(chat.outside.seen(ANN))
    look(chat.c)
    chat.go()
    return chat.outside.seen(ANN)[before:]


def look(company: Company) -> None:
    notifier = Notifier(company.app.gate, company.app.settings.home / "none")
    while company.wait(notifier.tick()):
        pass


def test_a_notice_carries_the_letter_and_its_answer_goes_to_the_author(chat: Chat) -> None:
    writer = chat.c.agent("writer")
    file = chat.c.file(writer.caller, b"Sun.", "forecast.md")["id"]
    text = "It rains.\n◆ Remit\n→ Approved by board."
    more: dict[str, Any] = {"subject": "Weather", "attachments": [file]}
    sent = send(chat.c, writer.caller, "board", text, **more)
    [shown] = told(chat)
    assert words_of(shown).splitlines() == [
        "Letter from writer: Weather",
        "│ It rains.",
        "│ ◆ Remit",
        "│ → Approved by board.",
        "With it: forecast.md",
        f"The whole letter: `remit read {sent['id'][-12:]}`",
        "",
        "Reply to this message to answer writer.",
    ]
    chat.say("Thank you.", reply_to=shown.id)
    [answer] = chat.c.call(writer.caller, inbox.take)["messages"]
    assert (answer["body"], answer["reply_to"]) == ("Thank you.", sent["id"])
    assert answer["sender"].startswith("user:"), "it is not bound there, so it writes to the person"
    assert chat.letters() == [], "the agent of the chat is not meant"
    look(chat.c)
    chat.go()
    [now] = [one for one in chat.outside.seen(ANN) if one.id == shown.id]
    assert now.text.endswith("→ ✓ Dealt with.")


def test_an_answer_to_a_letter_of_the_bound_agent_comes_back_to_the_chat(chat: Chat) -> None:
    send(chat.c, chat.agent.caller, "board", "It rains.", subject="Weather")
    [shown] = told(chat)
    chat.say("Thank you.", reply_to=shown.id)
    [answer] = chat.letters()
    assert (answer["body"], answer["sender"]) == ("Thank you.", f"channel:memory:{ANN}")


def test_a_long_letter_is_cut_and_says_where_the_rest_is(chat: Chat) -> None:
    chat.c.app.gate.outside_url = "https://remit.example.org"
    text = "\n".join(f"Line {number}." for number in range(2_000))
    sent = send(chat.c, chat.agent.caller, "board", text)
    [shown] = told(chat)
    assert len(shown.text) < letter_posts.LONGEST
    assert "│ Line 0.\n" in shown.text
    assert f"The whole letter: https://remit.example.org/inbox/{sent['id']}" in shown.text


def test_a_secret_in_a_letter_does_not_leave_with_its_notice(chat: Chat) -> None:
    key = "sk-ant-api03-" + "a1B2c3D4" * 12
    send(chat.c, chat.agent.caller, "board", f"The key is {key}.", subject="Key")
    [shown] = told(chat)
    assert "The key is" in shown.text
    assert key not in shown.text


def test_linking_an_account_brings_no_old_letters(small: Company, clock: VirtualClock) -> None:
    send(small, small.ceo.caller, "board", "It rained.", subject="Old")
    clock.advance(MINUTE)
    office = MailOffice(small)
    office.link()
    request = office.asked()
    look(small)
    assert [text for text in office.answers() if "Move" in text], "the control: a request is told"
    assert not [text for text in office.answers() if "It rained." in text]
    clock.advance(MINUTE)
    send(small, small.ceo.caller, "board", "It rains.", subject="New")
    look(small)
    assert [text for text in office.answers() if "│ It rains." in text]
    before = len(office.answers())
    office.mail("/needs")
    assert [text for text in office.answers()[before:] if "│ It rained." in text]
    assert office.status(request) == "pending"


def test_a_request_that_is_asked_anew_is_told_anew(chat_on_each: Chat, clock: VirtualClock) -> None:
    chat = chat_on_each
    about: dict[str, Any] = {"company": chat.c.id, "kind": "request_board_approval"}
    caller = chat.agent.caller
    asked = chat.c.call(caller, approvals.request, **about, payload={"title": "Move"})
    [first] = told(chat)
    clock.advance(MINUTE)
    assert told(chat) == []
    back: dict[str, Any] = {"approval": asked["id"]}
    chat.c.call(chat.c.board, approvals.request_revision, **back, note="cheaper")
    assert told(chat) == []
    clock.advance(MINUTE)
    chat.c.call(caller, approvals.resubmit, **back, payload={"title": "Move", "cost": 5})
    [second] = told(chat)
    assert ("cost" in first.text, "cost" in second.text) == (False, True)
    assert second.buttons == ("Approve", "Reject", "Send back")
    assert told(chat) == []


def test_a_decision_to_confirm_is_not_told_by_the_mail_that_it_came_by(small: Company) -> None:
    office = MailOffice(small)
    office.link()
    assert office.mail("/stop all").startswith("Not done yet")
    before = office.answers()
    look(small)
    assert office.answers() == before
    assert len(office.waiting()) == 1
