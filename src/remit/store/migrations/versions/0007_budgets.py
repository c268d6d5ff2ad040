"""What agents may spend."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "reservations",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("giver_id", ID, nullable=True),
        sa.Column("outcome_id", ID, nullable=True),
        sa.Column("money_micros", sa.BigInteger(), nullable=True),
        sa.Column("tokens", sa.BigInteger(), nullable=True),
        sa.Column("month", sa.Text(), nullable=True),
        sa.Column("spent_money_micros", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("spent_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(month IS NULL) = (outcome_id IS NOT NULL)", name=op.f("ck_reservations_month")
        ),
        sa.CheckConstraint(
            "money_micros IS NOT NULL OR tokens IS NOT NULL", name=op.f("ck_reservations_something")
        ),
        sa.CheckConstraint(
            "spent_money_micros >= 0 AND spent_tokens >= 0", name=op.f("ck_reservations_spent")
        ),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_reservations_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_reservations_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["giver_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_reservations_giver_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["outcome_id", "company_id"],
            ["outcomes.id", "outcomes.company_id"],
            name=op.f("fk_reservations_outcome_id_company_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_reservations_id_company_id")),
    )
    op.create_index(
        "ix_reservations_agent_id",
        "reservations",
        ["agent_id"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index(
        "ix_reservations_giver_id",
        "reservations",
        ["giver_id"],
        unique=False,
        sqlite_where=sa.text("closed_at IS NULL"),
        postgresql_where=sa.text("closed_at IS NULL"),
    )
    op.create_index("ix_reservations_outcome_id", "reservations", ["outcome_id"], unique=False)
