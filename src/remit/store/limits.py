"""Statements about limits: what counts towards them, and which were reached."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Table,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy import bindparam as bind

from remit.model.limit import Reached
from remit.model.run import Run
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import events, limits_reached, run_logs, runs, spending

_reached = columns(limits_reached, Reached)

#: When the run began before which so many others began; ids are in the order of the beginnings.
NTH_RUN_OF_AGENT = Statement(
    select(runs.c.started_at)
    .where(runs.c.agent_id == bind("agent"))
    .order_by(runs.c.id.desc())
    .limit(1)
    .offset(bind("later")),
    scalar,
)
NTH_RUN_OF_COMPANY = Statement(
    select(runs.c.started_at)
    .where(runs.c.company_id == bind("company"))
    .order_by(runs.c.id.desc())
    .limit(1)
    .offset(bind("later")),
    scalar,
)
TOKENS_OF_AGENT = Statement(
    select(spending.c.tokens).where(
        spending.c.agent_id == bind("agent"), spending.c.day == bind("day")
    ),
    scalar,
)
MONEY_OF_COMPANY = Statement(
    select(func.coalesce(func.sum(spending.c.money_micros), 0).cast(BigInteger)).where(
        spending.c.company_id == bind("company"), spending.c.day == bind("day")
    ),
    scalar,
)

REACHED = Statement(
    select(*_reached).where(
        limits_reached.c.subject_id == bind("subject"), limits_reached.c.name == bind("of_name")
    ),
    into(Reached),
)
#: In a company, the oldest first.
REACHED_IN = Statement(
    select(*_reached)
    .where(limits_reached.c.company_id == bind("company"))
    .order_by(limits_reached.c.since, limits_reached.c.id),
    into(Reached),
)
INSERT_REACHED = change(insert(limits_reached))
KEEP_REACHED = change(
    update(limits_reached)
    .where(limits_reached.c.id == bind("reached"))
    .values(since=bind("new_since"), until=bind("new_until"))
)
#: It was changed, so whether it is reached is found out anew.
FORGET_REACHED = change(
    delete(limits_reached).where(
        limits_reached.c.company_id == bind("company"), limits_reached.c.name == bind("of_name")
    )
)


def limited(whose: Table) -> ColumnElement[bool]:
    """Whether a limit keeps the agent of a row from being started now."""
    return exists().where(
        limits_reached.c.subject_id.in_([whose.c.agent_id, whose.c.company_id]),
        limits_reached.c.until > bind("now"),
    )


#: Runs that have printed nothing for a while.
QUIET_RUNS = Statement(
    select(*columns(runs, Run))
    .where(
        runs.c.company_id == bind("company"),
        runs.c.status == literal_column("'running'"),
        runs.c.started_at <= bind("before"),
        func.coalesce(
            select(run_logs.c.at)
            .where(run_logs.c.run_id == runs.c.id)
            .order_by(run_logs.c.number.desc())
            .limit(1)
            .scalar_subquery(),
            0,
        )
        <= bind("before"),
    )
    .limit(bind("limit")),
    into(Run),
)
LAST_PRINTED = Statement(
    select(run_logs.c.at)
    .where(run_logs.c.run_id == bind("run"))
    .order_by(run_logs.c.number.desc())
    .limit(1),
    scalar,
)
#: When a run last did something that is in the record.
LAST_DEED = Statement(select(func.max(events.c.at)).where(events.c.run_id == bind("run")), scalar)
