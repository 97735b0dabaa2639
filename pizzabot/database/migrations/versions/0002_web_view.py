"""What the web view needs: logging in, what a thread cost, and counts that read no more than they count."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_NEWEST_FIRST = [sa.text("last_activity_at DESC"), sa.text("id DESC")]


def upgrade() -> None:
    op.create_table(
        "login_codes",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_sessions_person", "sessions", ["person"])
    op.create_index("ix_usage_thread_id", "usage", ["thread_id"])
    _again("threads_unread", "archived != 1 AND unread = 1", "archived != true AND unread = true")
    _again("threads_action", "archived != 1 AND action_count > 0", "archived != true AND action_count > 0")


def _again(name: str, sqlite: str, postgresql: str) -> None:
    op.drop_index(name, "threads")
    op.create_index(
        name, "threads", _NEWEST_FIRST, sqlite_where=sa.text(sqlite), postgresql_where=sa.text(postgresql)
    )
