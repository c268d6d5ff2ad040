"""What agents wait for: what they raised and nobody has decided, and what they handed in."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, text

from remit.store.tables.base import Id, Time, metadata, one_of, within_company

#: A row exists exactly while its subject is undecided.
waits = Table(
    "waits",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    # The agent that waits.
    Column("agent_id", Id, nullable=False),
    Column("kind", Text, nullable=False),
    # The question, approval, submission, or the message that asks or expects a reply.
    Column("subject_id", Id, nullable=False),
    # Who is awaited: an agent, or a person; neither means the board.
    Column("awaited_agent_id", Id),
    Column("awaited_user_id", Id, ForeignKey("users.id")),
    Column("since", Time, nullable=False),
    # How often who is awaited was reminded, and when that happens next.
    Column("reminders", Integer, nullable=False, server_default="0"),
    Column("remind_at", Time),
    UniqueConstraint("id", "company_id"),
    UniqueConstraint("kind", "subject_id"),
    within_company("agent_id", "agents"),
    within_company("awaited_agent_id", "agents"),
    one_of("kind", "question", "approval", "capability", "reply", "submission"),
    Index("ix_waits_agent_id", "agent_id", "id"),
    Index("ix_waits_awaited_agent_id", "awaited_agent_id", "id"),
    Index("ix_waits_company_id", "company_id", "id"),
    Index(
        "ix_waits_remind_at",
        "remind_at",
        sqlite_where=text("remind_at IS NOT NULL"),
        postgresql_where=text("remind_at IS NOT NULL"),
    ),
)

wait_outcomes = Table(
    "wait_outcomes",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("wait_id", Id, primary_key=True),
    Column("outcome_id", Id, primary_key=True),
    within_company("wait_id", "waits"),
    within_company("outcome_id", "outcomes"),
    Index("ix_wait_outcomes_outcome_id", "outcome_id"),
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("outcome_id", Id, nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("note", Text, nullable=False),
    # JSON: files, each with the version and the hash that it had.
    Column("evidence", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("verdict_note", Text),
    Column("judged_by", Text),
    Column("created_at", Time, nullable=False),
    Column("ended_at", Time),
    UniqueConstraint("id", "company_id"),
    within_company("outcome_id", "outcomes"),
    within_company("agent_id", "agents"),
    one_of("status", "open", "accepted", "returned", "withdrawn"),
    Index(
        "uq_submissions_open",
        "outcome_id",
        unique=True,
        sqlite_where=text("status = 'open'"),
        postgresql_where=text("status = 'open'"),
    ),
    Index("ix_submissions_outcome_id", "outcome_id", "id"),
)
