"""Where is a conversation, and what stands in it? Threads, their messages, read state and titles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from pizzabot.database.schema import attachments, deliveries, messages, outbox, thread_addresses, threads
from pizzabot.ids import new_id
from pizzabot.inbox import tallies
from pizzabot.messages import ThreadState
from pizzabot.text import storable

Role = Literal["user", "assistant", "notice"]
TITLE_LENGTH = 80
_SNIPPET_LENGTH = 160
AGENT_NAME = "Pizza Bot"
UNATTENDED = "trigger"  # the channel of a thread that nobody wrote: it lives in the inbox alone


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation's row. With `skills` its runs may use no others."""

    id: str
    title: str
    title_source: str
    owner: str
    channel: str
    address: str
    state: ThreadState
    unread: bool
    action_count: int
    archived: bool
    last_message: str
    last_activity_at: datetime
    created_at: datetime
    tells: Sequence[str] | None = None
    skills: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a thread. A person's message without a run is held for the next one."""

    seq: int
    thread_id: str
    run_id: str | None
    role: Role
    author: str
    text: str
    channel: str | None
    created_at: datetime

    @property
    def held(self) -> bool:
        return self.role == "user" and self.run_id is None


_COLUMNS = [threads.c[name] for name in Thread.__dataclass_fields__]

# Statements of every message are built once: building one costs four times as much as running it.
_BY_ID = sa.select(*_COLUMNS).where(threads.c.id == sa.bindparam("id"))
_LOCKED = _BY_ID.with_for_update()
_AT_ADDRESS = sa.select(thread_addresses.c.thread_id).where(
    thread_addresses.c.channel == sa.bindparam("channel"),
    thread_addresses.c.address == sa.bindparam("address"),
)
_INSERT_THREAD, _INSERT_ADDRESS = sa.insert(threads), sa.insert(thread_addresses)
_INSERT_MESSAGE = sa.insert(messages).returning(messages.c.seq)
_SHOWN = (
    sa.update(threads)
    .where(threads.c.id == sa.bindparam("thread"))
    .values(last_message=sa.bindparam("text"), last_activity_at=sa.bindparam("at"))
)
_SHOW_ASKED, _SHOW_TOLD = _SHOWN.values(archived=False), _SHOWN.values(unread=True)
_MESSAGE = sa.select(messages).where(messages.c.seq == sa.bindparam("seq"))
_OF_RUN = (
    sa.select(messages)
    .where(
        messages.c.thread_id == sa.bindparam("thread"),
        messages.c.run_id == sa.bindparam("run"),
        messages.c.role == "user",
        messages.c.aside_to.is_(None),
    )
    .order_by(messages.c.seq)
)
_ATTACHMENTS = (
    sa.select(attachments).where(attachments.c.thread_id == sa.bindparam("thread")).order_by(attachments.c.id)
)


def thread_of(row: Any) -> Thread:
    """A selected row as a value."""
    values = {name: getattr(row, name) for name in Thread.__dataclass_fields__}
    return Thread(**(values | {"state": ThreadState(row.state)}))


def message_of(row: Any) -> Message:
    """A selected row as a value."""
    return Message(**{name: getattr(row, name) for name in Message.__dataclass_fields__})


def one_line(text: str, length: int) -> str:
    """`text` on one line of at most `length` characters, the cut marked."""
    flat = re.sub(r"\s+", " ", text).strip()
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


def get(connection: sa.Connection, thread_id: str) -> Thread | None:
    """The thread, or None."""
    row = connection.execute(_BY_ID, {"id": thread_id}).first()
    return thread_of(row) if row else None


def lock(connection: sa.Connection, thread_id: str) -> Thread | None:
    """The thread, held until the transaction ends, so that two intakes cannot both find it idle."""
    row = connection.execute(_LOCKED, {"id": thread_id}).first()
    return thread_of(row) if row else None


def at_address(connection: sa.Connection, channel: str, address: str) -> str | None:
    """The thread that lives at this place of a channel."""
    return connection.execute(_AT_ADDRESS, {"channel": channel, "address": address}).scalar()


def create(
    connection: sa.Connection,
    now: datetime,
    *,
    owner: str,
    channel: str,
    address: str | None,
    title: str,
    title_source: str,
    thread_id: str | None = None,
    tells: Sequence[str] | None = None,
    skills: Sequence[str] | None = None,
) -> str:
    """A new, empty, read thread; without an address it lives at its own id."""
    thread_id = thread_id or new_id()
    place = address or thread_id
    connection.execute(
        _INSERT_THREAD,
        {
            "id": thread_id,
            "title": title,
            "title_source": title_source,
            "owner": owner,
            "channel": channel,
            "address": place,
            "state": ThreadState.IDLE,
            "unread": False,
            "action_count": 0,
            "archived": False,
            "last_message": "",
            "last_activity_at": now,
            "created_at": now,
            "tells": list(tells) if tells is not None else None,
            "skills": list(skills) if skills is not None else None,
        },
    )
    connection.execute(_INSERT_ADDRESS, {"channel": channel, "address": place, "thread_id": thread_id})
    _store_title(connection, thread_id, title, now)
    return thread_id


def add_message(
    connection: sa.Connection,
    thread_id: str,
    now: datetime,
    *,
    role: Role,
    author: str,
    text: str,
    run_id: str | None = None,
    channel: str | None = None,
    created_at: datetime | None = None,
    aside_to: str | None = None,
) -> int:
    """Append a message; what a person did not write makes the thread unread. Returns its number."""
    text = text if role == "user" else storable(text)  # a person's text was checked at intake
    row = {
        "thread_id": thread_id,
        "run_id": run_id,
        "role": role,
        "author": author,
        "text": text,
        "channel": channel,
        "created_at": created_at or now,
        "aside_to": aside_to,
    }
    seq = connection.execute(_INSERT_MESSAGE, row).scalar_one()
    connection.execute(
        _SHOW_ASKED if role == "user" else _SHOW_TOLD,
        {"thread": thread_id, "text": one_line(text, _SNIPPET_LENGTH), "at": now},
    )
    return int(seq)


def messages_of(connection: sa.Connection, thread_id: str) -> list[Message]:
    """The messages of a thread, oldest first."""
    return [message_of(row) for row in connection.execute(_of_thread(thread_id).order_by(messages.c.seq))]


def _of_thread(thread_id: str) -> sa.Select[Any]:
    return sa.select(messages).where(messages.c.thread_id == thread_id, messages.c.role != "title")


@dataclass(frozen=True, slots=True)
class Window:
    """Some messages of a thread that follow each other, oldest first; is there more on either side?"""

    messages: tuple[Message, ...]
    has_older: bool = False
    has_newer: bool = False


def window(
    connection: sa.Connection,
    thread_id: str,
    *,
    limit: int,
    before: int | None = None,
    after: int | None = None,
) -> Window:
    """At most `limit` messages: the newest ones, those right before or those right after a number."""
    query = _of_thread(thread_id).limit(limit + 1)
    if after is not None:
        query = query.where(messages.c.seq > after).order_by(messages.c.seq)
        found = [message_of(row) for row in connection.execute(query)]
        has_older = _any(connection, _of_thread(thread_id).where(messages.c.seq <= after))
        return Window(tuple(found[:limit]), has_older, len(found) > limit)
    if before is not None:
        query = query.where(messages.c.seq < before)
    newest = [message_of(row) for row in connection.execute(query.order_by(messages.c.seq.desc()))]
    newer = _of_thread(thread_id).where(messages.c.seq >= before) if before is not None else None
    has_newer = newer is not None and _any(connection, newer)
    return Window(tuple(reversed(newest[:limit])), len(newest) > limit, has_newer)


def _any(connection: sa.Connection, query: sa.Select[Any]) -> bool:
    return connection.execute(query.limit(1)).first() is not None


def messages_of_run(connection: sa.Connection, run_id: str, thread_id: str) -> list[Message]:
    """What people wrote that a run has to answer, oldest first."""
    return [message_of(row) for row in connection.execute(_OF_RUN, {"thread": thread_id, "run": run_id})]


def message(connection: sa.Connection, seq: int) -> Message | None:
    """One message by its number."""
    row = connection.execute(_MESSAGE, {"seq": seq}).first()
    return message_of(row) if row else None


def attachments_of(connection: sa.Connection, thread_id: str) -> Sequence[sa.Row[Any]]:
    """The rows of the files that came with a thread's messages."""
    return connection.execute(_ATTACHMENTS, {"thread": thread_id}).all()


def attachments_within(
    connection: sa.Connection, thread_id: str, first: int, last: int
) -> Sequence[sa.Row[Any]]:
    """The rows of the files that came with messages from one number to another."""
    within = attachments.c.message_seq.between(first, last)
    return connection.execute(_ATTACHMENTS.where(within), {"thread": thread_id}).all()


def add_attachment(connection: sa.Connection, **values: Any) -> None:
    """The row of a file that is already on disk."""
    connection.execute(sa.insert(attachments).values(**values))


def mark(connection: sa.Connection, thread_id: str, *, unread: bool | None, archived: bool | None) -> None:
    """Set the read and archive flags that are given."""
    values = {k: v for k, v in {"unread": unread, "archived": archived}.items() if v is not None}
    if values:
        connection.execute(sa.update(threads).where(threads.c.id == thread_id).values(**values))


def rename(
    connection: sa.Connection, thread_id: str, title: str, *, source: Literal["model", "user"]
) -> bool:
    """Give a title; a person's title is never replaced by a model's."""
    change = sa.update(threads).where(threads.c.id == thread_id)
    if source == "model":
        change = change.where(threads.c.title_source == "first")
    if connection.execute(change.values(title=title, title_source=source)).rowcount == 0:
        return False
    connection.execute(
        sa.update(messages)
        .where(messages.c.thread_id == thread_id, messages.c.role == "title")
        .values(text=title)
    )
    return True


def _store_title(connection: sa.Connection, thread_id: str, title: str, now: datetime) -> None:
    # The title is searched like a message; the row is not shown among them.
    connection.execute(
        _INSERT_MESSAGE,
        {"thread_id": thread_id, "role": "title", "author": "", "text": title, "created_at": now},
    )


def delete(connection: sa.Connection, thread_id: str) -> bool:
    """Remove the thread and every row of it; checkpoints and files are the caller's."""
    tallies.keep_thread(connection, thread_id)
    # Outbox rows go first: a delivery worker must not find a row of a thread that is half gone.
    for table in (outbox, deliveries):
        connection.execute(sa.delete(table).where(table.c.thread_id == thread_id))
    return connection.execute(sa.delete(threads).where(threads.c.id == thread_id)).rowcount > 0


def existing(connection: sa.Connection, thread_ids: Sequence[str]) -> set[str]:
    """Which of these threads are still there."""
    found: set[str] = set()
    for some in batched(thread_ids):
        found.update(connection.execute(sa.select(threads.c.id).where(threads.c.id.in_(some))).scalars())
    return found


def batched(items: Sequence[str], size: int = 500) -> Iterator[Sequence[str]]:
    """`items` in pieces: a statement takes only so many values."""
    return (items[start : start + size] for start in range(0, len(items), size))
