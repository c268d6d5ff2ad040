"""Look-up of ids by the short id that lists show, or by a prefix of it."""

from sqlalchemy import Table, func, literal_column
from sqlalchemy import bindparam as bind

from remit.store import tables
from remit.store.engine.statement import Statement, values_of
from remit.store.tables.base import SHORT_BEGINS

#: Most matches that are read; a prefix with more is too short to be useful.
_MOST = 20


_TABLES: dict[str, Table] = {
    "agent": tables.agents,
    "approval": tables.approvals,
    "change": tables.changes,
    "event": tables.events,
    "file": tables.files,
    "grant": tables.grants,
    "job": tables.jobs,
    "message": tables.messages,
    "outcome": tables.outcomes,
    "question": tables.questions,
    "run": tables.runs,
    "schedule": tables.schedules,
}


def _by_short_id(table: Table) -> Statement[str]:
    short = func.substr(table.c.id, literal_column(str(SHORT_BEGINS)))
    return values_of(
        table.c.id,
        short >= bind("low"),
        short < bind("high"),
        # Not as a column: few ids begin so, and an index by company would lead through all.
        table.c.company_id.concat("") == bind("company"),
        order=[table.c.id],
        limit=_MOST,
    )


def _by_beginning(table: Table) -> Statement[str]:
    prefix = (table.c.id >= bind("low"), table.c.id < bind("high"))
    return values_of(table.c.id, *prefix, company_id="company", limit=1)


#: The ids of a company whose short ids lie between two, by table.
BY_SHORT_ID = {what: _by_short_id(table) for what, table in _TABLES.items()}
#: Whether a company has a row whose full id has a prefix, by table.
BY_BEGINNING = {what: _by_beginning(table) for what, table in _TABLES.items()}
