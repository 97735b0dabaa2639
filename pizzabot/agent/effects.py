"""Did this tool call happen already? The effects ledger (promise 6).

A call with side effects is written before it starts and after it ends, under a name that is the same in
every process that reaches the same point of the same run. A row that says "started" and whose process is gone
stands for a call that may have happened: only a person can say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.approvals.arguments import digest
from pizzabot.database.schema import effects
from pizzabot.messages import Args


@dataclass(frozen=True, slots=True)
class Effect:
    """One call: state is started, done or unknown; `result` is what the model was told."""

    call: str
    state: str
    tries: int
    result: Mapping[str, Any] | None


def get(connection: sa.Connection, call: str) -> Effect | None:
    """The ledger's row for a call, or None when it was never started."""
    row = connection.execute(sa.select(effects).where(effects.c.call == call)).first()
    return Effect(row.call, row.state, row.tries, row.result) if row else None


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was sent, as the next run's agent has to know of it."""

    tool: str
    args: Args
    state: str
    result: Mapping[str, Any] | None


def of_run(connection: sa.Connection, run_id: str) -> list[Made]:
    """The calls that a run sent, in their order."""
    query = sa.select(effects).where(effects.c.run_id == run_id).order_by(effects.c.started_at)
    return [Made(row.tool, row.args, row.state, row.result) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True)
class Sent:
    """When a call was sent, how often, and how it stands."""

    run_id: str
    tool: str
    state: str
    tries: int
    started_at: datetime
    ended_at: datetime | None


def of_thread(connection: sa.Connection, thread_id: str) -> list[Sent]:
    """The calls that the runs of a thread sent, in their order."""
    names = [effects.c[name] for name in Sent.__dataclass_fields__]
    query = sa.select(*names).where(effects.c.thread_id == thread_id).order_by(effects.c.started_at)
    return [Sent(*row) for row in connection.execute(query)]


def any_open(connection: sa.Connection, run_id: str) -> bool:
    """Whether a call of this run was sent whose end is not known."""
    query = sa.select(effects.c.call).where(effects.c.run_id == run_id, effects.c.state != "done")
    return connection.execute(query.limit(1)).first() is not None


def start(
    connection: sa.Connection,
    call: str,
    now: datetime,
    *,
    thread_id: str,
    run_id: str,
    tool: str,
    args: Args,
    previous: Effect | None,
) -> bool:
    """Write that the call is about to be sent; False when another process wrote since `previous` was read."""
    if previous is None:
        row = {"call": call, "thread_id": thread_id, "run_id": run_id, "tool": tool, "args": dict(args)}
        connection.execute(sa.insert(effects).values(**row, state="started", tries=1, started_at=now))
    else:
        unchanged = (effects.c.call == call, effects.c.tries == previous.tries, effects.c.state != "done")
        changed = connection.execute(
            sa.update(effects)
            .where(*unchanged)
            .values(state="started", tries=previous.tries + 1, args=dict(args), run_id=run_id, started_at=now)
        )
        if changed.rowcount != 1:
            return False
    sent = {"tool": tool, "args": digest(call, tool, args)}
    _record(connection, now, "effect.started", call, {"thread": thread_id, "run": run_id, **sent})
    return True


def end(connection: sa.Connection, call: str, now: datetime, result: Mapping[str, Any]) -> None:
    """Write what came of the call."""
    connection.execute(
        sa.update(effects)
        .where(effects.c.call == call)
        .values(state="done", result=dict(result), ended_at=now)
    )
    _record(connection, now, "effect.done", call, {"error": bool(result.get("error"))})


def lose(connection: sa.Connection, call: str, now: datetime) -> None:
    """Write that the call was sent and its end was not seen."""
    lost = connection.execute(
        sa.update(effects)
        .where(effects.c.call == call, effects.c.state == "started")
        .values(state="unknown", ended_at=now)
    )
    if lost.rowcount:
        _record(connection, now, "effect.unknown", call, {})


def _record(connection: sa.Connection, now: datetime, event: str, call: str, data: Mapping[str, Any]) -> None:
    audit.append(connection, now, actor="Pizza Bot", via="agent", event=event, subject=call, data=data)
