"""Statements about rate limits: the counts that they limit, and the limits that were reached."""

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.model.execution.cost import cost_of
from remit.model.execution.limit import Reached
from remit.model.execution.run import Run
from remit.store.engine.statement import Rows, Statement, new, scalar
from remit.store.tables import (
    deliveries,
    events,
    limits_reached,
    messages,
    run_logs,
    runs,
    spending,
)

_RUNS = Rows(Run)
_LIMITS_REACHED = Rows(Reached)

_newest = sa.select(runs.c.started_at).order_by(runs.c.id.desc()).limit(1).offset(bind("later"))
#: When the n-th newest run of an agent started; ids are in the order of starts.
NTH_RUN_OF_AGENT = Statement(_newest.where(runs.c.agent_id == bind("agent")), scalar)
#: When the n-th newest run of a company started.
NTH_RUN_OF_COMPANY = Statement(_newest.where(runs.c.company_id == bind("company")), scalar)
# The run that took up each message of an unknown person outside. Ids begin with the time of a
# message, so that only those since a time are read.
_taker = (
    sa.select(sa.func.max(deliveries.c.run_id))
    .where(deliveries.c.message_id == messages.c.id, deliveries.c.agent_id == bind("agent"))
    .scalar_subquery()
)
_for_strangers = sa.select(_taker).where(
    messages.c.company_id == bind("company"),
    messages.c.id >= bind("since"),
    messages.c.sender_kind == sa.literal_column("'system'"),
    messages.c.channel.is_not(None),
)
#: When the n-th newest run of an agent for strangers started.
NTH_RUN_FOR_STRANGERS = Statement(_newest.where(runs.c.id.in_(_for_strangers)), scalar)
#: When the n-th newest run of an agent for strangers in one channel started.
NTH_RUN_FOR_PLACE = Statement(
    _newest.where(runs.c.id.in_(_for_strangers.where(messages.c.channel == bind("channel")))),
    scalar,
)
#: The tokens that an agent used on a day.
TOKENS_OF_AGENT = Statement(
    sa.select(spending.c.tokens).where(
        spending.c.agent_id == bind("agent"), spending.c.day == bind("day")
    ),
    scalar,
)
#: The spending of a company on a day.
COST_OF_COMPANY = Statement(
    sa.select(
        sa.func.sum(spending.c.money_micros),
        sa.func.sum(spending.c.money_estimated),
        sa.func.sum(spending.c.tokens_unpriced),
    ).where(spending.c.company_id == bind("company"), spending.c.day == bind("day")),
    cost_of,
)

#: A limit that an agent or company has reached.
REACHED = _LIMITS_REACHED.one(subject_id="subject", name="of_name")
#: The limits reached in a company, the oldest first.
REACHED_IN = _LIMITS_REACHED.find(
    company_id="company", order=[limits_reached.c.since, limits_reached.c.id]
)
#: Stores since when and until when a limit holds.
KEEP_REACHED = _LIMITS_REACHED.update(
    limits_reached.c.id == bind("reached"), **new("since", "until")
)
#: Deletes the state of a limit that was changed, so that it is evaluated anew.
FORGET_REACHED = _LIMITS_REACHED.delete(company_id="company", name="of_name")


def limited(whose: sa.Table) -> sa.ColumnElement[bool]:
    """A condition: a reached limit keeps the agent of the row from being started now."""
    return sa.exists().where(
        limits_reached.c.subject_id.in_([whose.c.agent_id, whose.c.company_id]),
        limits_reached.c.until > bind("now"),
    )


#: Runs that have printed nothing for a while.
QUIET_RUNS = _RUNS.find(
    runs.c.status == sa.literal_column("'running'"),
    runs.c.started_at <= bind("before"),
    sa.func.coalesce(
        sa.select(run_logs.c.at)
        .where(run_logs.c.run_id == runs.c.id)
        .order_by(run_logs.c.number.desc())
        .limit(1)
        .scalar_subquery(),
        0,
    )
    <= bind("before"),
    company_id="company",
    order=(),
    limit=bind("limit"),
)
#: When a run last printed something.
LAST_PRINTED = Statement(
    sa.select(run_logs.c.at)
    .where(run_logs.c.run_id == bind("run"))
    .order_by(run_logs.c.number.desc())
    .limit(1),
    scalar,
)
#: When a run last did something that was recorded.
LAST_DEED = Statement(
    sa.select(sa.func.max(events.c.at)).where(events.c.run_id == bind("run")), scalar
)
