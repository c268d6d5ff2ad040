"""Agents, the tree they form over time, and what they are to bring about."""

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

outcomes = Table(
    "outcomes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("kind", Text, nullable=False, server_default="work"),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("perpetual", Boolean, nullable=False),
    Column("owner_id", Id, nullable=False),
    # Handed over as a whole: its owner works below it and does not judge it.
    Column("delegated", Boolean, nullable=False),
    Column("delegator_id", Id),
    Column("urgent", Boolean, nullable=False),
    Column("important", Boolean, nullable=False),
    Column("deferred_until", Time),
    # Open children and open blockers, kept by the services so that "actionable" is an index.
    Column("open_prereqs", Integer, nullable=False),
    # JSON: who judged it, why, and on what evidence.
    Column("verdict", Text),
    Column("version", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    Column("finished_at", Time),
    # How many of `wait_outcomes` name it, kept by the services so that "due" is an index, too.
    Column("open_waits", Integer, nullable=False, server_default="0"),
    # Places in the record: the last news about it, and what its owner was shown.
    Column("news", BigInteger, nullable=False, server_default="0"),
    Column("seen", BigInteger, nullable=False, server_default="0"),
    # When the clock makes it due, what for, and how often it did without anything coming of it.
    Column("look_at", Time),
    Column("look_for", Text),
    Column("reviews", Integer, nullable=False, server_default="0"),
    # The person's letter that it was made of; parts have it from what they are parts of.
    Column("origin_id", Id),
    UniqueConstraint("id", "company_id"),
    # A mandate and its agent name each other, so one of the two waits for the commit.
    within_company("owner_id", "agents", deferred=True),
    within_company("delegator_id", "agents", deferred=True),
    CheckConstraint("delegator_id IS NULL OR delegated", name="delegator"),
    CheckConstraint("open_prereqs >= 0", name="open_prereqs"),
    one_of("kind", "work", "inbox"),
    Index(
        "uq_outcomes_one_inbox",
        "owner_id",
        unique=True,
        sqlite_where=text("kind = 'inbox'"),
        postgresql_where=text("kind = 'inbox'"),
    ),
    one_of("status", "open", "completed", "closed"),
    CheckConstraint("(status = 'open') = (finished_at IS NULL)", name="finished"),
    CheckConstraint("NOT (perpetual AND status = 'completed')", name="perpetual"),
    Index("ix_outcomes_company_id", "company_id", "id"),
    # How many there are of each, without looking at any.
    Index("ix_outcomes_status", "company_id", "status"),
    Index("ix_outcomes_owner_id", "owner_id", "status"),
    Index(
        "ix_outcomes_origin_id",
        "origin_id",
        "id",
        sqlite_where=text("origin_id IS NOT NULL"),
        postgresql_where=text("origin_id IS NOT NULL"),
    ),
    Index(
        # All of it is in the condition too; with fewer columns SQLite prefers the index above.
        # The most pressing come last in it.
        "ix_outcomes_actionable",
        "owner_id",
        "status",
        "open_prereqs",
        "urgent",
        "important",
        sqlite_where=text("status = 'open' AND open_prereqs = 0 AND perpetual = 0"),
        postgresql_where=text("status = 'open' AND open_prereqs = 0 AND NOT perpetual"),
    ),
    # Who is to be started for something new; few, however much is open. With the first two, which
    # are in every question, SQLite prefers it to the index of what can be worked on.
    Index(
        "ix_outcomes_news",
        "status",
        "open_prereqs",
        "owner_id",
        sqlite_where=text("status = 'open' AND (news > seen OR kind = 'inbox')"),
        postgresql_where=text("status = 'open' AND (news > seen OR kind = 'inbox')"),
    ),
    # What the clock brings back.
    Index(
        "ix_outcomes_look_at",
        "look_at",
        sqlite_where=text("status = 'open' AND look_at IS NOT NULL"),
        postgresql_where=text("status = 'open' AND look_at IS NOT NULL"),
    ),
    Index("ix_outcomes_delegator_id", "delegator_id"),
    # What was handed to an agent, among the many that it may own.
    Index(
        "ix_outcomes_handed_over",
        "owner_id",
        sqlite_where=text("delegated = 1"),
        postgresql_where=text("delegated = true"),
    ),
    by_short_id("outcomes"),
)

outcome_edges = Table(
    "outcome_edges",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("parent_id", Id, primary_key=True),
    Column("child_id", Id, primary_key=True),
    within_company("parent_id", "outcomes"),
    within_company("child_id", "outcomes"),
    CheckConstraint("parent_id <> child_id", name="not_own_parent"),
    Index("ix_outcome_edges_child_id", "child_id"),
)

outcome_blockers = Table(
    "outcome_blockers",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("outcome_id", Id, primary_key=True),
    Column("blocker_id", Id, primary_key=True),
    within_company("outcome_id", "outcomes"),
    within_company("blocker_id", "outcomes"),
    CheckConstraint("outcome_id <> blocker_id", name="not_itself"),
    Index("ix_outcome_blockers_blocker_id", "blocker_id"),
)

agents = Table(
    "agents",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("boss_id", Id),
    Column("boss_user_id", Id, ForeignKey("users.id")),
    Column("adapter_type", Text, nullable=False),
    Column("adapter_config", Text, nullable=False),
    # The person in the seat, when the adapter is `human`.
    Column("seat_user_id", Id, ForeignKey("users.id")),
    Column("prompt", Text, nullable=False),
    Column("capabilities", Text, nullable=False, server_default=""),
    Column("permissions", Text, nullable=False, server_default="{}"),
    Column("permission_level", Text, nullable=False, server_default="standard"),
    Column("runtime_config", Text, nullable=False, server_default="{}"),
    Column("budget_monthly_cents", BigInteger),
    Column("budget_monthly_tokens", BigInteger),
    Column("metadata", Text, nullable=False, server_default="{}"),
    Column("config_revision", Integer, nullable=False, server_default="1"),
    # Its working memory, and what its runs did; the files come in the same transaction.
    Column("state_file_id", Id, nullable=False),
    Column("log_file_id", Id, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("id", "company_id"),
    within_company("id", "outcomes"),
    within_company("boss_id", "agents"),
    within_company("state_file_id", "files", deferred=True),
    within_company("log_file_id", "files", deferred=True),
    CheckConstraint("(boss_id IS NULL) <> (boss_user_id IS NULL)", name="one_boss"),
    CheckConstraint("boss_id <> id", name="not_own_boss"),
    one_of("status", "pending_approval", "idle", "running", "paused", "error", "terminated"),
    one_of("permission_level", "restricted", "standard", "privileged", "boss"),
    Index("ix_agents_company_id", "company_id", "id"),
    Index("ix_agents_boss_id", "boss_id"),
    # Those that a person has to see to.
    Index(
        "ix_agents_error",
        "id",
        sqlite_where=text("status = 'error'"),
        postgresql_where=text("status = 'error'"),
    ),
    # SQLite looks a deferred reference up from both sides; without these it reads every agent.
    Index("ix_agents_state_file_id", "state_file_id"),
    Index("ix_agents_log_file_id", "log_file_id"),
    Index(
        "uq_agents_living_name",
        "company_id",
        "name_key",
        unique=True,
        sqlite_where=text("status <> 'terminated'"),
        postgresql_where=text("status <> 'terminated'"),
    ),
    by_short_id("agents"),
)

agent_places = Table(
    "agent_places",
    metadata,
    # Who reported to whom, and when.
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("boss_id", Id),
    Column("boss_user_id", Id, ForeignKey("users.id")),
    Column("since", Time, nullable=False),
    Column("until", Time),
    within_company("agent_id", "agents"),
    within_company("boss_id", "agents"),
    CheckConstraint("(boss_id IS NULL) <> (boss_user_id IS NULL)", name="one_boss"),
    Index("ix_agent_places_agent_id", "agent_id", "since"),
    Index("ix_agent_places_company_id", "company_id", "since"),
    sqlite_autoincrement=True,
)
