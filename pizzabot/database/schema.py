"""Which rows are there? One metadata for SQLite and PostgreSQL.

Times are aware UTC in Python and whole microseconds since 1970 in the database, on both: they compare, index
and page alike. Ids are `pizzabot.ids` text; `messages.seq` is a number, because the full-text index is read
newest first by it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import DDL, event
from sqlalchemy.types import TypeDecorator

metadata = sa.MetaData()

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970; refuses a naive time."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(value: int) -> datetime:
    """The inverse of `to_microseconds`."""
    return _EPOCH + value * _MICROSECOND


class UtcTime(TypeDecorator[datetime]):
    """An aware datetime as microseconds since 1970."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Any) -> int | None:
        return None if value is None else to_microseconds(value)

    def process_result_value(self, value: Any, _dialect: Any) -> datetime | None:
        return None if value is None else from_microseconds(int(value))


def _is(column: sa.ColumnElement[str], *words: str) -> sa.ColumnElement[bool]:
    """`column` is one of `words`, as literals.

    A partial index serves a query only when the query says the index's own condition, and a bound value says
    nothing to the planner. So indexes and queries share conditions that are named here.
    """
    literals: list[sa.ColumnElement[str]] = [sa.literal_column(f"'{word}'") for word in words]
    return column == literals[0] if len(literals) == 1 else column.in_(literals)


def _where(condition: sa.ColumnElement[bool]) -> dict[str, Any]:
    return {"sqlite_where": condition, "postgresql_where": condition}


_Large = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# Text that is looked up by its beginning: compared by code points, whatever the server's locale.
_Plain = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _thread_key(**options: Any) -> sa.Column[str]:
    return sa.Column("thread_id", sa.ForeignKey("threads.id", ondelete="CASCADE"), **options)


threads = sa.Table(
    "threads",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("title_source", sa.Text, nullable=False),  # first | model | user
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("unread", sa.Boolean, nullable=False),
    sa.Column("action_count", sa.Integer, nullable=False),
    sa.Column("archived", sa.Boolean, nullable=False),
    sa.Column("last_message", sa.Text, nullable=False),
    sa.Column("last_activity_at", UtcTime, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("tells", sa.JSON(none_as_null=True)),  # whom a trigger's results are told; NULL: its owner
    sa.Column("skills", sa.JSON(none_as_null=True)),  # the only ones that its runs may use; NULL: all
)
IN_INBOX = threads.c.archived == sa.false()
# Said in other words than IN_INBOX on purpose: without statistics SQLite takes the index of the whole inbox
# wherever its condition holds, and reads a hundred thousand rows to count a few.
_NOT_ARCHIVED = threads.c.archived != sa.true()
UNREAD = sa.and_(_NOT_ARCHIVED, threads.c.unread == sa.true())
WITH_ACTION = sa.and_(_NOT_ARCHIVED, threads.c.action_count > sa.literal_column("0"))
_newest_first = (threads.c.last_activity_at.desc(), threads.c.id.desc())
sa.Index(
    "threads_all",
    *_newest_first,
    **_where(IN_INBOX),
)
sa.Index(
    "threads_unread",
    *_newest_first,
    **_where(UNREAD),
)
sa.Index(
    "threads_action",
    *_newest_first,
    **_where(WITH_ACTION),
)
sa.Index("threads_of_owner", threads.c.owner, *_newest_first)

thread_addresses = sa.Table(
    "thread_addresses",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("address", sa.Text, primary_key=True),
    _thread_key(nullable=False, index=True),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("seq", _Large, primary_key=True),
    _thread_key(nullable=False),
    sa.Column("run_id", sa.Text),  # NULL on a person's message: held for the next run
    sa.Column("role", sa.Text, nullable=False),  # user | assistant | notice | title (searched, not shown)
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("channel", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("aside_to", sa.Text),  # the action that it was written about; begins no run by itself
    sa.Index("messages_of_thread", "thread_id", "seq"),
    sqlite_autoincrement=True,
)
HELD = sa.and_(messages.c.run_id.is_(None), _is(messages.c.role, "user"))
sa.Index(
    "messages_held",
    messages.c.thread_id,
    **_where(HELD),
)

inbound = sa.Table(
    "inbound",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    # No foreign key: what was taken once stays taken when its thread is deleted.
    sa.Column("thread_id", sa.Text, nullable=False),
    sa.Column("message_seq", _Large, nullable=False),
    sa.Column("received_at", UtcTime, nullable=False),
)

# What a channel has yet to understand, with files that are still to be fetched for example.
staged = sa.Table(
    "staged",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("received_at", UtcTime, nullable=False),
)

# What a channel must remember to do its work: cursors, reply addresses, which address bounced.
channel_notes = sa.Table(
    "channel_notes",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("key", _Plain, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("written_at", UtcTime, nullable=False),
)

attachments = sa.Table(
    "attachments",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _thread_key(nullable=False, index=True),
    sa.Column("message_seq", _Large, nullable=False),
    sa.Column("filename", sa.Text, nullable=False),
    sa.Column("media_type", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    _thread_key(nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),  # claims so far: names the workflow
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("queued_at", UtcTime, nullable=False),
    sa.Column("started_at", UtcTime),
    sa.Column("ended_at", UtcTime),
    sa.Column("used", sa.JSON, nullable=False),  # agent.limits.Bounds
    sa.Column("allowance", sa.JSON, nullable=False),  # agent.limits.Bounds
    sa.Column("error_code", sa.Text),
    sa.Column("error_message", sa.Text),
    sa.Column("skills", sa.JSON(none_as_null=True)),  # the only ones it may use; NULL: all
    sa.Column("trigger_id", sa.Text),  # what started it, when that was no message
    sa.Column("retried_by", sa.Text),  # the person who had it go on last after it failed or was stopped
    sa.Column("retried_via", sa.Text),
    sa.Index("runs_of_thread", "thread_id", "id"),
)
RUN_QUEUED = _is(runs.c.state, "queued")
RUN_RUNNING = _is(runs.c.state, "running")
RUN_ACTIVE = _is(runs.c.state, "queued", "running", "waiting")
sa.Index(
    "runs_queued",
    runs.c.queued_at,
    runs.c.id,
    **_where(RUN_QUEUED),
)
sa.Index(
    "runs_queued_of_person",
    runs.c.person,
    runs.c.queued_at,
    runs.c.id,
    **_where(RUN_QUEUED),
)
sa.Index("runs_running", runs.c.id, **_where(RUN_RUNNING))
RUN_ENDED = _is(runs.c.state, "done", "failed", "stopped")
sa.Index("runs_ended", runs.c.state, **_where(RUN_ENDED))
# Promise 3 as a constraint: a second active run of a thread cannot be stored.
sa.Index(
    "runs_one_active_per_thread",
    runs.c.thread_id,
    unique=True,
    **_where(RUN_ACTIVE),
)

actions = sa.Table(
    "actions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    # Which question of the graph this is: asking again finds the row instead of making another.
    sa.Column("question", _Plain, nullable=False, unique=True),
    _thread_key(nullable=False, index=True),
    sa.Column("run_id", sa.Text, nullable=False, index=True),
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
    sa.Column("decided_at", UtcTime),
    sa.Column("decided_via", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
    # Approvals over time. NULL: from before there was any, until the clock is wound.
    sa.Column("waiting_since", UtcTime),
    sa.Column("expires_at", UtcTime),
    sa.Column("escalates_at", UtcTime),
    sa.Column("escalated_to", sa.JSON, nullable=False, server_default="[]"),
    sa.Column("quorum", sa.Integer, nullable=False, server_default="1"),
    sa.Column("asked_args", sa.JSON(none_as_null=True)),  # set while an edit waits for others to approve it
    sa.Column("edited_by", sa.Text),
    sa.Column("revision", sa.Integer, nullable=False, server_default="0"),  # of what its cards show
)
ACTION_PENDING = _is(actions.c.state, "pending")
sa.Index(
    "actions_pending",
    actions.c.id,
    **_where(ACTION_PENDING),
)

# Waits, or expired: the few that somebody may still answer, and some that expired for good.
ACTION_UNANSWERED = _is(actions.c.state, "pending", "expired")
sa.Index("actions_unanswered", actions.c.tool, **_where(ACTION_UNANSWERED))
sa.Index("actions_expiring", actions.c.expires_at, **_where(ACTION_PENDING))
sa.Index("actions_escalating", actions.c.escalates_at, **_where(ACTION_PENDING))

# Who approved an action that takes several, with exactly these arguments.
votes = sa.Table(
    "votes",
    metadata,
    sa.Column("action_id", sa.ForeignKey("actions.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("person", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("via", sa.Text, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
)

# When a person is told again of an action that waits for them.
reminders = sa.Table(
    "reminders",
    metadata,
    sa.Column("action_id", sa.ForeignKey("actions.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("person", sa.Text, primary_key=True),
    sa.Column("due_at", UtcTime, nullable=False, index=True),
    sa.Column("snoozed_until", UtcTime),
    sa.Index("reminders_of_person", "person", "snoozed_until"),
)

# Who was named for an action, to find the threads that an approver may see.
action_approvers = sa.Table(
    "action_approvers",
    metadata,
    sa.Column("person", sa.Text, primary_key=True),
    _thread_key(primary_key=True),
    sa.Column("action_id", sa.ForeignKey("actions.id", ondelete="CASCADE"), primary_key=True),
)

effects = sa.Table(
    "effects",
    metadata,
    sa.Column("call", sa.Text, primary_key=True),  # thread, checkpoint namespace and tool call id
    _thread_key(nullable=False, index=True),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("args", sa.JSON, nullable=False),
    sa.Column("state", sa.Text, nullable=False),  # started | done | unknown
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("started_at", UtcTime, nullable=False),
    sa.Column("ended_at", UtcTime),
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("person", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),  # answer | notice | action | status | digest
    _thread_key(nullable=False, index=True),
    sa.Column("message_seq", _Large),
    sa.Column("action_id", sa.Text),
    sa.Column("external_id", sa.Text),  # set: repaint this copy
    sa.Column("state", sa.Text, nullable=False),  # pending | sending | unknown | sent | failed | put_off
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("first_tried_at", UtcTime),
    sa.Column("due_at", UtcTime, nullable=False),
    sa.Column("error", sa.Text),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("sent_at", UtcTime),
    sa.Column("run_id", sa.Text),  # of a status
    sa.Column("digest_id", sa.Text),
)
OUTBOX_OPEN = _is(outbox.c.state, "pending", "sending", "unknown")
OUTBOX_FAILED = _is(outbox.c.state, "failed")
OUTBOX_PUT_OFF = _is(outbox.c.state, "put_off")
sa.Index(
    "outbox_due",
    outbox.c.due_at,
    **_where(OUTBOX_OPEN),
)
sa.Index(
    "outbox_line",
    outbox.c.channel,
    outbox.c.address,
    outbox.c.id,
    **_where(OUTBOX_OPEN),
)
sa.Index(
    "outbox_failed",
    outbox.c.id,
    **_where(OUTBOX_FAILED),
)
sa.Index("outbox_put_off", outbox.c.due_at, **_where(OUTBOX_PUT_OFF))

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("address", sa.Text, primary_key=True),
    sa.Column("external_id", sa.Text, primary_key=True),
    _thread_key(nullable=False, index=True),
    sa.Column("action_id", sa.Text, index=True),
    sa.Column("person", sa.Text),
    sa.Column("shown_state", sa.Text),  # of the action or the run, in this copy
    sa.Column("delivered_at", UtcTime, nullable=False),
    sa.Column("run_id", sa.Text),  # of a status
    sa.Column("kind", sa.Text),  # reminder; NULL: whatever its other columns say
    sa.Column("digest_id", sa.Text),
)
sa.Index("deliveries_of_digest", deliveries.c.digest_id, **_where(deliveries.c.digest_id.is_not(None)))
STATUS_QUEUED, STATUS_SHOWN = outbox.c.run_id.is_not(None), deliveries.c.run_id.is_not(None)
sa.Index("outbox_of_run", outbox.c.run_id, **_where(STATUS_QUEUED))
sa.Index("deliveries_of_run", deliveries.c.run_id, **_where(STATUS_SHOWN))

# What a person was told at regular times; its text is a message of a thread of its own.
digests = sa.Table(
    "digests",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, nullable=False),
    _thread_key(nullable=False, index=True),
    sa.Column("message_seq", _Large, nullable=False),
    sa.Column("content", sa.JSON, nullable=False),  # what it lists beside actions: digests.content
    sa.Column("made_at", UtcTime, nullable=False),
    sa.Index("digests_of_person", "person", "id"),
)
digest_items = sa.Table(
    "digest_items",
    metadata,
    sa.Column("digest_id", sa.ForeignKey("digests.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("action_id", sa.ForeignKey("actions.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("bound_to", sa.Text, nullable=False),  # digest of the arguments as they were listed
)

activity = sa.Table(
    "activity",
    metadata,
    sa.Column("seq", _Large, primary_key=True),
    _thread_key(nullable=False),
    sa.Column("run_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),  # model | tool | wait | limit | retry
    sa.Column("worker", sa.Text),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),  # started | ok | error | paused | stopped
    sa.Column("detail", sa.Text),
    sa.Column("milliseconds", sa.Integer),
    sa.Column("at", UtcTime, nullable=False),
    sa.Index("activity_of_thread", "thread_id", "seq"),
    sqlite_autoincrement=True,
)

usage = sa.Table(
    "usage",
    metadata,
    sa.Column("seq", _Large, primary_key=True),
    # No foreign key: what was spent outlives the thread.
    sa.Column("thread_id", sa.Text, nullable=False, index=True),
    sa.Column("run_id", sa.Text, nullable=False, index=True),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("input_tokens", _Large, nullable=False),
    sa.Column("output_tokens", _Large, nullable=False),
    sa.Column("cost_usd", sa.Float),  # NULL: the price is not known
    sa.Column("at", UtcTime, nullable=False, index=True),
    sa.Column("trigger_id", sa.Text),  # of the run; as the thread, it need not be there any more
    sqlite_autoincrement=True,
)

# What somebody allowed beyond the budget of a day, once per approved action.
day_raises = sa.Table(
    "day_raises",
    metadata,
    # No foreign key: what was allowed outlives the thread that asked.
    sa.Column("action_id", sa.Text, primary_key=True),
    sa.Column("day", sa.Text, nullable=False, index=True),  # YYYY-MM-DD
    sa.Column("budget", sa.Text, nullable=False),  # day_usd | day_tokens | person_day_usd
    sa.Column("person", sa.Text),  # of person_day_usd: whose
    sa.Column("amount", sa.Float, nullable=False),
    sa.Column("allowed_by", sa.Text, nullable=False),
    sa.Column("via", sa.Text, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
)

# Which notes about budgets were given: each once.
budget_notes = sa.Table(
    "budget_notes",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
)

stops = sa.Table(
    "stops",
    metadata,
    sa.Column("scope", sa.Text, primary_key=True),  # all
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("via", sa.Text, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
)

triggers = sa.Table(
    "triggers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("name_key", sa.Text, nullable=False, unique=True),  # the name, whatever its case
    sa.Column("kind", sa.Text, nullable=False),  # cron | webhook | digest
    sa.Column("prompt", sa.Text, nullable=False),
    sa.Column("cron", sa.Text),
    sa.Column("timezone", sa.Text, nullable=False),
    sa.Column("signing", sa.Text),  # secret | hmac
    sa.Column("secret", sa.Text),  # of a secret its hash, of an HMAC key itself, sealed
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
    sa.Column("paused", sa.Text),  # why nothing fires until a person says so
    sa.Column("paused_action", sa.Text),  # the action that asks for that word
    sa.Column("failures", sa.Integer, nullable=False),  # in a row
    sa.Column("source", sa.Text, nullable=False),  # file | the channel through which it was made
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
    sa.Column("watched_until", UtcTime, nullable=False),  # what was due by then has its occurrences
    sa.Column("next_run_at", UtcTime),
    sa.Column("last_run_at", UtcTime),
    sa.Column("defaulted", sa.JSON(none_as_null=True)),  # the fields that nobody wrote and that follow others
)
sa.Index(
    "triggers_scheduled",
    triggers.c.next_run_at,
    **_where(triggers.c.next_run_at.is_not(None)),
)

occurrences = sa.Table(
    "occurrences",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("trigger_id", sa.ForeignKey("triggers.id", ondelete="CASCADE"), nullable=False),
    # Which firing this is: the scheduled moment, a delivery of a webhook, a press of "run now".
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),  # cron | catch_up | manual | webhook
    sa.Column("scheduled_at", UtcTime, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("started_at", UtcTime),
    sa.Column("ended_at", UtcTime),
    sa.Column("late_seconds", sa.Integer, nullable=False),
    sa.Column("missed", sa.Integer, nullable=False),  # firings before this one that never ran
    sa.Column("signature", sa.Text),  # of a signed delivery: it counts once, under whatever key
    sa.Column("payload", sa.Text),  # what a webhook brought, as it is shown to the agent
    sa.Column("fields", sa.JSON(none_as_null=True)),  # the same for the prompt's template
    sa.Column("thread_id", sa.Text),
    sa.Column("run_id", sa.Text),
    sa.Column("error", sa.Text),
    sa.UniqueConstraint("trigger_id", "key", name="occurrences_once"),
    sa.UniqueConstraint("trigger_id", "signature", name="occurrences_signed_once"),
    sa.Index("occurrences_of_trigger", "trigger_id", "id"),
    sa.Index("occurrences_of_run", "run_id"),
)
OCCURRENCE_OPEN = _is(occurrences.c.state, "pending", "running", "waiting")
sa.Index("occurrences_open", occurrences.c.id, **_where(OCCURRENCE_OPEN))
OCCURRENCE_FAILED = _is(occurrences.c.state, "failed")
sa.Index("occurrences_failed", occurrences.c.id, occurrences.c.run_id, **_where(OCCURRENCE_FAILED))

disabled_skills = sa.Table(
    "disabled_skills",
    metadata,
    sa.Column("skill", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("via", sa.Text, nullable=False),
    sa.Column("at", UtcTime, nullable=False),
)

login_codes = sa.Table(
    "login_codes",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("person", sa.Text, nullable=False, index=True),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("seen_at", UtcTime, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("seq", _Large, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("via", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("data", sa.Text, nullable=False),  # canonical JSON: hashed as it stands
    sa.Column("previous_hash", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)

# Where the chain begins after lines were pruned: the number and the hash of the last line that is gone.
audit_anchors = sa.Table(
    "audit_anchors",
    metadata,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Column("lines", sa.BigInteger, nullable=False),  # pruned so far, in all
    sa.Column("at", UtcTime, nullable=False),
)

# How many rows of a kind are gone: what is there and what is gone make a count that never goes back.
tallies = sa.Table(
    "tallies",
    metadata,
    sa.Column("tally", sa.Text, primary_key=True),
    sa.Column("label", sa.Text, primary_key=True),
    sa.Column("count", sa.BigInteger, nullable=False),
)

# When regular work was done last: whoever changes the row does it.
chores = sa.Table(
    "chores",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
)

# Full text: the places where the two databases differ are here and in inbox.pages.
PUNCTUATION = "!#$&()*+,-./:;<=>?@[]^_`{|}~"
_FULL_TEXT = {
    "sqlite": (
        "CREATE VIRTUAL TABLE messages_fts USING fts5("
        "text, content='messages', content_rowid='seq', tokenize='unicode61 remove_diacritics 2')",
        "CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN "
        "INSERT INTO messages_fts(rowid, text) VALUES (new.seq, new.text); END",
        "CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN "
        "INSERT INTO messages_fts(messages_fts, rowid, text) VALUES ('delete', old.seq, old.text); END",
        "CREATE TRIGGER messages_fts_update AFTER UPDATE OF text ON messages BEGIN "
        "INSERT INTO messages_fts(messages_fts, rowid, text) VALUES ('delete', old.seq, old.text); "
        "INSERT INTO messages_fts(rowid, text) VALUES (new.seq, new.text); END",
    ),
    "postgresql": (
        # Without punctuation: PostgreSQL would keep "INV-42", 3.14 and host names in one piece.
        "ALTER TABLE messages ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector('simple', "
        f"translate(left(text, 200000), '{PUNCTUATION}', '{' ' * len(PUNCTUATION)}'))) STORED",
        "CREATE INDEX messages_words ON messages USING gin (words)",
    ),
}
for _dialect, _statements in _FULL_TEXT.items():
    for _statement in _statements:
        event.listen(messages, "after_create", DDL(_statement).execute_if(dialect=_dialect))  # type: ignore[no-untyped-call]
