"""The tables. Whatever a database can guarantee by itself is said here.

Ids are text, times whole microseconds, JSON is text: the same bytes on SQLite and PostgreSQL.
Foreign keys carry the company along, so that nothing can point into another company.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
    true,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: Ids compare byte by byte everywhere, so that a prefix is a range.
Id = String(36).with_variant(String(36, collation="C"), "postgresql")
Time = BigInteger()
RowNumber = BigInteger().with_variant(Integer(), "sqlite")


def _one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def _within_company(column: str, table: str, *, deferred: bool = False) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        [column, "company_id"],
        [f"{table}.id", f"{table}.company_id"],
        deferrable=True if deferred else None,
        initially="DEFERRED" if deferred else None,
        use_alter=deferred,
    )


companies = Table(
    "companies",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    # Who may write to whom besides bosses and reports.
    Column("messaging", Text, nullable=False, server_default="chain"),
    # The last place in line that was given to a message.
    Column("mail_position", BigInteger, nullable=False, server_default="0"),
    Column("require_board_approval_for_new_agents", Boolean, nullable=False, server_default=true()),
    Column("require_approval_for_config_changes", Boolean, nullable=False, server_default=true()),
    Column("chat_llm_provider", Text),
    Column("chat_llm_model", Text),
    Column("created_at", Time, nullable=False),
    _one_of("messaging", "chain", "team", "subtree", "open"),
)

users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    Column("operator", Boolean, nullable=False),
    Column("created_at", Time, nullable=False),
)

memberships = Table(
    "memberships",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    Column("role", Text, nullable=False),
    Column("scope_agent_id", Id),
    Column("created_at", Time, nullable=False),
    _one_of("role", "board", "observer"),
    _within_company("scope_agent_id", "agents"),
    Index("ix_memberships_user_id", "user_id"),
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
    UniqueConstraint("id", "company_id"),
    # A mandate and its agent name each other, so one of the two waits for the commit.
    _within_company("owner_id", "agents", deferred=True),
    _within_company("delegator_id", "agents", deferred=True),
    CheckConstraint("delegator_id IS NULL OR delegated", name="delegator"),
    CheckConstraint("open_prereqs >= 0", name="open_prereqs"),
    _one_of("kind", "work", "inbox"),
    Index(
        "uq_outcomes_one_inbox",
        "owner_id",
        unique=True,
        sqlite_where=text("kind = 'inbox'"),
        postgresql_where=text("kind = 'inbox'"),
    ),
    _one_of("status", "open", "completed", "closed"),
    CheckConstraint("(status = 'open') = (finished_at IS NULL)", name="finished"),
    CheckConstraint("NOT (perpetual AND status = 'completed')", name="perpetual"),
    Index("ix_outcomes_company_id", "company_id", "id"),
    Index("ix_outcomes_owner_id", "owner_id", "status"),
    Index(
        # All of it is in the condition too; with fewer columns SQLite prefers the index above.
        "ix_outcomes_actionable",
        "owner_id",
        "status",
        "open_prereqs",
        sqlite_where=text("status = 'open' AND open_prereqs = 0 AND perpetual = 0"),
        postgresql_where=text("status = 'open' AND open_prereqs = 0 AND NOT perpetual"),
    ),
    # What the clock brings back.
    Index(
        "ix_outcomes_deferred_until",
        "deferred_until",
        sqlite_where=text("status = 'open' AND deferred_until IS NOT NULL"),
        postgresql_where=text("status = 'open' AND deferred_until IS NOT NULL"),
    ),
    Index("ix_outcomes_delegator_id", "delegator_id"),
    # What was handed to an agent, among the many that it may own.
    Index(
        "ix_outcomes_handed_over",
        "owner_id",
        sqlite_where=text("delegated = 1"),
        postgresql_where=text("delegated = true"),
    ),
)

outcome_edges = Table(
    "outcome_edges",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("parent_id", Id, primary_key=True),
    Column("child_id", Id, primary_key=True),
    _within_company("parent_id", "outcomes"),
    _within_company("child_id", "outcomes"),
    CheckConstraint("parent_id <> child_id", name="not_own_parent"),
    Index("ix_outcome_edges_child_id", "child_id"),
)

outcome_blockers = Table(
    "outcome_blockers",
    metadata,
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("outcome_id", Id, primary_key=True),
    Column("blocker_id", Id, primary_key=True),
    _within_company("outcome_id", "outcomes"),
    _within_company("blocker_id", "outcomes"),
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
    Column("metadata", Text, nullable=False, server_default="{}"),
    Column("config_revision", Integer, nullable=False, server_default="1"),
    # Its working memory, and what its runs did; the files come in the same transaction.
    Column("state_file_id", Id, nullable=False),
    Column("log_file_id", Id, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("id", "company_id"),
    _within_company("id", "outcomes"),
    _within_company("boss_id", "agents"),
    _within_company("state_file_id", "files", deferred=True),
    _within_company("log_file_id", "files", deferred=True),
    CheckConstraint("(boss_id IS NULL) <> (boss_user_id IS NULL)", name="one_boss"),
    CheckConstraint("boss_id <> id", name="not_own_boss"),
    _one_of("status", "pending_approval", "idle", "running", "paused", "error", "terminated"),
    _one_of("permission_level", "restricted", "standard", "privileged", "boss"),
    Index("ix_agents_company_id", "company_id", "id"),
    Index("ix_agents_boss_id", "boss_id"),
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
    _within_company("agent_id", "agents"),
    _within_company("boss_id", "agents"),
    CheckConstraint("(boss_id IS NULL) <> (boss_user_id IS NULL)", name="one_boss"),
    Index("ix_agent_places_agent_id", "agent_id", "since"),
    Index("ix_agent_places_company_id", "company_id", "since"),
    sqlite_autoincrement=True,
)

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
    Column("exit_reason", Text),
    Column("error", Text),
    Column("accountable_user_id", Id, ForeignKey("users.id")),
    Column("log_bytes", BigInteger, nullable=False, server_default="0"),
    UniqueConstraint("id", "company_id"),
    _within_company("agent_id", "agents"),
    _one_of("status", "running", "completed", "failed", "cancelled", "lost"),
    CheckConstraint("(status = 'running') = (ended_at IS NULL)", name="ended"),
    Index(
        "uq_runs_one_live",
        "agent_id",
        unique=True,
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
    Index("ix_runs_agent_id", "agent_id", "id"),
    Index("ix_runs_company_id", "company_id", "id"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("company_id", Id, ForeignKey("companies.id")),
    Column("user_id", Id, ForeignKey("users.id")),
    Column("agent_id", Id),
    Column("run_id", Id),
    Column("label", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("revoked_at", Time),
    _within_company("agent_id", "agents"),
    _within_company("run_id", "runs"),
    CheckConstraint(
        "(kind IN ('user', 'session', 'login') AND user_id IS NOT NULL"
        " AND agent_id IS NULL AND run_id IS NULL AND company_id IS NULL)"
        " OR (kind = 'agent' AND agent_id IS NOT NULL AND company_id IS NOT NULL"
        " AND user_id IS NULL AND run_id IS NULL)"
        " OR (kind = 'run' AND agent_id IS NOT NULL AND company_id IS NOT NULL"
        " AND user_id IS NULL AND run_id IS NOT NULL)",
        name="subject",
    ),
    Index("ix_tokens_agent_id", "agent_id"),
    Index("ix_tokens_user_id", "user_id"),
    Index("ix_tokens_run_id", "run_id"),
)

files = Table(
    "files",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("unlisted", Boolean, nullable=False),
    Column("home_agent_id", Id),
    Column("version", Integer, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("is_text", Boolean, nullable=False),
    Column("links", Integer, nullable=False),
    # Where SQLite's full-text index has it; PostgreSQL does without.
    Column("search_row", BigInteger),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("id", "company_id"),
    _within_company("home_agent_id", "agents"),
    CheckConstraint("version >= 1", name="version"),
    _one_of("kind", "file", "outcome", "state", "log"),
    Index(
        "ix_files_company_id",
        "company_id",
        "id",
        sqlite_where=text("kind = 'file'"),
        postgresql_where=text("kind = 'file'"),
    ),
    Index(
        "ix_files_listed",
        "company_id",
        "id",
        sqlite_where=text("unlisted = 0 AND kind = 'file'"),
        postgresql_where=text("unlisted = false AND kind = 'file'"),
    ),
)

file_versions = Table(
    "file_versions",
    metadata,
    Column("file_id", Id, ForeignKey("files.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("is_text", Boolean, nullable=False),
    Column("at", Time, nullable=False),
    Column("agent_id", Id, ForeignKey("agents.id")),
    Column("user_id", Id, ForeignKey("users.id")),
    Column("run_id", Id, ForeignKey("runs.id")),
    CheckConstraint("number >= 1", name="number"),
    CheckConstraint("length(sha256) = 64", name="sha256"),
    CheckConstraint("size >= 0", name="size"),
    CheckConstraint("agent_id IS NULL OR user_id IS NULL", name="one_author"),
    Index("ix_file_versions_blob", "file_id", "sha256"),
)

file_links = Table(
    "file_links",
    metadata,
    Column("file_id", Id, ForeignKey("files.id"), primary_key=True),
    # May name what does not exist (yet), as any link can.
    Column("target_id", Id, primary_key=True),
    Index("ix_file_links_target_id", "target_id"),
)

access_log = Table(
    "access_log",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("file_id", Id, ForeignKey("files.id"), nullable=False),
    Column("at", Time, nullable=False),
    Column("access", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("agent_id", Id, ForeignKey("agents.id")),
    Column("user_id", Id, ForeignKey("users.id")),
    Column("run_id", Id, ForeignKey("runs.id")),
    _one_of("access", "read", "write", "copy"),
    Index("ix_access_log_file_id", "file_id", "id"),
    sqlite_autoincrement=True,
)

_LIVE = text("revoked_at IS NULL")

grants = Table(
    "grants",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("holder_id", Id, nullable=False),
    Column("kind", Text, nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("level", Integer, nullable=False),
    Column("mode", Text, nullable=False),
    Column("scope_id", Id),
    Column("parent_id", Id),
    Column("granted_by_agent", Id),
    Column("granted_by_user", Id, ForeignKey("users.id")),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time),
    Column("revoked_at", Time),
    Column("used_at", Time),
    UniqueConstraint("id", "company_id"),
    _within_company("holder_id", "agents"),
    _within_company("scope_id", "outcomes"),
    _within_company("parent_id", "grants"),
    _within_company("granted_by_agent", "agents"),
    _one_of("mode", "allow", "ask", "deny"),
    _one_of("kind", "kb_file", "outcome", "message", "mcp_server", "repo", "channel", "action"),
    CheckConstraint("level BETWEEN 0 AND 3", name="level"),
    CheckConstraint("parent_id <> id", name="not_own_parent"),
    CheckConstraint("granted_by_agent IS NULL OR granted_by_user IS NULL", name="one_granter"),
    # What an agent gives always comes from something it holds.
    CheckConstraint("(granted_by_agent IS NULL) = (parent_id IS NULL)", name="from_held"),
    Index(
        "ix_grants_held",
        "holder_id",
        "kind",
        "resource_id",
        sqlite_where=_LIVE,
        postgresql_where=_LIVE,
    ),
    Index("ix_grants_holder_id", "holder_id", "id", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_grants_parent_id", "parent_id"),
    Index("ix_grants_scope_id", "scope_id", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_grants_company_id", "company_id", "id"),
    Index("ix_grants_resource", "kind", "resource_id", sqlite_where=_LIVE, postgresql_where=_LIVE),
)

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
    _one_of("actor_kind", "user", "agent", "system"),
    Index("ix_events_resource", "company_id", "resource", "seq"),
    # What a run did.
    Index(
        "ix_events_run_id",
        "run_id",
        sqlite_where=text("run_id IS NOT NULL"),
        postgresql_where=text("run_id IS NOT NULL"),
    ),
)

answers = Table(
    "answers",
    metadata,
    # The first answer to each idempotency key, kept so that a repeat gets it again.
    Column("actor", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("verb", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Index("ix_answers_created_at", "created_at"),
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
    Column("created_at", Time, nullable=False),
    UniqueConstraint("id", "company_id"),
    _within_company("sender_agent_id", "agents"),
    _within_company("body_file_id", "files"),
    _within_company("reply_to", "messages"),
    _one_of("sender_kind", "agent", "user", "system"),
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
    _within_company("message_id", "messages"),
    _within_company("agent_id", "agents"),
    CheckConstraint("(agent_id IS NULL) <> (user_id IS NULL)", name="one_receiver"),
    _one_of("status", "deferred", "queued", "leased", "done", "dead", "cancelled"),
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
    _within_company("agent_id", "agents"),
    _one_of("status", "active", "done", "cancelled"),
    CheckConstraint("(status = 'active') = (next_at IS NOT NULL)", name="next"),
    Index("ix_schedules_company_id", "company_id", "id"),
    Index("ix_schedules_agent_id", "agent_id"),
    Index(
        "ix_schedules_due",
        "next_at",
        sqlite_where=text("status = 'active'"),
        postgresql_where=text("status = 'active'"),
    ),
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
    _within_company("agent_id", "agents"),
    _within_company("to_agent_id", "agents"),
    _one_of("status", "open", "answered", "cancelled"),
    CheckConstraint("(status = 'open') = (ended_at IS NULL)", name="ended"),
    Index("ix_questions_company_id", "company_id", "id"),
    Index(
        "ix_questions_open",
        "company_id",
        "agent_id",
        sqlite_where=text("status = 'open'"),
        postgresql_where=text("status = 'open'"),
    ),
)

_UNDECIDED = text("status IN ('pending', 'revision_requested')")

approvals = Table(
    "approvals",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("type", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("requested_by_agent_id", Id),
    Column("requested_by_user_id", Id, ForeignKey("users.id")),
    Column("requested_by_run_id", Id, ForeignKey("runs.id")),
    Column("agent_id", Id),
    Column("home_agent_id", Id),
    Column("routed_to_agent_id", Id),
    Column("payload", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("call_digest", Text),
    Column("blob_file_id", Id),
    Column("blob_sha256", Text),
    Column("decision_note", Text),
    Column("decided_by_user_id", Id, ForeignKey("users.id")),
    Column("decided_by_agent_id", Id),
    Column("decided_at", Time),
    Column("result", Text),
    Column("used_at", Time),
    Column("collected_at", Time),
    Column("expires_at", Time),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    UniqueConstraint("id", "company_id"),
    _within_company("requested_by_agent_id", "agents"),
    _within_company("agent_id", "agents"),
    _within_company("home_agent_id", "agents"),
    _within_company("routed_to_agent_id", "agents"),
    _within_company("decided_by_agent_id", "agents"),
    _one_of(
        "type",
        "hire_agent",
        "approve_ceo_strategy",
        "config_change",
        "capability_use",
        "budget",
        "request_board_approval",
    ),
    _one_of("status", "pending", "revision_requested", "approved", "rejected", "cancelled"),
    CheckConstraint(
        "(requested_by_agent_id IS NULL) <> (requested_by_user_id IS NULL)", name="one_requester"
    ),
    CheckConstraint(
        "(status IN ('pending', 'revision_requested')) = (decided_at IS NULL)", name="decided"
    ),
    CheckConstraint("used_at IS NULL OR status = 'approved'", name="used"),
    Index("ix_approvals_company_id", "company_id", "id"),
    Index(
        "ix_approvals_undecided",
        "company_id",
        "id",
        sqlite_where=_UNDECIDED,
        postgresql_where=_UNDECIDED,
    ),
    Index(
        "ix_approvals_expires_at",
        "expires_at",
        sqlite_where=_UNDECIDED,
        postgresql_where=_UNDECIDED,
    ),
    Index("ix_approvals_agent_id", "agent_id"),
    Index("ix_approvals_call", "requested_by_agent_id", "call_digest"),
    Index("ix_approvals_blob", "blob_file_id"),
    # An agent is hired once.
    Index(
        "uq_approvals_one_hire",
        "agent_id",
        unique=True,
        sqlite_where=text("type = 'hire_agent'"),
        postgresql_where=text("type = 'hire_agent'"),
    ),
)

approval_revisions = Table(
    "approval_revisions",
    metadata,
    Column("approval_id", Id, ForeignKey("approvals.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("payload", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("author_agent_id", Id, ForeignKey("agents.id")),
    Column("author_user_id", Id, ForeignKey("users.id")),
    Column("created_at", Time, nullable=False),
)

approval_comments = Table(
    "approval_comments",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("approval_id", Id, nullable=False),
    Column("author_agent_id", Id),
    Column("author_user_id", Id, ForeignKey("users.id")),
    Column("reply_to", Id, ForeignKey("approval_comments.id")),
    Column("body", Text, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time, nullable=False),
    _within_company("approval_id", "approvals"),
    _within_company("author_agent_id", "agents"),
    CheckConstraint("author_agent_id IS NULL OR author_user_id IS NULL", name="one_author"),
    Index("ix_approval_comments_approval_id", "approval_id", "id"),
)

config_revisions = Table(
    "config_revisions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("company_id", Id, ForeignKey("companies.id"), nullable=False),
    Column("agent_id", Id, nullable=False),
    Column("number", Integer, nullable=False),
    Column("config", Text, nullable=False),
    Column("changed_keys", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("approval_id", Id),
    Column("created_by_agent_id", Id),
    Column("created_by_user_id", Id, ForeignKey("users.id")),
    Column("created_at", Time, nullable=False),
    UniqueConstraint("agent_id", "number"),
    _within_company("agent_id", "agents"),
    _within_company("approval_id", "approvals"),
    _within_company("created_by_agent_id", "agents"),
    _one_of("source", "create", "change", "proposal", "rollback", "resubmit", "seat"),
    Index("ix_config_revisions_agent_id", "agent_id", "number"),
)

#: Something is to do while a wake is ahead of what was done.
_AWAKE = text("wake_seq > done_seq")

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
    Column("told", Text),
    _within_company("agent_id", "agents"),
    CheckConstraint("wake_seq >= done_seq", name="wakes"),
    Index("ix_agent_leases_due", "due_at", sqlite_where=_AWAKE, postgresql_where=_AWAKE),
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
    _within_company("agent_id", "agents"),
)

run_logs = Table(
    "run_logs",
    metadata,
    Column("run_id", Id, ForeignKey("runs.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("at", Time, nullable=False),
    Column("stream", Text, nullable=False),
    Column("text", Text, nullable=False),
    _one_of("stream", "stdout", "stderr", "remit"),
)
