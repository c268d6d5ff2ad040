"""Chats without an outside: what linking an account leaves, where nobody may listen."""

import json
from typing import Any

from remit.app import App
from remit.ids import BindingId, CompanyId, UserId
from remit.model.messaging.chat import LinkedAccount
from remit.model.messaging.confirmation import CONFIRMATION_LASTS, Confirmation
from remit.services.chat import accounts
from remit.store.engine.database import Transaction
from remit.store.messaging.channels import BINDING_EVER


def linked(app: App, company: str, user: str, binding: str, **more: str) -> str:
    """An account of a person's in a chat."""
    now = app.clock.now()
    about: Any = {"kind": "telegram", "account": user, "conversation": user, **more}

    def work(tx: Transaction) -> str:
        bound = tx.existing(BINDING_EVER, binding=binding)
        account = LinkedAccount(
            id=app.ids.new(),
            user_id=UserId(user),
            **about,
            realm=accounts.realm_of(bound) if bound.adapter_type == about["kind"] else "",
            label="Ann",
            binding_id=BindingId(binding),
            company_id=CompanyId(company),
            created_at=now,
            used_at=now,
        )
        tx.add(account)
        return account.id

    return app.database.submit_write(work).result()


def to_confirm(app: App, company: str, user: str, binding: str) -> str:
    """A decision that came in a person's name, and waits."""
    now = app.clock.now()
    sender = {"id": "ann@people.example", "name": "Ann"}
    act: dict[str, Any] = {
        "act": "link",
        "sender": sender,
        "conversation": sender["id"],
        "binding": binding,
    }
    act["made_with"] = None
    row = Confirmation(
        id=app.ids.new(),
        company_id=CompanyId(company),
        user_id=UserId(user),
        binding_id=BindingId(binding),
        account="email:ann@people.example",
        subject="linked_account",
        title="Link Ann to your account",
        act=json.dumps(act),
        created_at=now,
        expires_at=now + CONFIRMATION_LASTS,
    )
    app.database.submit_write(lambda tx: tx.add(row)).result()
    return row.id
