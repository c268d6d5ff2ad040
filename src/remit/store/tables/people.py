"""Companies, users, memberships, and tokens that prove an identity."""

from sqlalchemy import Column, Index, Text

from remit.model.organisation.company import Company
from remit.model.organisation.principal import Token
from remit.model.organisation.user import Membership, User
from remit.store.tables import base as schema

companies = schema.table_of(
    *(Company, "companies"),
    Column("name_key", Text, nullable=False, unique=True),
    # The last position that was assigned in the company's queue of mail.
    *schema.counters("mail_position"),
    # A word that the database does not check.
    Column("mail_decisions", Text, nullable=False, server_default="confirm"),
    defaults={
        "messaging": "chain",
        "require_board_approval_for_new_agents": True,
        "require_approval_for_config_changes": True,
        "review_hours": "1, 4, 24",
        "limits": "{}",
        "permission_policy": "{}",
    },
)

users = schema.table_of(
    *(User, "users"),
    Column("name_key", Text, nullable=False, unique=True),
)

memberships = schema.table_of(
    *(Membership, "memberships"),
    Index("ix_memberships_user_id", "user_id"),
    key=("company_id", "user_id"),
)

tokens = schema.table_of(
    *(Token, "tokens"),
    # Words that the database does not check.
    *schema.required(Text, "kind"),
    Column("digest", Text, nullable=False, unique=True),
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
