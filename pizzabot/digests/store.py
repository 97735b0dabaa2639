"""Which digests were made, what do they list, and from which rows is the next one made?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot.approvals import store as actions
from pizzabot.database.schema import (
    UNREAD,
    digest_items,
    digests,
    from_microseconds,
    messages,
    occurrences,
    runs,
    threads,
    to_microseconds,
    triggers,
)
from pizzabot.database.schema import actions as action_rows
from pizzabot.inbox.threads import Thread, thread_of
from pizzabot.messages import (
    DayUsage,
    Digest,
    DigestItem,
    Failure,
    ThreadState,
    UnreadThread,
    Upcoming,
)

# Built once: building a statement costs four times as much as running it.
_NEWEST_IN = (
    sa.select(digests)
    .where(digests.c.thread_id == sa.bindparam("thread"), digests.c.message_seq < sa.bindparam("before"))
    .order_by(digests.c.message_seq.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Made:
    """A digest's row."""

    id: str
    person: str
    thread_id: str
    message_seq: int
    made_at: datetime


def put(connection: sa.Connection, digest: Digest, message_seq: int) -> None:
    """Keep a digest; its text is that message."""
    connection.execute(
        sa.insert(digests).values(
            id=digest.id,
            person=digest.person,
            thread_id=digest.thread_id,
            message_seq=message_seq,
            content=_content(digest),
            made_at=digest.made_at,
        )
    )
    if digest.items:
        connection.execute(
            sa.insert(digest_items),
            [
                {
                    "digest_id": digest.id,
                    "number": item.number,
                    "action_id": item.action.id,
                    "bound_to": item.bound_to,
                }
                for item in digest.items
            ],
        )


def get(connection: sa.Connection, digest_id: str) -> Digest | None:
    """The digest, its items as they stand now; those whose threads were deleted are gone from it."""
    row = connection.execute(sa.select(digests).where(digests.c.id == digest_id)).first()
    if row is None:
        return None
    listed = connection.execute(
        sa.select(digest_items, threads.c.title)
        .select_from(
            digest_items.join(action_rows, action_rows.c.id == digest_items.c.action_id).join(
                threads, threads.c.id == action_rows.c.thread_id
            )
        )
        .where(digest_items.c.digest_id == digest_id)
        .order_by(digest_items.c.number)
    ).all()
    items = [
        DigestItem(item.number, action, item.title, item.bound_to)
        for item in listed
        if (action := actions.get(connection, item.action_id)) is not None
    ]
    return _digest(row, items)


def newest_of(connection: sa.Connection, person: str) -> Made | None:
    """The newest digest of a person."""
    query = sa.select(digests).where(digests.c.person == person).order_by(digests.c.id.desc())
    return _made(connection.execute(query.limit(1)).first())


def newest_in(connection: sa.Connection, thread_id: str, before_seq: int) -> Made | None:
    """The newest digest of a thread that stands before a message."""
    values = {"thread": thread_id, "before": before_seq}
    return _made(connection.execute(_NEWEST_IN, values).first())


def message_of(connection: sa.Connection, digest_id: str) -> int | None:
    """The message that is a digest's text."""
    return connection.execute(sa.select(digests.c.message_seq).where(digests.c.id == digest_id)).scalar()


def _made(row: Any) -> Made | None:
    return (
        Made(**{name: getattr(row, name) for name in Made.__dataclass_fields__}) if row is not None else None
    )


# -- what the next one is made of ----------------------------------------------------------------------------


def unread_of(
    connection: sa.Connection, owner: str, limit: int, told: Made | None
) -> tuple[list[Thread], int]:
    """The owner's unread threads, newest first, and how many more; not the one that a digest made unread."""
    condition = sa.and_(UNREAD, threads.c.owner == owner)
    if told is not None:
        newest = (
            sa.select(sa.func.max(messages.c.seq))
            .where(messages.c.thread_id == told.thread_id, messages.c.role != "title")
            .scalar_subquery()
        )
        condition = sa.and_(condition, sa.or_(threads.c.id != told.thread_id, newest != told.message_seq))
    query = (
        sa.select(threads).where(condition).order_by(threads.c.last_activity_at.desc(), threads.c.id.desc())
    )
    found = [thread_of(row) for row in connection.execute(query.limit(limit))]
    count = connection.execute(sa.select(sa.func.count()).select_from(threads).where(condition)).scalar_one()
    return found, int(count) - len(found)


def failed_since(connection: sa.Connection, owner: str, since: datetime) -> list[Failure]:
    """What of the owner's failed after `since` and nobody tried again, newest first: runs, and firings that
    could not be started."""
    any_run = runs.alias()
    newest = sa.select(sa.func.max(any_run.c.id)).where(any_run.c.thread_id == threads.c.id).scalar_subquery()
    ended = (
        sa.select(threads.c.id, threads.c.title, runs.c.error_message, runs.c.ended_at)
        .select_from(threads.join(runs, runs.c.id == newest))
        .where(
            threads.c.owner == owner,
            threads.c.archived == sa.false(),
            threads.c.state == ThreadState.FAILED,
            threads.c.last_activity_at > since,
            runs.c.ended_at > since,
        )
    )
    dead = (
        sa.select(triggers.c.name, occurrences.c.error, occurrences.c.ended_at)
        .select_from(occurrences.join(triggers, triggers.c.id == occurrences.c.trigger_id))
        .where(triggers.c.owner == owner, occurrences.c.state == "dead", occurrences.c.ended_at > since)
    )
    found = [Failure(r.title, r.error_message or "", r.ended_at, r.id) for r in connection.execute(ended)]
    found += [Failure(r.name, r.error or "", r.ended_at) for r in connection.execute(dead)]
    return sorted(found, key=lambda failure: failure.at, reverse=True)


def coming_for(connection: sa.Connection, owner: str, limit: int) -> list[Upcoming]:
    """What of the owner's triggers fires next; digests are no news."""
    query = (
        sa.select(triggers.c.name, triggers.c.next_run_at)
        .where(triggers.c.owner == owner, triggers.c.next_run_at.is_not(None), triggers.c.kind != "digest")
        .order_by(triggers.c.next_run_at, triggers.c.id)
    )
    return [Upcoming(row.name, row.next_run_at) for row in connection.execute(query.limit(limit))]


# -- a digest as it is kept ----------------------------------------------------------------------------------


def _content(digest: Digest) -> dict[str, Any]:
    used = digest.usage
    return {
        "since": to_microseconds(digest.since),
        "zone": digest.zone,
        "more_items": digest.more_items,
        "put_off": digest.put_off,
        "unread": [[t.thread_id, t.title, t.last_message, to_microseconds(t.at)] for t in digest.unread],
        "more_unread": digest.more_unread,
        "failed": [[f.title, f.why, to_microseconds(f.at), f.thread_id] for f in digest.failed],
        "more_failed": digest.more_failed,
        "usage": [used.tokens, used.cost_usd, used.of_everybody] if used is not None else None,
        "coming": [[c.name, to_microseconds(c.at)] for c in digest.coming],
    }


def _digest(row: Any, items: Sequence[DigestItem]) -> Digest:
    kept = row.content
    return Digest(
        id=row.id,
        person=row.person,
        thread_id=row.thread_id,
        made_at=row.made_at,
        since=from_microseconds(kept["since"]),
        zone=kept["zone"],
        items=tuple(items),
        more_items=kept["more_items"],
        put_off=kept.get("put_off", 0),  # not there in digests of before it was counted
        unread=tuple(
            UnreadThread(i, title, said, from_microseconds(at)) for i, title, said, at in kept["unread"]
        ),
        more_unread=kept["more_unread"],
        failed=tuple(
            Failure(title, why, from_microseconds(at), thread) for title, why, at, thread in kept["failed"]
        ),
        more_failed=kept["more_failed"],
        usage=DayUsage(*kept["usage"]) if kept["usage"] is not None else None,
        coming=tuple(Upcoming(name, from_microseconds(at)) for name, at in kept["coming"]),
    )
