"""What is stopped: a company, or an agent with everybody below it."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Table, Text, text

from remit.store.tables.base import Id, Time, metadata, within_company

halts = Table(
    "halts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    # The top of what is stopped; null for the whole company.
    Column("agent_id", Id),
    Column("made_by_user_id", Id, ForeignKey("users.id")),
    Column("made_by_agent_id", Id),
    Column("note", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    within_company("agent_id", "agents"),
    within_company("made_by_agent_id", "agents"),
    CheckConstraint("(made_by_user_id IS NULL) <> (made_by_agent_id IS NULL)", name="one_maker"),
    # Stopping twice is one halt.
    Index(
        "uq_halts_company",
        "company_id",
        unique=True,
        sqlite_where=text("agent_id IS NULL"),
        postgresql_where=text("agent_id IS NULL"),
    ),
    Index("uq_halts_agent", "agent_id", unique=True),
    Index("ix_halts_company_id", "company_id", "agent_id"),
)
