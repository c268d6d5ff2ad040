"""Chats without an outside: what linking an account leaves, where nobody may listen."""

import json
from typing import Any

from remit.app import App
from remit.ids import BindingId, CompanyId, UserId
from remit.model.messaging.chat import LinkedAccount
from remit.model.messaging.confirmation import CONFIRMATION_LASTS, Confirmation
from remit.services.chat import accounts, confirmations, decisions
from remit.services.command import Context, Kind, Verb
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
    sender = {"id": "ann@people.example", "name": "Ann"}
    act = {"act": "link", "sender": sender, "conversation": sender["id"], "binding": binding}
    about = {"subject": "linked_account", "title": "Link Ann to your account"}
    return _waiting(app, company, user, {**act, "made_with": None}, binding, **about)


def approval_to_confirm(app: App, *, company: str, user: str, approval: str) -> str:
    """An approval that came in a person's name, and waits."""
    act = {"act": "approve", "approval": approval, "revision": 1, "digest": "", "note": ""}
    about = {"subject": f"approval:{approval}", "title": "Approve: it, revision 1"}
    return _waiting(app, company, user, act, None, **about)


def _ask(ctx: Context, *, company: str, binding: str, act: decisions.Act) -> dict[str, str]:
    """Have the caller confirm an act, as one that came to a mailbox in their name."""
    ctx.enter(CompanyId(company))
    bound = ctx.tx.existing(BINDING_EVER, binding=binding)
    return {"said": confirmations.ask(ctx, bound, "email:ann@people.example", act)}


#: A decision that comes in the caller's name and waits, with the title that it really gets.
ASK_TO_CONFIRM = Verb("tests.ask_to_confirm", Kind.COMMAND, _ask)


def _waiting(
    app: App, company: str, user: str, act: dict[str, Any], binding: str | None, **about: str
) -> str:
    now = app.clock.now()
    row = Confirmation(
        id=app.ids.new(),
        company_id=CompanyId(company),
        user_id=UserId(user),
        binding_id=None if binding is None else BindingId(binding),
        account="email:ann@people.example",
        subject=about["subject"],
        title=about["title"],
        act=json.dumps(act),
        created_at=now,
        expires_at=now + CONFIRMATION_LASTS,
    )
    app.database.submit_write(lambda tx: tx.add(row)).result()
    return row.id
