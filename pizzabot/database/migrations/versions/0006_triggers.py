"""What unattended work needs: triggers, their occurrences, and for a thread whom its results are told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_OPEN = "state IN ('pending', 'running', 'waiting')"


def upgrade() -> None:
    op.add_column("threads", sa.Column("tells", sa.JSON(none_as_null=True)))
    op.add_column("runs", sa.Column("skills", sa.JSON(none_as_null=True)))
    op.create_table(
        "triggers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("name_key", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("prompt", sa.Text, nullable=False),
        sa.Column("cron", sa.Text),
        sa.Column("timezone", sa.Text, nullable=False),
        sa.Column("signing", sa.Text),
        sa.Column("secret", sa.Text),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("channels", sa.JSON(none_as_null=True)),
        sa.Column("skills", sa.JSON(none_as_null=True)),
        sa.Column("model", sa.Text),
        sa.Column("budget_usd", sa.Float),
        sa.Column("overlap", sa.Text, nullable=False),
        sa.Column("misfire", sa.Text, nullable=False),
        sa.Column("misfire_max", sa.Integer, nullable=False),
        sa.Column("grace_seconds", sa.Integer, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("paused", sa.Text),
        sa.Column("paused_action", sa.Text),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("watched_until", sa.BigInteger, nullable=False),
        sa.Column("next_run_at", sa.BigInteger),
        sa.Column("last_run_at", sa.BigInteger),
    )
    scheduled = sa.text("next_run_at IS NOT NULL")
    op.create_index(
        "triggers_scheduled",
        "triggers",
        ["next_run_at"],
        sqlite_where=scheduled,
        postgresql_where=scheduled,
    )
    op.create_table(
        "occurrences",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("trigger_id", sa.Text, sa.ForeignKey("triggers.id", ondelete="CASCADE"), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("scheduled_at", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("late_seconds", sa.Integer, nullable=False),
        sa.Column("missed", sa.Integer, nullable=False),
        sa.Column("signature", sa.Text),
        sa.Column("payload", sa.Text),
        sa.Column("fields", sa.JSON(none_as_null=True)),
        sa.Column("thread_id", sa.Text),
        sa.Column("run_id", sa.Text),
        sa.Column("error", sa.Text),
        sa.UniqueConstraint("trigger_id", "key", name="occurrences_once"),
        sa.UniqueConstraint("trigger_id", "signature", name="occurrences_signed_once"),
    )
    op.create_index("occurrences_of_trigger", "occurrences", ["trigger_id", "id"])
    op.create_index("occurrences_of_run", "occurrences", ["run_id"])
    op.create_index(
        "occurrences_open",
        "occurrences",
        ["id"],
        sqlite_where=sa.text(_OPEN),
        postgresql_where=sa.text(_OPEN),
    )
