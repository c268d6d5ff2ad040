"""Chats without an outside: what linking an account leaves, where nobody may listen."""

from typing import Any

from remit.app import App
from remit.ids import BindingId, CompanyId, UserId
from remit.model.messaging.chat import LinkedAccount


def linked(app: App, company: str, user: str, binding: str, **more: str) -> str:
    """An account of a person's in a chat."""
    now = app.clock.now()
    about: Any = {"kind": "telegram", "realm": "", "account": user, "conversation": user, **more}
    account = LinkedAccount(
        id=app.ids.new(),
        user_id=UserId(user),
        **about,
        label="Ann",
        binding_id=BindingId(binding),
        company_id=CompanyId(company),
        created_at=now,
        used_at=now,
    )
    app.database.submit_write(lambda tx: tx.add(account)).result()
    return account.id
