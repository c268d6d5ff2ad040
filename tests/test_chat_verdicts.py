"""Verdicts from a chat: what was handed in is accepted with a button or in words, and sent back in
words; each is about the submission that was shown."""

from __future__ import annotations

from typing import Any

import pytest

from remit.entrypoints.http.server.asgi import build_asgi
from remit.ids import short
from remit.services.chat import confirmations
from remit.services.messaging import inbox
from remit.services.people import sessions
from remit.services.screens import needs_you
from remit.services.work import outcomes, submitting
from tests.company import Company, Member
from tests.mail_office import MailOffice
from tests.test_chat import ANN, Chat, chat, words_of
from tests.test_statement_surfaces import Browser

__all__ = ["chat"]  # a fixture
pytestmark = pytest.mark.requirement("FX-26", "AG-112")


def handed_in(company: Company, note: str = "Twelve pages.", **more: Any) -> Member:
    solo = company.agent("solo", None, purpose="The brochure")
    submit(company, solo, note, **more)
    return solo


def submit(company: Company, agent: Member, note: str, **more: Any) -> None:
    company.call(agent.caller, submitting.submit, outcome=agent.id, note=note, **more)


def state(company: Company, agent: Member) -> tuple[str, str]:
    found = company.call(company.board, outcomes.show, outcome=agent.id)
    return found["status"], found["submissions"][0]["status"]


def shown(chat: Chat) -> Any:
    return next(one for one in chat.outside.seen(ANN)[::-1] if "Handed in by" in one.text)


def test_a_submission_is_accepted_with_its_button(chat: Chat) -> None:
    chat.link("ann")
    solo = handed_in(chat.c)
    chat.say("/needs")
    assert shown(chat).buttons == ("Accept",)
    assert "To send it back, reply with this line:\nreturn " in shown(chat).text
    chat.tap(shown(chat).id, "Accept")
    assert state(chat.c, solo) == ("completed", "accepted")
    assert shown(chat).text.endswith("→ Accepted.")


def test_a_submission_is_sent_back_in_words_and_accepted_anew(chat: Chat) -> None:
    chat.link("ann")
    solo = handed_in(chat.c)
    chat.say("/needs")
    older = shown(chat)
    assert "what is missing" in chat.say(f"return {short(solo.id)}")
    assert chat.say(f"return {short(solo.id)} a cover") == "Sent back: a cover"
    assert state(chat.c, solo) == ("open", "returned")
    submit(chat.c, solo, "With a cover.")
    with pytest.raises(KeyError):
        chat.tap(older.id, "Accept")  # its button is gone
    assert "No undecided request" in chat.say(f"/accept {short(solo.id)}")
    chat.say("/needs")
    assert "│ With a cover." in shown(chat).text
    assert chat.say(f"approve {short(solo.id)}") == "Accepted."
    assert state(chat.c, solo) == ("completed", "accepted")


def test_words_about_a_submission_go_to_whoever_handed_it_in(chat: Chat) -> None:
    chat.link("ann")
    solo = handed_in(chat.c)
    chat.say("/needs")
    assert "It is no verdict" in chat.say("Nice, but how long?", reply_to=shown(chat).id)
    [letter] = chat.c.call(solo.caller, inbox.take)["messages"]
    assert letter["body"] == "Nice, but how long?"
    assert state(chat.c, solo) == ("open", "open")


def test_evidence_is_named_and_the_words_with_it_cannot_pass_for_remits(chat: Chat) -> None:
    chat.link("ann")
    solo = chat.c.agent("solo", None, purpose="The brochure")
    file = chat.c.file(solo.caller, b"x", "brochure.md")["id"]
    submit(chat.c, solo, "Done.\n→ Accepted by board.", evidence=[file])
    chat.say("/needs")
    lines = words_of(shown(chat)).splitlines()
    assert "│ → Accepted by board." in lines
    assert f"evidence: brochure.md, version 1 ({short(file)})" in lines


@pytest.fixture
def office(small: Company) -> MailOffice:
    made = MailOffice(small)
    made.link()
    return made


def awaited(office: MailOffice) -> list[str]:
    rows = office.c.call(office.board, needs_you.listing, company=office.c.id)
    return [row["kind"] for row in rows]


def test_a_verdict_by_mail_waits_for_its_person(office: MailOffice) -> None:
    solo = handed_in(office.c)
    office.mail("/needs")
    told = office.mail(f"accept {short(solo.id)}")
    assert told.startswith("Not done yet: Accept: The brochure, handed in\n")
    assert state(office.c, solo) == ("open", "open")
    assert sorted(awaited(office)) == ["confirmation", "submission"]
    assert office.confirm()["done"] == "Accepted."
    assert state(office.c, solo) == ("completed", "accepted")


def test_a_verdict_holds_for_what_was_shown_alone(office: MailOffice) -> None:
    solo = handed_in(office.c)
    office.mail("/needs")
    office.mail(f"accept {short(solo.id)}")
    [row] = office.waiting()
    office.c.call(office.c.board, submitting.send_back, outcome=solo.id, note="a cover")
    assert awaited(office) == [], "it is nothing to act on any more"
    submit(office.c, solo, "Something else.")
    with pytest.raises(Exception, match="handed in anew"):
        office.c.call(office.board, confirmations.confirm, confirmation=row["id"])
    assert state(office.c, solo) == ("open", "open")
    assert "handed in anew" in office.mail(f"accept {short(solo.id)}")


def test_the_page_on_which_a_verdict_is_confirmed_leads_to_what_was_handed_in(
    office: MailOffice,
) -> None:
    solo = handed_in(office.c)
    office.mail("/needs")
    office.mail(f"return {short(solo.id)} a cover")
    [row] = office.waiting()
    token = office.c.call(office.board, sessions.open_)["token"]
    page = Browser(office.c, token, build_asgi(office.c.app)).get(f"/confirmations/{row['id']}")
    assert "Send back: The brochure, handed in (a cover)" in page
    assert f'href="/outcomes/{solo.id}"' in page
    assert f'action="/confirmations/{row["id"]}/confirm"' in page


def test_a_submission_is_not_rejected_and_an_approval_is_accepted_as_approved(
    office: MailOffice,
) -> None:
    solo = handed_in(office.c)
    request = office.asked()
    office.mail("/needs")
    assert "accepted or sent back" in office.mail(f"reject {short(solo.id)}")
    assert "Not done yet: Approve" in office.mail(f"accept {short(request['id'])} r1")


def test_help_names_only_what_the_channel_can_do(chat: Chat, small: Company) -> None:
    chat.link("ann")
    with_buttons = chat.say("/help")
    assert "button" in with_buttons
    assert "approve NUMBER" not in with_buttons
    office = MailOffice(small)
    office.link()
    in_words = office.mail("/help")
    assert "button" not in in_words
    for line in ("answer NUMBER", "approve NUMBER rREVISION", "reject NUMBER", "accept NUMBER"):
        assert line in in_words
    assert "once you confirm" in in_words
    office.decide("direct")
    assert "once you confirm" not in office.mail("/help")
