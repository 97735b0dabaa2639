"""The first tables. Frozen: what changes later is a later migration."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SEQUENCE = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_FULL_TEXT_SQLITE = (
    "CREATE VIRTUAL TABLE messages_fts USING fts5(text, content='messages', content_rowid='seq', "
    "tokenize='unicode61 remove_diacritics 2')",
    "CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN INSERT INTO "
    "messages_fts(rowid, text) VALUES (new.seq, new.text); END",
    "CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN INSERT INTO "
    "messages_fts(messages_fts, rowid, text) VALUES ('delete', old.seq, old.text); END",
    "CREATE TRIGGER messages_fts_update AFTER UPDATE OF text ON messages BEGIN INSERT INTO "
    "messages_fts(messages_fts, rowid, text) VALUES ('delete', old.seq, old.text); INSERT INTO "
    "messages_fts(rowid, text) VALUES (new.seq, new.text); END",
)

_FULL_TEXT_POSTGRESQL = (
    "ALTER TABLE messages ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('simple', "
    "translate(left(text, 200000), '!#$&()*+,-./:;<=>?@[]^_`{|}~', '                            '))) "
    "STORED",
    "CREATE INDEX messages_words ON messages USING gin (words)",
)


def upgrade() -> None:
    _threads()
    _thread_addresses()
    _messages()
    _inbound()
    _attachments()
    _runs()
    _actions()
    _action_approvers()
    _effects()
    _outbox()
    _deliveries()
    _activity()
    _usage()
    _stops()
    _disabled_skills()
    _audit()
    statements = _FULL_TEXT_POSTGRESQL if op.get_bind().dialect.name == "postgresql" else _FULL_TEXT_SQLITE
    for statement in statements:
        op.execute(statement)


def _threads() -> None:
    op.create_table(
        "threads",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("title_source", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("unread", sa.Boolean, nullable=False),
        sa.Column("action_count", sa.Integer, nullable=False),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Column("last_message", sa.Text, nullable=False),
        sa.Column("last_activity_at", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "threads_action",
        "threads",
        [sa.text("last_activity_at DESC"), sa.text("id DESC")],
        sqlite_where=sa.text("archived = 0 AND action_count > 0"),
        postgresql_where=sa.text("archived = false AND action_count > 0"),
    )
    op.create_index(
        "threads_all",
        "threads",
        [sa.text("last_activity_at DESC"), sa.text("id DESC")],
        sqlite_where=sa.text("archived = 0"),
        postgresql_where=sa.text("archived = false"),
    )
    op.create_index(
        "threads_of_owner", "threads", ["owner", sa.text("last_activity_at DESC"), sa.text("id DESC")]
    )
    op.create_index(
        "threads_unread",
        "threads",
        [sa.text("last_activity_at DESC"), sa.text("id DESC")],
        sqlite_where=sa.text("archived = 0 AND unread = 1"),
        postgresql_where=sa.text("archived = false AND unread = true"),
    )


def _thread_addresses() -> None:
    op.create_table(
        "thread_addresses",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("address", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
    )
    op.create_index("ix_thread_addresses_thread_id", "thread_addresses", ["thread_id"])


def _messages() -> None:
    op.create_table(
        "messages",
        sa.Column("seq", _SEQUENCE, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("run_id", sa.Text),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("channel", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "messages_held",
        "messages",
        ["thread_id"],
        sqlite_where=sa.text("run_id IS NULL AND role = 'user'"),
        postgresql_where=sa.text("run_id IS NULL AND role = 'user'"),
    )
    op.create_index("messages_of_thread", "messages", ["thread_id", "seq"])


def _inbound() -> None:
    op.create_table(
        "inbound",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, nullable=False),
        sa.Column("message_seq", _SEQUENCE, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
    )


def _attachments() -> None:
    op.create_table(
        "attachments",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("message_seq", _SEQUENCE, nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("media_type", sa.Text, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
    )
    op.create_index("ix_attachments_thread_id", "attachments", ["thread_id"])


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("queued_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("used", sa.JSON, nullable=False),
        sa.Column("allowance", sa.JSON, nullable=False),
        sa.Column("error_code", sa.Text),
        sa.Column("error_message", sa.Text),
    )
    op.create_index("runs_of_thread", "runs", ["thread_id", "id"])
    op.create_index(
        "runs_running",
        "runs",
        ["id"],
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "runs_one_active_per_thread",
        "runs",
        ["thread_id"],
        unique=True,
        sqlite_where=sa.text("state IN ('queued', 'running', 'waiting')"),
        postgresql_where=sa.text("state IN ('queued', 'running', 'waiting')"),
    )
    op.create_index(
        "runs_queued",
        "runs",
        ["queued_at", "id"],
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )


def _actions() -> None:
    op.create_table(
        "actions",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("question", _PLAIN, nullable=False, unique=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("skill", sa.Text),
        sa.Column("why", sa.Text),
        sa.Column("requested_by", sa.Text),
        sa.Column("args", sa.JSON, nullable=False),
        sa.Column("args_schema", sa.JSON, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("allowed_decisions", sa.JSON, nullable=False),
        sa.Column("approvers", sa.JSON, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("decision", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("response", sa.Text),
        sa.Column("final_args", sa.JSON(none_as_null=True)),
        sa.Column("decided_by", sa.Text),
        sa.Column("decided_at", sa.BigInteger),
        sa.Column("decided_via", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "actions_pending",
        "actions",
        ["id"],
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_index("ix_actions_run_id", "actions", ["run_id"])
    op.create_index("ix_actions_thread_id", "actions", ["thread_id"])


def _action_approvers() -> None:
    op.create_table(
        "action_approvers",
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("action_id", sa.Text, sa.ForeignKey("actions.id", ondelete="CASCADE"), primary_key=True),
    )


def _effects() -> None:
    op.create_table(
        "effects",
        sa.Column("call", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("args", sa.JSON, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True)),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
    )
    op.create_index("ix_effects_thread_id", "effects", ["thread_id"])


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, nullable=False, unique=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("person", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("message_seq", _SEQUENCE),
        sa.Column("action_id", sa.Text),
        sa.Column("external_id", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("first_tried_at", sa.BigInteger),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("sent_at", sa.BigInteger),
    )
    op.create_index("ix_outbox_thread_id", "outbox", ["thread_id"])
    op.create_index(
        "outbox_due",
        "outbox",
        ["due_at"],
        sqlite_where=sa.text("state IN ('pending', 'sending', 'unknown')"),
        postgresql_where=sa.text("state IN ('pending', 'sending', 'unknown')"),
    )
    op.create_index(
        "outbox_line",
        "outbox",
        ["channel", "address", "id"],
        sqlite_where=sa.text("state IN ('pending', 'sending', 'unknown')"),
        postgresql_where=sa.text("state IN ('pending', 'sending', 'unknown')"),
    )
    op.create_index(
        "outbox_failed",
        "outbox",
        ["id"],
        sqlite_where=sa.text("state = 'failed'"),
        postgresql_where=sa.text("state = 'failed'"),
    )


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("address", sa.Text, primary_key=True),
        sa.Column("external_id", sa.Text, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("action_id", sa.Text),
        sa.Column("person", sa.Text),
        sa.Column("shown_state", sa.Text),
        sa.Column("delivered_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_deliveries_action_id", "deliveries", ["action_id"])
    op.create_index("ix_deliveries_thread_id", "deliveries", ["thread_id"])


def _activity() -> None:
    op.create_table(
        "activity",
        sa.Column("seq", _SEQUENCE, primary_key=True),
        sa.Column("thread_id", sa.Text, sa.ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("detail", sa.Text),
        sa.Column("milliseconds", sa.Integer),
        sa.Column("at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("activity_of_thread", "activity", ["thread_id", "seq"])


def _usage() -> None:
    op.create_table(
        "usage",
        sa.Column("seq", _SEQUENCE, primary_key=True),
        sa.Column("thread_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("input_tokens", sa.Integer, nullable=False),
        sa.Column("output_tokens", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Float),
        sa.Column("at", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_usage_at", "usage", ["at"])
    op.create_index("ix_usage_run_id", "usage", ["run_id"])


def _stops() -> None:
    op.create_table(
        "stops",
        sa.Column("scope", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def _disabled_skills() -> None:
    op.create_table(
        "disabled_skills",
        sa.Column("skill", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", _SEQUENCE, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("previous_hash", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
