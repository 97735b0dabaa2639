"""Where do triggers and their occurrences stand? Every firing is a row, stored once (promise 12).

due --add--> pending --start--> running <--> waiting --follow--> succeeded | failed
               |--skip--> skipped      |--gone, or it could not be started--> dead
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pizzabot.database.dialects import insert
from pizzabot.database.schema import (
    OCCURRENCE_FAILED,
    OCCURRENCE_OPEN,
    RUN_ACTIVE,
    occurrences,
    runs,
    triggers,
)
from pizzabot.messages import RunState
from pizzabot.triggers.trigger import Occurrence, OccurrenceState, Trigger

STOPPED = "stopped by a person"
CLOCK_SKEW = timedelta(minutes=1)  # between nodes; what was seen later than that, a wrong clock saw
_ACTIVE = (OccurrenceState.RUNNING, OccurrenceState.WAITING)
_OF_RUN = {
    RunState.QUEUED: OccurrenceState.RUNNING,
    RunState.RUNNING: OccurrenceState.RUNNING,
    RunState.WAITING: OccurrenceState.WAITING,
    RunState.DONE: OccurrenceState.SUCCEEDED,
    RunState.FAILED: OccurrenceState.FAILED,
    RunState.STOPPED: OccurrenceState.FAILED,
}


# -- triggers ------------------------------------------------------------------------------------------------


def put(connection: sa.Connection, trigger: Trigger, *, new: bool) -> None:
    """Store a trigger; raises `sqlalchemy.exc.IntegrityError` when another one has its name."""
    values = asdict(trigger) | {"name_key": trigger.name.casefold()}
    for name in ("channels", "skills", "defaulted"):
        values[name] = list(values[name]) if values[name] is not None else None
    if new:
        connection.execute(sa.insert(triggers), values)
    else:
        connection.execute(sa.update(triggers).where(triggers.c.id == trigger.id).values(values))


def remove(connection: sa.Connection, trigger_id: str) -> bool:
    """Remove a trigger with its occurrences; the threads they began stay."""
    return connection.execute(sa.delete(triggers).where(triggers.c.id == trigger_id)).rowcount > 0


def get(connection: sa.Connection, trigger_id: str) -> Trigger | None:
    """The trigger, or None."""
    return _one(connection, triggers.c.id == trigger_id)


def lock(connection: sa.Connection, trigger_id: str) -> Trigger | None:
    """The trigger, held until the transaction ends: its occurrences are added and started one by one."""
    row = connection.execute(sa.select(triggers).where(triggers.c.id == trigger_id).with_for_update()).first()
    return _trigger(row) if row is not None else None


def named(connection: sa.Connection, name: str) -> Trigger | None:
    """The trigger of that name, whatever the case."""
    return _one(connection, triggers.c.name_key == name.casefold())


def everything(connection: sa.Connection) -> list[Trigger]:
    """All triggers, by name."""
    return [_trigger(row) for row in connection.execute(sa.select(triggers).order_by(triggers.c.name_key))]


def scheduled(connection: sa.Connection, now: datetime) -> list[Trigger]:
    """Those whose next firing is due, or that a clock marked which was ahead."""
    is_ahead = sa.and_(triggers.c.next_run_at.is_not(None), triggers.c.watched_until > now + CLOCK_SKEW)
    is_due = sa.or_(triggers.c.next_run_at <= now, is_ahead)
    query = sa.select(triggers).where(is_due).order_by(triggers.c.next_run_at)
    return [_trigger(row) for row in connection.execute(query)]


def next_due(connection: sa.Connection) -> datetime | None:
    """When the next firing of all is due."""
    query = sa.select(sa.func.min(triggers.c.next_run_at)).where(triggers.c.next_run_at.is_not(None))
    found: datetime | None = connection.execute(query).scalar()
    return found


def watched(connection: sa.Connection, before: Trigger, after: Trigger) -> bool:
    """Move on to the next firing; False when somebody else did so, or changed the trigger, first."""
    result = connection.execute(
        sa.update(triggers)
        .where(
            triggers.c.id == before.id,
            triggers.c.watched_until == before.watched_until,
            triggers.c.changed_at == before.changed_at,
        )
        .values(watched_until=after.watched_until, next_run_at=after.next_run_at)
    )
    return result.rowcount > 0


def ran(connection: sa.Connection, trigger_id: str, now: datetime) -> None:
    """Note that a firing began."""
    connection.execute(sa.update(triggers).where(triggers.c.id == trigger_id).values(last_run_at=now))


def asking(connection: sa.Connection) -> list[Trigger]:
    """Those whose owner is asked whether they go on."""
    query = sa.select(triggers).where(triggers.c.paused_action.is_not(None))
    return [_trigger(row) for row in connection.execute(query)]


def asked(connection: sa.Connection, trigger_id: str, action_id: str) -> None:
    """Note which action asks about a paused trigger."""
    connection.execute(sa.update(triggers).where(triggers.c.id == trigger_id).values(paused_action=action_id))


def _one(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Trigger | None:
    row = connection.execute(sa.select(triggers).where(condition)).first()
    return _trigger(row) if row is not None else None


def _trigger(row: Any) -> Trigger:
    values = {name: getattr(row, name) for name in Trigger.__dataclass_fields__}
    for name in ("channels", "skills"):
        values[name] = tuple(values[name]) if values[name] is not None else None
    values["defaulted"] = tuple(values["defaulted"] or ())
    return Trigger(**values)


# -- occurrences ---------------------------------------------------------------------------------------------


def add(connection: sa.Connection, occurrence: Occurrence) -> bool:
    """Store a firing; False when it is there already, and then nothing is changed."""
    statement = (
        insert(connection.dialect.name, occurrences).values(asdict(occurrence)).on_conflict_do_nothing()
    )
    return connection.execute(statement.returning(occurrences.c.id)).first() is not None


def occurrence(connection: sa.Connection, occurrence_id: str) -> Occurrence | None:
    """The occurrence, or None."""
    return _found(connection, occurrences.c.id == occurrence_id)


def with_key(
    connection: sa.Connection, trigger_id: str, key: str, signature: str | None
) -> Occurrence | None:
    """The firing that has this key, or this signature."""
    same = occurrences.c.key == key
    if signature is not None:
        same = sa.or_(same, occurrences.c.signature == signature)
    return _found(connection, sa.and_(occurrences.c.trigger_id == trigger_id, same))


def of_run(connection: sa.Connection, run_id: str) -> Occurrence | None:
    """The firing that began a run."""
    return _found(connection, occurrences.c.run_id == run_id)


def of_trigger(
    connection: sa.Connection, trigger_id: str, *, limit: int, before: str | None = None
) -> list[Occurrence]:
    """The occurrences of a trigger, newest first, without what they brought."""
    query = sa.select(*_LIGHT).where(occurrences.c.trigger_id == trigger_id)
    if before is not None:
        query = query.where(occurrences.c.id < before)
    return _all(connection, query.order_by(occurrences.c.id.desc()).limit(limit))


def startable(connection: sa.Connection) -> list[str]:
    """The ids of what can be started now, or is to be left out now, in the order in which it was due.

    What waits for the one before, or for a person's word about its trigger, is left out.
    """
    kept_back = sa.and_(
        occurrences.c.state == OccurrenceState.PENDING,
        occurrences.c.reason != "manual",
        triggers.c.enabled,
        triggers.c.paused.is_not(None),
    )
    of_one = occurrences.c.trigger_id
    at_work = sa.case((_AT_WORK, 1), else_=0)
    found = (
        sa.select(
            occurrences.c.id,
            occurrences.c.state,
            occurrences.c.scheduled_at,
            triggers.c.overlap,
            triggers.c.enabled,
            sa.func.max(at_work).over(partition_by=of_one).label("at_work"),
            sa.func.row_number()
            .over(
                partition_by=(of_one, occurrences.c.state),
                order_by=(occurrences.c.scheduled_at, occurrences.c.id),
            )
            .label("place"),
        )
        .select_from(_WITH_RUNS.join(triggers, triggers.c.id == of_one))
        .where(OCCURRENCE_OPEN, sa.not_(kept_back))
        .subquery()
    )
    is_first = sa.and_(found.c.at_work == 0, found.c.place == 1)
    may_start = sa.or_(found.c.overlap != "queue", is_first, sa.not_(found.c.enabled))
    query = (
        sa.select(found.c.id)
        .where(found.c.state == OccurrenceState.PENDING, may_start)
        .order_by(found.c.scheduled_at, found.c.id)
    )
    return list(connection.execute(query).scalars())


def pending_of(connection: sa.Connection, trigger_id: str) -> int:
    """How many of a trigger's firings are to be started."""
    query = sa.select(sa.func.count()).where(
        OCCURRENCE_OPEN,
        occurrences.c.trigger_id == trigger_id,
        occurrences.c.state == OccurrenceState.PENDING,
    )
    return int(connection.execute(query).scalar_one())


def pending_with(connection: sa.Connection, trigger_id: str, reasons: Sequence[str]) -> list[Occurrence]:
    """A trigger's firings that are to be started for these reasons, the oldest first."""
    query = sa.select(*_LIGHT).where(
        OCCURRENCE_OPEN,
        occurrences.c.trigger_id == trigger_id,
        occurrences.c.state == OccurrenceState.PENDING,
        occurrences.c.reason.in_(reasons),
    )
    return _all(connection, query.order_by(occurrences.c.scheduled_at, occurrences.c.id))


def is_followed(connection: sa.Connection, occurrence: Occurrence) -> bool:
    """Whether a later firing of the same trigger is to be started as well."""
    query = sa.select(occurrences.c.id).where(
        OCCURRENCE_OPEN,
        occurrences.c.trigger_id == occurrence.trigger_id,
        occurrences.c.state == OccurrenceState.PENDING,
        sa.or_(
            occurrences.c.scheduled_at > occurrence.scheduled_at,
            sa.and_(occurrences.c.scheduled_at == occurrence.scheduled_at, occurrences.c.id > occurrence.id),
        ),
    )
    return connection.execute(query.limit(1)).first() is not None


def is_at_work(connection: sa.Connection, trigger_id: str) -> bool:
    """Whether the run of an earlier firing of a trigger has not ended."""
    query = (
        sa.select(occurrences.c.id)
        .select_from(_WITH_RUNS)
        .where(OCCURRENCE_OPEN, occurrences.c.trigger_id == trigger_id, _AT_WORK)
    )
    return connection.execute(query.limit(1)).first() is not None


def threads_at_work(connection: sa.Connection) -> frozenset[str]:
    """The threads in which a firing has not ended."""
    query = sa.select(occurrences.c.thread_id).where(OCCURRENCE_OPEN, occurrences.c.state.in_(_ACTIVE))
    return frozenset(row.thread_id for row in connection.execute(query))


def moved(connection: sa.Connection, known: Occurrence, **values: Any) -> Occurrence | None:
    """Change an occurrence that is still in the state in which it was seen; None when it is not."""
    result = connection.execute(
        sa.update(occurrences)
        .where(occurrences.c.id == known.id, occurrences.c.state == known.state)
        .values(values)
    )
    return replace(known, **values) if result.rowcount else None


# An occurrence, where its run stands, and what went wrong.
Behind = tuple[Occurrence, OccurrenceState, str | None]


def behind(connection: sa.Connection) -> list[Behind]:
    """The occurrences that stand otherwise than their runs, with where those stand and what went wrong.

    A failed one can come back to life: somebody retried its run.
    """
    stands = sa.case(
        *((runs.c.state == run_state, str(state)) for run_state, state in _OF_RUN.items()),
        else_=str(OccurrenceState.DEAD),
    )
    open_now = sa.and_(OCCURRENCE_OPEN, occurrences.c.state.in_(_ACTIVE), occurrences.c.state != stands)
    alive_again = sa.and_(OCCURRENCE_FAILED, runs.c.state.in_(_ALIVE))
    error = sa.case((runs.c.state == RunState.STOPPED, STOPPED), else_=runs.c.error_message)
    found: list[Behind] = []
    for condition in (open_now, alive_again):
        query = sa.select(*_LIGHT, stands.label("stands"), error.label("said")).select_from(_WITH_RUNS)
        found += [
            (_occurrence(row), OccurrenceState(row.stands), row.said)
            for row in connection.execute(query.where(condition).order_by(occurrences.c.id))
        ]
    return found


_ALIVE = (RunState.QUEUED, RunState.RUNNING, RunState.WAITING, RunState.DONE)
_WITH_RUNS = occurrences.outerjoin(runs, runs.c.id == occurrences.c.run_id)
# What the runs say: the occurrences follow them a moment later.
_AT_WORK = sa.and_(occurrences.c.state.in_(_ACTIVE), RUN_ACTIVE)
# What a webhook brought can be a megabyte, and is only needed to begin.
_LIGHT = tuple(column for column in occurrences.c if column.name not in ("payload", "fields"))


def count_failure(connection: sa.Connection, trigger_id: str, *, failed: bool) -> int:
    """Note how a firing ended; how many in a row failed."""
    counted = (
        sa.update(triggers)
        .where(triggers.c.id == trigger_id)
        .values(failures=triggers.c.failures + 1 if failed else 0)
        .returning(triggers.c.failures)
    )
    return int(connection.execute(counted).scalar() or 0)


def _found(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Occurrence | None:
    return next(iter(_all(connection, sa.select(occurrences).where(condition).limit(1))), None)


def _all(connection: sa.Connection, query: sa.Select[Any]) -> list[Occurrence]:
    return [_occurrence(row) for row in connection.execute(query)]


def _occurrence(row: Any) -> Occurrence:
    values = {name: getattr(row, name) for name in Occurrence.__dataclass_fields__ if hasattr(row, name)}
    return Occurrence(**(values | {"state": OccurrenceState(row.state)}))
