"""Foundation: companies, people, agents, outcomes, knowledge base, capabilities, events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# A mandate, its agent and the agent's files name each other. SQLite cannot add a constraint later,
# and does not mind naming a table that comes next; PostgreSQL does, and can.
LATER = (
    ("outcomes", "owner_id", "agents"),
    ("outcomes", "delegator_id", "agents"),
    ("agents", "state_file_id", "files"),
    ("agents", "log_file_id", "files"),
)

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "companies",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_companies")),
        sa.UniqueConstraint("name_key", name=op.f("uq_companies_name_key")),
    )
    op.create_table(
        "users",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("operator", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name_key", name=op.f("uq_users_name_key")),
    )
    op.create_table(
        "outcomes",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("perpetual", sa.Boolean(), nullable=False),
        sa.Column("owner_id", ID, nullable=False),
        sa.Column("delegated", sa.Boolean(), nullable=False),
        sa.Column("delegator_id", ID, nullable=True),
        sa.Column("urgent", sa.Boolean(), nullable=False),
        sa.Column("important", sa.Boolean(), nullable=False),
        sa.Column("deferred_until", sa.BigInteger(), nullable=True),
        sa.Column("open_prereqs", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(status = 'open') = (finished_at IS NULL)", name=op.f("ck_outcomes_finished")
        ),
        sa.CheckConstraint(
            "NOT (perpetual AND status = 'completed')", name=op.f("ck_outcomes_perpetual")
        ),
        sa.CheckConstraint(
            "status IN ('open', 'completed', 'closed')", name=op.f("ck_outcomes_status")
        ),
        sa.CheckConstraint("delegator_id IS NULL OR delegated", name=op.f("ck_outcomes_delegator")),
        sa.CheckConstraint("open_prereqs >= 0", name=op.f("ck_outcomes_open_prereqs")),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_outcomes_company_id")
        ),
        *(
            [_later("outcomes", "owner_id", "agents"), _later("outcomes", "delegator_id", "agents")]
            if sqlite
            else []
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outcomes")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_outcomes_id_company_id")),
    )
    op.create_index(
        "ix_outcomes_actionable",
        "outcomes",
        ["owner_id", "status", "open_prereqs"],
        unique=False,
        sqlite_where=sa.text("status = 'open' AND open_prereqs = 0 AND perpetual = 0"),
        postgresql_where=sa.text("status = 'open' AND open_prereqs = 0 AND NOT perpetual"),
    )
    op.create_index("ix_outcomes_company_id", "outcomes", ["company_id", "id"], unique=False)
    op.create_index(
        "ix_outcomes_handed_over",
        "outcomes",
        ["owner_id"],
        unique=False,
        sqlite_where=sa.text("delegated = 1"),
        postgresql_where=sa.text("delegated = true"),
    )
    op.create_index("ix_outcomes_delegator_id", "outcomes", ["delegator_id"], unique=False)
    op.create_index("ix_outcomes_owner_id", "outcomes", ["owner_id", "status"], unique=False)
    op.create_table(
        "agents",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("boss_id", ID, nullable=True),
        sa.Column("boss_user_id", ID, nullable=True),
        sa.Column("adapter_type", sa.Text(), nullable=False),
        sa.Column("adapter_config", sa.Text(), nullable=False),
        sa.Column("seat_user_id", ID, nullable=True),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("state_file_id", ID, nullable=False),
        sa.Column("log_file_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending_approval', 'idle', 'running', 'paused', 'error', 'terminated')",
            name=op.f("ck_agents_status"),
        ),
        sa.CheckConstraint(
            "(boss_id IS NULL) <> (boss_user_id IS NULL)", name=op.f("ck_agents_one_boss")
        ),
        sa.CheckConstraint("boss_id <> id", name=op.f("ck_agents_not_own_boss")),
        sa.ForeignKeyConstraint(
            ["boss_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_agents_boss_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["boss_user_id"], ["users.id"], name=op.f("fk_agents_boss_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_agents_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_agents_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["seat_user_id"], ["users.id"], name=op.f("fk_agents_seat_user_id")
        ),
        *(
            [_later("agents", "state_file_id", "files"), _later("agents", "log_file_id", "files")]
            if sqlite
            else []
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_agents_id_company_id")),
    )
    op.create_index("ix_agents_boss_id", "agents", ["boss_id"], unique=False)
    op.create_index("ix_agents_company_id", "agents", ["company_id", "id"], unique=False)
    op.create_index("ix_agents_log_file_id", "agents", ["log_file_id"], unique=False)
    op.create_index("ix_agents_state_file_id", "agents", ["state_file_id"], unique=False)
    op.create_index(
        "uq_agents_living_name",
        "agents",
        ["company_id", "name_key"],
        unique=True,
        sqlite_where=sa.text("status <> 'terminated'"),
        postgresql_where=sa.text("status <> 'terminated'"),
    )
    op.create_table(
        "outcome_edges",
        sa.Column("company_id", ID, nullable=False),
        sa.Column("parent_id", ID, nullable=False),
        sa.Column("child_id", ID, nullable=False),
        sa.CheckConstraint("parent_id <> child_id", name=op.f("ck_outcome_edges_not_own_parent")),
        sa.ForeignKeyConstraint(
            ["child_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_outcome_edges_child_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_outcome_edges_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["parent_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_outcome_edges_parent_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("parent_id", "child_id", name=op.f("pk_outcome_edges")),
    )
    op.create_index("ix_outcome_edges_child_id", "outcome_edges", ["child_id"], unique=False)
    op.create_table(
        "outcome_blockers",
        sa.Column("company_id", ID, nullable=False),
        sa.Column("outcome_id", ID, nullable=False),
        sa.Column("blocker_id", ID, nullable=False),
        sa.CheckConstraint("outcome_id <> blocker_id", name=op.f("ck_outcome_blockers_not_itself")),
        sa.ForeignKeyConstraint(
            ["blocker_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_outcome_blockers_blocker_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_outcome_blockers_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["outcome_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_outcome_blockers_outcome_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("outcome_id", "blocker_id", name=op.f("pk_outcome_blockers")),
    )
    op.create_index(
        "ix_outcome_blockers_blocker_id", "outcome_blockers", ["blocker_id"], unique=False
    )
    op.create_table(
        "memberships",
        sa.Column("company_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("scope_agent_id", ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("role IN ('board', 'observer')", name=op.f("ck_memberships_role")),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_memberships_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["scope_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_memberships_scope_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_memberships_user_id")),
        sa.PrimaryKeyConstraint("company_id", "user_id", name=op.f("pk_memberships")),
    )
    op.create_index("ix_memberships_user_id", "memberships", ["user_id"], unique=False)
    op.create_table(
        "agent_places",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("boss_id", ID, nullable=True),
        sa.Column("boss_user_id", ID, nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(boss_id IS NULL) <> (boss_user_id IS NULL)", name=op.f("ck_agent_places_one_boss")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_agent_places_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["boss_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_agent_places_boss_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["boss_user_id"], ["users.id"], name=op.f("fk_agent_places_boss_user_id")
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_agent_places_company_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_places")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_agent_places_agent_id", "agent_places", ["agent_id", "since"], unique=False)
    op.create_index(
        "ix_agent_places_company_id", "agent_places", ["company_id", "since"], unique=False
    )
    op.create_table(
        "runs",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(status = 'running') = (ended_at IS NULL)", name=op.f("ck_runs_ended")),
        sa.CheckConstraint(
            "status IN ('running', 'completed', 'failed', 'cancelled', 'lost')",
            name=op.f("ck_runs_status"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_runs_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"], name=op.f("fk_runs_company_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_runs_id_company_id")),
    )
    op.create_index(
        "uq_runs_one_live",
        "runs",
        ["agent_id"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("company_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(kind IN ('user', 'session', 'login') AND user_id IS NOT NULL AND agent_id IS NULL AND run_id IS NULL AND company_id IS NULL) OR (kind = 'agent' AND agent_id IS NOT NULL AND company_id IS NOT NULL AND user_id IS NULL AND run_id IS NULL) OR (kind = 'run' AND agent_id IS NOT NULL AND company_id IS NOT NULL AND user_id IS NULL AND run_id IS NOT NULL)",
            name=op.f("ck_tokens_subject"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_tokens_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_tokens_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["run_id", "company_id"],
            ["runs.id", "runs.company_id"],
            name=op.f("fk_tokens_run_id_company_id"),
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_tokens_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_tokens_digest")),
    )
    op.create_index("ix_tokens_agent_id", "tokens", ["agent_id"], unique=False)
    op.create_index("ix_tokens_run_id", "tokens", ["run_id"], unique=False)
    op.create_index("ix_tokens_user_id", "tokens", ["user_id"], unique=False)
    op.create_table(
        "files",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("unlisted", sa.Boolean(), nullable=False),
        sa.Column("home_agent_id", ID, nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("is_text", sa.Boolean(), nullable=False),
        sa.Column("links", sa.Integer(), nullable=False),
        sa.Column("search_row", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('file', 'outcome', 'state', 'log')", name=op.f("ck_files_kind")
        ),
        sa.CheckConstraint("version >= 1", name=op.f("ck_files_version")),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"], name=op.f("fk_files_company_id")),
        sa.ForeignKeyConstraint(
            ["home_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_files_home_agent_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_files_id_company_id")),
    )
    op.create_index(
        "ix_files_company_id",
        "files",
        ["company_id", "id"],
        unique=False,
        sqlite_where=sa.text("kind = 'file'"),
        postgresql_where=sa.text("kind = 'file'"),
    )
    op.create_index(
        "ix_files_listed",
        "files",
        ["company_id", "id"],
        unique=False,
        sqlite_where=sa.text("unlisted = 0 AND kind = 'file'"),
        postgresql_where=sa.text("unlisted = false AND kind = 'file'"),
    )
    op.create_table(
        "file_versions",
        sa.Column("file_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("is_text", sa.Boolean(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("run_id", ID, nullable=True),
        sa.CheckConstraint(
            "agent_id IS NULL OR user_id IS NULL", name=op.f("ck_file_versions_one_author")
        ),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_file_versions_sha256")),
        sa.CheckConstraint("number >= 1", name=op.f("ck_file_versions_number")),
        sa.CheckConstraint("size >= 0", name=op.f("ck_file_versions_size")),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name=op.f("fk_file_versions_agent_id")
        ),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name=op.f("fk_file_versions_file_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_file_versions_run_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_file_versions_user_id")),
        sa.PrimaryKeyConstraint("file_id", "number", name=op.f("pk_file_versions")),
    )
    op.create_index("ix_file_versions_blob", "file_versions", ["file_id", "sha256"], unique=False)
    op.create_table(
        "file_links",
        sa.Column("file_id", ID, nullable=False),
        sa.Column("target_id", ID, nullable=False),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name=op.f("fk_file_links_file_id")),
        sa.PrimaryKeyConstraint("file_id", "target_id", name=op.f("pk_file_links")),
    )
    op.create_index("ix_file_links_target_id", "file_links", ["target_id"], unique=False)
    op.create_table(
        "access_log",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("file_id", ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("access", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("run_id", ID, nullable=True),
        sa.CheckConstraint(
            "access IN ('read', 'write', 'copy')", name=op.f("ck_access_log_access")
        ),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name=op.f("fk_access_log_agent_id")),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name=op.f("fk_access_log_file_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_access_log_run_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_access_log_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_log")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_access_log_file_id", "access_log", ["file_id", "id"], unique=False)
    op.create_table(
        "grants",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("holder_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("scope_id", ID, nullable=True),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("granted_by_agent", ID, nullable=True),
        sa.Column("granted_by_user", ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('kb_file', 'outcome', 'message', 'mcp_server', 'repo', 'channel', 'action')",
            name=op.f("ck_grants_kind"),
        ),
        sa.CheckConstraint("mode IN ('allow', 'ask', 'deny')", name=op.f("ck_grants_mode")),
        sa.CheckConstraint(
            "(granted_by_agent IS NULL) = (parent_id IS NULL)", name=op.f("ck_grants_from_held")
        ),
        sa.CheckConstraint(
            "granted_by_agent IS NULL OR granted_by_user IS NULL",
            name=op.f("ck_grants_one_granter"),
        ),
        sa.CheckConstraint("level BETWEEN 0 AND 3", name=op.f("ck_grants_level")),
        sa.CheckConstraint("parent_id <> id", name=op.f("ck_grants_not_own_parent")),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_grants_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["granted_by_agent", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_grants_granted_by_agent_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["granted_by_user"], ["users.id"], name=op.f("fk_grants_granted_by_user")
        ),
        sa.ForeignKeyConstraint(
            ["holder_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_grants_holder_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["parent_id", "company_id"],
            ["grants.id", "grants.company_id"],
            name=op.f("fk_grants_parent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["scope_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_grants_scope_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grants")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_grants_id_company_id")),
    )
    op.create_index("ix_grants_company_id", "grants", ["company_id", "id"], unique=False)
    op.create_index(
        "ix_grants_held",
        "grants",
        ["holder_id", "kind", "resource_id"],
        unique=False,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_index(
        "ix_grants_holder_id",
        "grants",
        ["holder_id", "id"],
        unique=False,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_index("ix_grants_parent_id", "grants", ["parent_id"], unique=False)
    op.create_index(
        "ix_grants_resource",
        "grants",
        ["kind", "resource_id"],
        unique=False,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_index(
        "ix_grants_scope_id",
        "grants",
        ["scope_id"],
        unique=False,
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_table(
        "event_heads",
        sa.Column("company_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_event_heads_company_id")
        ),
        sa.PrimaryKeyConstraint("company_id", name=op.f("pk_event_heads")),
    )
    op.create_table(
        "events",
        sa.Column("company_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("allowed", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("prev_hash", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "actor_kind IN ('user', 'agent', 'system')", name=op.f("ck_events_actor_kind")
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_events_company_id")
        ),
        sa.PrimaryKeyConstraint("company_id", "seq", name=op.f("pk_events")),
        sa.UniqueConstraint("id", name=op.f("uq_events_id")),
    )
    op.create_index("ix_events_resource", "events", ["company_id", "resource", "seq"], unique=False)
    op.create_table(
        "answers",
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("actor", "key", name=op.f("pk_answers")),
    )
    op.create_index("ix_answers_created_at", "answers", ["created_at"], unique=False)
    if sqlite:
        _sqlite_only()
    else:
        for table, column, target in LATER:
            op.create_foreign_key(
                op.f(f"fk_{table}_{column}_company_id"),
                table,
                target,
                [column, "company_id"],
                ["id", "company_id"],
                initially="DEFERRED",
                deferrable=True,
            )
        _postgresql_only()


def _later(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column, "company_id"],
        [f"{target}.id", f"{target}.company_id"],
        name=op.f(f"fk_{table}_{column}_company_id"),
        initially="DEFERRED",
        deferrable=True,
    )


def _sqlite_only() -> None:
    op.execute("CREATE VIRTUAL TABLE file_search USING fts5(file_id UNINDEXED, words)")
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events"
            " BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
        )


def _postgresql_only() -> None:
    op.execute(
        'CREATE TABLE file_search (file_id varchar(36) COLLATE "C" PRIMARY KEY'
        " REFERENCES files (id), words tsvector NOT NULL)"
    )
    op.execute("CREATE INDEX ix_file_search_words ON file_search USING gin (words)")
    op.execute(
        "CREATE FUNCTION events_append_only() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'events are append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events"
        " FOR EACH STATEMENT EXECUTE FUNCTION events_append_only()"
    )
