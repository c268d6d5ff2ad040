"""Background jobs, and which messages are answers of one."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("message_id", ID, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("adapter_type", sa.Text(), nullable=False),
        sa.Column("adapter_config", sa.Text(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("answer_id", ID, nullable=True),
        sa.Column("tokens_in", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tokens_out", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tokens_cached", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost_micros", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint(
            "(status = 'running') = (lease_until IS NOT NULL)", name=op.f("ck_jobs_leased")
        ),
        sa.CheckConstraint(
            "(status IN ('queued', 'running')) = (ended_at IS NULL)", name=op.f("ck_jobs_ended")
        ),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'completed', 'failed', 'cancelled')",
            name=op.f("ck_jobs_status"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_jobs_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["answer_id", "company_id"],
            ["messages.id", "messages.company_id"],
            name=op.f("fk_jobs_answer_id_company_id"),
        ),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"], name=op.f("fk_jobs_company_id")),
        sa.ForeignKeyConstraint(
            ["message_id", "company_id"],
            ["messages.id", "messages.company_id"],
            name=op.f("fk_jobs_message_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_jobs_id_company_id")),
        sa.UniqueConstraint("message_id", name=op.f("uq_jobs_message_id")),
    )
    op.create_index("ix_jobs_agent_id", "jobs", ["agent_id", "id"], unique=False)
    op.create_index("ix_jobs_company_id", "jobs", ["company_id", "id"], unique=False)
    op.create_index(
        "ix_jobs_unfinished",
        "jobs",
        ["id"],
        unique=False,
        sqlite_where=sa.text("status IN ('queued', 'running')"),
        postgresql_where=sa.text("status IN ('queued', 'running')"),
    )
    op.add_column(
        "messages",
        sa.Column("background", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
