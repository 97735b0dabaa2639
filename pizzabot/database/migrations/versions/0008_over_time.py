"""What approvals need over time: expiry, escalation, quorum, reminders and snoozes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_PENDING = sa.text("state = 'pending'")


def upgrade() -> None:
    for column in (
        sa.Column("waiting_since", sa.BigInteger),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("escalates_at", sa.BigInteger),
        sa.Column("escalated_to", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("quorum", sa.Integer, nullable=False, server_default="1"),
        sa.Column("asked_args", sa.JSON),
        sa.Column("edited_by", sa.Text),
        sa.Column("revision", sa.Integer, nullable=False, server_default="0"),
    ):
        op.add_column("actions", column)
    for name, column_name in (("actions_expiring", "expires_at"), ("actions_escalating", "escalates_at")):
        op.create_index(name, "actions", [column_name], sqlite_where=_PENDING, postgresql_where=_PENDING)
    op.create_table(
        "votes",
        sa.Column("action_id", sa.Text, sa.ForeignKey("actions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "reminders",
        sa.Column("action_id", sa.Text, sa.ForeignKey("actions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("snoozed_until", sa.BigInteger),
    )
    op.create_index("ix_reminders_due_at", "reminders", ["due_at"])
    op.create_index("reminders_of_person", "reminders", ["person", "snoozed_until"])
    op.add_column("deliveries", sa.Column("kind", sa.Text))
