"""People say which kinds of notices they get, where and when; any kind of channel is a way.

A check named the two ways that there were, so the table of notices is made anew with its rows.
"""

import sqlalchemy as sa
from alembic import op

from remit.store.migrations import additions

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    additions.make(revision)
    table = additions.tables_at(revision, ["notices"]).tables["notices"]
    connection = op.get_bind()
    kept = [dict(row) for row in connection.execute(sa.select(table)).mappings()]
    op.drop_table(table.name)
    table.create(connection)
    if kept:
        connection.execute(sa.insert(table), kept)
