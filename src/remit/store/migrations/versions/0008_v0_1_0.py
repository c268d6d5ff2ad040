"""The schema of v0.1.0, the first release."""

import sqlalchemy as sa
from alembic import op

from remit.store.migrations.additions import tables_at
from remit.store.tables.engine_specific import STATEMENTS

revision = "0008"
down_revision = None


def upgrade() -> None:
    tables_at(revision).create_all(op.get_bind(), checkfirst=False)
    _name_as_then()
    for statement in STATEMENTS[op.get_bind().dialect.name]:
        op.execute(statement)


def _name_as_then() -> None:
    """Names that a later revision renamed or replaced."""
    op.execute("ALTER TABLE spending RENAME COLUMN day TO month")
    for table, column, condition in (
        ("outcomes", "deferred_until", "status = 'open' AND deferred_until IS NOT NULL"),
        ("agent_leases", "due_at", "wake_seq > done_seq"),
    ):
        op.create_index(
            f"ix_{table}_{column.removesuffix('_at')}",
            table,
            [column],
            sqlite_where=sa.text(condition),
            postgresql_where=sa.text(condition),
        )
