"""Statements about budgets: accounts, what is set aside, what was spent, who was stopped."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import BigInteger, and_, case, delete, func, insert, literal, select, update
from sqlalchemy import bindparam as bind
from sqlalchemy.dialects import postgresql, sqlite

from remit.ids import AgentId
from remit.model.agent import DEEPEST_TREE, AgentStatus
from remit.model.budget import Account, Kind, Reservation, Stop
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import (
    agent_leases,
    agents,
    budget_accounts,
    budget_stops,
    reservations,
    spending,
)

_open = reservations.c.closed_at.is_(None)
#: Of a reservation: what can be spent, or was, in the month in question.
_this_month = reservations.c.amount - case(
    (reservations.c.month == bind("month"), reservations.c.spent_before),
    else_=reservations.c.spent,
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
ACCOUNT = Statement(
    select(*_account).where(
        budget_accounts.c.agent_id == bind("agent"), budget_accounts.c.kind == bind("kind")
    ),
    into(Account),
)
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
)
_reservation = columns(reservations, Reservation)
#: What is set aside for an agent and for those above it, nearest first, the oldest first.
RESERVATIONS_ABOVE = Statement(
    select(*_reservation)
    .join(_chain, _chain.c.id == reservations.c.agent_id)
    .where(_open)
    .order_by(_chain.c.depth, reservations.c.id),
    into(Reservation),
)
OPEN_OF_OUTCOME = Statement(
    select(*_reservation).where(reservations.c.outcome_id == bind("outcome"), _open),
    into(Reservation),
)
OPEN_OF_AGENT = Statement(
    select(*_reservation).where(reservations.c.agent_id == bind("agent"), _open),
    into(Reservation),
)
#: Out of which something was spent in a month, also those that are closed.
SPENT_IN_MONTH = Statement(
    select(*_reservation).where(
        reservations.c.company_id == bind("company"), reservations.c.month == bind("month")
    ),
    into(Reservation),
)
OPEN_IN_COMPANY = Statement(
    select(*_reservation).where(reservations.c.company_id == bind("company"), _open),
    into(Reservation),
)
INSERT_ACCOUNT = change(insert(budget_accounts))
DELETE_ACCOUNT = change(
    delete(budget_accounts).where(
        budget_accounts.c.agent_id == bind("agent"), budget_accounts.c.kind == bind("of_kind")
    )
)
KEEP_ACCOUNT = change(
    update(budget_accounts)
    .where(budget_accounts.c.agent_id == bind("agent"), budget_accounts.c.kind == bind("of_kind"))
    .values(
        amount=bind("new_amount"),
        reserved=bind("new_reserved"),
        month=bind("new_month"),
        charged=bind("new_charged"),
    )
)
INSERT_RESERVATION = change(insert(reservations))
KEEP_RESERVATION = change(
    update(reservations)
    .where(reservations.c.id == bind("reservation"))
    .values(
        account_id=bind("new_account"),
        spent=bind("new_spent"),
        month=bind("new_month"),
        spent_before=bind("new_before"),
        closed_at=bind("new_closed"),
    )
)
#: They come out of another account from now on.
PASS_RESERVATIONS = change(
    update(reservations)
    .where(
        reservations.c.account_id == bind("account"), reservations.c.kind == bind("of_kind"), _open
    )
    .values(account_id=bind("new_account"))
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


TREE = Statement(
    select(*columns(agents, Node))
    .where(agents.c.company_id == bind("company"), agents.c.status != literal("terminated"))
    .order_by(agents.c.id),
    into(Node),
)
#: Whether there is anything to count at all.
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
        },
    )


SPEND = change(_spend(postgresql), sqlite=_spend(sqlite))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Spent:
    agent_id: AgentId
    money_micros: int
    tokens: int

    def of(self, kind: Kind) -> int:
        return self.money_micros if kind is Kind.MONEY else self.tokens


_spent = (
    spending.c.agent_id,
    func.sum(spending.c.money_micros).cast(BigInteger).label("money_micros"),
    func.sum(spending.c.tokens).cast(BigInteger).label("tokens"),
)
_in_month = and_(spending.c.day >= bind("month"), spending.c.day < bind("following"))
SPENT = Statement(
    select(*_spent)
    .where(spending.c.agent_id == bind("agent"), _in_month)
    .group_by(spending.c.agent_id),
    into(Spent),
)
SPENT_IN_COMPANY = Statement(
    select(*_spent)
    .where(spending.c.company_id == bind("company"), _in_month)
    .group_by(spending.c.agent_id),
    into(Spent),
)

# Stops

_stop = columns(budget_stops, Stop)
STOP_OF = Statement(select(*_stop).where(budget_stops.c.agent_id == bind("agent")), into(Stop))
STOPS = Statement(
    select(*_stop)
    .where(budget_stops.c.company_id == bind("company"))
    .order_by(budget_stops.c.since, budget_stops.c.agent_id),
    into(Stop),
)
INSERT_STOP = change(insert(budget_stops))
DELETE_STOP = change(delete(budget_stops).where(budget_stops.c.agent_id == bind("agent")))
#: Not to be looked at before then, unless something new comes.
PUT_OFF = change(
    update(agent_leases).where(agent_leases.c.agent_id == bind("agent")).values(due_at=bind("due"))
)
