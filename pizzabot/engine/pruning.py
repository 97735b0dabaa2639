"""What is old enough to go, and how does it go? The rows that retention removes, a batch at a time.

Nothing of a thread that is at work, that waits for a decision or that has something left to say is ever old
enough. What must be there only once for ever (keys of what arrived, keys that channels chose) stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.approvals.store import CLOSED
from pizzabot.database.dialects import insert
from pizzabot.database.schema import (
    OCCURRENCE_FAILED,
    OCCURRENCE_OPEN,
    OUTBOX_OPEN,
    OUTBOX_PUT_OFF,
    RUN_ACTIVE,
    actions,
    activity,
    attachments,
    budget_notes,
    chores,
    deliveries,
    messages,
    occurrences,
    outbox,
    runs,
    threads,
)
from pizzabot.inbox import tallies
from pizzabot.inbox import threads as conversations
from pizzabot.messages import ActionState, ThreadState

_ROW_BYTES = 200  # of a row beside its texts, with its places in indexes


@dataclass(frozen=True, slots=True)
class Amount:
    """How many of something there are, and about how many bytes they take."""

    count: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.count + other.count, self.bytes + other.bytes)


def _at_rest(before: datetime, *states: ThreadState) -> sa.ColumnElement[bool]:
    """A thread in which nothing happened since, and nothing is left to happen."""
    still_said = sa.select(outbox.c.id).where(
        sa.or_(OUTBOX_OPEN, OUTBOX_PUT_OFF), outbox.c.thread_id == threads.c.id
    )
    at_work = sa.select(runs.c.id).where(RUN_ACTIVE, runs.c.thread_id == threads.c.id)
    return sa.and_(
        threads.c.state.in_(states),
        threads.c.last_activity_at < before,
        threads.c.action_count == 0,
        ~still_said.exists(),
        ~at_work.exists(),
    )


_RESTING = (ThreadState.IDLE, ThreadState.FAILED, ThreadState.STOPPED)


# -- threads ---------------------------------------------------------------------------------------------


def old_threads(connection: sa.Connection, before: datetime, *, limit: int) -> list[str]:
    """Threads that are at rest since then."""
    query = sa.select(threads.c.id).where(_at_rest(before, *_RESTING)).order_by(threads.c.id)
    return list(connection.execute(query.limit(limit)).scalars())


def amount_of_threads(connection: sa.Connection, before: datetime) -> Amount:
    """The same, counted, with the texts and files in them."""
    old = sa.select(threads.c.id).where(_at_rest(before, *_RESTING))
    count = connection.execute(sa.select(sa.func.count()).select_from(old.subquery())).scalar_one()
    texts = _sum(sa.func.length(messages.c.text) + _ROW_BYTES, messages.c.thread_id.in_(old))
    files = _sum(attachments.c.size_bytes, attachments.c.thread_id.in_(old))
    return Amount(count, sum(connection.execute(query).scalar_one() for query in (texts, files)))


def _sum(column: sa.ColumnElement[int], where: sa.ColumnElement[bool]) -> sa.Select[int]:
    return sa.select(sa.func.coalesce(sa.func.sum(column), 0)).where(where)


def delete_thread(
    connection: sa.Connection, thread_id: str, before: datetime, now: datetime
) -> list[str] | None:
    """Remove a thread that is still at rest; the names of its files, or None when it is not any more."""
    if not _still(connection, thread_id, _at_rest(before, *_RESTING)):
        return None
    files = [row.id for row in conversations.attachments_of(connection, thread_id)]
    conversations.delete(connection, thread_id)
    audit.append(
        connection,
        now,
        actor=conversations.AGENT_NAME,
        via="retention",
        event="thread.deleted",
        subject=thread_id,
    )
    return files


def _still(connection: sa.Connection, thread_id: str, condition: sa.ColumnElement[bool]) -> bool:
    conversations.lock(connection, thread_id)  # a message that arrives now waits, and finds what is left
    query = sa.select(threads.c.id).where(threads.c.id == thread_id, condition)
    return connection.execute(query).first() is not None


# -- checkpoints -----------------------------------------------------------------------------------------


def forgettable(connection: sa.Connection, thread_ids: Collection[str], before: datetime) -> list[str]:
    """Of these threads those whose state may go: answered, and at rest since then.

    What failed or was stopped may be retried, which needs to know what it did.
    """
    condition = _at_rest(before, ThreadState.IDLE)
    found: list[str] = []
    for some in conversations.batched(sorted(thread_ids)):
        query = sa.select(threads.c.id).where(threads.c.id.in_(some), condition)
        found += connection.execute(query.order_by(threads.c.id)).scalars()
    return found


# -- files -----------------------------------------------------------------------------------------------


def _old_files(before: datetime) -> sa.ColumnElement[bool]:
    return attachments.c.thread_id.in_(sa.select(threads.c.id).where(_at_rest(before, *_RESTING)))


def amount_of_files(connection: sa.Connection, before: datetime) -> Amount:
    """The files of threads that are at rest since then."""
    total = sa.func.coalesce(sa.func.sum(attachments.c.size_bytes), 0)
    row = connection.execute(sa.select(sa.func.count(), total).where(_old_files(before))).one()
    return Amount(int(row[0]), int(row[1]))


def delete_files(connection: sa.Connection, before: datetime, *, limit: int) -> list[str]:
    """Remove the rows of some; their names, for whoever removes them from the disk."""
    query = sa.select(attachments.c.id).where(_old_files(before)).order_by(attachments.c.id).limit(limit)
    names = list(connection.execute(query).scalars())
    connection.execute(sa.delete(attachments).where(attachments.c.id.in_(names)))
    return names


# -- what was said ---------------------------------------------------------------------------------------


def _old_said(before: datetime) -> sa.ColumnElement[bool]:
    """Sent or given up, and under a key that nobody can ask for again.

    Keys that a channel chose must be there for ever: they are what keeps it from saying something twice.
    """
    decided = sa.select(actions.c.id).where(CLOSED)
    ended = sa.select(runs.c.id).where(~RUN_ACTIVE)
    spent_key = sa.or_(
        outbox.c.key.like("repaint/%"),
        sa.and_(outbox.c.key.like("message/%"), outbox.c.message_seq.is_not(None)),
        outbox.c.key.like("digest/%"),
        outbox.c.action_id.in_(decided),
        sa.and_(outbox.c.key.like("status/%"), outbox.c.run_id.in_(ended)),
    )
    last = sa.func.coalesce(outbox.c.sent_at, outbox.c.created_at)
    return sa.and_(~OUTBOX_OPEN, ~OUTBOX_PUT_OFF, last < before, spent_key)


def _old_copies(before: datetime) -> sa.ColumnElement[bool]:
    """Copies in threads at rest that will not be repainted; an answer to one begins a new thread then.

    Those of digests go also while their thread goes on: it does so for ever.
    """
    at_rest = sa.select(threads.c.id).where(_at_rest(before, *_RESTING))
    open_actions = sa.select(actions.c.id).where(
        actions.c.state.in_((ActionState.PENDING, ActionState.EXPIRED))
    )
    return sa.and_(
        deliveries.c.delivered_at < before,
        sa.or_(deliveries.c.thread_id.in_(at_rest), deliveries.c.digest_id.is_not(None)),
        sa.or_(deliveries.c.action_id.is_(None), deliveries.c.action_id.not_in(open_actions)),
    )


def amount_of_said(connection: sa.Connection, before: datetime) -> Amount:
    """What was sent or given up before then, and the copies of it."""
    texts = sum(
        (sa.func.coalesce(sa.func.length(c), 0) for c in (outbox.c.key, outbox.c.address, outbox.c.error)),
        start=sa.literal(_ROW_BYTES),
    )
    said = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(texts), 0)).where(_old_said(before))
    copies = sa.select(sa.func.count()).select_from(deliveries).where(_old_copies(before))
    row, count = connection.execute(said).one(), connection.execute(copies).scalar_one()
    return Amount(int(row[0]), int(row[1])) + Amount(count, count * _ROW_BYTES)


def delete_said(connection: sa.Connection, before: datetime, *, limit: int) -> int:
    """Remove some of it; how many."""
    old = sa.select(outbox.c.id).where(_old_said(before)).order_by(outbox.c.id).limit(limit)
    ids = list(connection.execute(old).scalars())
    connection.execute(sa.delete(outbox).where(outbox.c.id.in_(ids)))
    if ids:
        return len(ids)
    key = (deliveries.c.channel, deliveries.c.address, deliveries.c.external_id)
    some = sa.select(*key).where(_old_copies(before)).limit(limit)
    copies = [tuple(row) for row in connection.execute(some)]
    if copies:
        connection.execute(sa.delete(deliveries).where(sa.tuple_(*key).in_(copies)))
    return len(copies)


# -- activity --------------------------------------------------------------------------------------------


def _old_activity(before: datetime) -> sa.ColumnElement[bool]:
    at_work = sa.select(runs.c.id).where(RUN_ACTIVE)
    return sa.and_(activity.c.at < before, activity.c.run_id.not_in(at_work))


def amount_of_activity(connection: sa.Connection, before: datetime) -> Amount:
    """What runs did before then that are over, and firings that ended before then."""
    texts = sum(
        (sa.func.coalesce(sa.func.length(c), 0) for c in (activity.c.name, activity.c.detail)),
        start=sa.literal(_ROW_BYTES),
    )
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(texts), 0)).where(_old_activity(before))
    row = connection.execute(query).one()
    firings = sa.select(sa.func.count()).select_from(occurrences).where(_old_firings(before))
    count = connection.execute(firings).scalar_one()
    return Amount(int(row[0]), int(row[1])) + Amount(count, count * _ROW_BYTES)


def _old_firings(before: datetime) -> sa.ColumnElement[bool]:
    """Firings that ended, but for those that can be asked for again, and must count once for ever.

    What is due is found from when the schedule was watched last, so no other one comes again.
    """
    there = sa.select(runs.c.id)
    return sa.and_(
        occurrences.c.ended_at < before,
        sa.or_(occurrences.c.key.like("cron/%"), occurrences.c.key.like("once/%")),
        ~OCCURRENCE_OPEN,
        # One that failed lives again when its run is retried.
        sa.or_(~OCCURRENCE_FAILED, occurrences.c.run_id.is_(None), occurrences.c.run_id.not_in(there)),
    )


def delete_activity(connection: sa.Connection, before: datetime, *, limit: int) -> int:
    """Remove some of it, the oldest first; how many. The counts stay."""
    query = sa.select(activity.c.seq).where(_old_activity(before)).order_by(activity.c.seq).limit(limit)
    numbers: Sequence[int] = list(connection.execute(query).scalars())
    if numbers:
        these = activity.c.seq.in_(numbers)
        tallies.keep(connection, activity, these)
        connection.execute(sa.delete(activity).where(these))
        return len(numbers)
    # Of days and runs that are over long since: nobody says these again.
    connection.execute(sa.delete(budget_notes).where(budget_notes.c.at < before))
    some = sa.select(occurrences.c.id).where(_old_firings(before)).order_by(occurrences.c.id).limit(limit)
    ids = list(connection.execute(some).scalars())
    connection.execute(sa.delete(occurrences).where(occurrences.c.id.in_(ids)))
    return len(ids)


# -- when it was done ------------------------------------------------------------------------------------

RETENTION = "retention"


def last_done(connection: sa.Connection) -> datetime | None:
    """When retention came to its end last."""
    return connection.execute(sa.select(chores.c.at).where(chores.c.name == RETENTION)).scalar()


def done(connection: sa.Connection, now: datetime) -> None:
    """It came to its end."""
    statement = insert(connection.dialect.name, chores)
    values = {"name": RETENTION, "at": now}
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"at": now}), values)
