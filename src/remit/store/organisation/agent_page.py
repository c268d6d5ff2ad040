"""Statements for the page of one agent."""

from typing import Any, NamedTuple

from sqlalchemy import BigInteger, case, func, literal, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import DAY
from remit.model.execution.cost import Cost, cost_of
from remit.model.organisation.agent import Agent
from remit.store import costs
from remit.store.engine.statement import Rows, Statement, count
from remit.store.tables import agents, deliveries, runs


def _briefly(agent: str, name: str, role: str, title: str, status: str) -> dict[str, Any]:
    return {"id": agent, "name": name, "role": role, "title": title, "status": status}


_brief = (agents.c.id, agents.c.name, agents.c.role, agents.c.title, agents.c.status)
_living = agents.c.status != literal("terminated")

#: The first reports of an agent, by name.
SOME_REPORTS = Statement(
    select(*_brief)
    .where(agents.c.boss_id == bind("agent"), _living)
    .order_by(agents.c.name_key)
    .limit(bind("limit")),
    _briefly,
)
#: How many reports an agent has.
COUNT_REPORTS = count(agents, agents.c.boss_id == bind("agent"), _living)
#: Possible bosses of a new agent, by name.
ROSTER = Statement(
    select(*_brief)
    .where(
        agents.c.company_id == bind("company"),
        _living,
        agents.c.status != literal("pending_approval"),
    )
    .order_by(agents.c.name_key)
    .limit(bind("limit")),
    _briefly,
)
#: How many deliveries wait for an agent or are with its run.
UNREAD_COUNT = count(
    deliveries,
    deliveries.c.agent_id == bind("agent"),
    deliveries.c.status.in_([literal("queued"), literal("leased")]),
)


class RunTotals(NamedTuple):
    runs: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: Cost


def _sums(number: int, *sums: Any) -> RunTotals:
    read, written, cached, *costs_ = sums
    return RunTotals(
        int(number), int(read or 0), int(written or 0), int(cached or 0), cost_of(*costs_)
    )


#: Number, tokens and cost of all runs of an agent.
RUN_TOTALS = Statement(
    select(
        func.count(),
        *(func.sum(runs.c[name]) for name in ("tokens_in", "tokens_out", "tokens_cached")),
        *costs.SUMS,
    ).where(runs.c.agent_id == bind("agent")),
    _sums,
)
_day = runs.c.started_at - runs.c.started_at % literal(DAY, BigInteger)
#: How many runs an agent began on each day; ids are in the order of time.
RUNS_BY_DAY = Statement(
    select(_day, func.count())
    .where(runs.c.agent_id == bind("agent"), runs.c.id >= bind("first"))
    .group_by(_day),
    lambda day, number: (int(day), int(number)),
)

_same_role = agents.c.role == bind("role")
_same_adapter = agents.c.adapter_type == bind("adapter_type")
#: Agents with a role, an adapter or both, best match first and then newest first.
RELATED = Rows(Agent).find(
    agents.c.status.in_([literal("idle"), literal("running"), literal("paused")]),
    or_(_same_role, _same_adapter),
    company_id="company",
    order=[
        case((_same_adapter, literal(0)), else_=literal(1))
        + case((_same_role, literal(0)), else_=literal(1)),
        agents.c.id.desc(),
    ],
    limit=bind("limit"),
)
