"""What agents may spend: money and tokens set aside for them, and what is left."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from remit.store.tables.base import Id, Time, metadata, within_company

_OPEN = text("closed_at IS NULL")

reservations = Table(
    "reservations",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    # Out of whose share; nobody's for a root agent.
    Column("giver_id", Id),
    # What it is for: it closes with this outcome. Without one it is the agent's own, every month.
    Column("outcome_id", Id),
    Column("money_micros", BigInteger),
    Column("tokens", BigInteger),
    # In the month that `month` names, such as 2026-11; what is for an outcome knows no months.
    Column("month", Text),
    Column("spent_money_micros", BigInteger, nullable=False, server_default="0"),
    Column("spent_tokens", BigInteger, nullable=False, server_default="0"),
    # Whether somebody was told that it is used up.
    Column("told", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("closed_at", Time),
    UniqueConstraint("id", "company_id"),
    within_company("agent_id", "agents"),
    within_company("giver_id", "agents"),
    within_company("outcome_id", "outcomes"),
    CheckConstraint("(month IS NULL) = (outcome_id IS NOT NULL)", name="month"),
    CheckConstraint("money_micros IS NOT NULL OR tokens IS NOT NULL", name="something"),
    CheckConstraint("spent_money_micros >= 0 AND spent_tokens >= 0", name="spent"),
    Index("ix_reservations_agent_id", "agent_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_reservations_giver_id", "giver_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
    Index("ix_reservations_outcome_id", "outcome_id"),
)
