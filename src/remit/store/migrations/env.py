"""Runs the migrations on the connection that `remit.store.migrate` hands over.

All of them in one transaction, also on SQLite: a start that is cut off leaves the old schema. Who
fills the tables in the same transaction commits it.
"""

from alembic import context
from sqlalchemy import text

from remit.store.migrate import TAKE_TURN
from remit.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
if connection.dialect.name == "sqlite":
    connection.execute(text("BEGIN IMMEDIATE"))
else:
    # Two processes that start at once take turns.
    connection.execute(text(TAKE_TURN))
with context.begin_transaction():
    context.run_migrations()
if context.config.attributes.get("commit", True):
    connection.commit()
