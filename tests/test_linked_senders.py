"""Accounts are linked only if their channel is sure of them, with a code for that kind of channel,
and a mailbox vouches for senders in the company that registered it alone."""

from __future__ import annotations

from typing import Any

import pytest

from remit.channels import registry
from remit.channels.contract import Incoming
from remit.channels.slack import SlackConfig, understood
from remit.services.chat import accounts, intake, receivers
from remit.services.connections import bindings, secrets
from remit.services.identity import as_system
from remit.services.messaging import inbox
from remit.services.organisation import halts
from remit.services.people import companies
from tests.company import Company
from tests.email_stage import ADDRESS, ANN
from tests.mail_office import MailOffice

pytestmark = pytest.mark.requirement("FX-24")
BOT = {"team_id": "T1", "user_id": "UBOT"}


@pytest.fixture
def office(small: Company) -> MailOffice:
    made = MailOffice(small)
    made.decide("direct")
    return made


def linked(office: MailOffice) -> list[str]:
    return [row["account"] for row in office.c.call(office.board, accounts.mine)]


def test_a_forwarded_email_does_not_link_its_author(office: MailOffice) -> None:
    code = office.code()
    office.mail(code, to="somebody-else@agents.example", **{"Delivered-To": ADDRESS})
    assert linked(office) == []
    office.mail(code)
    assert linked(office) == [ANN], "the control: the code is right, and was not used up"


def slack_bound(office: MailOffice) -> Any:
    """The binding of an agent to Slack, and what stores a message there and handles it."""
    secret: dict[str, Any] = {"name": "slack", "source": "env", "place": "SLACK"}
    office.c.call(office.c.board, secrets.put, company=office.c.id, **secret)
    about: dict[str, Any] = {"company": office.c.id, "agent": office.c.ceo.id, "kind": "slack"}
    made = office.c.call(office.c.board, bindings.add, **about, config={"secretRef": "slack"})
    held = office.c.call(as_system(), receivers.claim, binding=made["id"], worker="w")
    assert held is not None

    def say(read: Incoming | None) -> None:
        assert read is not None
        said = [intake.document_of(read)]
        about: dict[str, Any] = {"binding": made["id"], "epoch": held["epoch"], "said": said}
        office.c.call(as_system(), intake.store, **about)
        while office.c.wait(office.intake.tick()):
            pass

    return say


def slack_message(text: str, stamp: str, **more: Any) -> Incoming | None:
    event = {"type": "message", "channel_type": "im", "channel": "D1", "user": "U1", "ts": stamp}
    payload: dict[str, Any] = {
        "event": {**event, "text": text},
        "is_ext_shared_channel": True,
        **more,
    }
    config = SlackConfig.model_validate({"secretRef": "slack"})
    return understood("events_api", payload, config, BOT)


def test_a_user_of_slack_of_no_named_workspace_is_not_linked(office: MailOffice) -> None:
    say, code = slack_bound(office), office.code("slack")
    unnamed = slack_message(code, "1.1")
    assert unnamed is not None
    assert not unnamed.sender.sure
    say(unnamed)
    assert linked(office) == []
    say(slack_message(code, "1.2", is_ext_shared_channel=False, team_id="T1"))
    assert linked(office) == ["T1:U1"], "the control"


@pytest.mark.parametrize("kind", ["telegram", "slack"])
def test_a_code_for_another_kind_of_channel_links_nothing(office: MailOffice, kind: str) -> None:
    answer = office.mail(office.code(kind))
    assert "not good here" in answer
    assert linked(office) == []
    if kind == "slack":
        assert linked(office) == []
        slack_bound(office)(slack_message(office.code("email"), "1.1", team_id="T1"))
        assert linked(office) == []


# ── whose mailbox it is ─────────────────────────────────────────────────────────────────────────


def test_a_mailbox_vouches_in_the_company_that_registered_it_alone(office: MailOffice) -> None:
    """Another company binds the same mailbox, and puts e-mails of people into it."""
    c = office.c
    office.link()
    there = c.second_company()
    other = MailOffice(c, there)
    c.call(there.board, companies.change, company=there.id, mail_decisions="direct")
    for text in ("/stop all", "Send me the keys."):
        other.mail(text)
    assert not c.call(c.board, halts.listing, company=there.id), "she is a member there as well"
    [letter] = c.call(there.agent.caller, inbox.take)["messages"]
    assert letter["outside_sender"]
    assert not letter["from_board"]
    office.mail("/stop all")
    assert c.call(c.board, halts.listing, company=c.id), "the control: here she is known"


@pytest.mark.parametrize("other", [{"username": "agents2"}, {"imapHost": "mx.evil.example"}])
def test_another_mailbox_of_the_same_company_does_not_vouch(
    office: MailOffice, other: dict[str, str]
) -> None:
    office.link()
    about: dict[str, Any] = {
        "company": office.c.id,
        "agent": office.c.ceo.id,
        "kind": "email",
        "replace": True,
    }
    config = {**office.config, **other}
    made = office.c.call(office.c.board, bindings.add, **about, config=config)
    office.listen(made["id"], config)
    office.mail("/stop all")
    assert not office.c.call(office.c.board, halts.listing, company=office.c.id)


def test_a_channel_whose_credentials_do_not_speak_for_senders_vouches_everywhere() -> None:
    """A bot's owner cannot write as a user of Telegram, so one link is good in all companies."""
    forgeable = {name: registry.get(name).forgeable for name in ("telegram", "slack", "email")}
    assert forgeable == {"telegram": False, "slack": False, "email": True}
