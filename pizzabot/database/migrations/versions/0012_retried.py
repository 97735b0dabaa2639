"""Who had a run tried again, and where: they are told of its end at once, and there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    for name in ("retried_by", "retried_via"):
        op.add_column("runs", sa.Column(name, sa.Text))
