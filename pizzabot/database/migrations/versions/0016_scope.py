"""Which skills all runs of a thread may use that a trigger began, and not its first run alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("threads", sa.Column("skills", sa.JSON))
    op.execute(
        "UPDATE threads SET skills = (SELECT runs.skills FROM runs WHERE runs.thread_id = threads.id"
        " AND runs.skills IS NOT NULL ORDER BY runs.id LIMIT 1) WHERE channel = 'trigger'"
    )
