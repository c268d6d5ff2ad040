"""A person who has nothing but a mail program, and a company that is bound to a mailbox: a real
mailbox and a real server that sends, on loopback."""

from __future__ import annotations

import asyncio
from email.message import EmailMessage
from typing import Any

from remit.channels.email import Email
from remit.clock import MINUTE
from remit.model.messaging.authorship import parted
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.notifier import Notifier
from remit.runtime.delivery.outbox import Outbox, Posts
from remit.runtime.delivery.receiving import IntakeLoop
from remit.services.chat import accounts, confirmations, intake, receivers
from remit.services.connections import bindings, secrets
from remit.services.identity import as_system
from remit.testing import channels
from remit.testing.clock import VirtualClock
from tests.company import Company
from tests.email_stage import PASSWORD, EmailStand, MailStage, written


class MailDay:
    """Ann's mail program, and the agent `ceo`, to whose address she writes."""

    def __init__(
        self, company: Company, stage: MailStage, clock: VirtualClock, monkeypatch: Any
    ) -> None:
        self.c, self.stage, self.clock = company, stage, clock
        monkeypatch.setenv("MAILBOX_OF_THE_DAY", PASSWORD)
        about: dict[str, Any] = {"company": company.id}
        place: dict[str, Any] = {"name": "mailbox", "source": "env", "place": "MAILBOX_OF_THE_DAY"}
        company.call(company.board, secrets.put, **about, **place)
        config = stage.config(allow=[]).model_dump(by_alias=True)
        bound: dict[str, Any] = {"agent": "ceo", "kind": "email", "config": config}
        self.binding = company.call(company.board, bindings.add, **about, **bound)["id"]
        held = company.call(as_system(), receivers.claim, binding=self.binding, worker="w")
        assert held is not None
        self.epoch = held["epoch"]
        gate = company.app.gate
        connector = Connector(company.app.vault.value, private=True)
        none = company.app.settings.home / "none"
        self.loops = (
            IntakeLoop(gate, company.app.ids, connector),
            Notifier(gate, none),
            Outbox(gate, connector),
            Posts(gate, connector),
        )
        self.read = 0

    # ── the mail program ────────────────────────────────────────────────────────────────────

    def write(self, text: str, subject: str = "Hello", **headers: str) -> EmailMessage:
        """Ann sends an e-mail, and the company does all that follows from it."""
        message = written(text, Subject=subject, **headers)
        self.stage.bring(message)
        stand = EmailStand(self.stage)
        stand.connection = self.stage.connection(allow=[])
        [came] = asyncio.run(channels.received(Email(), stand, 1))
        about: dict[str, Any] = {"binding": self.binding, "epoch": self.epoch}
        said = [intake.document_of(came)]
        self.c.call(as_system(), intake.store, **about, said=said)
        self.settle()
        return message

    def answer(self, to: EmailMessage, text: str) -> EmailMessage:
        """Ann answers an e-mail, as mail programs do: quoted, in the same conversation."""
        quoted = "\n".join(f"> {line}" for line in words(to).splitlines())
        attribution = f"On Thu, 19 Nov 2026 at 10:00, {to['From']}\nwrote:"
        references = f"{to.get('References', '')} {to['Message-ID']}".strip()
        subject = str(to["Subject"])
        return self.write(
            f"{text}\n\n{attribution}\n\n{quoted}\n",
            subject if subject.startswith("Re: ") else f"Re: {subject}",
            **{"In-Reply-To": str(to["Message-ID"]), "References": references},
        )

    def new(self) -> list[EmailMessage]:
        """The e-mails that came since Ann looked last; a minute passes."""
        self.settle()
        self.clock.advance(MINUTE)
        came = self.stage.sent.got[self.read :]
        self.read = len(self.stage.sent.got)
        return came

    def only(self) -> EmailMessage:
        [message] = self.new()
        return message

    # ── what happens elsewhere ──────────────────────────────────────────────────────────────

    def settle(self) -> None:
        """Until all that came is dealt with, and all that is due went out."""
        while sum(self.c.wait(loop.tick()) for loop in self.loops):
            pass

    def link(self) -> None:
        code = self.c.call(self.c.board, accounts.code, kind="email")["code"]
        self.write(str(code))
        self.confirm()
        self.new()

    def waiting(self) -> list[Any]:
        found: Any = self.c.call(self.c.board, confirmations.mine)
        return list(found)

    def confirm(self) -> Any:
        """Ann confirms the one decision of hers that waits, where she is signed in."""
        [row] = self.waiting()
        return self.c.call(self.c.board, confirmations.confirm, confirmation=row["id"])


def words(message: EmailMessage) -> str:
    """The text of an e-mail without the line that names its author."""
    body = message.get_body(("plain",))
    assert body is not None
    return parted(body.get_content().replace("\r\n", "\n"))[1].strip()


def line_of(message: EmailMessage, begins: str) -> str:
    """The line of an e-mail that says what to write."""
    [line] = [line for line in words(message).splitlines() if line.startswith(begins)]
    return line
