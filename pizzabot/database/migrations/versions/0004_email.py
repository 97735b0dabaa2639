"""What mail needs: a channel's own notes, such as cursors, reply addresses and addresses that bounced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    # Looked up by its beginning: compared by code points, whatever the server's locale.
    plain = sa.Text(collation="C") if op.get_bind().dialect.name == "postgresql" else sa.Text()
    op.create_table(
        "channel_notes",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("key", plain, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("written_at", sa.BigInteger, nullable=False),
    )
