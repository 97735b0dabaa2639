"""What arrived and is not yet understood? Rows that a channel takes up again after a crash (promise 1).

    arrives -> put, committed -> acknowledged -> files fetched … -> accepted under the same key -> removed

Accepting twice takes it once, so a crash between accepting and removing only repeats the fetching.
"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from pizzabot.database.dialects import insert
from pizzabot.database.schema import staged
from pizzabot.messages import Staged


def put(connection: sa.Connection, channel: str, item: Staged, now: datetime) -> bool:
    """Keep an item; whether it is new."""
    row = {"channel": channel, "key": item.key, "body": item.body, "received_at": now}
    statement = insert(connection.dialect.name, staged).values(row).on_conflict_do_nothing()
    return connection.execute(statement.returning(staged.c.key)).first() is not None


def of_channel(connection: sa.Connection, channel: str) -> list[Staged]:
    """Everything of a channel, oldest first."""
    query = sa.select(staged).where(staged.c.channel == channel).order_by(staged.c.received_at, staged.c.key)
    return [Staged(row.key, row.body) for row in connection.execute(query)]


def remove(connection: sa.Connection, channel: str, key: str) -> None:
    """The item was accepted or refused for good."""
    connection.execute(sa.delete(staged).where(staged.c.channel == channel, staged.c.key == key))
