"""Which messages were written about an action without deciding it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("messages", sa.Column("aside_to", sa.Text))
