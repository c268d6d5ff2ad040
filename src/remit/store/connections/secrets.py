"""Statements about secrets: their names and the sources of their values, never the values."""

from sqlalchemy import bindparam as bind

from remit.model.connections.secret import Secret
from remit.store.engine.statement import Rows
from remit.store.tables import secrets

_SECRETS = Rows(Secret)
_there = secrets.c.removed_at.is_(None)

#: The company's secret of that name.
SECRET_NAMED = _SECRETS.one(_there, company_id="company", name="name")
#: A page of the company's secrets, by id.
SECRETS = _SECRETS.after(_there, company_id="company")
#: The secrets of all companies, for the start of a process that resolves their values.
EVERY_SECRET = _SECRETS.find(_there, limit=bind("limit"))
#: Sets another source of a secret's value, as its next version.
MOVE_SECRET = _SECRETS.next_version(secrets.c.id == bind("secret"), _there, of=("source", "place"))
#: Marks a secret as removed.
REMOVE_SECRET = _SECRETS.mark_removed(id="secret")
