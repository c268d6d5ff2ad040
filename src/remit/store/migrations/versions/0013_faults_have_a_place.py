"""Faults have a place: accounts and set-ups that are closed for everybody who depends on them, the
fault of a run, and letters that are tried one at a time.

Letters that died of three failures stay dead: whose fault these were is not known any more. They
are listed, and `remit revive --all` brings them back.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")
TIME = sa.BigInteger()


def upgrade() -> None:
    _columns()
    _tables()


def _columns() -> None:
    op.add_column("runs", sa.Column("fault", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("fault_until", TIME, nullable=True))
    op.add_column("runs", sa.Column("account_id", ID, nullable=True))
    op.add_column(
        "deliveries",
        sa.Column("begun", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column(
        "deliveries", sa.Column("faults", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("deliveries", sa.Column("alone_run_id", ID, nullable=True))
    op.add_column("agent_leases", sa.Column("failing_since", TIME, nullable=True))
    op.add_column("agent_leases", sa.Column("held_by", ID, nullable=True))
    op.drop_index("ix_agent_leases_due", "agent_leases")
    ready, held = sa.text("wake_seq > done_seq AND held_by IS NULL"), sa.text("held_by IS NOT NULL")
    op.create_index(
        "ix_agent_leases_due",
        "agent_leases",
        ["due_at"],
        sqlite_where=ready,
        postgresql_where=ready,
    )
    op.create_index(
        "ix_agent_leases_held_by",
        "agent_leases",
        ["held_by", "due_at"],
        sqlite_where=held,
        postgresql_where=held,
    )
    in_error = sa.text("status = 'error'")
    op.create_index(
        "ix_agents_error", "agents", ["id"], sqlite_where=in_error, postgresql_where=in_error
    )


def _tables() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("adapter_type", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("fault", sa.Text(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("since", TIME, nullable=True),
        sa.Column("until", TIME, nullable=True),
        sa.Column("probe_at", TIME, nullable=True),
        sa.Column("probe_run_id", ID, nullable=True),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("opened_at", TIME, nullable=True),
        sa.Column("started", sa.Integer(), server_default="0", nullable=False),
        sa.Column("answered_at", TIME, nullable=True),
        sa.Column("told_at", TIME, nullable=True),
        sa.Column("told_fault", sa.Text(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint("kind IN ('account', 'setup')", name=op.f("ck_accounts_kind")),
        sa.CheckConstraint(
            "state IN ('open', 'closed', 'failing')", name=op.f("ck_accounts_state")
        ),
        sa.CheckConstraint(
            "(kind = 'setup') = (worker IS NOT NULL)", name=op.f("ck_accounts_where")
        ),
        sa.CheckConstraint("(state = 'open') = (since IS NULL)", name=op.f("ck_accounts_since")),
        sa.ForeignKeyConstraint(
            ["company_id"], ["companies.id"], name=op.f("fk_accounts_company_id")
        ),
        sa.ForeignKeyConstraint(
            ["probe_run_id"], ["runs.id"], name=op.f("fk_accounts_probe_run_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("id", "company_id", name=op.f("uq_accounts_id_company_id")),
    )
    op.create_index("ix_accounts_company_id", "accounts", ["company_id", "name"])
    held = sa.text("state <> 'open'")
    op.create_index(
        "ix_accounts_held", "accounts", ["probe_at"], sqlite_where=held, postgresql_where=held
    )
