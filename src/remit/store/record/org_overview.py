"""Statements about the costs and last runs of many agents at once."""

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.store.engine.statement import Statement, counted
from remit.store.record.overview import scoped
from remit.store.tables import agents, runs, spending

#: The spending of each agent since a day, in millionths of a dollar.
SPENT_BY_AGENT = Statement(
    sa.select(spending.c.agent_id, sa.func.sum(spending.c.money_micros).cast(sa.BigInteger))
    .where(
        spending.c.company_id == bind("company"),
        spending.c.day >= bind("since"),
        scoped(spending.c.agent_id),
    )
    .group_by(spending.c.agent_id),
    counted,
)
_last = (
    sa.select(
        sa.select(sa.func.max(runs.c.id))
        .where(runs.c.agent_id == agents.c.id)
        .scalar_subquery()
        .label("id")
    )
    .where(agents.c.company_id == bind("company"), scoped(agents.c.id))
    .subquery("last")
)
#: The start of each agent's last run.
LAST_RUNS = Statement(
    sa.select(runs.c.agent_id, runs.c.started_at).join(_last, _last.c.id == runs.c.id), counted
)
