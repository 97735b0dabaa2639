"""What digests list, which copies show them, and what is put off until the end of somebody's quiet hours."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "digests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("message_seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("made_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_digests_thread_id", "digests", ["thread_id"])
    op.create_index("digests_of_person", "digests", ["person", "id"])
    op.create_table(
        "digest_items",
        sa.Column("digest_id", sa.Text, sa.ForeignKey("digests.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("action_id", sa.Text, sa.ForeignKey("actions.id", ondelete="CASCADE"), nullable=False),
        sa.Column("bound_to", sa.Text, nullable=False),
    )
    op.create_index("ix_digest_items_action_id", "digest_items", ["action_id"])
    op.add_column("outbox", sa.Column("digest_id", sa.Text))
    op.add_column("deliveries", sa.Column("digest_id", sa.Text))
    shown, put_off = sa.text("digest_id IS NOT NULL"), sa.text("state = 'put_off'")
    op.create_index(
        "deliveries_of_digest", "deliveries", ["digest_id"], sqlite_where=shown, postgresql_where=shown
    )
    op.create_index("outbox_put_off", "outbox", ["due_at"], sqlite_where=put_off, postgresql_where=put_off)
