"""What must a channel remember by itself? Texts under keys, committed when `put` returns.

For what only the channel understands: how far it has read a mailbox, what a reply address stands for. Keys
are paths such as `token/3f2a…`; a value is the channel's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from pizzabot.database.dialects import insert
from pizzabot.database.schema import channel_notes

_GET = sa.select(channel_notes.c.value).where(
    channel_notes.c.channel == sa.bindparam("channel"), channel_notes.c.key == sa.bindparam("key")
)


def get(connection: sa.Connection, channel: str, key: str) -> str | None:
    """The value under a key; None when there is none."""
    return connection.execute(_GET, {"channel": channel, "key": key}).scalar()


def put(connection: sa.Connection, channel: str, values: Mapping[str, str], now: datetime) -> None:
    """Write values under their keys, over what stood there."""
    statement = insert(connection.dialect.name, channel_notes)
    rows = [{"channel": channel, "key": k, "value": v, "written_at": now} for k, v in values.items()]
    if rows:
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["channel", "key"],
                set_={name: statement.excluded[name] for name in ("value", "written_at")},
            ),
            rows,
        )


def under(connection: sa.Connection, channel: str, prefix: str) -> dict[str, str]:
    """Everything whose key begins with `prefix`, by key."""
    query = sa.select(channel_notes.c.key, channel_notes.c.value).where(
        channel_notes.c.channel == channel, *_begins_with(prefix)
    )
    return {row.key: row.value for row in connection.execute(query)}


def forget(connection: sa.Connection, channel: str, prefix: str, *, before: datetime | None = None) -> None:
    """Remove what begins with `prefix`, all of it or what was written before a time."""
    old = [channel_notes.c.written_at < before] if before is not None else []
    connection.execute(
        sa.delete(channel_notes).where(channel_notes.c.channel == channel, *_begins_with(prefix), *old)
    )


def _begins_with(prefix: str) -> tuple[sa.ColumnElement[bool], ...]:
    """A range of the key's index; keys are ASCII, so the highest code point ends it."""
    return channel_notes.c.key >= prefix, channel_notes.c.key < prefix + "\U0010ffff"
