"""Runs the migrations in the transaction that `remit.store.engine.migrate` has opened."""

from alembic import context

from remit.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
