"""Ids that end with what a person typed: the short ids that lists show.

No index begins with the end of an id. Each of these walks along one that holds ids, without a look
at the rows: 0.15 s of processor time for a million. Beginnings of ids are looked for first, and
what agents are shown in their turns is such a beginning.
"""

from __future__ import annotations

from sqlalchemy import Table, select
from sqlalchemy import bindparam as bind

from remit.store import tables
from remit.store.statement import Statement, scalar

#: More than this many are as good as none: somebody typed too little.
_MOST = 20


def _of(table: Table) -> Statement[str]:
    return Statement(
        select(table.c.id)
        .where(table.c.company_id == bind("company"), table.c.id.like(bind("ending")))
        .order_by(table.c.id)
        .limit(_MOST),
        scalar,
    )


ENDINGS: dict[str, Statement[str]] = {
    "agent": _of(tables.agents),
    "approval": _of(tables.approvals),
    "event": _of(tables.events),
    "file": _of(tables.files),
    "grant": _of(tables.grants),
    "job": _of(tables.jobs),
    "message": _of(tables.messages),
    "outcome": _of(tables.outcomes),
    "question": _of(tables.questions),
    "run": _of(tables.runs),
    "schedule": _of(tables.schedules),
}
