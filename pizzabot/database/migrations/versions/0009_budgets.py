"""What budgets need: what started a run, what a day was allowed beyond its budget, which notes were given."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for table in ("runs", "usage"):
        op.add_column(table, sa.Column("trigger_id", sa.Text))
    op.create_table(
        "day_raises",
        sa.Column("action_id", sa.Text, primary_key=True),
        sa.Column("day", sa.Text, nullable=False),
        sa.Column("budget", sa.Text, nullable=False),
        sa.Column("person", sa.Text),
        sa.Column("amount", sa.Float, nullable=False),
        sa.Column("allowed_by", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_day_raises_day", "day_raises", ["day"])
    op.create_table(
        "budget_notes",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
