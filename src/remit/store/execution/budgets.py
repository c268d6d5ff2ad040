"""Statements about budgets: accounts, reservations, spending, and stops for used-up budgets."""

import json
from dataclasses import dataclass

from sqlalchemy import BigInteger, and_, case, delete, func, insert, literal, select, update
from sqlalchemy import bindparam as bind
from sqlalchemy.dialects import postgresql, sqlite

from remit.ids import AgentId
from remit.model.execution.budget import Account, Kind, Reservation, Stop
from remit.model.execution.cost import Cost, cost_of
from remit.model.organisation.agent import DEEPEST_TREE, AgentStatus
from remit.store.engine.statement import Rows, Statement, change, into, new, scalar
from remit.store.tables import (
    agent_leases,
    agents,
    budget_accounts,
    budget_stops,
    reservations,
    spending,
)

_open = reservations.c.closed_at.is_(None)
#: The part of a reservation that counts in the month: its amount less earlier months' spending.
_this_month = reservations.c.amount - case(
    (reservations.c.month == bind("month"), reservations.c.spent_before), else_=reservations.c.spent
)
_set_aside = (
    select(func.coalesce(func.sum(_this_month), 0).cast(BigInteger))
    .where(
        reservations.c.account_id == budget_accounts.c.agent_id,
        reservations.c.kind == budget_accounts.c.kind,
        _open,
    )
    .scalar_subquery()
)
_account = (
    budget_accounts.c.agent_id,
    budget_accounts.c.kind,
    budget_accounts.c.amount,
    budget_accounts.c.reserved,
    budget_accounts.c.month,
    budget_accounts.c.charged,
    _set_aside.label("set_aside"),
)
#: An agent's account of one currency.
ACCOUNT = Statement(
    select(*_account).where(
        budget_accounts.c.agent_id == bind("agent"), budget_accounts.c.kind == bind("kind")
    ),
    into(Account),
)
#: All accounts of a company.
ACCOUNTS = Statement(
    select(*_account).where(budget_accounts.c.company_id == bind("company")), into(Account)
)
_start = (
    select(agents.c.id, agents.c.boss_id, literal(0).label("depth"))
    .where(agents.c.id == bind("agent"))
    .cte("payers", recursive=True)
)
_chain = _start.union_all(
    select(agents.c.id, agents.c.boss_id, _start.c.depth + 1).where(
        and_(agents.c.id == _start.c.boss_id, _start.c.depth <= DEEPEST_TREE)
    )
)
#: The accounts of an agent and of those above it, nearest first.
ACCOUNTS_ABOVE = Statement(
    select(*_account)
    .join(_chain, _chain.c.id == budget_accounts.c.agent_id)
    .order_by(_chain.c.depth),
    into(Account),
).keep()
_RESERVATIONS = Rows(Reservation)
#: Open reservations of an agent and its bosses, nearest first, then oldest first.
RESERVATIONS_ABOVE = _RESERVATIONS.find(
    _open,
    join=(_chain, _chain.c.id == reservations.c.agent_id),
    order=[_chain.c.depth, reservations.c.id],
).keep()
#: The open reservations for an outcome.
OPEN_OF_OUTCOME = _RESERVATIONS.find(_open, outcome_id="outcome", order=())
#: The open reservations that an agent spends from.
OPEN_OF_AGENT = _RESERVATIONS.find(_open, agent_id="agent", order=())
#: The reservations, also closed ones, that were spent from in a month.
SPENT_IN_MONTH = _RESERVATIONS.find(company_id="company", month="month", order=())
#: All open reservations of a company.
OPEN_IN_COMPANY = _RESERVATIONS.find(_open, company_id="company", order=())
#: Opens an account.
INSERT_ACCOUNT = change(insert(budget_accounts))
#: Closes an agent's account of one currency.
DELETE_ACCOUNT = change(
    delete(budget_accounts).where(
        budget_accounts.c.agent_id == bind("agent"), budget_accounts.c.kind == bind("of_kind")
    )
)
#: Stores the amount, reserved sum and charges of an account.
KEEP_ACCOUNT = change(
    update(budget_accounts)
    .where(budget_accounts.c.agent_id == bind("agent"), budget_accounts.c.kind == bind("of_kind"))
    .values(new("amount", "reserved", "month", "charged"))
)
#: Stores the spent sums, the account and the end of a reservation.
KEEP_RESERVATION = _RESERVATIONS.update(
    reservations.c.id == bind("reservation"),
    **new("spent", "month", "account_id", "spent_before", "closed_at"),
)
#: Moves the open reservations of one account to another.
PASS_RESERVATIONS = _RESERVATIONS.update(
    reservations.c.account_id == bind("account"),
    reservations.c.kind == bind("of_kind"),
    _open,
    account_id=bind("new_account"),
)


@dataclass(frozen=True, slots=True)
class Node:
    """An agent as its place in the tree and its budgets are configured."""

    id: AgentId
    name: str
    status: AgentStatus
    boss_id: AgentId | None
    budget_monthly_cents: int | None
    budget_monthly_tokens: int | None


#: All agents of a company that are not terminated, with their bosses and budgets.
TREE = Rows(Node, table=agents).find(agents.c.status != literal("terminated"), company_id="company")
#: Whether any agent of a company has a budget.
ANY_LIMIT = Statement(
    select(literal(1))
    .where(
        agents.c.company_id == bind("company"),
        agents.c.status != literal("terminated"),
        func.coalesce(agents.c.budget_monthly_cents, agents.c.budget_monthly_tokens).is_not(None),
    )
    .limit(1),
    scalar,
)


def _spend(dialect: object) -> object:
    new = dialect.insert(spending)  # type: ignore[attr-defined]
    return new.on_conflict_do_update(
        index_elements=[spending.c.agent_id, spending.c.day],
        set_={
            "money_micros": spending.c.money_micros + new.excluded.money_micros,
            "tokens": spending.c.tokens + new.excluded.tokens,
            "money_estimated": spending.c.money_estimated + new.excluded.money_estimated,
            "tokens_unpriced": spending.c.tokens_unpriced + new.excluded.tokens_unpriced,
        },
    )


#: Adds a run's usage to the agent's day, or begins that day.
SPEND = change(_spend(postgresql), sqlite=_spend(sqlite))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Spent:
    agent_id: AgentId
    money_micros: int
    tokens: int
    money_estimated: int
    tokens_unpriced: int

    @property
    def cost(self) -> Cost:
        return cost_of(self.money_micros, self.money_estimated, self.tokens_unpriced)

    def of(self, kind: Kind) -> int:
        return self.money_micros if kind is Kind.MONEY else self.tokens


_spent = (
    spending.c.agent_id,
    func.sum(spending.c.money_micros).cast(BigInteger).label("money_micros"),
    func.sum(spending.c.tokens).cast(BigInteger).label("tokens"),
    func.sum(spending.c.money_estimated).cast(BigInteger).label("money_estimated"),
    func.sum(spending.c.tokens_unpriced).cast(BigInteger).label("tokens_unpriced"),
)
_in_month = and_(spending.c.day >= bind("month"), spending.c.day < bind("following"))
#: The spending of one agent in a month.
SPENT = Statement(
    select(*_spent)
    .where(spending.c.agent_id == bind("agent"), _in_month)
    .group_by(spending.c.agent_id),
    into(Spent),
)
#: The spending of each agent of a company in a month.
SPENT_IN_COMPANY = Statement(
    select(*_spent)
    .where(spending.c.company_id == bind("company"), _in_month)
    .group_by(spending.c.agent_id),
    into(Spent),
)

#: The different adapters and configurations of the agents of a company.
SPENDERS = Statement(
    select(agents.c.adapter_type, agents.c.adapter_config)
    .where(
        agents.c.company_id == bind("company"),
        agents.c.status.not_in([literal("terminated"), literal("pending_approval")]),
    )
    .distinct(),
    lambda adapter, config: (str(adapter), json.loads(config)),
)

# Stops for used-up budgets

_BUDGET_STOPS = Rows(Stop, "agent_id")
#: Why an agent is stopped by its budget, if it is.
STOP_OF = _BUDGET_STOPS.one(agent_id="agent")
#: All budget stops of a company, the longest first.
STOPS = _BUDGET_STOPS.find(
    company_id="company", order=[budget_stops.c.since, budget_stops.c.agent_id]
)
#: Agents of all companies that are stopped by a budget.
STOPPED = Statement(select(budget_stops.c.agent_id), scalar)
#: Ends an agent's stop for its budget.
DELETE_STOP = _BUDGET_STOPS.delete(agent_id="agent")
#: Postpones an agent's next start to a time; a wake brings it forward.
PUT_OFF = change(
    update(agent_leases).where(agent_leases.c.agent_id == bind("agent")).values(due_at=bind("due"))
)
