"""Approvals, permissions, configurations."""

import json

import sqlalchemy as sa
from alembic import op

from remit.ids import Ids

revision = "0003"
down_revision = "0002"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")
LEVELS = (
    "CONSTRAINT ck_agents_permission_level CHECK"
    " (permission_level IN ('restricted', 'standard', 'privileged', 'boss'))"
)


def upgrade() -> None:
    # Both databases take a constraint along with a new column, so no table is copied.
    for table, column in (
        ("companies", "require_board_approval_for_new_agents BOOLEAN DEFAULT true NOT NULL"),
        ("companies", "require_approval_for_config_changes BOOLEAN DEFAULT true NOT NULL"),
        ("companies", "chat_llm_provider TEXT"),
        ("companies", "chat_llm_model TEXT"),
        ("agents", "capabilities TEXT DEFAULT '' NOT NULL"),
        ("agents", "permissions TEXT DEFAULT '{}' NOT NULL"),
        ("agents", f"permission_level TEXT DEFAULT 'standard' NOT NULL {LEVELS}"),
        ("agents", "runtime_config TEXT DEFAULT '{}' NOT NULL"),
        ("agents", "budget_monthly_cents BIGINT"),
        ("agents", "metadata TEXT DEFAULT '{}' NOT NULL"),
        ("agents", "config_revision INTEGER DEFAULT '1' NOT NULL"),
    ):
        op.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    op.create_table(
        "approvals",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("requested_by_agent_id", ID, nullable=True),
        sa.Column("requested_by_user_id", ID, nullable=True),
        sa.Column("requested_by_run_id", ID, nullable=True),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("home_agent_id", ID, nullable=True),
        sa.Column("routed_to_agent_id", ID, nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("call_digest", sa.Text(), nullable=True),
        sa.Column("blob_file_id", ID, nullable=True),
        sa.Column("blob_sha256", sa.Text(), nullable=True),
        sa.Column("decision_note", sa.Text(), nullable=True),
        sa.Column("decided_by_user_id", ID, nullable=True),
        sa.Column("decided_by_agent_id", ID, nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.Column("collected_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(status IN ('pending', 'revision_requested')) = (decided_at IS NULL)",
            name=op.f("ck_approvals_decided"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'revision_requested', 'approved', 'rejected', 'cancelled')",
            name=op.f("ck_approvals_status"),
        ),
        sa.CheckConstraint(
            "type IN ('hire_agent', 'approve_ceo_strategy', 'config_change', 'capability_use', 'budget', 'request_board_approval')",
            name=op.f("ck_approvals_type"),
        ),
        sa.CheckConstraint(
            "used_at IS NULL OR status = 'approved'", name=op.f("ck_approvals_used")
        ),
        sa.CheckConstraint(
            "(requested_by_agent_id IS NULL) <> (requested_by_user_id IS NULL)",
            name=op.f("ck_approvals_one_requester"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_approvals_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_approvals_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["decided_by_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_approvals_decided_by_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["decided_by_user_id"], ["users.id"], name=op.f("fk_approvals_decided_by_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["home_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_approvals_home_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["requested_by_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_approvals_requested_by_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["requested_by_run_id"], ["runs.id"], name=op.f("fk_approvals_requested_by_run_id")
        ),
        sa.ForeignKeyConstraint(
            ["requested_by_user_id"], ["users.id"], name=op.f("fk_approvals_requested_by_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["routed_to_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_approvals_routed_to_agent_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approvals")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_approvals_id_company_id")),
    )
    op.create_index("ix_approvals_agent_id", "approvals", ["agent_id"], unique=False)
    op.create_index("ix_approvals_blob", "approvals", ["blob_file_id"], unique=False)
    op.create_index(
        "ix_approvals_call", "approvals", ["requested_by_agent_id", "call_digest"], unique=False
    )
    op.create_index("ix_approvals_company_id", "approvals", ["company_id", "id"], unique=False)
    op.create_index(
        "ix_approvals_expires_at",
        "approvals",
        ["expires_at"],
        unique=False,
        sqlite_where=sa.text("status IN ('pending', 'revision_requested')"),
        postgresql_where=sa.text("status IN ('pending', 'revision_requested')"),
    )
    op.create_index(
        "ix_approvals_undecided",
        "approvals",
        ["company_id", "id"],
        unique=False,
        sqlite_where=sa.text("status IN ('pending', 'revision_requested')"),
        postgresql_where=sa.text("status IN ('pending', 'revision_requested')"),
    )
    op.create_index(
        "uq_approvals_one_hire",
        "approvals",
        ["agent_id"],
        unique=True,
        sqlite_where=sa.text("type = 'hire_agent'"),
        postgresql_where=sa.text("type = 'hire_agent'"),
    )
    op.create_table(
        "approval_comments",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("approval_id", ID, nullable=False),
        sa.Column("author_agent_id", ID, nullable=True),
        sa.Column("author_user_id", ID, nullable=True),
        sa.Column("reply_to", ID, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "author_agent_id IS NULL OR author_user_id IS NULL",
            name=op.f("ck_approval_comments_one_author"),
        ),
        sa.ForeignKeyConstraint(
            ["approval_id", "company_id"],
            ["approvals.id", "approvals.company_id"],
            name=op.f("fk_approval_comments_approval_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["author_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_approval_comments_author_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["author_user_id"], ["users.id"], name=op.f("fk_approval_comments_author_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_approval_comments_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["reply_to"], ["approval_comments.id"], name=op.f("fk_approval_comments_reply_to")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approval_comments")),
    )
    op.create_index(
        "ix_approval_comments_approval_id", "approval_comments", ["approval_id", "id"], unique=False
    )
    op.create_table(
        "approval_revisions",
        sa.Column("approval_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("author_agent_id", ID, nullable=True),
        sa.Column("author_user_id", ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["approval_id"], ["approvals.id"], name=op.f("fk_approval_revisions_approval_id")
        ),
        sa.ForeignKeyConstraint(
            ["author_agent_id"], ["agents.id"], name=op.f("fk_approval_revisions_author_agent_id")
        ),
        sa.ForeignKeyConstraint(
            ["author_user_id"], ["users.id"], name=op.f("fk_approval_revisions_author_user_id")
        ),
        sa.PrimaryKeyConstraint("approval_id", "number", name=op.f("pk_approval_revisions")),
    )
    op.create_table(
        "config_revisions",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("changed_keys", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("approval_id", ID, nullable=True),
        sa.Column("created_by_agent_id", ID, nullable=True),
        sa.Column("created_by_user_id", ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "source IN ('create', 'change', 'proposal', 'rollback', 'resubmit', 'seat')",
            name=op.f("ck_config_revisions_source"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_config_revisions_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["approval_id", "company_id"],
            ["approvals.id", "approvals.company_id"],
            name=op.f("fk_config_revisions_approval_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_config_revisions_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["created_by_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_config_revisions_created_by_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["created_by_user_id"],
            ["users.id"],
            name=op.f("fk_config_revisions_created_by_user_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_config_revisions")),
        sa.UniqueConstraint("agent_id", "number", name=op.f("uq_config_revisions_agent_id_number")),
    )
    op.create_index(
        "ix_config_revisions_agent_id", "config_revisions", ["agent_id", "number"], unique=False
    )
    _keep_configurations()


def _keep_configurations() -> None:
    """Whoever works here already has a first revision, too, so that a change can be taken back."""
    connection = op.get_bind()
    ids = Ids()
    agents = sa.text(
        "SELECT id, company_id, name, role, title, prompt, adapter_type, adapter_config, created_at"
        " FROM agents"
    )
    insert = sa.text(
        "INSERT INTO config_revisions (id, company_id, agent_id, number, config, changed_keys,"
        " source, created_at) VALUES (:id, :company_id, :agent_id, 1, :config, '[]', 'create', :at)"
    )
    for agent in connection.execute(agents).mappings().all():
        config = {
            "name": agent["name"],
            "role": agent["role"],
            "title": agent["title"],
            "capabilities": "",
            "prompt": agent["prompt"],
            "adapterType": agent["adapter_type"],
            "adapterConfig": json.loads(agent["adapter_config"]),
            "runtimeConfig": {},
            "budgetMonthlyCents": None,
            "metadata": {},
        }
        connection.execute(
            insert,
            {
                "id": ids.new(),
                "company_id": agent["company_id"],
                "agent_id": agent["id"],
                "config": json.dumps(config),
                "at": agent["created_at"],
            },
        )
