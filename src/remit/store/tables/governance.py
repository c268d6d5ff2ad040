"""Approvals with their revisions and comments, and configurations."""

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

from remit.store.tables.base import Id, Time, by_short_id, metadata, one_of, within_company

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
    within_company("requested_by_agent_id", "agents"),
    within_company("agent_id", "agents"),
    within_company("home_agent_id", "agents"),
    within_company("routed_to_agent_id", "agents"),
    within_company("decided_by_agent_id", "agents"),
    one_of(
        "type",
        "hire_agent",
        "approve_ceo_strategy",
        "config_change",
        "capability_use",
        "budget",
        "request_board_approval",
    ),
    one_of("status", "pending", "revision_requested", "approved", "rejected", "cancelled"),
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
    by_short_id("approvals"),
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
    within_company("approval_id", "approvals"),
    within_company("author_agent_id", "agents"),
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
    within_company("agent_id", "agents"),
    within_company("approval_id", "approvals"),
    within_company("created_by_agent_id", "agents"),
    one_of("source", "create", "change", "proposal", "rollback", "resubmit", "seat"),
    Index("ix_config_revisions_agent_id", "agent_id", "number"),
)
