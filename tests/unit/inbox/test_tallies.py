"""Do counts only ever grow, whatever is deleted, forked or counted again by another process?"""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from pizzabot.agent import activity
from pizzabot.agent.activity import Activity, Tokens
from pizzabot.database.connection import Database
from pizzabot.database.schema import activity as rows
from pizzabot.engine import control
from pizzabot.inbox import tallies, threads
from pizzabot.inbox.tallies import Totals
from tests.fakes.clock import FakeClock
from tests.fakes.rows import arrives


def _works(connection: sa.Connection, clock: FakeClock, *, channel: str = "web") -> str:
    """A message, two tool calls that ended, one model call and its price."""
    accepted = arrives(connection, clock, channel=channel)
    assert accepted.run_id is not None
    about = {"thread_id": accepted.thread_id, "run_id": accepted.run_id}
    for kind, outcome in (("tool", "ok"), ("tool", "error"), ("model", "ok")):
        done = Activity(kind, "x", outcome)  # type: ignore[arg-type]
        activity.record(connection, done, clock.now(), **about)
    activity.spend(connection, Tokens(100, 7, 0.5), clock.now(), person="Ada", model="demo:a", **about)
    activity.spend(connection, Tokens(10, 1, None), clock.now(), person="Ada", model="demo:b", **about)
    return accepted.thread_id


async def _read(database: Database, clock: FakeClock, totals: Totals) -> dict[str, tallies.Counts]:
    return await database.read(lambda c: totals.read(c, clock.now()))


async def test_what_is_there_is_counted_by_label(database: Database, clock: FakeClock) -> None:
    await database.write(lambda c: _works(c, clock))
    await database.write(lambda c: _works(c, clock, channel="slack"))
    assert await _read(database, clock, Totals()) == {
        "tool_calls": {"ok": (2,), "error": (2,)},
        "model_calls": {"ok": (2,)},
        "arrived": {"web": (1,), "slack": (1,)},
        "spent": {"demo:a": (2, 200, 14, 1.0, 0), "demo:b": (2, 20, 2, 0, 2)},
    }


async def test_a_deleted_thread_takes_nothing_from_the_counts(database: Database, clock: FakeClock) -> None:
    totals = Totals()
    first = await database.write(lambda c: _works(c, clock))
    await database.write(lambda c: _works(c, clock))
    before = await _read(database, clock, totals)
    await database.write(lambda c: threads.delete(c, first))
    assert await _read(database, clock, totals) == before
    assert await _read(database, clock, Totals()) == before  # and after a restart
    await database.write(lambda c: _works(c, clock))
    assert (await _read(database, clock, totals))["tool_calls"] == {"ok": (3,), "error": (3,)}


async def test_what_was_counted_is_not_read_again_once_it_is_settled(
    database: Database, clock: FakeClock
) -> None:
    totals = Totals()
    await database.write(lambda c: _works(c, clock))
    await _read(database, clock, totals)
    clock.advance(timedelta(minutes=2))
    await _read(database, clock, totals)
    # Changed behind its back, without a note: only whoever reads these rows again sees it.
    await database.write(lambda c: c.execute(sa.text("UPDATE activity SET outcome = 'stopped'")))
    await database.write(lambda c: _works(c, clock))
    assert (await _read(database, clock, totals))["tool_calls"] == {"ok": (2,), "error": (2,)}


async def test_a_row_that_is_committed_late_is_still_counted(
    postgres_database: Database, clock: FakeClock
) -> None:
    totals, database = Totals(), postgres_database
    await database.write(lambda c: _works(c, clock))
    await database.write(lambda c: c.execute(sa.text("UPDATE activity SET seq = seq + 10")))
    await _read(database, clock, totals)

    def late(connection: sa.Connection) -> None:
        thread = connection.execute(sa.text("SELECT id FROM threads")).scalar_one()
        row = {"seq": 5, "thread_id": thread, "run_id": "r", "kind": "tool", "name": "x", "outcome": "ok"}
        connection.execute(sa.insert(rows).values(**row, at=clock.now()))

    await database.write(late)
    clock.advance(timedelta(minutes=2))
    assert (await _read(database, clock, totals))["tool_calls"]["ok"] == (2,)


async def test_a_fork_is_no_arrival(database: Database, clock: FakeClock) -> None:
    thread_id = await database.write(lambda c: _works(c, clock))

    def fork(connection: sa.Connection) -> None:
        thread, messages = threads.get(connection, thread_id), threads.messages_of(connection, thread_id)
        assert thread is not None
        control.fork(
            connection, thread, messages[-1].seq, clock.now(), person="Ada", via="web", target="forked"
        )

    await database.write(fork)
    assert (await _read(database, clock, Totals()))["arrived"] == {"web": (1,)}
    for gone in (thread_id, "forked"):
        await database.write(lambda c, gone=gone: threads.delete(c, gone))  # type: ignore[misc]
    assert (await _read(database, clock, Totals()))["arrived"] == {"web": (1,)}
