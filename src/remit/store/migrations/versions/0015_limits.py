"""Limits: what a company set, which were reached, spending by the day, and costs that are estimates.

What an agent took in a month becomes what it took on the first day of that month: the sum of the
month stays right, and no day since has a row yet.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")
TIME = sa.BigInteger()
_NAMES = (
    "'agent_runs_per_hour', 'agent_tokens_per_day', 'company_runs_per_hour',"
    " 'company_cents_per_day'"
)


def upgrade() -> None:
    op.add_column("companies", sa.Column("limits", sa.Text(), nullable=False, server_default="{}"))
    op.add_column(
        "runs",
        sa.Column("cost_estimated", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    is_live = sa.text("status = 'running'")
    op.create_index(
        "ix_runs_live", "runs", ["company_id"], sqlite_where=is_live, postgresql_where=is_live
    )
    op.execute("ALTER TABLE spending RENAME COLUMN month TO day")
    op.create_table(
        "limits_reached",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("subject_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("until", TIME, nullable=False),
        sa.CheckConstraint(f"name IN ({_NAMES})", name=op.f("ck_limits_reached_name")),
        sa.ForeignKeyConstraint(
            ["agent_id", "company_id"],
            ["agents.id", "agents.company_id"],
            name=op.f("fk_limits_reached_agent_id_company_id"),
        ),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_limits_reached_company_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_limits_reached")),
    )
    op.create_index(
        "uq_limits_reached_subject", "limits_reached", ["subject_id", "name"], unique=True
    )
    op.create_index("ix_limits_reached_company_id", "limits_reached", ["company_id"])
