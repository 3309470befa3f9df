"""What Alembic runs: the revisions of one store, on the connection that its `Database` has."""

from __future__ import annotations

from alembic import context

from core.database import version_table

context.configure(
    connection=context.config.attributes["connection"],
    version_table=version_table(context.config.attributes["store"]),
)
context.run_migrations()
