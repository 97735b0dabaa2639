"""Which firings failed, so that those whose runs are retried are found among few; what the ended ones brought
goes, because nothing reads it any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    failed = sa.text("state = 'failed'")
    op.create_index(
        "occurrences_failed",
        "occurrences",
        ["id", "run_id"],
        sqlite_where=failed,
        postgresql_where=failed,
    )
    op.execute(
        "UPDATE occurrences SET payload = NULL, fields = NULL"
        " WHERE ended_at IS NOT NULL AND (payload IS NOT NULL OR fields IS NOT NULL)"
    )
