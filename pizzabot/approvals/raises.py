"""How much more was a day allowed than its budget says, and who waits for such a word? Rows about budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

import sqlalchemy as sa

from pizzabot.approvals import store
from pizzabot.database.dialects import DIALECTS, hold, insert
from pizzabot.database.schema import budget_notes, day_raises
from pizzabot.messages import Action, ActionKind

DayBudgetName = Literal["day_usd", "day_tokens", "person_day_usd"]
DAY_BUDGETS: tuple[DayBudgetName, ...] = get_args(DayBudgetName)
_DAY_QUESTIONS = tuple(f"limit:{name}" for name in DAY_BUDGETS)
_LOCK = 0x62756467657473  # "budgets"


@dataclass(frozen=True, slots=True)
class Raised:
    """What was allowed in all, and how often somebody said so."""

    amount: float = 0.0
    times: int = 0


def lock(connection: sa.Connection) -> None:
    """Let nobody else ask for more of a day, or allow it, until this transaction ends."""
    hold(connection, _LOCK)


def of_day(connection: sa.Connection, day: str, person: str) -> Mapping[str, Raised]:
    """By budget, what was allowed on a day to everybody and to one person."""
    query = (
        sa.select(day_raises.c.budget, sa.func.sum(day_raises.c.amount), sa.func.count())
        .where(
            day_raises.c.day == day,
            sa.or_(day_raises.c.person.is_(None), day_raises.c.person == person),
        )
        .group_by(day_raises.c.budget)
    )
    return {row[0]: Raised(float(row[1]), int(row[2])) for row in connection.execute(query)}


def allow(connection: sa.Connection, action: Action, now: datetime, *, person: str, via: str) -> None:
    """Keep what an approved action allows."""
    connection.execute(
        sa.insert(day_raises).values(
            action_id=action.id,
            day=action.args["day"],
            budget=action.args["limit"],
            person=action.args.get("person"),
            amount=action.args["allowance"],
            allowed_by=person,
            via=via,
            at=now,
        )
    )


def is_about_a_day(action: Action) -> bool:
    """Whether an action asks for more of a day's budget, and not for more of one run's."""
    return action.kind is ActionKind.LIMIT and action.args.get("limit") in DAY_BUDGETS


def asking_the_same(connection: sa.Connection, action: Action) -> list[Action]:
    """Other open actions that ask for more of the same budget of the same day."""
    same = ("limit", "day", "person")
    return [
        other
        for other in store.open_of_tools(connection, action.tool)
        if other.id != action.id and all(other.args.get(k) == action.args.get(k) for k in same)
    ]


def asked(connection: sa.Connection) -> list[Action]:
    """Open actions that ask for more of a day, oldest first."""
    found = store.open_of_tools(connection, *_DAY_QUESTIONS)
    return [action for action in found if is_about_a_day(action)]


# Built once per database: building a statement costs four times as much as running it.
_NOTE = {
    dialect: insert(dialect, budget_notes)
    .on_conflict_do_nothing(index_elements=["key"])
    .returning(budget_notes.c.key)
    for dialect in DIALECTS
}


def is_first_note(connection: sa.Connection, key: str, now: datetime) -> bool:
    """Whether nobody gave the note of that key yet; from now on somebody did."""
    return connection.execute(_NOTE[connection.dialect.name], {"key": key, "at": now}).first() is not None
