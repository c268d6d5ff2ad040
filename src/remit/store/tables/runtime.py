"""Runs, who is to be started, conversations, and what programs printed."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

from remit.store.tables.base import Id, Time, by_short_id, metadata, one_of, within_company

#: Something is to do while a wake is ahead of what was done.
_READY = text("wake_seq > done_seq AND held_by IS NULL")
_HELD = text("held_by IS NOT NULL")

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("status", Text, nullable=False),
    Column("workspace", Text),
    Column("started_at", Time, nullable=False),
    Column("ended_at", Time),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("worker", Text),
    Column("adapter_type", Text),
    Column("session_id", Text),
    Column("why", Text),
    Column("message_ids", Text, nullable=False, server_default="[]"),
    Column("final_response", Text),
    Column("context_length", BigInteger),
    Column("tokens_in", BigInteger, nullable=False, server_default="0"),
    Column("tokens_out", BigInteger, nullable=False, server_default="0"),
    Column("tokens_cached", BigInteger, nullable=False, server_default="0"),
    Column("cost_micros", BigInteger, nullable=False, server_default="0"),
    # Whether that was worked out from what earlier runs cost, because nobody said.
    Column("cost_estimated", Boolean, nullable=False, server_default=false()),
    Column("exit_reason", Text),
    Column("error", Text),
    Column("accountable_user_id", Id, ForeignKey("users.id")),
    Column("log_bytes", BigInteger, nullable=False, server_default="0"),
    # What it was started for, the outcomes that were due then (JSON), and up to which place in
    # the record it was shown what happened.
    Column("occasion", Text),
    Column("outcome_ids", Text, nullable=False, server_default="[]"),
    Column("shown", BigInteger, nullable=False, server_default="0"),
    Column("goes_on", Boolean, nullable=False, server_default=false()),
    # Whose fault it was, how long that lasts as far as anybody said, and the account it used.
    Column("fault", Text),
    Column("fault_until", Time),
    Column("account_id", Id),
    UniqueConstraint("id", "company_id"),
    within_company("agent_id", "agents"),
    one_of("status", "running", "completed", "failed", "cancelled", "lost"),
    CheckConstraint("(status = 'running') = (ended_at IS NULL)", name="ended"),
    Index(
        "uq_runs_one_live",
        "agent_id",
        unique=True,
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
    Index(
        "ix_runs_live",
        "company_id",
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
    Index("ix_runs_agent_id", "agent_id", "id"),
    Index("ix_runs_company_id", "company_id", "id"),
    by_short_id("runs"),
)

agent_leases = Table(
    "agent_leases",
    metadata,
    Column("agent_id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("wake_seq", BigInteger, nullable=False),
    Column("done_seq", BigInteger, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("lease_until", Time),
    Column("worker", Text),
    Column("due_at", Time, nullable=False),
    Column("why", Text, nullable=False),
    Column("idle_runs", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    # At how many failures news ended a pause already: once each.
    Column("spared", Integer, nullable=False, server_default="0"),
    Column("told", Text),
    # Since when it has been failing without a good run between.
    Column("failing_since", Time),
    # The closed account or set-up that it waits for: it is not looked for among those ready.
    Column("held_by", Id),
    within_company("agent_id", "agents"),
    CheckConstraint("wake_seq >= done_seq", name="wakes"),
    Index("ix_agent_leases_due", "due_at", sqlite_where=_READY, postgresql_where=_READY),
    Index(
        "ix_agent_leases_held_by", "held_by", "due_at", sqlite_where=_HELD, postgresql_where=_HELD
    ),
    Index(
        "ix_agent_leases_leased",
        "lease_until",
        sqlite_where=text("lease_until IS NOT NULL"),
        postgresql_where=text("lease_until IS NOT NULL"),
    ),
)

agent_sessions = Table(
    "agent_sessions",
    metadata,
    Column("agent_id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("adapter_type", Text, nullable=False),
    Column("session_id", Text, nullable=False),
    Column("begun_at", Time, nullable=False),
    Column("used_at", Time, nullable=False),
    Column("context_tokens", BigInteger, nullable=False),
    within_company("agent_id", "agents"),
)

run_logs = Table(
    "run_logs",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("at", Time, nullable=False),
    Column("stream", Text, nullable=False),
    Column("text", Text, nullable=False),
    one_of("stream", "stdout", "stderr", "remit"),
)
