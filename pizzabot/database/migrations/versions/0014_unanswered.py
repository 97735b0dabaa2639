"""Which actions can still be answered, by tool: they are looked for at every turn of the clock."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    unanswered = sa.text("state IN ('pending', 'expired')")
    op.create_index(
        "actions_unanswered", "actions", ["tool"], sqlite_where=unanswered, postgresql_where=unanswered
    )
