"""What looking back needs: counts of what is gone, where a pruned audit begins, when chores were done."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_ENDED = sa.text("state IN ('done', 'failed', 'stopped')")


def upgrade() -> None:
    op.create_table(
        "tallies",
        sa.Column("tally", sa.Text, primary_key=True),
        sa.Column("label", sa.Text, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit_anchors",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("lines", sa.BigInteger, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "chores",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_index("runs_ended", "runs", ["state"], sqlite_where=_ENDED, postgresql_where=_ENDED)
