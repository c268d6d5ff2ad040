"""Whole ways: a person links an address or account, is told there, answers there, and nobody else
does; through the gate, a real mailbox, and Slack's own client."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remit.channels.email import taken_by
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.notifier import Notifier
from remit.runtime.delivery.outbox import Outbox, Posts
from remit.runtime.delivery.receiving import IntakeLoop, Receivers
from remit.services.chat import accounts, confirmations
from remit.services.connections import bindings, notice_rules, notices, secrets
from remit.services.governance import approvals
from remit.services.messaging import inbox, questions
from remit.services.organisation import halts
from tests.company import Company
from tests.email_stage import ADDRESS, ANN, PASSWORD, MailStage, written
from tests.email_stage import serving as serving_mail
from tests.governance import approve, ask
from tests.mailing import send
from tests.slack_stage import APP, BOT, BOT_USER, DIRECT, ROOM, SlackServer
from tests.slack_stage import serving as serving_slack


@pytest.fixture(scope="module")
def servers() -> Iterator[MailStage]:
    with serving_mail() as found:
        yield found


@pytest.fixture
def mail(servers: MailStage, monkeypatch: pytest.MonkeyPatch) -> MailStage:
    monkeypatch.setenv("CHAT_SECRET", PASSWORD)
    servers.empty()
    return servers


@pytest.fixture(scope="module")
def workspace() -> Iterator[SlackServer]:
    with serving_slack() as found:
        yield found


@pytest.fixture
def slack(workspace: SlackServer, monkeypatch: pytest.MonkeyPatch) -> SlackServer:
    monkeypatch.setenv("CHAT_SECRET", f"{BOT} {APP}")
    workspace.reset()
    return workspace


class Chat:
    """The loops of one process, moved by hand."""

    def __init__(
        self, company: Company, kind: str, config: dict[str, Any], server: str = ""
    ) -> None:
        self.company = company
        gate, ids = company.app.gate, company.app.ids
        place = {"source": "env", "place": "CHAT_SECRET"}
        company.call(company.board, secrets.put, company=company.id, name="chat", **place)
        company.call(
            company.board,
            bindings.add,
            company=company.id,
            agent="ceo",
            kind=kind,
            config={**config, "secretRef": "chat"},
        )
        self.connector = Connector(company.app.vault.value, True, {kind: server} if server else {})
        self.intake = IntakeLoop(gate, ids, self.connector)
        self.out = (
            Notifier(gate, company.app.settings.home / "none"),
            Posts(gate, self.connector),
            Outbox(gate, self.connector),
        )

    def hear(self, done: Callable[[], bool]) -> None:
        """Listen until the outside was told that all is taken, then deal with it."""

        async def listen() -> None:
            receivers = Receivers(self.company.app.gate, self.connector)
            receivers.start()
            try:
                async with asyncio.timeout(20):
                    while not await asyncio.to_thread(done):  # noqa: ASYNC110  # of a server
                        await asyncio.sleep(0.02)
            finally:
                await receivers.stop()

        self.company.wait(listen())
        self.go()

    def go(self) -> None:
        for loop in (self.intake, *self.out, *self.out):
            while self.company.wait(loop.tick()):
                pass

    def rows(self, sql: str) -> list[Any]:
        return [row[0] for row in self.company.sql(sql)]


# ── e-mail ──────────────────────────────────────────────────────────────────────────────────────


def by_mail(company: Company, mail: MailStage, **config: Any) -> Chat:
    read = mail.config(**{"allow": [], **config}).model_dump(by_alias=True)
    return Chat(company, "email", read)


def bring(chat: Chat, mail: MailStage, *messages: Any) -> None:
    for message in messages:
        mail.bring(message)

    def taken() -> bool:
        with mail.mailbox() as client:
            return not client.search(["UNKEYWORD", taken_by(ADDRESS)])

    chat.hear(taken)


def link(chat: Chat, mail: MailStage) -> None:
    company = chat.company
    code = company.call(company.board, accounts.code, kind="email")["code"]
    bring(chat, mail, written(f"{code}\n-- \nAnn"))
    assert "Not done yet: Link Ann" in mail.sent.got[-1].get_content()
    [waiting] = company.call(company.board, confirmations.mine)
    company.call(company.board, confirmations.confirm, confirmation=waiting["id"])
    chat.go()
    assert "linked to board" in mail.sent.got[-1].get_content()
    mail.sent.got.clear()


@pytest.mark.requirement("FX-24")
@pytest.mark.requirement("FX-25")
@pytest.mark.requirement("FX-27")
def test_a_person_links_an_address_is_asked_there_once_and_answers(
    small: Company, mail: MailStage
) -> None:
    chat = by_mail(small, mail)
    link(chat, mail)
    asked = small.call(small.ceo.caller, questions.ask, question="Which colour?", to="board")
    chat.go()
    chat.go()
    (told,) = mail.sent.got
    assert told["To"] == ANN
    assert "Which colour?" in told.get_content()
    reply = written("Blue.\n\nOn Monday, Remit wrote:\n> Which colour?\n")
    reply["In-Reply-To"] = told["Message-ID"]
    bring(chat, mail, reply)
    found = small.sql("SELECT status, answer FROM questions WHERE id = ?", asked["id"])
    assert [tuple(one) for one in found] == [("answered", "Blue.")]
    # What was decided is not told again, and an e-mail that was read cannot be taken back.
    assert len(mail.sent.got) == 1


@pytest.mark.requirement("FX-24")
def test_who_is_not_linked_or_not_vouched_for_is_not_heard(small: Company, mail: MailStage) -> None:
    chat = by_mail(small, mail)
    link(chat, mail)
    before = chat.rows("SELECT count(*) FROM messages")
    stranger = written("Pay me", sender="Eve <eve@evil.example>")
    forged = written("Pay me", auth=None)
    failed = written("Pay me", auth="dmarc=fail header.from=people.example")
    away = written("I am away", **{"Auto-Submitted": "auto-replied"})
    bring(chat, mail, stranger, forged, failed, away)
    assert chat.rows("SELECT count(*) FROM messages") == before
    assert mail.sent.got == []
    command = written("/stop all", sender="Eve <eve@evil.example>")
    bring(chat, mail, command)
    assert chat.rows("SELECT count(*) FROM halts") == [0]
    assert mail.sent.got == [], "nobody learns that somebody reads"


@pytest.mark.requirement("FX-24")
def test_what_a_linked_person_writes_twice_comes_once_and_is_theirs(
    small: Company, mail: MailStage
) -> None:
    chat = by_mail(small, mail)
    link(chat, mail)
    said = written("Please look into it.", **{"Message-ID": "<one@people.example>"})
    bring(chat, mail, said, said)
    found = small.sql("SELECT sender_kind, channel FROM messages WHERE channel IS NOT NULL")
    assert [tuple(one) for one in found] == [("user", f"channel:email:{ANN}")]
    # The agent's answer goes to that address, in the same thread.
    (message,) = chat.rows("SELECT id FROM messages WHERE channel IS NOT NULL")
    send(small, small.ceo.caller, f"channel:email:{ANN}", "It is done.", reply_to=message)
    chat.go()
    (answer,) = mail.sent.got
    assert (answer["To"], answer["In-Reply-To"]) == (ANN, "<one@people.example>")
    assert answer["From"].addresses[0].addr_spec == ADDRESS


@pytest.mark.requirement("FX-24")
def test_an_agent_writes_to_nobody_who_did_not_write(small: Company, mail: MailStage) -> None:
    chat = by_mail(small, mail)
    send(small, small.ceo.caller, "channel:email:eve@evil.example", "Our secrets")
    chat.go()
    assert mail.sent.got == []
    assert chat.rows("SELECT status FROM channel_deliveries") == ["dead"]


# ── Slack ───────────────────────────────────────────────────────────────────────────────────────


def by_slack(company: Company, slack: SlackServer) -> Chat:
    return Chat(company, "slack", {}, slack.url)


def hear(chat: Chat, slack: SlackServer) -> None:
    chat.hear(lambda: not slack.pending)


def linked(chat: Chat, slack: SlackServer) -> None:
    company = chat.company
    slack.says(company.call(company.board, accounts.code, kind="slack")["code"])
    hear(chat, slack)
    assert "linked to board" in slack.messages[-1]["text"]


def last(slack: SlackServer) -> dict[str, Any]:
    return next(one for one in reversed(slack.messages) if one.get("bot_id"))


def value(message: dict[str, Any], label: str) -> str:
    buttons = [one for block in message["blocks"] or [] for one in block.get("elements", [])]
    return next(str(one["value"]) for one in buttons if one["text"]["text"] == label)


@pytest.mark.requirement("FX-26")
@pytest.mark.requirement("FX-27")
def test_an_approval_is_shown_once_and_marked_when_it_is_decided_elsewhere(
    small: Company, slack: SlackServer
) -> None:
    chat = by_slack(small, slack)
    linked(chat, slack)
    number = len(slack.messages)
    approval = ask(small, small.ceo.caller, "May I?")
    chat.go()
    chat.go()
    shown = last(slack)
    assert len(slack.messages) == number + 1
    reference = value(shown, "Reject")
    approve(small, approval)
    chat.go()
    assert len(slack.messages) == number + 1
    assert "Approved by board" in shown["text"]
    assert all(block["type"] == "section" for block in shown["blocks"])
    # A button that somebody still sees does nothing.
    slack.taps(shown["ts"], reference)
    hear(chat, slack)
    assert small.call(small.board, approvals.show, approval=approval["id"])["status"] == "approved"
    shown_to_them = small.call(small.board, notices.show)
    assert shown_to_them["chats"] == ["slack"]
    (told,) = [one for one in shown_to_them["latest"] if one["kind"] == "approval"]
    assert (told["way"], told["status"]) == ("slack", "done")


@pytest.mark.requirement("FX-26")
@pytest.mark.requirement("AG-95")
def test_a_tap_decides_as_the_linked_person_and_as_nobody_else(
    small: Company, slack: SlackServer
) -> None:
    chat = by_slack(small, slack)
    linked(chat, slack)
    approval = ask(small, small.ceo.caller, "May I?")
    chat.go()
    shown = last(slack)
    reference = value(shown, "Approve")

    def status() -> str:
        found = small.call(small.board, approvals.show, approval=approval["id"])
        return str(found["status"])

    slack.taps(shown["ts"], reference, user="U0EVE")
    slack.taps(shown["ts"], reference, channel=ROOM)
    slack.taps(shown["ts"], "made-up")
    hear(chat, slack)
    assert status() == "pending"
    slack.taps(shown["ts"], reference)
    slack.taps(shown["ts"], reference)
    hear(chat, slack)
    assert status() == "approved"
    assert "Approved by board" in shown["text"]


@pytest.mark.requirement("FX-25", "HB-11", "HB-12")
def test_somebody_of_another_workspace_is_nobody_of_ours_whatever_their_id(
    small: Company, slack: SlackServer
) -> None:
    """Their workspace shares a room with ours, and calls somebody as ours calls Ann."""
    chat = by_slack(small, slack)
    linked(chat, slack)
    approval = ask(small, small.ceo.caller, "May I?")
    chat.go()
    shown = last(slack)
    theirs: Any = {"home": "T0OTHER", "channel": ROOM}
    slack.says(f"<@{BOT_USER}> /stop", **theirs)
    slack.says(f"<@{BOT_USER}> I am Ann.", **theirs)
    slack.taps(shown["ts"], value(shown, "Approve"), home="T0OTHER")
    slack.taps(shown["ts"], value(shown, "Approve"), **theirs)
    hear(chat, slack)
    assert small.call(small.board, approvals.show, approval=approval["id"])["status"] == "pending"
    assert not small.call(small.board, halts.listing, company=small.id)
    letters = small.call(small.ceo.caller, inbox.take)["messages"]
    [letter] = [one for one in letters if one["body"] == "I am Ann."]
    assert not letter["from_board"]
    assert letter["outside_sender"] == "U0ANN of the workspace T0OTHER"


@pytest.mark.requirement("FX-27")
def test_what_is_not_decided_by_buttons_is_marked_and_rules_hold_in_chats(
    small: Company, slack: SlackServer
) -> None:
    chat = by_slack(small, slack)
    linked(chat, slack)
    rules = {"mail": ["slack"], "all": []}
    small.call(small.board, notice_rules.change, company=small.id, routes=rules)
    ask(small, small.ceo.caller, "May I?")
    letter = send(small, small.ceo.caller, "board", "It rains.", subject="Weather")
    number = len(slack.messages)
    chat.go()
    assert len(slack.messages) == number + 1
    shown = last(slack)
    assert "Weather" in shown["text"]
    assert shown["channel"] == DIRECT
    small.call(small.board, inbox.acknowledge, ids=[letter["id"]])
    chat.go()
    assert len(slack.messages) == number + 1
    assert shown["text"].endswith("✓ Dealt with.")


@pytest.mark.requirement("FX-24")
def test_a_killed_receiver_loses_and_doubles_nothing(small: Company, slack: SlackServer) -> None:
    """Killed after it received and before it stored, and after it stored and before it said so."""
    chat = by_slack(small, slack)
    linked(chat, slack)
    slack.says("Look into it.")
    pending = dict(slack.pending)
    hear(chat, slack)
    slack.pending.update(pending)  # as if nobody had heard that we have it
    hear(chat, slack)
    assert chat.rows("SELECT count(*) FROM messages WHERE channel IS NOT NULL") == [1]
