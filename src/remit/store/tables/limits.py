"""Limits that were reached, and until when nobody is started for that."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Table, Text

from remit.store.tables.base import Id, Time, metadata, one_of, within_company

limits_reached = Table(
    "limits_reached",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id),
    # The agent, or the company where it is the company's own limit.
    Column("subject_id", Id, nullable=False),
    Column("name", Text, nullable=False),
    Column("since", Time, nullable=False),
    Column("until", Time, nullable=False),
    within_company("agent_id", "agents"),
    one_of(
        "name",
        "agent_runs_per_hour",
        "agent_tokens_per_day",
        "company_runs_per_hour",
        "company_cents_per_day",
    ),
    Index("uq_limits_reached_subject", "subject_id", "name", unique=True),
    Index("ix_limits_reached_company_id", "company_id"),
)
