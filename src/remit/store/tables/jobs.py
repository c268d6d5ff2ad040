"""Background jobs: one program, one text, one answer by mail."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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

from remit.store.tables.base import Id, Time, by_short_id, metadata, one_of, within_company

_UNFINISHED = text("status IN ('queued', 'running')")

jobs = Table(
    "jobs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    # Who asked for it, and with what message.
    Column("agent_id", Id, nullable=False),
    Column("message_id", Id, nullable=False, unique=True),
    Column("status", Text, nullable=False),
    Column("adapter_type", Text, nullable=False),
    # JSON: the sender's configuration when it asked.
    Column("adapter_config", Text, nullable=False),
    # Not before this time.
    Column("due_at", Time, nullable=False),
    # How often a program was started for it.
    Column("attempts", Integer, nullable=False),
    Column("worker", Text),
    # Goes up with every claim; who holds an older one has lost the job.
    Column("epoch", BigInteger, nullable=False),
    Column("lease_until", Time),
    # The closed account or set-up that it waits for or, while it runs, finds out about.
    Column("held_by", Id),
    Column("created_at", Time, nullable=False),
    Column("started_at", Time),
    Column("ended_at", Time),
    Column("error", Text),
    # The message that answered the sender.
    Column("answer_id", Id),
    Column("tokens_in", BigInteger, nullable=False, server_default="0"),
    Column("tokens_out", BigInteger, nullable=False, server_default="0"),
    Column("tokens_cached", BigInteger, nullable=False, server_default="0"),
    Column("cost_micros", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("id", "company_id"),
    within_company("agent_id", "agents"),
    within_company("message_id", "messages"),
    within_company("answer_id", "messages"),
    one_of("status", "queued", "running", "completed", "failed", "cancelled"),
    CheckConstraint("(status = 'running') = (lease_until IS NOT NULL)", name="leased"),
    CheckConstraint("(status IN ('queued', 'running')) = (ended_at IS NULL)", name="ended"),
    Index("ix_jobs_unfinished", "id", sqlite_where=_UNFINISHED, postgresql_where=_UNFINISHED),
    Index("ix_jobs_agent_id", "agent_id", "id"),
    Index("ix_jobs_company_id", "company_id", "id"),
    by_short_id("jobs"),
)
