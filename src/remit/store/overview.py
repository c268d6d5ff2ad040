"""Statements that count."""

from __future__ import annotations

from sqlalchemy import Boolean, func, literal, or_, select, true
from sqlalchemy import bindparam as bind

from remit.store.statement import Statement, counted, scalar
from remit.store.tables import agents, approvals, deliveries, outcomes, runs

AGENTS_BY_STATUS = Statement(
    select(agents.c.status, func.count())
    .where(agents.c.company_id == bind("company"))
    .group_by(agents.c.status),
    counted,
)
#: Each from an index alone.
OUTCOMES_BY_STATUS = Statement(
    select(outcomes.c.status, func.count())
    .where(outcomes.c.company_id == bind("company"))
    .group_by(outcomes.c.status),
    counted,
)
OUTCOMES_OF_BY_STATUS = Statement(
    select(outcomes.c.status, func.count())
    .where(outcomes.c.owner_id == bind("owner"))
    .group_by(outcomes.c.status),
    counted,
)
PENDING_APPROVALS = Statement(
    select(func.count())
    .select_from(approvals)
    .where(
        approvals.c.company_id == bind("company"),
        approvals.c.status.in_([literal("pending"), literal("revision_requested")]),
        approvals.c.status == literal("pending"),
        or_(
            approvals.c.requested_by_agent_id == bind("agent"),
            approvals.c.routed_to_agent_id == bind("agent"),
            bind("all_of_them", type_=Boolean) == true(),
        ),
    ),
    scalar,
)
RUNNING = Statement(
    select(func.count())
    .select_from(runs)
    .where(runs.c.company_id == bind("company"), runs.c.status == literal("running")),
    scalar,
)
UNREAD = Statement(
    select(func.count())
    .select_from(deliveries)
    .where(
        deliveries.c.company_id == bind("company"),
        deliveries.c.status == literal("queued"),
        or_(deliveries.c.user_id == bind("who"), deliveries.c.agent_id == bind("who")),
    ),
    scalar,
)
