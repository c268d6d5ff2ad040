"""What happened, in a chain, and the first answer to each request."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text, text

from remit.store.tables.base import Id, Time, by_short_id, metadata, one_of

event_heads = Table(
    "event_heads",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("id", Id, nullable=False, unique=True),
    Column("at", Time, nullable=False),
    Column("actor_kind", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("run_id", Id),
    Column("action", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("allowed", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("basis", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("prev_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
    one_of("actor_kind", "user", "agent", "system"),
    Index("ix_events_resource", "company_id", "resource", "seq"),
    # What a run did.
    Index(
        "ix_events_run_id",
        "run_id",
        sqlite_where=text("run_id IS NOT NULL"),
        postgresql_where=text("run_id IS NOT NULL"),
    ),
    by_short_id("events"),
)

answers = Table(
    "answers",
    metadata,
    # The first answer to each idempotency key, kept so that a repeat gets it again.
    Column("actor", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("verb", Text, nullable=False),
    # Of the verb's arguments: only digests of one version can be compared.
    Column("version", Integer, nullable=False, server_default="1"),
    Column("digest", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Index("ix_answers_created_at", "created_at"),
)
