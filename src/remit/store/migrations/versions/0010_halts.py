"""Halts: what is stopped, by whom and why."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "halts",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("made_by_user_id", ID, nullable=True),
        sa.Column("made_by_agent_id", ID, nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(made_by_user_id IS NULL) <> (made_by_agent_id IS NULL)",
            name=op.f("ck_halts_one_maker"),
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_halts_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["made_by_agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_halts_made_by_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["made_by_user_id"], ["users.id"], name=op.f("fk_halts_made_by_user_id")
        ),
        sa.ForeignKeyConstraint(["company_id"], ["companies.id"], name=op.f("fk_halts_company_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_halts")),
    )
    op.create_index(
        "uq_halts_company",
        "halts",
        ["company_id"],
        unique=True,
        sqlite_where=sa.text("agent_id IS NULL"),
        postgresql_where=sa.text("agent_id IS NULL"),
    )
    op.create_index("uq_halts_agent", "halts", ["agent_id"], unique=True)
    op.create_index("ix_halts_company_id", "halts", ["company_id", "agent_id"], unique=False)
