"""Which run may start, and what state is it in? The transitions of a run's row, each a compare-and-set.

    queued --claim--> running --finish--> done | failed
                        |  ^
                   pause|  |claim
                        v  |
                     waiting --requeue--> queued          any active state --stop--> stopped

The row is the truth. A workflow that finds its row in another state, or claimed again since, has been
superseded and its result is dropped: so no answer is stored twice, whatever ran twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot.database.dialects import hold
from pizzabot.database.schema import (
    HELD,
    RUN_ACTIVE,
    RUN_ENDED,
    RUN_QUEUED,
    RUN_RUNNING,
    messages,
    runs,
    stops,
    threads,
)
from pizzabot.ids import new_id
from pizzabot.messages import ACTIVE_RUN_STATES, RETRIABLE_RUN_STATES, THREAD_STATE_OF_RUN, RunState
from pizzabot.text import storable

STOP_ALL = "all"


@dataclass(frozen=True, slots=True)
class Run:
    """A run's row."""

    id: str
    thread_id: str
    person: str
    model: str
    state: RunState
    attempt: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    used: Mapping[str, Any]
    allowance: Mapping[str, Any]
    error_code: str | None
    error_message: str | None
    skills: Sequence[str] | None = None
    trigger_id: str | None = None
    retried_by: str | None = None
    retried_via: str | None = None


_HELD = sa.and_(messages.c.thread_id == sa.bindparam("thread"), HELD)
_THIS = runs.c.id == sa.bindparam("run")
_THIS_ATTEMPT = sa.and_(_THIS, RUN_RUNNING, runs.c.attempt == sa.bindparam("attempt_now"))

# Statements of every run are built once: building one costs four times as much as running it.
_GET = sa.select(runs).where(_THIS)
_ACTIVE = sa.select(runs).where(runs.c.thread_id == sa.bindparam("thread"), RUN_ACTIVE)
_BEFORE = (
    sa.select(runs)
    .where(runs.c.thread_id == sa.bindparam("thread"), runs.c.id < sa.bindparam("run"))
    .order_by(runs.c.id.desc())
    .limit(1)
)
_LEAVE = sa.update(runs).where(_THIS_ATTEMPT)
# What came from outside stays in the thread's history: whoever goes on with it may use no more than it began
# with.
_INSERT = sa.insert(runs).values(
    skills=sa.select(threads.c.skills).where(threads.c.id == sa.bindparam("thread")).scalar_subquery()
)
# What was said beside a decision and reached no call is a message like any other from now on.
_TAKE_HELD = sa.update(messages).where(_HELD).values(run_id=sa.bindparam("run"), aside_to=None)
_ANY_HELD = sa.select(messages.c.author).where(_HELD).limit(1)
_HELD_FROM = _ANY_HELD.where(messages.c.aside_to.is_(None)).order_by(messages.c.seq)
_QUEUED = (
    sa.select(runs.c.id, runs.c.person, runs.c.queued_at)
    .where(RUN_QUEUED, runs.c.thread_id.not_in(sa.bindparam("busy", expanding=True)))
    .order_by(runs.c.queued_at, runs.c.id)
    .limit(sa.bindparam("count"))
    .with_for_update(skip_locked=True)
)
_QUEUED_OF = _QUEUED.where(runs.c.person == sa.bindparam("person"))
_NEXT_PERSON = sa.select(sa.func.min(runs.c.person)).where(RUN_QUEUED, runs.c.person > sa.bindparam("after"))
_AT_WORK = sa.select(runs.c.person, sa.func.count()).where(RUN_RUNNING).group_by(runs.c.person)
_START = (
    sa.update(runs)
    .where(_THIS, RUN_QUEUED)
    .values(
        state="running",
        attempt=runs.c.attempt + sa.bindparam("more"),
        started_at=sa.func.coalesce(runs.c.started_at, sa.bindparam("now", type_=runs.c.started_at.type)),
    )
    .returning(*runs.c)
)
_START_AGAIN = _START.where(runs.c.attempt == sa.bindparam("attempt_now"))
_RECORD_USE = sa.update(runs).where(_THIS_ATTEMPT).values(used=sa.bindparam("use"))
_STILL = sa.select(runs.c.id).where(_THIS_ATTEMPT)
_SHOW = sa.update(threads).where(threads.c.id == sa.bindparam("thread")).values(state=sa.bindparam("shown"))
# A stop waits for the claims that are being made, and they for it: no run slips through.
_GATE = 0x73746F7073  # "stops"
_STOPPED = sa.select(stops).where(stops.c.scope == STOP_ALL)


def _run(row: Any) -> Run:
    return Run(
        row.id,
        row.thread_id,
        row.person,
        row.model,
        RunState(row.state),
        row.attempt,
        row.created_at,
        row.started_at,
        row.ended_at,
        row.used,
        row.allowance,
        row.error_code,
        row.error_message,
        row.skills,
        row.trigger_id,
        row.retried_by,
        row.retried_via,
    )


def get(connection: sa.Connection, run_id: str) -> Run | None:
    """The run, or None when its thread was deleted."""
    row = connection.execute(_GET, {"run": run_id}).first()
    return _run(row) if row else None


def holds(connection: sa.Connection, run: Run) -> bool:
    """Whether this attempt still has the run: it was not stopped, and nobody claimed it since."""
    return connection.execute(_STILL, {"run": run.id, "attempt_now": run.attempt}).first() is not None


def of_thread(connection: sa.Connection, thread_id: str) -> list[Run]:
    """All runs of a thread, oldest first."""
    query = sa.select(runs).where(runs.c.thread_id == thread_id).order_by(runs.c.id)
    return [_run(row) for row in connection.execute(query)]


def newest_of_thread(
    connection: sa.Connection, thread_id: str, *, limit: int, before: str | None = None
) -> list[Run]:
    """At most `limit` runs of a thread, the newest or those right before a run; oldest first."""
    query = sa.select(runs).where(runs.c.thread_id == thread_id).order_by(runs.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(runs.c.id < before)
    return [_run(row) for row in reversed(connection.execute(query).all())]


def with_ids(connection: sa.Connection, run_ids: Collection[str]) -> list[Run]:
    """These runs, oldest first."""
    query = sa.select(runs).where(runs.c.id.in_(run_ids)).order_by(runs.c.id)
    return [_run(row) for row in connection.execute(query)]


def newest(connection: sa.Connection, thread_id: str) -> Run | None:
    """The thread's newest run."""
    query = sa.select(runs).where(runs.c.thread_id == thread_id).order_by(runs.c.id.desc()).limit(1)
    row = connection.execute(query).first()
    return _run(row) if row else None


def before(connection: sa.Connection, run: Run) -> Run | None:
    """The thread's run before this one."""
    row = connection.execute(_BEFORE, {"thread": run.thread_id, "run": run.id}).first()
    return _run(row) if row else None


def active(connection: sa.Connection, thread_id: str) -> Run | None:
    """The thread's active run: there is at most one, by a unique index."""
    row = connection.execute(_ACTIVE, {"thread": thread_id}).first()
    return _run(row) if row else None


def create(
    connection: sa.Connection,
    thread_id: str,
    now: datetime,
    *,
    person: str,
    model: str,
    allowance: Mapping[str, Any],
    trigger_id: str | None = None,
) -> str:
    """A queued run that takes every held message of the thread, all together, in order.

    `allowance` holds what the run may use (`agent.limits.Bounds`); `usd` in it is its budget. Its skills are
    those of its thread.
    """
    run_id = new_id()
    connection.execute(
        _INSERT,
        {
            "id": run_id,
            "thread_id": thread_id,
            "person": person,
            "model": model,
            "state": RunState.QUEUED,
            "attempt": 0,
            "created_at": now,
            "queued_at": now,
            "used": {},
            "allowance": dict(allowance),
            "thread": thread_id,
            "trigger_id": trigger_id,
        },
    )
    connection.execute(_TAKE_HELD, {"thread": thread_id, "run": run_id})
    _show(connection, thread_id, RunState.QUEUED)
    return run_id


def held_from(connection: sa.Connection, thread_id: str) -> str | None:
    """Who wrote the first message that a next run is for; None when there is none.

    What was only said beside a decision goes along with a next run and is no reason for one.
    """
    return connection.execute(_HELD_FROM, {"thread": thread_id}).scalar()


def any_held(connection: sa.Connection, thread_id: str) -> bool:
    """Whether anything waits to go along with the next run."""
    return connection.execute(_ANY_HELD, {"thread": thread_id}).first() is not None


def claim(connection: sa.Connection, limit: int, now: datetime, *, busy: Sequence[str] = ()) -> list[Run]:
    """Take up to `limit` queued runs; none while everything is stopped.

    Of each person the oldest first. Among people it is the turn of whoever has the fewest at work, so that a
    thousand runs of one person hold up nobody else's. `busy` are threads whose former attempt is still
    leaving: two must not work on one graph.
    """
    hold(connection, _GATE, shared=True)
    if stopped_by(connection) is not None:
        return []
    return [
        run
        for run_id in _next(connection, limit, list(busy))
        if (run := _start(connection, run_id, now, attempt=None)) is not None
    ]


def _next(connection: sa.Connection, limit: int, busy: Sequence[str]) -> list[str]:
    """Whose turn it is, at most `limit`. How many wait behind them costs nothing."""
    oldest = connection.execute(_QUEUED, {"count": limit + 1, "busy": busy}).all()
    if len(oldest) <= limit:
        return [row.id for row in oldest]
    at_work = {row[0]: int(row[1]) for row in connection.execute(_AT_WORK)}
    turns: list[tuple[int, datetime, str]] = []
    person: str | None = ""
    while (person := connection.execute(_NEXT_PERSON, {"after": person}).scalar()) is not None:
        own = connection.execute(_QUEUED_OF, {"person": person, "count": limit, "busy": busy}).all()
        turns += [(n, row.queued_at, row.id) for n, row in enumerate(own, at_work.get(person, 0))]
    return [run_id for _, _, run_id in sorted(turns)[:limit]]


def claim_again(connection: sa.Connection, run_id: str, attempt: int, now: datetime) -> Run | None:
    """Take back the very attempt that a crash interrupted; None when somebody else has the run."""
    hold(connection, _GATE, shared=True)
    if stopped_by(connection) is not None:
        return None
    return _start(connection, run_id, now, attempt=attempt)


def _start(connection: sa.Connection, run_id: str, now: datetime, *, attempt: int | None) -> Run | None:
    values: dict[str, Any] = {"run": run_id, "now": now, "more": 1 if attempt is None else 0}
    if attempt is None:
        row = connection.execute(_START, values).first()
    else:
        row = connection.execute(_START_AGAIN, values | {"attempt_now": attempt}).first()
    if row is None:
        return None
    _show(connection, row.thread_id, RunState.RUNNING)
    return _run(row)


def recover(connection: sa.Connection) -> int:
    """After a crash: what was running is queued again and goes on from its checkpoint."""
    rows = connection.execute(
        sa.update(runs).where(RUN_RUNNING).values(state=RunState.QUEUED).returning(runs.c.thread_id)
    ).all()
    for row in rows:
        _show(connection, row.thread_id, RunState.QUEUED)
    return len(rows)


def release(connection: sa.Connection, run: Run) -> None:
    """running -> queued: the claimed attempt could not be started."""
    _leave(connection, run, RunState.QUEUED)


def finish(
    connection: sa.Connection,
    run: Run,
    state: RunState,
    now: datetime,
    *,
    used: Mapping[str, Any],
    error: tuple[str, str] | None = None,
) -> bool:
    """running -> done | failed, only for the attempt that still holds the run."""
    code, message = error or (None, None)
    message = storable(message) if message is not None else None
    return _leave(connection, run, state, used=used, ended_at=now, error_code=code, error_message=message)


def pause(
    connection: sa.Connection, run: Run, now: datetime, *, used: Mapping[str, Any], decided: bool
) -> bool:
    """running -> waiting; at once -> queued when a decision came while the run was still busy."""
    if decided:
        return _leave(connection, run, RunState.QUEUED, used=used, queued_at=now)
    return _leave(connection, run, RunState.WAITING, used=used)


def _leave(connection: sa.Connection, run: Run, state: RunState, **values: Any) -> bool:
    key = {"run": run.id, "attempt_now": run.attempt}
    changed = connection.execute(_LEAVE, key | {"state": state} | values).rowcount == 1
    if changed:
        _show(connection, run.thread_id, state)
    return changed


def requeue(connection: sa.Connection, run_id: str, now: datetime) -> bool:
    """waiting (a decision came) -> queued."""
    return _requeue(connection, run_id, now, (RunState.WAITING,))


def retry(connection: sa.Connection, run_id: str, now: datetime, *, person: str, via: str) -> bool:
    """failed | stopped -> queued, because a person asked for it there."""
    return _requeue(connection, run_id, now, RETRIABLE_RUN_STATES, retried_by=person, retried_via=via)


def _requeue(
    connection: sa.Connection, run_id: str, now: datetime, from_states: Sequence[RunState], **values: Any
) -> bool:
    again = {"state": RunState.QUEUED, "queued_at": now, "ended_at": None}
    row = connection.execute(
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.state.in_(from_states))
        .values(**again, error_code=None, error_message=None, **values)
        .returning(runs.c.thread_id)
    ).first()
    if row is None:
        return False
    _show(connection, row.thread_id, RunState.QUEUED)
    return True


def stop(connection: sa.Connection, run_id: str, now: datetime) -> bool:
    """Any active state -> stopped."""
    row = connection.execute(
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.state.in_(ACTIVE_RUN_STATES))
        .values(state=RunState.STOPPED, ended_at=now)
        .returning(runs.c.thread_id)
    ).first()
    if row is None:
        return False
    _show(connection, row.thread_id, RunState.STOPPED)
    return True


def counts(connection: sa.Connection) -> dict[RunState, int]:
    """How many runs are in each state."""
    found = dict.fromkeys(RunState, 0)
    for some in (RUN_ACTIVE, RUN_ENDED):
        query = sa.select(runs.c.state, sa.func.count()).where(some).group_by(runs.c.state)
        found |= {RunState(row[0]): row[1] for row in connection.execute(query)}
    return found


def oldest_queued(connection: sa.Connection) -> datetime | None:
    """Since when the first run in the queue waits; None when none does."""
    return connection.execute(sa.select(sa.func.min(runs.c.queued_at)).where(RUN_QUEUED)).scalar()


def running(connection: sa.Connection) -> list[Run]:
    """Every run that is at work now."""
    return [_run(row) for row in connection.execute(sa.select(runs).where(RUN_RUNNING))]


def active_of_owner(connection: sa.Connection, owner: str) -> list[str]:
    """The threads of a person that have an active run."""
    query = (
        sa.select(runs.c.thread_id)
        .join(threads, threads.c.id == runs.c.thread_id)
        .where(RUN_ACTIVE, threads.c.owner == owner)
        .order_by(runs.c.id)
    )
    return list(connection.execute(query).scalars())


def allow_more(connection: sa.Connection, run_id: str, allowance: Mapping[str, Any]) -> None:
    """Set what the run may use in all."""
    connection.execute(sa.update(runs).where(runs.c.id == run_id).values(allowance=dict(allowance)))


def record_use(connection: sa.Connection, run: Run, used: Mapping[str, Any]) -> bool:
    """Store what the run has used so far; False when this attempt no longer holds it."""
    values = {"run": run.id, "attempt_now": run.attempt, "use": dict(used)}
    return connection.execute(_RECORD_USE, values).rowcount == 1


def stop_everything(connection: sa.Connection, now: datetime, *, person: str, via: str) -> None:
    """No run starts from now on, also after a restart, until `resume_everything`."""
    hold(connection, _GATE)
    if stopped_by(connection) is None:
        connection.execute(sa.insert(stops).values(scope=STOP_ALL, person=person, via=via, at=now))


def resume_everything(connection: sa.Connection) -> bool:
    """Undo `stop_everything`; whether there was something to undo."""
    return connection.execute(sa.delete(stops).where(stops.c.scope == STOP_ALL)).rowcount > 0


def stopped_by(connection: sa.Connection) -> tuple[str, str, datetime] | None:
    """Who stopped everything, through which channel and when; None when nothing is stopped."""
    row = connection.execute(_STOPPED).first()
    return (row.person, row.via, row.at) if row else None


def _show(connection: sa.Connection, thread_id: str, state: RunState) -> None:
    connection.execute(_SHOW, {"thread": thread_id, "shown": THREAD_STATE_OF_RUN[state]})
