"""Statements with counts and states for overviews of a company."""

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    and_,
    case,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.ids import AgentId, RunId
from remit.model.execution.cost import Cost, cost_of
from remit.model.organisation.agent import AgentStatus
from remit.store import costs
from remit.store.engine.statement import Statement, count, counted, into, unless, values_of
from remit.store.execution.runs import BADLY
from remit.store.organisation.agents import BELOW_AGENT
from remit.store.tables import (
    accounts,
    agent_leases,
    agents,
    approvals,
    budget_stops,
    deliveries,
    outcomes,
    run_logs,
    runs,
    spending,
    waits,
)


def _by_status(of: ColumnElement[bool], status: Column[str]) -> Statement[tuple[str, int]]:
    """Count the rows of each status; the index alone is read."""
    return Statement(select(status, func.count()).where(of).group_by(status), counted)


#: How many agents of a company have each status.
AGENTS_BY_STATUS = _by_status(agents.c.company_id == bind("company"), agents.c.status)
#: How many outcomes of a company have each status.
OUTCOMES_BY_STATUS = _by_status(outcomes.c.company_id == bind("company"), outcomes.c.status)
#: How many outcomes of an agent have each status.
OUTCOMES_OF_BY_STATUS = _by_status(outcomes.c.owner_id == bind("owner"), outcomes.c.status)
#: How many approvals are pending: all, or those that an agent requested or is to decide.
PENDING_APPROVALS = count(
    approvals,
    approvals.c.company_id == bind("company"),
    approvals.c.status.in_([literal("pending"), literal("revision_requested")]),
    approvals.c.status == literal("pending"),
    unless(
        "all_of_them",
        approvals.c.requested_by_agent_id == bind("agent"),
        approvals.c.routed_to_agent_id == bind("agent"),
    ),
)
#: How many runs of a company are running.
RUNNING = count(runs, runs.c.company_id == bind("company"), runs.c.status == literal("running"))
#: How many deliveries wait for a person or an agent.
UNREAD = count(
    deliveries,
    deliveries.c.company_id == bind("company"),
    deliveries.c.status == literal("queued"),
    or_(deliveries.c.user_id == bind("who"), deliveries.c.agent_id == bind("who")),
)


# States of all agents, and runs over time


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent as a row of an overview, with the state of its work from joined tables."""

    id: AgentId
    name: str
    title: str | None
    role: str
    status: AgentStatus
    boss_id: AgentId | None
    adapter_type: str
    updated_at: Micros
    failures: int
    told: str | None
    held_by: str | None
    #: Kind and cause of the closed account or set-up that holds the agent.
    held_kind: str | None
    held_cause: str | None
    failing_since: Micros | None
    over_budget: bool
    waits: bool
    run_id: RunId | None
    started_at: Micros | None


def scoped(agent: ColumnElement[str]) -> ColumnElement[bool]:
    """A condition: any agent, or one agent and those below it."""
    return unless("everybody", agent.in_(select(BELOW_AGENT.c.id)))


#: The states of all agents of a company or of a part of it, except terminated ones.
STANDINGS = Statement(
    select(
        agents.c.id,
        agents.c.name,
        agents.c.title,
        agents.c.role,
        agents.c.status,
        agents.c.boss_id,
        agents.c.adapter_type,
        agents.c.updated_at,
        func.coalesce(agent_leases.c.failures, 0),
        agent_leases.c.told,
        agent_leases.c.held_by,
        accounts.c.kind,
        accounts.c.cause,
        agent_leases.c.failing_since,
        budget_stops.c.agent_id.is_not(None),
        exists().where(waits.c.agent_id == agents.c.id),
        runs.c.id,
        runs.c.started_at,
    )
    .select_from(agents)
    .outerjoin(agent_leases, agent_leases.c.agent_id == agents.c.id)
    .outerjoin(accounts, accounts.c.id == agent_leases.c.held_by)
    .outerjoin(budget_stops, budget_stops.c.agent_id == agents.c.id)
    .outerjoin(runs, and_(runs.c.agent_id == agents.c.id, runs.c.status == literal("running")))
    .where(
        agents.c.company_id == bind("company"),
        scoped(agents.c.id),
        agents.c.status != literal("terminated"),
    )
    .order_by(agents.c.id),
    into(Standing),
)


@dataclass(frozen=True, slots=True)
class Stopped:
    """An agent in error, which does not work until a person mends the cause."""

    id: AgentId
    name: str
    told: str | None
    since: Micros


#: The agents in error, with the last failure reported to their boss and the start of the failures.
IN_ERROR = Statement(
    select(
        agents.c.id,
        agents.c.name,
        agent_leases.c.told,
        func.coalesce(agent_leases.c.failing_since, agents.c.updated_at),
    )
    .outerjoin(agent_leases, agent_leases.c.agent_id == agents.c.id)
    .where(
        agents.c.company_id == bind("company"),
        scoped(agents.c.id),
        agents.c.status == literal_column("'error'"),
    )
    .order_by(agents.c.id),
    into(Stopped),
)


@dataclass(frozen=True, slots=True)
class Span:
    """Counts of runs in one interval."""

    began: Micros
    runs: int
    failed: int
    cost: Cost


_began = runs.c.started_at - runs.c.started_at % bind("span", type_=BigInteger)
#: Runs, failures and costs per interval since a time; ids are in the order of time.
RUNS_BY_SPAN = Statement(
    select(
        _began,
        func.count(),
        func.sum(case((BADLY, 1), else_=0)).cast(BigInteger),
        *costs.SUMS,
    )
    .where(
        runs.c.company_id == bind("company"),
        runs.c.id >= bind("first"),
        runs.c.started_at >= bind("since"),
        scoped(runs.c.agent_id),
    )
    .group_by(_began),
    lambda began, number, failed, *sums: Span(began, number, failed, cost_of(*sums)),
)
_spent = (
    func.sum(spending.c.money_micros).cast(BigInteger),
    func.sum(spending.c.money_estimated).cast(BigInteger),
    func.sum(spending.c.tokens_unpriced).cast(BigInteger),
)
#: The spending of each day.
SPENT_BY_DAY = Statement(
    select(spending.c.day, *_spent)
    .where(
        spending.c.company_id == bind("company"),
        spending.c.day >= bind("since"),
        scoped(spending.c.agent_id),
    )
    .group_by(spending.c.day),
    lambda day, *sums: (int(day), cost_of(*sums)),
)
#: The last three pieces of a run's output, newest first.
LAST_WORDS = values_of(run_logs.c.text, run_id="run", order=[run_logs.c.number.desc()], limit=3)
#: The spending of each agent since a day.
SPENT_BY_AGENT = Statement(
    select(spending.c.agent_id, *_spent)
    .where(
        spending.c.company_id == bind("company"),
        spending.c.day >= bind("since"),
        scoped(spending.c.agent_id),
    )
    .group_by(spending.c.agent_id),
    lambda agent, *sums: (str(agent), cost_of(*sums)),
)
_last = (
    select(
        select(func.max(runs.c.id))
        .where(runs.c.agent_id == agents.c.id)
        .scalar_subquery()
        .label("id")
    )
    .where(agents.c.company_id == bind("company"), scoped(agents.c.id))
    .subquery("last")
)
#: The start of each agent's last run.
LAST_RUNS = Statement(
    select(runs.c.agent_id, runs.c.started_at).join(_last, _last.c.id == runs.c.id), counted
)
