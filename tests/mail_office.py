"""A company with an agent that is bound to a mailbox, for tests: e-mails as the channel reads them,
without a mail server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from remit.channels.email import EmailConfig, incoming
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.receiving import IntakeLoop
from remit.services.chat import accounts, confirmations, intake, receivers
from remit.services.connections import bindings, secrets
from remit.services.governance import approvals
from remit.services.identity import as_system
from remit.services.people import companies
from tests.company import Company, Neighbour
from tests.email_stage import ADDRESS, ANN, SERVER, written

CONFIG = {
    "address": ADDRESS,
    "username": "agents",
    "secretRef": "mailbox",
    "imapHost": "imap.agents.example",
    "smtpHost": "smtp.agents.example",
    "authservId": SERVER,
    "allow": ["@people.example"],
}


class MailOffice:
    """A company, its agent's mailbox, and the board's address in it."""

    def __init__(self, company: Company, place: Neighbour | None = None, **more: Any) -> None:
        """With `place`, the mailbox of another company on the same instance."""
        self.c = company
        self.board = company.board
        self.config: Mapping[str, Any] = {**CONFIG, **more}
        home, agent = (place.id, place.agent) if place else (company.id, company.ceo)
        secret: dict[str, Any] = {"name": "mailbox", "source": "env", "place": "MAILBOX"}
        company.call(company.board, secrets.put, company=home, **secret)
        about: dict[str, Any] = {"company": home, "agent": agent.id, "kind": "email"}
        made = company.call(company.board, bindings.add, **about, config=self.config)
        self.listen(made["id"], self.config)
        connector = Connector(company.app.vault.value)
        self.intake = IntakeLoop(company.app.gate, company.app.ids, connector)

    def listen(self, binding: str, config: Mapping[str, Any]) -> None:
        held = self.c.call(as_system(), receivers.claim, binding=binding, worker="w")
        assert held is not None
        self.binding, self.config, self.epoch = binding, config, held["epoch"]

    def mail(self, text: str, sender: str = f"Ann <{ANN}>", **more: Any) -> str:
        """An e-mail arrives in the mailbox; returns Remit's last answer to its sender."""
        message = written(text, sender=sender, **more)
        config = EmailConfig.model_validate(self.config)
        read = incoming(message.as_bytes(), config, "1.1")
        before = len(self.answers(sender))
        if read is not None:
            said = [intake.document_of(read)]
            about: dict[str, Any] = {"binding": self.binding, "epoch": self.epoch, "said": said}
            self.c.call(as_system(), intake.store, **about)
        while self.c.wait(self.intake.tick()):
            pass
        return "\n".join(self.answers(sender)[before:])

    def answers(self, sender: str = ANN) -> list[str]:
        address = sender.rpartition("<")[2].rstrip(">")
        rows = self.c.sql(
            "SELECT document FROM channel_posts WHERE binding_id = ? AND conversation = ?"
            " ORDER BY id",
            *(self.binding, address),
        )
        return [json.loads(document)["text"] for (document,) in rows]

    def code(self, kind: str = "email") -> str:
        return str(self.c.call(self.board, accounts.code, kind=kind)["code"])

    def waiting(self) -> list[Any]:
        found: Any = self.c.call(self.board, confirmations.mine)
        return list(found)

    def confirm(self) -> Any:
        """The board's person confirms the one decision that waits."""
        [row] = self.waiting()
        return self.c.call(self.board, confirmations.confirm, confirmation=row["id"])

    def link(self) -> None:
        self.mail(self.code())
        if self.waiting():
            self.confirm()

    def decide(self, how: str) -> None:
        """The board says what becomes of decisions by e-mail."""
        about: dict[str, Any] = {"company": self.c.id, "mail_decisions": how}
        self.c.call(self.c.board, companies.change, **about)

    def asked(self, **payload: Any) -> Any:
        """A request of the agent to the board."""
        about: dict[str, Any] = {"company": self.c.id, "kind": "request_board_approval"}
        payload = payload or {"title": "Move", "cost": 7}
        return self.c.call(self.c.ceo.caller, approvals.request, **about, payload=payload)

    def status(self, approval: Any) -> str:
        shown = self.c.call(self.c.board, approvals.show, approval=approval["id"])
        return str(shown["status"])
