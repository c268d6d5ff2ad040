"""Files, their versions, who read them, and who may."""

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
    within_company("home_agent_id", "agents"),
    CheckConstraint("version >= 1", name="version"),
    one_of("kind", "file", "outcome", "state", "log"),
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
    by_short_id("files"),
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
    one_of("access", "read", "write", "copy"),
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
    within_company("holder_id", "agents"),
    within_company("scope_id", "outcomes"),
    within_company("parent_id", "grants"),
    within_company("granted_by_agent", "agents"),
    one_of("mode", "allow", "ask", "deny"),
    one_of("kind", "kb_file", "outcome", "message", "mcp_server", "repo", "channel", "action"),
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
    by_short_id("grants"),
)
