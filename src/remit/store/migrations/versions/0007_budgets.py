"""What agents may spend; the most pressing of what can be worked on is found by an index.

Budgets that agents had before become accounts, whether or not those of their bosses cover them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

ID = sa.String(length=36).with_variant(sa.String(length=36, collation="C"), "postgresql")
MICROS_PER_CENT = 10_000
OPEN = sa.text("closed_at IS NULL")


def upgrade() -> None:
    op.execute("ALTER TABLE agents ADD COLUMN budget_monthly_tokens BIGINT")
    _press()
    op.create_table(
        "budget_accounts",
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("month", sa.BigInteger(), nullable=False),
        sa.Column("charged", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('money', 'tokens')", name=op.f("ck_budget_accounts_kind")),
        sa.CheckConstraint(
            "amount >= 0 AND reserved >= 0 AND charged >= 0",
            name=op.f("ck_budget_accounts_amounts"),
        ),
        _in_company("budget_accounts", "agent_id", "agents"),
        _of_company("budget_accounts"),
        sa.PrimaryKeyConstraint("agent_id", "kind", name=op.f("pk_budget_accounts")),
    )
    op.create_index("ix_budget_accounts_company_id", "budget_accounts", ["company_id"])
    op.create_table(
        "reservations",
        sa.Column("id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("giver_id", ID, nullable=False),
        sa.Column("account_id", ID, nullable=True),
        sa.Column("outcome_id", ID, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("month", sa.BigInteger(), nullable=False),
        sa.Column("spent_before", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('money', 'tokens')", name=op.f("ck_reservations_kind")),
        sa.CheckConstraint(
            "amount > 0 AND spent >= spent_before AND spent_before >= 0",
            name=op.f("ck_reservations_amounts"),
        ),
        _in_company("reservations", "agent_id", "agents"),
        _in_company("reservations", "giver_id", "agents"),
        _in_company("reservations", "account_id", "agents"),
        _in_company("reservations", "outcome_id", "outcomes"),
        _of_company("reservations"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
    )
    for column in ("agent_id", "account_id", "outcome_id", "company_id"):
        op.create_index(
            f"ix_reservations_{column}",
            "reservations",
            [column],
            sqlite_where=OPEN,
            postgresql_where=OPEN,
        )
    op.create_table(
        "spending",
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("month", sa.BigInteger(), nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("money_micros", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        _in_company("spending", "agent_id", "agents"),
        _of_company("spending"),
        sa.PrimaryKeyConstraint("agent_id", "month", name=op.f("pk_spending")),
    )
    op.create_index("ix_spending_company_id", "spending", ["company_id", "month"])
    op.create_table(
        "budget_stops",
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("company_id", ID, nullable=False),
        sa.Column("holder_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('money', 'tokens')", name=op.f("ck_budget_stops_kind")),
        _in_company("budget_stops", "agent_id", "agents"),
        _in_company("budget_stops", "holder_id", "agents"),
        _of_company("budget_stops"),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_budget_stops")),
    )
    op.create_index("ix_budget_stops_company_id", "budget_stops", ["company_id"])
    _open_accounts()


def _in_company(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column, "company_id"],
        [f"{other}.id", f"{other}.company_id"],
        name=op.f(f"fk_{table}_{column}_company_id"),
    )


def _of_company(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["company_id"], ["companies.id"], name=op.f(f"fk_{table}_company_id")
    )


def _press() -> None:
    """The same index with two columns more; and one to count by."""
    op.drop_index("ix_outcomes_actionable", "outcomes")
    op.create_index(
        "ix_outcomes_actionable",
        "outcomes",
        ["owner_id", "status", "open_prereqs", "urgent", "important"],
        sqlite_where=sa.text("status = 'open' AND open_prereqs = 0 AND perpetual = 0"),
        postgresql_where=sa.text("status = 'open' AND open_prereqs = 0 AND NOT perpetual"),
    )
    op.create_index("ix_outcomes_status", "outcomes", ["company_id", "status"])


def _open_accounts() -> None:
    database = op.get_bind()
    rows = database.execute(
        sa.text(
            "SELECT id, company_id, boss_id, budget_monthly_cents FROM agents"
            " WHERE status <> 'terminated'"
        )
    ).all()
    bosses = {row.id: row.boss_id for row in rows}
    amounts = {
        row.id: row.budget_monthly_cents * MICROS_PER_CENT
        for row in rows
        if row.budget_monthly_cents is not None
    }
    reserved = dict.fromkeys(amounts, 0)
    for agent, amount in amounts.items():
        above, seen = bosses.get(agent), {agent}
        while above is not None and above not in amounts and above not in seen:
            seen.add(above)
            above = bosses.get(above)
        if above in amounts:
            reserved[above] += amount
    for row in rows:
        if row.id in amounts:
            database.execute(
                sa.text(
                    "INSERT INTO budget_accounts"
                    " (agent_id, kind, company_id, amount, reserved, month, charged)"
                    " VALUES (:agent, 'money', :company, :amount, :reserved, 0, 0)"
                ),
                {
                    "agent": row.id,
                    "company": row.company_id,
                    "amount": amounts[row.id],
                    "reserved": reserved[row.id],
                },
            )
