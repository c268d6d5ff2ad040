"""Bindings of agents to channels, what goes out through them, and what came in."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from remit.store.tables.base import Id, Time, metadata, one_of, within_company

_THERE = text("removed_at IS NULL")
_UNFINISHED = text("status IN ('queued', 'leased')")
_DEAD = text("status = 'dead'")

agent_bindings = Table(
    "agent_bindings",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    # The kind of channel.
    Column("adapter_type", Text, nullable=False),
    # The digest of the token by which the outside shows that it is bound.
    Column("adapter_token", Text, nullable=False),
    # JSON, as the channel's own model takes it.
    Column("adapter_config", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("removed_at", Time),
    UniqueConstraint("id", "company_id"),
    UniqueConstraint("adapter_type", "adapter_token"),
    within_company("agent_id", "agents"),
    Index(
        "uq_agent_bindings_agent_id",
        "agent_id",
        "adapter_type",
        unique=True,
        sqlite_where=_THERE,
        postgresql_where=_THERE,
    ),
    Index("ix_agent_bindings_company_id", "company_id", "id"),
)

channel_deliveries = Table(
    "channel_deliveries",
    metadata,
    # It goes out once, so the message names it; also to the outside.
    Column("message_id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("adapter_type", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("deliver_at", Time, nullable=False),
    # Not tried before this time.
    Column("next_at", Time, nullable=False),
    # How often somebody set out to deliver it.
    Column("attempt", Integer, nullable=False),
    Column("worker", Text),
    Column("epoch", BigInteger, nullable=False),
    Column("lease_until", Time),
    Column("ended_at", Time),
    # How it ended, or why the last attempt failed.
    Column("ended_why", Text),
    within_company("message_id", "messages"),
    within_company("agent_id", "agents"),
    one_of("status", "queued", "leased", "done", "dead", "cancelled"),
    CheckConstraint("(status = 'leased') = (lease_until IS NOT NULL)", name="leased"),
    CheckConstraint("(status IN ('queued', 'leased')) = (ended_at IS NULL)", name="ended"),
    Index(
        "ix_channel_deliveries_unfinished",
        "agent_id",
        "adapter_type",
        "message_id",
        sqlite_where=_UNFINISHED,
        postgresql_where=_UNFINISHED,
    ),
    Index(
        "ix_channel_deliveries_dead",
        "company_id",
        "message_id",
        sqlite_where=_DEAD,
        postgresql_where=_DEAD,
    ),
)

channel_receipts = Table(
    "channel_receipts",
    metadata,
    Column("binding_id", Id, nullable=False),
    # As the outside calls its message.
    Column("outside_id", Text, nullable=False),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("message_id", Id, nullable=False),
    Column("digest", Text, nullable=False),
    PrimaryKeyConstraint("binding_id", "outside_id"),
    within_company("binding_id", "agent_bindings"),
    within_company("message_id", "messages"),
    Index("ix_channel_receipts_message_id", "message_id"),
)
