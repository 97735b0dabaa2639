"""What messaging channels need: status messages of runs, and a place for what is not yet understood."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_OF_RUN = sa.text("run_id IS NOT NULL")


def upgrade() -> None:
    for table in ("outbox", "deliveries"):
        op.add_column(table, sa.Column("run_id", sa.Text))
        op.create_index(f"{table}_of_run", table, ["run_id"], sqlite_where=_OF_RUN, postgresql_where=_OF_RUN)
    op.create_table(
        "staged",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
    )
