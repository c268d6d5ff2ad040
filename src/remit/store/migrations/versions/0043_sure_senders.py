"""Proofs of posts that only this instance can check, and confirmations of decisions by e-mail.

What a mail server says of senders is believed in the company of the mailbox alone, so linked
addresses name the company and the mailbox. One whose binding is gone is unlinked.
"""

import json

import sqlalchemy as sa
from alembic import op

from remit.store.migrations import additions

revision = "0043"
down_revision = "0042"

_LINKED = (
    "SELECT l.id, l.company_id, l.realm, b.adapter_config FROM linked_accounts l"
    " LEFT JOIN agent_bindings b ON b.id = l.binding_id"
    " WHERE l.kind = 'email' AND l.revoked_at IS NULL"
)


def upgrade() -> None:
    additions.make(revision)
    connection = op.get_bind()
    for account, company, realm, config in connection.execute(sa.text(_LINKED)).all():
        if config is None:
            change = sa.text("UPDATE linked_accounts SET revoked_at = used_at WHERE id = :id")
            connection.execute(change, {"id": account})
            continue
        new = f"{company}/{json.loads(config)['username'].lower()}@{realm}"
        change = sa.text("UPDATE linked_accounts SET realm = :realm WHERE id = :id")
        connection.execute(change, {"realm": new, "id": account})
