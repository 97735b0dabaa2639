"""What taking turns among people needs: the queued runs of each person, oldest first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    queued = sa.text("state = 'queued'")
    op.create_index(
        "runs_queued_of_person",
        "runs",
        ["person", "queued_at", "id"],
        sqlite_where=queued,
        postgresql_where=queued,
    )
