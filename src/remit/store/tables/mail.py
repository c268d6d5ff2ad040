"""Messages and their deliveries, what comes at a time, and questions."""

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

from remit.store.tables.base import (
    Id,
    RowNumber,
    Time,
    by_short_id,
    metadata,
    one_of,
    within_company,
)

messages = Table(
    "messages",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("thread_id", Id, nullable=False),
    Column("reply_to", Id),
    Column("sender_kind", Text, nullable=False),
    Column("sender_agent_id", Id),
    Column("sender_user_id", Id, ForeignKey("users.id")),
    Column("sender_run_id", Id, ForeignKey("runs.id")),
    # Derived from who sent it, never from what it says.
    Column("from_board", Boolean, nullable=False),
    Column("address", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body_file_id", Id, nullable=False),
    Column("body_version", Integer, nullable=False),
    # JSON: ids of files.
    Column("attachments", Text, nullable=False),
    Column("hops", Integer, nullable=False),
    Column("at_most_once", Boolean, nullable=False),
    # What it is besides a letter: a question's id, or a request for a capability as JSON.
    Column("question_id", Id),
    Column("request", Text),
    # Whether its sender waits for a reply to it.
    Column("expects_reply", Boolean, nullable=False, server_default=false()),
    # Whether Remit wrote it for a background job.
    Column("background", Boolean, nullable=False, server_default=false()),
    # The address outside from which it came through a channel.
    Column("channel", Text),
    # The person's letter that it came of, and how Remit came to send it.
    Column("origin_id", Id),
    Column("mark", Text),
    Column("created_at", Time, nullable=False),
    UniqueConstraint("id", "company_id"),
    within_company("sender_agent_id", "agents"),
    within_company("body_file_id", "files"),
    within_company("reply_to", "messages"),
    one_of("sender_kind", "agent", "user", "system"),
    CheckConstraint(
        "(sender_kind = 'agent') = (sender_agent_id IS NOT NULL)"
        " AND (sender_kind = 'user') = (sender_user_id IS NOT NULL)",
        name="one_sender",
    ),
    CheckConstraint("NOT from_board OR sender_kind = 'user'", name="from_board"),
    Index("ix_messages_thread_id", "thread_id", "id"),
    Index("ix_messages_company_id", "company_id", "id"),
    # What somebody sent, such as what of it is still held back.
    Index("ix_messages_sender_agent_id", "sender_agent_id", "id"),
    Index("ix_messages_sender_user_id", "sender_user_id", "id"),
    # The letters that carry a question: few of all.
    Index(
        "ix_messages_question_id",
        "question_id",
        sqlite_where=text("question_id IS NOT NULL"),
        postgresql_where=text("question_id IS NOT NULL"),
    ),
    Index(
        "ix_messages_origin_id",
        "origin_id",
        "id",
        sqlite_where=text("origin_id IS NOT NULL"),
        postgresql_where=text("origin_id IS NOT NULL"),
    ),
    by_short_id("messages"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("message_id", Id, nullable=False),
    Column("agent_id", Id),
    Column("user_id", Id, ForeignKey("users.id")),
    Column("status", Text, nullable=False),
    Column("deliver_at", Time, nullable=False),
    # The place in line, given when the message becomes visible; clocks do not matter to it.
    Column("position", BigInteger),
    Column("attempt", Integer, nullable=False),
    Column("run_id", Id, ForeignKey("runs.id")),
    Column("ended_at", Time),
    Column("ended_why", Text),
    # A run had taken it up and did not end well; so it may have been handled.
    Column("begun", Boolean, nullable=False, server_default=false()),
    # How many runs that had taken it up failed for no other known reason, and the first of these
    # that had nothing but it.
    Column("faults", Integer, nullable=False, server_default="0"),
    Column("alone_run_id", Id),
    within_company("message_id", "messages"),
    within_company("agent_id", "agents"),
    CheckConstraint("(agent_id IS NULL) <> (user_id IS NULL)", name="one_receiver"),
    one_of("status", "deferred", "queued", "leased", "done", "dead", "cancelled"),
    CheckConstraint(
        "(status = 'leased') = (run_id IS NOT NULL AND ended_at IS NULL)", name="leased"
    ),
    CheckConstraint(
        "(status = 'deferred') OR (position IS NOT NULL) OR status = 'cancelled'", name="position"
    ),
    Index(
        "ix_deliveries_agent_waiting",
        "agent_id",
        "position",
        sqlite_where=text("status IN ('queued', 'leased')"),
        postgresql_where=text("status IN ('queued', 'leased')"),
    ),
    # All that came for an agent. With the position SQLite would prefer it to the small one above.
    Index("ix_deliveries_agent_id", "agent_id"),
    Index("ix_deliveries_user_id", "user_id", "company_id", "position"),
    Index(
        "ix_deliveries_user_waiting",
        "user_id",
        "company_id",
        "position",
        sqlite_where=text("status = 'queued'"),
        postgresql_where=text("status = 'queued'"),
    ),
    # With the receiver, or "did it reach them" would go through all that they ever received.
    Index("ix_deliveries_message_id", "message_id", "agent_id"),
    Index(
        "ix_deliveries_due",
        "deliver_at",
        sqlite_where=text("status = 'deferred'"),
        postgresql_where=text("status = 'deferred'"),
    ),
    Index(
        "ix_deliveries_dead",
        "company_id",
        "id",
        sqlite_where=text("status = 'dead'"),
        postgresql_where=text("status = 'dead'"),
    ),
    Index(
        "ix_deliveries_run_id",
        "run_id",
        sqlite_where=text("status = 'leased'"),
        postgresql_where=text("status = 'leased'"),
    ),
    sqlite_autoincrement=True,
)

schedules = Table(
    "schedules",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("cron", Text),
    Column("timezone", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("next_at", Time),
    Column("last_at", Time),
    Column("created_at", Time, nullable=False),
    within_company("agent_id", "agents"),
    one_of("status", "active", "done", "cancelled"),
    CheckConstraint("(status = 'active') = (next_at IS NOT NULL)", name="next"),
    Index("ix_schedules_company_id", "company_id", "id"),
    Index("ix_schedules_agent_id", "agent_id"),
    Index(
        "ix_schedules_due",
        "next_at",
        sqlite_where=text("status = 'active'"),
        postgresql_where=text("status = 'active'"),
    ),
    by_short_id("schedules"),
)

questions = Table(
    "questions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    # The boss it is for; the board when empty.
    Column("to_agent_id", Id),
    Column("text", Text, nullable=False),
    # JSON: what can be chosen, if anything.
    Column("options", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("answer", Text),
    Column("answered_by", Text),
    Column("created_at", Time, nullable=False),
    Column("ended_at", Time),
    within_company("agent_id", "agents"),
    within_company("to_agent_id", "agents"),
    one_of("status", "open", "answered", "cancelled"),
    CheckConstraint("(status = 'open') = (ended_at IS NULL)", name="ended"),
    Index("ix_questions_company_id", "company_id", "id"),
    Index(
        "ix_questions_open",
        "company_id",
        "agent_id",
        sqlite_where=text("status = 'open'"),
        postgresql_where=text("status = 'open'"),
    ),
    by_short_id("questions"),
)
