"""How many were there ever? Counts of rows that never go back, whatever is deleted.

    total = the rows that are there + what was noted of rows before they were deleted

Whoever deletes rows that are counted calls `keep` in the same transaction. Reading is cheap: what was counted
once is remembered, and only newer rows are read, until something was deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pizzabot.database.dialects import DIALECTS, insert
from pizzabot.database.schema import activity, messages, tallies, usage

# On PostgreSQL a row with a smaller number can be committed after one with a larger number, by moments.
# SQLite has one writer, so what is there is settled.
_SETTLED_AFTER = {"sqlite": timedelta(0), "postgresql": timedelta(minutes=1)}


@dataclass(frozen=True, slots=True)
class Tally:
    """Which rows are counted, by which label, and what is added up of them beside their number."""

    name: str
    table: sa.Table
    label: sa.ColumnElement[str]
    where: sa.ColumnElement[bool] = field(default_factory=sa.true)
    sums: tuple[sa.ColumnElement[Any], ...] = ()

    def query(self) -> sa.Select[Any]:
        """`(label, rows, *sums)` of what is there."""
        added = (sa.func.coalesce(sa.func.sum(each), 0) for each in self.sums)
        return sa.select(self.label, sa.func.count(), *added).where(self.where).group_by(self.label)


TOOL_CALLS = Tally("tool_calls", activity, activity.c.outcome, activity.c.kind == "tool")
MODEL_CALLS = Tally("model_calls", activity, activity.c.outcome, activity.c.kind == "model")
ARRIVED = Tally(
    "arrived",
    messages,
    messages.c.channel,
    sa.and_(messages.c.role == "user", messages.c.channel.is_not(None)),
)
# Never deleted, so nothing is noted of it: what was spent outlives its thread.
SPENT = Tally(
    "spent",
    usage,
    usage.c.model,
    sums=(
        usage.c.input_tokens,
        usage.c.output_tokens,
        usage.c.cost_usd,
        sa.case((usage.c.cost_usd.is_(None), 1), else_=0),
    ),
)
DELETABLE = (TOOL_CALLS, MODEL_CALLS, ARRIVED)
ALL = (*DELETABLE, SPENT)

Counts = dict[str, tuple[float, ...]]


def _add(dialect: str) -> Any:
    statement = insert(dialect, tallies)
    return statement.on_conflict_do_update(
        index_elements=["tally", "label"], set_={"count": tallies.c.count + statement.excluded["count"]}
    )


_ADD = {dialect: _add(dialect) for dialect in DIALECTS}


def note(connection: sa.Connection, tally: Tally, counts: Mapping[str, int]) -> None:
    """Count so many more (or, below zero, fewer) than there are rows."""
    for label, count in sorted(counts.items()):
        values = {"tally": tally.name, "label": label, "count": count}
        connection.execute(_ADD[connection.dialect.name], values)


def keep(connection: sa.Connection, table: sa.Table, condition: sa.ColumnElement[bool]) -> None:
    """Note what is counted of the rows that are deleted next."""
    for tally in DELETABLE:
        if tally.table is table:
            note(
                connection, tally, dict(row[:2] for row in connection.execute(tally.query().where(condition)))
            )


def keep_thread(connection: sa.Connection, thread_id: str) -> None:
    """Note what is counted of a thread that is deleted next."""
    for table in (activity, messages):
        keep(connection, table, table.c.thread_id == thread_id)


@dataclass(slots=True)
class _Counted:
    upto: int = 0
    counts: Counts = field(default_factory=dict)
    seen: list[tuple[datetime, int]] = field(default_factory=list)


class Totals:
    """Remembers what was counted; for one reader at a time."""

    def __init__(self) -> None:
        self._gone: dict[tuple[str, str], int] | None = None
        self._counted: dict[str, _Counted] = {}

    def read(self, connection: sa.Connection, now: datetime) -> dict[str, Counts]:
        """Of each tally, by label: `(count, *sums)`."""
        rows = connection.execute(sa.select(tallies.c.tally, tallies.c.label, tallies.c.count))
        gone = {(row[0], row[1]): int(row[2]) for row in rows}
        if gone != self._gone:  # rows went: what was counted is not there any more
            self._gone, self._counted = gone, {tally.name: _Counted() for tally in ALL}
        found: dict[str, Counts] = {}
        for tally in ALL:
            counts = self._count(connection, tally, now)
            for (name, label), count in gone.items():
                if name == tally.name:
                    counts[label] = _sum(counts.get(label, ()), (count,))
            found[tally.name] = counts
        return found

    def _count(self, connection: sa.Connection, tally: Tally, now: datetime) -> Counts:
        counted, seq = self._counted[tally.name], tally.table.c.seq
        newest = connection.execute(sa.select(sa.func.max(seq))).scalar() or 0
        counted.seen.append((now, newest))
        waits = _SETTLED_AFTER[connection.dialect.name]
        settled = max((s for at, s in counted.seen if now - at >= waits), default=counted.upto)
        if settled > counted.upto:
            more = connection.execute(tally.query().where(seq > counted.upto, seq <= settled))
            counted.counts, counted.upto = _merged(counted.counts, more), settled
        counted.seen = [(at, s) for at, s in counted.seen if s > settled]
        return _merged(counted.counts, connection.execute(tally.query().where(seq > counted.upto)))


def _merged(counts: Counts, rows: Any) -> Counts:
    found = dict(counts)
    for label, *numbers in rows:
        found[label] = _sum(found.get(label, ()), tuple(map(float, numbers)))
    return found


def _sum(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    length = max(len(one), len(other))
    padded = ((*each, *(0.0,) * (length - len(each))) for each in (one, other))
    return tuple(a + b for a, b in zip(*padded, strict=True))
