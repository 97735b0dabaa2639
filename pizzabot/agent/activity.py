"""What is the agent doing, and what did it cost? Rows for the record, events for those who watch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from pizzabot.clock import Day
from pizzabot.database.schema import activity, usage

ActivityKind = Literal["model", "tool", "worker", "retry", "wait"]
Outcome = Literal["started", "ok", "error", "paused", "stopped"]


@dataclass(frozen=True, slots=True)
class Activity:
    """One thing the agent did. `worker` is None for the root agent; `detail` is short and for people."""

    kind: ActivityKind
    name: str
    outcome: Outcome
    worker: str | None = None
    detail: str | None = None
    milliseconds: int | None = None

    def to_json(self) -> dict[str, Any]:
        """For events and the API."""
        return {
            "kind": self.kind,
            "name": self.name,
            "outcome": self.outcome,
            "worker": self.worker,
            "detail": self.detail,
            "milliseconds": self.milliseconds,
        }


# Built once: building a statement costs four times as much as running it.
_INSERT, _INSERT_USAGE = sa.insert(activity), sa.insert(usage)


def record(connection: sa.Connection, done: Activity, now: datetime, *, thread_id: str, run_id: str) -> None:
    """Keep an activity."""
    connection.execute(_INSERT, done.to_json() | {"thread_id": thread_id, "run_id": run_id, "at": now})


def of_thread(connection: sa.Connection, thread_id: str, *, limit: int = 500) -> list[dict[str, Any]]:
    """The newest activities of a thread, oldest first."""
    query = sa.select(activity).where(activity.c.thread_id == thread_id)
    rows = connection.execute(query.order_by(activity.c.seq.desc()).limit(limit)).all()
    return [_row(row) for row in reversed(rows)]


def of_runs(
    connection: sa.Connection, thread_id: str, run_ids: Collection[str], *, each: int
) -> list[dict[str, Any]]:
    """The newest activities of each of these runs, oldest first."""
    newest = sa.func.row_number().over(partition_by=activity.c.run_id, order_by=activity.c.seq.desc())
    ranked = (
        sa.select(activity, newest.label("rank"))
        .where(activity.c.thread_id == thread_id, activity.c.run_id.in_(run_ids))
        .subquery()
    )
    query = sa.select(ranked).where(ranked.c.rank <= each).order_by(ranked.c.seq)
    return [_row(row) for row in connection.execute(query)]


def counts_of_runs(
    connection: sa.Connection, thread_id: str, run_ids: Collection[str] | None = None
) -> dict[str, int]:
    """How many activities each run of a thread has, or each of some of its runs."""
    query = sa.select(activity.c.run_id, sa.func.count()).where(activity.c.thread_id == thread_id)
    if run_ids is not None:
        query = query.where(activity.c.run_id.in_(run_ids))
    return {row[0]: row[1] for row in connection.execute(query.group_by(activity.c.run_id))}


def _row(row: Any) -> dict[str, Any]:
    names = ("run_id", "kind", "name", "outcome", "worker", "detail", "milliseconds", "at")
    return {name: getattr(row, name) for name in names}


@dataclass(frozen=True, slots=True)
class Tokens:
    """What one model call used; `cost_usd` is None when no price is known."""

    input: int
    output: int
    cost_usd: float | None


def spend(
    connection: sa.Connection,
    tokens: Tokens,
    now: datetime,
    *,
    thread_id: str,
    run_id: str,
    person: str,
    model: str,
    trigger_id: str | None = None,
) -> None:
    """Keep what a model call cost."""
    connection.execute(
        _INSERT_USAGE,
        {
            "thread_id": thread_id,
            "run_id": run_id,
            "person": person,
            "model": model,
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
            "cost_usd": tokens.cost_usd,
            "at": now,
            "trigger_id": trigger_id,
        },
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What one model call of a run used, and when it ended."""

    run_id: str
    at: datetime
    input: int
    output: int
    cost_usd: float | None


def spent_of_runs(connection: sa.Connection, run_ids: Collection[str]) -> list[Spent]:
    """Each model call of these runs, oldest first."""
    query = sa.select(usage).where(usage.c.run_id.in_(run_ids)).order_by(usage.c.seq)
    rows = connection.execute(query)
    return [Spent(r.run_id, r.at, r.input_tokens, r.output_tokens, r.cost_usd) for r in rows]


@dataclass(frozen=True, slots=True)
class Sum:
    """What some model calls used together. `usd` leaves out the `unpriced` ones: their price is not known."""

    usd: float = 0.0
    tokens: int = 0
    calls: int = 0
    unpriced: int = 0

    def plus(self, *others: Sum) -> Sum:
        """All of them together."""
        every = (self, *others)
        return Sum(
            sum(one.usd for one in every),
            sum(one.tokens for one in every),
            sum(one.calls for one in every),
            sum(one.unpriced for one in every),
        )


_SINCE = usage.c.at >= sa.bindparam("since", type_=usage.c.at.type)
_SUMS = (
    sa.select(
        usage.c.person,
        sa.func.coalesce(sa.func.sum(usage.c.cost_usd), 0.0),
        sa.func.sum(usage.c.input_tokens + usage.c.output_tokens),
        sa.func.count(),
        sa.func.count() - sa.func.count(usage.c.cost_usd),
    )
    .where(_SINCE)
    .group_by(usage.c.person)
)
_SUMS_BETWEEN = _SUMS.where(usage.c.at < sa.bindparam("until", type_=usage.c.at.type))


def sums(connection: sa.Connection, since: datetime, until: datetime | None) -> dict[str, Sum]:
    """What each person's runs used from `since` on, and before `until` when it is given."""
    found = (
        connection.execute(_SUMS, {"since": since})
        if until is None
        else connection.execute(_SUMS_BETWEEN, {"since": since, "until": until})
    )
    return {row[0]: Sum(float(row[1]), int(row[2]), int(row[3]), int(row[4])) for row in found}


def usage_of_runs(
    connection: sa.Connection, thread_id: str, run_ids: Collection[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Sums of tokens and dollars of each run of a thread, or of some of its runs."""
    which = usage.c.thread_id == thread_id if run_ids is None else usage.c.run_id.in_(run_ids)
    return _usage_by(connection, usage.c.run_id, which)


def usage_of_thread(connection: sa.Connection, thread_id: str) -> dict[str, Any]:
    """Sums of tokens and dollars of everything in a thread."""
    found = _usage_by(connection, usage.c.thread_id, usage.c.thread_id == thread_id)
    return found.get(thread_id, dict(NO_USAGE))


NO_USAGE: Mapping[str, Any] = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cost_usd": 0.0,
    "known_usd": 0.0,
    "model_calls": 0,
    "unpriced_calls": 0,
}
_SUMMED = (
    sa.func.sum(usage.c.input_tokens).label("input_tokens"),
    sa.func.sum(usage.c.output_tokens).label("output_tokens"),
    sa.func.sum(usage.c.cost_usd).label("cost_usd"),
    sa.func.count().label("model_calls"),
    sa.func.sum(sa.case((usage.c.cost_usd.is_(None), 1), else_=0)).label("unpriced"),
)


def _usage_by(
    connection: sa.Connection, column: sa.Column[str], which: sa.ColumnElement[bool]
) -> dict[str, dict[str, Any]]:
    query = sa.select(column.label("key"), *_SUMMED).where(which).group_by(column)
    return {row.key: _sums(row) for row in connection.execute(query)}


def usage_since(
    connection: sa.Connection, since: datetime, person: str | None = None
) -> list[Mapping[str, Any]]:
    """Sums per person and model from `since` on; of one person when one is named."""
    query = (
        sa.select(usage.c.person, usage.c.model, *_SUMMED)
        .where(usage.c.at >= since, *_of(person))
        .group_by(usage.c.person, usage.c.model)
        .order_by(usage.c.person, usage.c.model)
    )
    return [{"person": r.person, "model": r.model} | _sums(r) for r in connection.execute(query)]


def usage_by_day(
    connection: sa.Connection, days: Sequence[Day], person: str | None = None
) -> list[Mapping[str, Any]]:
    """Sums of each of these days on which something was used, in their order."""
    at = usage.c.at.type
    columns = (sa.column("day", sa.Text), sa.column("since", at), sa.column("until", at))
    table = sa.values(*columns).data([(day.name, day.since, day.until) for day in days]).cte("days")
    query = (
        sa.select(table.c.day, *_SUMMED)
        .join(table, sa.and_(usage.c.at >= table.c.since, usage.c.at < table.c.until))
        .where(*_of(person))
        .group_by(table.c.day)
    )
    found = {row.day: {"day": row.day} | _sums(row) for row in connection.execute(query)}
    return [found[day.name] for day in days if day.name in found]


def usage_by_trigger(
    connection: sa.Connection, since: datetime, person: str | None = None
) -> list[Mapping[str, Any]]:
    """Sums of each trigger whose runs used something from `since` on; of what people asked for, none."""
    query = (
        sa.select(usage.c.trigger_id, *_SUMMED)
        .where(usage.c.at >= since, usage.c.trigger_id.is_not(None), *_of(person))
        .group_by(usage.c.trigger_id)
        .order_by(usage.c.trigger_id)
    )
    return [{"trigger_id": row.trigger_id} | _sums(row) for row in connection.execute(query)]


def _of(person: str | None) -> list[sa.ColumnElement[bool]]:
    return [usage.c.person == person] if person is not None else []


def _sums(row: Any) -> dict[str, Any]:
    known = round(float(row.cost_usd or 0.0), 6)
    return {
        "input_tokens": int(row.input_tokens),
        "output_tokens": int(row.output_tokens),
        # A sum with an unknown summand is not known; showing the rest as the whole would be a lie.
        "cost_usd": None if row.unpriced else known,
        "known_usd": known,
        "model_calls": int(row.model_calls),
        "unpriced_calls": int(row.unpriced),
    }
