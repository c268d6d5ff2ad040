"""Statements about secrets: where they are found, and under which name."""

from __future__ import annotations

from sqlalchemy import bindparam as bind
from sqlalchemy import insert, select, update

from remit.model.secret import Secret
from remit.store.statement import Statement, change, columns, into
from remit.store.tables import secrets

_all = columns(secrets, Secret)
_there = secrets.c.removed_at.is_(None)

INSERT_SECRET = change(insert(secrets))
SECRET_NAMED = Statement(
    select(*_all).where(
        secrets.c.company_id == bind("company"), secrets.c.name == bind("name"), _there
    ),
    into(Secret),
)
SECRETS = Statement(
    select(*_all)
    .where(secrets.c.company_id == bind("company"), secrets.c.id > bind("after"), _there)
    .order_by(secrets.c.id)
    .limit(bind("limit")),
    into(Secret),
)
#: Of all companies, for the process that looks them up when it starts.
EVERY_SECRET = Statement(
    select(*_all).where(_there).order_by(secrets.c.id).limit(bind("limit")), into(Secret)
)
MOVE_SECRET = change(
    update(secrets)
    .where(secrets.c.id == bind("secret"), _there)
    .values(
        source=bind("new_source"),
        place=bind("new_place"),
        version=secrets.c.version + 1,
        updated_at=bind("now"),
    )
)
REMOVE_SECRET = change(
    update(secrets)
    .where(secrets.c.id == bind("secret"), _there)
    .values(removed_at=bind("now"), updated_at=bind("now"))
)
