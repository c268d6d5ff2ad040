"""What several agents depend on: accounts of providers, and adapters as workers have them."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from remit.store.tables.base import Id, Time, metadata, one_of

_HELD = text("state <> 'open'")

accounts = Table(
    "accounts",
    metadata,
    # A digest of the company and of what makes it another account.
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("adapter_type", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("credential", Text, nullable=False),
    Column("worker", Text),
    Column("state", Text, nullable=False),
    Column("fault", Text),
    Column("cause", Text),
    Column("since", Time),
    Column("until", Time),
    Column("probe_at", Time),
    Column("probe_run_id", Id, ForeignKey("runs.id")),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("opened_at", Time),
    Column("started", Integer, nullable=False, server_default="0"),
    Column("answered_at", Time),
    Column("told_at", Time),
    Column("told_fault", Text),
    Column("created_at", Time, nullable=False),
    UniqueConstraint("id", "company_id"),
    one_of("kind", "account", "setup"),
    one_of("state", "open", "closed", "failing"),
    CheckConstraint("(kind = 'setup') = (worker IS NOT NULL)", name="where"),
    CheckConstraint("(state = 'open') = (since IS NULL)", name="since"),
    Index("ix_accounts_company_id", "company_id", "name"),
    Index("ix_accounts_held", "probe_at", sqlite_where=_HELD, postgresql_where=_HELD),
)
