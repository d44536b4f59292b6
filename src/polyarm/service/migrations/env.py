"""Alembic's entry: runs migrations over the connection that polyarm hands in."""

from alembic import context

from polyarm.service.schema import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=True, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
