"""Leases, what is known of runs, sessions, logs."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    text_id = "VARCHAR(36)"
    if op.get_bind().dialect.name == "postgresql":
        text_id += ' COLLATE "C"'
    accountable = "CONSTRAINT fk_runs_accountable_user_id REFERENCES users (id)"
    for column in (
        "epoch BIGINT DEFAULT '0' NOT NULL",
        "worker TEXT",
        "adapter_type TEXT",
        "session_id TEXT",
        "why TEXT",
        "message_ids TEXT DEFAULT '[]' NOT NULL",
        "final_response TEXT",
        "context_length BIGINT",
        "tokens_in BIGINT DEFAULT '0' NOT NULL",
        "tokens_out BIGINT DEFAULT '0' NOT NULL",
        "tokens_cached BIGINT DEFAULT '0' NOT NULL",
        "cost_micros BIGINT DEFAULT '0' NOT NULL",
        "exit_reason TEXT",
        "error TEXT",
        f"accountable_user_id {text_id} {accountable}",
        "log_bytes BIGINT DEFAULT '0' NOT NULL",
    ):
        op.execute(f"ALTER TABLE runs ADD COLUMN {column}")
    op.create_table(
        "agent_leases",
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("wake_seq", sa.BigInteger(), nullable=False),
        sa.Column("done_seq", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("idle_runs", sa.Integer(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("told", sa.Text(), nullable=True),
        sa.CheckConstraint("wake_seq >= done_seq", name=op.f("ck_agent_leases_wakes")),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_agent_leases_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_agent_leases_company_id")
        ),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_agent_leases")),
    )
    op.create_index(
        "ix_agent_leases_due",
        "agent_leases",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("wake_seq > done_seq"),
        postgresql_where=sa.text("wake_seq > done_seq"),
    )
    op.create_index(
        "ix_agent_leases_leased",
        "agent_leases",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("lease_until IS NOT NULL"),
        postgresql_where=sa.text("lease_until IS NOT NULL"),
    )
    op.create_table(
        "agent_sessions",
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("adapter_type", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("begun_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.Column("context_tokens", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_agent_sessions_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_agent_sessions_company_id")
        ),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_agent_sessions")),
    )
    op.create_table(
        "run_logs",
        sa.Column("run_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "stream IN ('stdout', 'stderr', 'remit')", name=op.f("ck_run_logs_stream")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_logs_run_id")),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_run_logs")),
    )
    op.create_index(
        "ix_events_run_id",
        "events",
        ["run_id"],
        unique=False,
        sqlite_where=sa.text("run_id IS NOT NULL"),
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.create_index(
        "ix_outcomes_deferred_until",
        "outcomes",
        ["deferred_until"],
        unique=False,
        sqlite_where=sa.text("status = 'open' AND deferred_until IS NOT NULL"),
        postgresql_where=sa.text("status = 'open' AND deferred_until IS NOT NULL"),
    )
    op.create_index("ix_runs_agent_id", "runs", ["agent_id", "id"], unique=False)
    op.create_index("ix_runs_company_id", "runs", ["company_id", "id"], unique=False)
