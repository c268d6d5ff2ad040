"""Indexes of SQLite are created anew where their order is not that of their declaration.

Of two that seem equally good, SQLite takes the one that was created last; the order used to be
another in each database.
"""

from alembic import op
from sqlalchemy import text

from remit.store.migrations.additions import tables_at
from remit.store.tables.base import in_order

revision = "0039"
down_revision = "0038"

#: The indexes of a table that were created by name, in that order.
_INDEXES = (
    "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = :table"
    " AND sql IS NOT NULL ORDER BY rowid"
)


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    for table in tables_at(revision).sorted_tables:
        declared = in_order(table)
        found = connection.execute(text(_INDEXES), {"table": table.name}).scalars().all()
        if found == [index.name for index in declared]:
            continue
        for index in declared:
            if index.name in found:
                index.drop(connection)
        for index in declared:
            index.create(connection)
