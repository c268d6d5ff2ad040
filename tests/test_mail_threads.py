"""Conversations by e-mail: answers keep the subject and the thread, and go to whoever wrote."""

from __future__ import annotations

from typing import Any

import pytest

from remit.channels.contract import Parcel, Undelivered
from remit.channels.email import EmailConfig, composed
from remit.model.messaging.mail import answer_subject
from remit.services.connections import outbox
from remit.services.identity import as_system
from remit.services.messaging import inbox
from tests.company import Company
from tests.email_stage import ANN
from tests.mail_office import MailOffice
from tests.mailing import send

pytestmark = pytest.mark.requirement("FX-24")


@pytest.mark.parametrize(
    ("subject", "answer"),
    [
        ("Landing page", "Re: Landing page"),
        ("Re: Landing page", "Re: Landing page"),
        ("RE: AW: Re[2]: Landing page", "Re: Landing page"),
        ("Regarding: it", "Re: Regarding: it"),
        ("Fwd: it", "Re: Fwd: it"),
        ("", ""),
        ("Re:", ""),
    ],
)
def test_the_subject_of_an_answer_has_one_mark_of_an_answer(subject: str, answer: str) -> None:
    assert answer_subject(subject) == answer


@pytest.fixture
def office(company: Company) -> MailOffice:
    made = MailOffice(company, allow=[])
    made.link()
    return made


def letters(office: MailOffice) -> list[Any]:
    return list(office.c.call(office.c.ceo.caller, inbox.take)["messages"])


def going_out(office: MailOffice) -> list[Any]:
    """The e-mails that are due, as they would be sent."""
    sent = []
    for message, _ in office.c.call(as_system(), outbox.ready):
        claimed = office.c.call(as_system(), outbox.claim, message=message, worker="w")
        assert claimed is not None
        config = EmailConfig.model_validate(claimed["adapter_config"])
        parcel = Parcel(**claimed["parcel"], binding="b", config=config, key=b"", now=0)
        sent.append(composed(parcel))
        about: dict[str, Any] = {"epoch": claimed["epoch"], "outside": str(sent[-1]["Message-ID"])}
        office.c.call(as_system(), outbox.delivered, message=message, **about)
    return sent


def test_answers_of_an_agent_keep_the_thread_of_what_they_answer(office: MailOffice) -> None:
    first = {"Subject": "Invoice", "Message-ID": "<a1@people.example>"}
    office.mail("Where is it?", **first)
    [asked] = letters(office)
    send(office.c, office.c.ceo.caller, asked["sender"], "On its way.", reply_to=asked["id"])
    [sent] = going_out(office)
    assert (sent["Subject"], sent["In-Reply-To"]) == ("Re: Invoice", "<a1@people.example>")
    again = {"Subject": "Re: Invoice", "Message-ID": "<a2@people.example>"}
    office.mail("Thanks.", **again, **{"In-Reply-To": str(sent["Message-ID"])})
    thanks = letters(office)[-1]
    more: dict[str, Any] = {"reply_to": thanks["id"], "subject": "RE: invoice"}
    send(office.c, office.c.ceo.caller, thanks["sender"], "With pleasure.", **more)
    [last] = going_out(office)
    assert last["Subject"] == "Re: Invoice"
    assert last["References"].split() == [
        "<a1@people.example>",
        str(sent["Message-ID"]),
        "<a2@people.example>",
    ]
    assert last.get_content() == "ceo:\nWith pleasure.\n", "its own subject says nothing else"


def test_a_letter_without_a_subject_is_answered_as_before(office: MailOffice) -> None:
    office.mail("Where is it?", Subject="", **{"Message-ID": "<a1@people.example>"})
    [asked] = letters(office)
    send(office.c, office.c.ceo.caller, asked["sender"], "On its way.", reply_to=asked["id"])
    [sent] = going_out(office)
    assert (sent["Subject"], sent["References"]) == ("Re: On its way.", "<a1@people.example>")


def test_an_answer_to_one_person_does_not_open_the_way_to_another(office: MailOffice) -> None:
    """Neither to a stranger, nor is what Ann wrote named to them."""
    office.mail("Where is it?", Subject="Invoice")
    [asked] = letters(office)
    stranger = "channel:email:eve@evil.example"
    send(office.c, office.c.ceo.caller, stranger, "All we know.", reply_to=asked["id"])
    with pytest.raises(Undelivered, match="did not write"):
        going_out(office)
    own = {"reply_to": asked["id"]}
    send(office.c, office.c.ceo.caller, f"channel:email:{ANN}", "On its way.", **own)
    [sent] = going_out(office)
    assert sent["To"] == ANN, "the control: whoever wrote gets the answer"


def test_what_remit_answers_stays_in_the_conversation(office: MailOffice) -> None:
    office.mail("/status", Subject="How is it?")
    [[document]] = office.c.sql(
        "SELECT document FROM channel_posts WHERE document LIKE ?", "%to be read%"
    )
    assert '"title": "Re: How is it?"' in document
