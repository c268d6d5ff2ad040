"""Companies, the people in them, and what proves who somebody is."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Table,
    Text,
    true,
)

from remit.store.tables.base import Id, Time, metadata, one_of, within_company

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
    # After how many hours each what does not move is looked at again.
    Column("review_hours", Text, nullable=False, server_default="1, 4, 24"),
    # JSON: the limits that somebody set; the others are as they come.
    Column("limits", Text, nullable=False, server_default="{}"),
    # JSON: what the permission levels bundle, where the board changed it.
    Column("permission_policy", Text, nullable=False, server_default="{}"),
    Column("created_at", Time, nullable=False),
    one_of("messaging", "chain", "team", "subtree", "open"),
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
    one_of("role", "board", "observer"),
    within_company("scope_agent_id", "agents"),
    Index("ix_memberships_user_id", "user_id"),
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
    within_company("agent_id", "agents"),
    within_company("run_id", "runs"),
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
