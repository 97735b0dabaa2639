"""How does Alembic apply the migrations? On a connection that `database.migrate` hands in, under its lock."""

from __future__ import annotations

from alembic import context

from pizzabot.database.schema import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
