"""What agents may spend: their accounts, what is set aside for outcomes, and who was stopped."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    text,
)

from remit.store.tables.base import Id, Time, metadata, one_of, within_company

_OPEN = text("closed_at IS NULL")

# An agent that has a monthly budget has an account; money is in millionths of a dollar.
budget_accounts = Table(
    "budget_accounts",
    metadata,
    Column("agent_id", Id, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("amount", BigInteger, nullable=False),
    # The amounts of the nearest accounts below it, kept by the services.
    Column("reserved", BigInteger, nullable=False),
    # What was paid out of it in the month that began then; other months begin at nothing.
    Column("month", Time, nullable=False),
    Column("charged", BigInteger, nullable=False),
    within_company("agent_id", "agents"),
    one_of("kind", "money", "tokens"),
    CheckConstraint("amount >= 0 AND reserved >= 0 AND charged >= 0", name="amounts"),
    Index("ix_budget_accounts_company_id", "company_id"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("giver_id", Id, nullable=False),
    # Out of whose account; nobody's where nobody above has one.
    Column("account_id", Id),
    # What it is for: it closes with this outcome.
    Column("outcome_id", Id, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    # How much of that was spent before the month that began then.
    Column("month", Time, nullable=False),
    Column("spent_before", BigInteger, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("closed_at", Time),
    within_company("agent_id", "agents"),
    within_company("giver_id", "agents"),
    within_company("account_id", "agents"),
    within_company("outcome_id", "outcomes"),
    one_of("kind", "money", "tokens"),
    CheckConstraint("amount > 0 AND spent >= spent_before AND spent_before >= 0", name="amounts"),
    Index("ix_reservations_agent_id", "agent_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_reservations_account_id", "account_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_reservations_outcome_id", "outcome_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_reservations_company_id", "company_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
)

# What an agent itself took on a day (UTC), whoever paid. Months from before there were days stand
# at their first day.
spending = Table(
    "spending",
    metadata,
    Column("agent_id", Id, primary_key=True),
    Column("day", Time, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("money_micros", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    within_company("agent_id", "agents"),
    Index("ix_spending_company_id", "company_id", "day"),
)

# Agents that are not started, because somebody's budget is used up.
budget_stops = Table(
    "budget_stops",
    metadata,
    Column("agent_id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    # Whose budget, and of what.
    Column("holder_id", Id, nullable=False),
    Column("kind", Text, nullable=False),
    Column("since", Time, nullable=False),
    within_company("agent_id", "agents"),
    within_company("holder_id", "agents"),
    one_of("kind", "money", "tokens"),
    Index("ix_budget_stops_company_id", "company_id"),
)
