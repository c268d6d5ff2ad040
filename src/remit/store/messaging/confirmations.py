"""Statements about decisions that wait for a confirmation."""

from __future__ import annotations

from sqlalchemy import bindparam as bind

from remit.model.messaging.confirmation import Confirmation
from remit.store.engine.statement import Rows

_ROWS = Rows(Confirmation)
_table = _ROWS.table
_waiting = (_table.c.ended_at.is_(None), _table.c.expires_at > bind("now"))

#: The decisions of a person that wait, in all companies.
WAITING_ANYWHERE = _ROWS.find(*_waiting, user_id="user")
#: The decisions of a person that wait in a company.
WAITING = _ROWS.find(*_waiting, user_id="user", company_id="company")
#: The same decision, if it waits already.
SAME = _ROWS.find(*_waiting, user_id="user", company_id="company", act="act", limit=1)
#: One decision of a person, however it ended.
OF_USER = _ROWS.one(id="id", user_id="user")
#: Ends a decision that waits; of several confirmations at the same time, one succeeds.
END = _ROWS.update(
    _table.c.id == bind("id_"), *_waiting, ended_at=bind("now"), ended_why=bind("why")
)
#: Deletes those that ended or expired before a time.
FORGET = _ROWS.delete(_table.c.expires_at < bind("before"))
