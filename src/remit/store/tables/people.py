"""Companies, the people in them, and what proves who somebody is."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Text, true

from remit.store.tables import base as schema
from remit.store.tables.base import Id, Time

companies = schema.table(
    "companies",
    *schema.keys(Id, "id"),
    *schema.required(Text, "name"),
    Column("name_key", Text, nullable=False, unique=True),
    # Receivers of mail besides bosses and reports.
    Column("messaging", Text, nullable=False, server_default="chain"),
    # The last place in line that was given to a message.
    *schema.counters("mail_position"),
    Column("require_board_approval_for_new_agents", Boolean, nullable=False, server_default=true()),
    Column("require_approval_for_config_changes", Boolean, nullable=False, server_default=true()),
    *schema.optional(Text, "chat_llm_provider", "chat_llm_model"),
    # After how many hours each what does not move is looked at again.
    Column("review_hours", Text, nullable=False, server_default="1, 4, 24"),
    # JSON: the limits that somebody set; the others are as they come.
    Column("limits", Text, nullable=False, server_default="{}"),
    # JSON: what the permission levels bundle, where the board changed it.
    Column("permission_policy", Text, nullable=False, server_default="{}"),
    *schema.required(Time, "created_at"),
    # Committer and co-authors of its agents' commits, and the secret with the key to sign with.
    *schema.optional(Text, "commit_committer", "commit_co_authors", "commit_signing"),
    schema.one_of("messaging", "chain", "team", "subtree", "open"),
)

users = schema.table(
    "users",
    *schema.keys(Id, "id"),
    *schema.required(Text, "name"),
    Column("name_key", Text, nullable=False, unique=True),
    *schema.required(Boolean, "operator"),
    *schema.required(Time, "created_at"),
)

memberships = schema.table(
    "memberships",
    Column("company_id", Id, ForeignKey("companies.id"), primary_key=True),
    Column("user_id", Id, ForeignKey("users.id"), primary_key=True),
    *schema.required(Text, "role"),
    *schema.optional(Id, "scope_agent_id"),
    *schema.required(Time, "created_at"),
    schema.one_of("role", "board", "observer"),
    *schema.within_company("agents", "scope_agent_id"),
    Index("ix_memberships_user_id", "user_id"),
)

tokens = schema.table(
    "tokens",
    *schema.keys(Id, "id"),
    Column("digest", Text, nullable=False, unique=True),
    *schema.required(Text, "kind"),
    *schema.references("companies", "company_id"),
    *schema.references("users", "user_id"),
    *schema.optional(Id, "agent_id", "run_id"),
    *schema.required(Text, "label"),
    *schema.required(Time, "created_at"),
    *schema.optional(Time, "expires_at", "revoked_at"),
    # The token or session of the person who made it; it ends no later. None in older rows.
    *schema.optional(Id, "made_with"),
    *schema.within_company("agents", "agent_id"),
    *schema.within_company("runs", "run_id"),
    schema.check(
        "subject",
        "(kind IN ('user', 'session', 'login') AND user_id IS NOT NULL"
        " AND agent_id IS NULL AND run_id IS NULL AND company_id IS NULL)"
        " OR (kind = 'agent' AND agent_id IS NOT NULL AND company_id IS NOT NULL"
        " AND user_id IS NULL AND run_id IS NULL)"
        " OR (kind = 'run' AND agent_id IS NOT NULL AND company_id IS NOT NULL"
        " AND user_id IS NULL AND run_id IS NOT NULL)",
    ),
    Index("ix_tokens_agent_id", "agent_id"),
    Index("ix_tokens_user_id", "user_id"),
    Index("ix_tokens_run_id", "run_id"),
    Index("ix_tokens_made_with", "made_with"),
)
