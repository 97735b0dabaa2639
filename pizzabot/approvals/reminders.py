"""When is a person told again of an action that waits for them? One row for each person and action.

Rows are there only while the action waits (`store` removes them with the wait). What is said is decided
elsewhere: here a due row is moved on, by compare-and-set, so that it is said once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from pizzabot.database.dialects import insert
from pizzabot.database.schema import reminders


@dataclass(frozen=True, slots=True)
class Reminder:
    """A person is due to be told of an action."""

    action_id: str
    person: str
    due_at: datetime


def start(connection: sa.Connection, action_id: str, people: Iterable[str], due_at: datetime) -> None:
    """These people are told at `due_at`; who is told at another time already stays so."""
    rows = [{"action_id": action_id, "person": person, "due_at": due_at} for person in people]
    if rows:
        connection.execute(insert(connection.dialect.name, reminders).on_conflict_do_nothing(), rows)


def snooze(connection: sa.Connection, action_id: str, person: str, until: datetime) -> None:
    """The person is told at `until`, and not before."""
    row = {"action_id": action_id, "person": person, "due_at": until, "snoozed_until": until}
    put_off = {"due_at": until, "snoozed_until": until}
    statement = insert(connection.dialect.name, reminders)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["action_id", "person"], set_=put_off), row
    )


def due(connection: sa.Connection, now: datetime, *, limit: int) -> list[Reminder]:
    """What is due, the first first."""
    query = (
        sa.select(reminders.c.action_id, reminders.c.person, reminders.c.due_at)
        .where(reminders.c.due_at <= now)
        .order_by(reminders.c.due_at)
        .limit(limit)
    )
    return [Reminder(*row) for row in connection.execute(query)]


def move(connection: sa.Connection, reminder: Reminder, due_at: datetime | None) -> bool:
    """Take it for done and due again at `due_at`, None for never; False when somebody else did.

    A snooze ends with it.
    """
    this = sa.and_(
        reminders.c.action_id == reminder.action_id,
        reminders.c.person == reminder.person,
        reminders.c.due_at == reminder.due_at,
    )
    if due_at is None:
        return connection.execute(sa.delete(reminders).where(this)).rowcount == 1
    moved = sa.update(reminders).where(this).values(due_at=due_at, snoozed_until=None)
    return connection.execute(moved).rowcount == 1


def next_due(connection: sa.Connection) -> datetime | None:
    """When the next one is due; None when nobody has to be told."""
    return connection.execute(sa.select(sa.func.min(reminders.c.due_at))).scalar()
