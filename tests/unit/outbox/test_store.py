"""Is each thing said once, in order, looked up after a crash, and repainted only where it is stale?"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from pizzabot.approvals import store as actions
from pizzabot.database.connection import Database
from pizzabot.database.schema import outbox
from pizzabot.inbox import threads
from pizzabot.messages import ActionState
from pizzabot.outbox import store
from tests.fakes.clock import FakeClock
from tests.fakes.rows import arrives, waits


def _thread(connection: sa.Connection, clock: FakeClock) -> str:
    return arrives(connection, clock).thread_id


def _say(
    connection: sa.Connection, clock: FakeClock, thread_id: str, key: str, address: str = "C1", **more: object
) -> bool:
    return store.enqueue(
        connection,
        clock.now(),
        key=key,
        channel="slack",
        address=address,
        kind="action" if "action_id" in more else "notice",
        thread_id=thread_id,
        **more,  # type: ignore[arg-type]
    )


async def _take(database: Database, clock: FakeClock, limit: int = 20) -> list[str]:
    rows = await database.write(lambda c: store.take(c, clock.now(), limit=limit))
    return [row.key for row in rows]


async def test_a_key_is_queued_once_for_ever(database: Database, clock: FakeClock) -> None:
    thread_id = await database.write(lambda c: _thread(c, clock))
    assert await database.write(lambda c: _say(c, clock, thread_id, "k"))
    assert not await database.write(lambda c: _say(c, clock, thread_id, "k", "C2"))
    (row,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    await database.write(lambda c: store.sent(c, row, "1.1", None, clock.now()))
    assert not await database.write(lambda c: _say(c, clock, thread_id, "k"))
    assert await _take(database, clock) == []


async def test_a_key_is_queued_once_when_two_say_it_together(database: Database, clock: FakeClock) -> None:
    thread_id = await database.write(lambda c: _thread(c, clock))
    said = await asyncio.gather(*(database.write(lambda c: _say(c, clock, thread_id, "k")) for _ in range(8)))
    assert sum(said) == 1


async def test_one_row_for_each_address_oldest_first(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        thread_id = _thread(connection, clock)
        for key, address in (("a1", "A"), ("a2", "A"), ("b1", "B"), ("c1", "C"), ("b2", "B")):
            _say(connection, clock, thread_id, key, address)

    await database.write(work)
    assert await _take(database, clock, limit=2) == ["a1", "b1"]
    # What is being sent still stands first in its line.
    assert await _take(database, clock) == ["c1"]
    assert await _take(database, clock) == []


async def test_a_long_line_at_one_address_does_not_hide_the_others(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        thread_id = _thread(connection, clock)
        for n in range(60):
            _say(connection, clock, thread_id, f"a{n}", "A")
        _say(connection, clock, thread_id, "b", "B")

    await database.write(work)
    assert await _take(database, clock, limit=2) == ["a0", "b"]
    assert await _take(database, clock, limit=2) == []


async def test_what_comes_later_waits_for_the_try_that_comes_again(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        thread_id = _thread(connection, clock)
        _say(connection, clock, thread_id, "first")
        _say(connection, clock, thread_id, "second")
        (row,) = store.take(connection, clock.now(), limit=9)
        later = clock.now() + timedelta(seconds=30)
        store.try_later(connection, row, later, "rate limited", unknown=False)

    await database.write(work)
    assert await _take(database, clock) == []
    due = await database.read(store.next_due)
    assert due == clock.now() + timedelta(seconds=30)
    clock.advance(seconds=30)
    assert await _take(database, clock) == ["first"]
    assert await database.read(store.next_due) is None


async def test_after_a_failure_for_good_the_line_moves_on(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        thread_id = _thread(connection, clock)
        _say(connection, clock, thread_id, "first")
        _say(connection, clock, thread_id, "second")
        (row,) = store.take(connection, clock.now(), limit=9)
        store.failed(connection, row, "channel_not_found" * 100)

    await database.write(work)
    assert await _take(database, clock) == ["second"]
    summary = await database.read(store.summary)
    assert (summary["pending"], summary["unknown"]) == (1, 0)
    (lost,) = summary["failed"]
    assert (lost["channel"], lost["to"], len(lost["error"])) == ("slack", "C1", 500)


async def test_rows_are_taken_once_by_two_that_take_together(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        thread_id = _thread(connection, clock)
        for n in range(30):
            _say(connection, clock, thread_id, f"k{n}", f"A{n}")

    await database.write(work)
    taken = await asyncio.gather(*(_take(database, clock) for _ in range(6)))
    keys = [key for some in taken for key in some]
    assert len(keys) == len(set(keys))


async def test_a_crash_makes_what_was_being_sent_unknown(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        thread_id = _thread(connection, clock)
        _say(connection, clock, thread_id, "sending", "A")
        store.take(connection, clock.now(), limit=9)
        _say(connection, clock, thread_id, "pending", "B")

    await database.write(work)
    assert await database.write(lambda c: store.recover(c, clock.now())) == 1
    rows = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    assert {row.key: (row.state, row.tries) for row in rows} == {
        "sending": ("unknown", 1),
        "pending": ("pending", 0),
    }


async def test_next_due_looks_past_busy_addresses(database: Database, clock: FakeClock) -> None:
    assert await database.read(store.next_due) is None
    started = clock.now()

    def work(connection: sa.Connection) -> None:
        thread_id = _thread(connection, clock)
        _say(connection, clock, thread_id, "a", "A")
        clock.advance(seconds=5)
        _say(connection, clock, thread_id, "b", "B")

    await database.write(work)
    assert await database.read(store.next_due) == started
    assert await _take(database, clock, limit=1) == ["a"]
    assert await database.read(store.next_due) == clock.now()
    assert await _take(database, clock, limit=1) == ["b"]
    assert await database.read(store.next_due) is None


async def test_a_copy_that_arrives_again_is_known_once(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> list[store.Delivery]:
        (action,) = waits(connection, clock)
        for key in ("first", "again"):
            _say(connection, clock, action.thread_id, key, action_id=action.id, person="Bob")
            (row,) = store.take(connection, clock.now(), limit=9)
            store.sent(connection, row, "170.1", f"shown {key}", clock.now())
        return store.copies(connection, action.id)

    (copy,) = await database.write(work)
    assert (copy.external_id, copy.shown_state, copy.person) == ("170.1", "shown again", "Bob")


async def test_what_arrives_for_a_deleted_thread_is_dropped(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> int:
        thread_id = _thread(connection, clock)
        _say(connection, clock, thread_id, "k")
        (row,) = store.take(connection, clock.now(), limit=9)
        threads.delete(connection, thread_id)
        store.sent(connection, row, "170.1", None, clock.now())
        return int(connection.execute(sa.select(sa.func.count()).select_from(outbox)).scalar_one())

    assert await database.write(work) == 0


@pytest.mark.parametrize("copies", [0, 1, 3])
async def test_only_stale_copies_are_repainted(database: Database, clock: FakeClock, copies: int) -> None:
    def work(connection: sa.Connection) -> tuple[int, int, set[tuple[str, str | None]]]:
        (action,) = waits(connection, clock)
        shown = ["approved"] + ["pending"] * copies
        for n, state in enumerate(shown):
            _say(connection, clock, action.thread_id, f"card{n}", f"A{n}", action_id=action.id)
            (row,) = store.take(connection, clock.now(), limit=9)
            store.sent(connection, row, f"copy{n}", state, clock.now())
        queued = store.repaint(connection, action.id, "approved", clock.now())
        rows = store.take(connection, clock.now(), limit=9)
        for row in rows:
            store.sent(connection, row, row.external_id or "", "approved", clock.now())
        again = store.repaint(connection, action.id, "approved", clock.now())
        return queued, again, {(row.address, row.external_id) for row in rows}

    queued, again, places = await database.write(work)
    assert (queued, again) == (copies, 0)
    assert places == {(f"A{n}", f"copy{n}") for n in range(1, copies + 1)}


async def test_a_notice_about_an_action_stays_as_it_was_said(database: Database, clock: FakeClock) -> None:
    (action,) = await database.write(lambda c: waits(c, clock))

    def told(connection: sa.Connection) -> int:
        store.enqueue(
            connection,
            clock.now(),
            key="told",
            channel="email",
            address="C1",
            kind="notice",
            thread_id=action.thread_id,
            action_id=action.id,
        )
        (row,) = store.take(connection, clock.now(), limit=9)
        assert row.action_id == action.id  # what it runs with is shown when it is delivered
        store.sent(connection, row, "1.1", None, clock.now())
        return store.repaint(connection, action.id, "approved", clock.now())

    assert await database.write(told) == 0


async def test_a_state_that_comes_back_is_painted_again(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> list[int]:
        (action,) = waits(connection, clock)
        _say(connection, clock, action.thread_id, "card", action_id=action.id)
        painted = []
        for state in (ActionState.PENDING, ActionState.EXPIRED, ActionState.PENDING):
            for row in store.take(connection, clock.now(), limit=9):
                store.sent(connection, row, "copy", state, clock.now())
            actions.settle(connection, action.id, list(ActionState), state=state)
            painted.append(store.repaint(connection, action.id, state, clock.now()))
            for row in store.take(connection, clock.now(), limit=9):
                store.sent(connection, row, "copy", state, clock.now())
        return painted

    assert await database.write(work) == [0, 1, 1]


# -- status messages ---------------------------------------------------------------------------------------


async def _status(database: Database, clock: FakeClock) -> str:
    """A run whose status message is queued; the run's id."""

    def work(connection: sa.Connection) -> str:
        accepted = arrives(connection, clock)
        run_id = str(accepted.run_id)
        parts = {"key": f"status/{run_id}", "channel": "slack", "address": "C1", "kind": "status"}
        store.enqueue(connection, clock.now(), thread_id=accepted.thread_id, run_id=run_id, **parts)  # type: ignore[arg-type]
        return run_id

    return await database.write(work)


async def _queued(database: Database) -> list[tuple[str, str | None]]:
    query = sa.select(outbox.c.kind, outbox.c.external_id).where(outbox.c.state == "pending")
    return [(row.kind, row.external_id) for row in await database.read(lambda c: list(c.execute(query)))]


async def test_a_status_that_was_not_sent_when_its_run_ends_is_never_sent(
    database: Database, clock: FakeClock
) -> None:
    run_id = await _status(database, clock)
    await database.write(lambda c: store.repaint_status(c, run_id, clock.now()))
    assert await _queued(database) == []


async def test_a_status_that_was_sent_is_repainted_each_time_its_run_stands_otherwise(
    database: Database, clock: FakeClock
) -> None:
    run_id = await _status(database, clock)
    (row,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    await database.write(lambda c: store.sent(c, row, "1.1", "running", clock.now()))
    for _ in range(2):
        await database.write(lambda c: store.repaint_status(c, run_id, clock.now()))
        (repaint,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
        assert (repaint.kind, repaint.external_id, repaint.run_id) == ("status", "1.1", run_id)
        await database.write(lambda c, r=repaint: store.sent(c, r, "1.1", "waiting", clock.now()))  # type: ignore[misc]
    assert len(await database.read(lambda c: store.status_copies(c, run_id))) == 1


async def test_a_status_on_its_way_is_left_to_arrive(database: Database, clock: FakeClock) -> None:
    run_id = await _status(database, clock)
    (row,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    await database.write(lambda c: store.repaint_status(c, run_id, clock.now()))
    await database.write(lambda c: store.sent(c, row, "1.1", "running", clock.now()))
    assert len(await database.read(lambda c: store.status_copies(c, run_id))) == 1


async def test_what_waits_for_a_channel_is_due_when_it_is_back(database: Database, clock: FakeClock) -> None:
    thread_id = await database.write(lambda c: _thread(c, clock))
    await database.write(lambda c: _say(c, clock, thread_id, "k"))
    (row,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    later = clock.now() + timedelta(hours=1)
    await database.write(lambda c: store.try_later(c, row, later, "away", unknown=True))
    await database.write(lambda c: store.due_now(c, "email", clock.now()))
    assert await _take(database, clock) == []
    await database.write(lambda c: store.due_now(c, "slack", clock.now()))
    assert await _take(database, clock) == ["k"]


async def test_the_thread_of_a_copy_is_found_by_its_place_and_name(
    database: Database, clock: FakeClock
) -> None:
    thread_id = await database.write(lambda c: _thread(c, clock))
    await database.write(lambda c: _say(c, clock, thread_id, "k", "U1"))
    (row,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    await database.write(lambda c: store.sent(c, row, "D1/1.1", None, clock.now()))
    assert await database.read(lambda c: store.thread_of_copy(c, "slack", "U1", "D1/1.1")) == thread_id
    assert await database.read(lambda c: store.thread_of_copy(c, "slack", "U2", "D1/1.1")) is None


async def test_what_is_put_off_holds_up_nothing_and_comes_when_it_is_due(
    database: Database, clock: FakeClock
) -> None:
    thread = await database.write(lambda c: arrives(c, clock).thread_id)
    later = clock.now() + timedelta(hours=8)

    def queue(connection: sa.Connection, key: str, until: datetime | None) -> bool:
        return store.enqueue(
            connection,
            clock.now(),
            key=key,
            channel="email",
            address="ada@example.com",
            kind="notice",
            thread_id=thread,
            message_seq=1,
            put_off_until=until,
        )

    assert await database.write(lambda c: queue(c, "for the morning", later))
    assert not await database.write(lambda c: queue(c, "for the morning", later))
    assert await database.read(store.next_due) == later
    await database.write(lambda c: queue(c, "now", None))
    (now,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    assert now.key == "now"
    await database.write(lambda c: store.sent(c, now, "copy", None, clock.now()))
    await database.write(lambda c: store.recover(c, clock.now()))  # a restart changes nothing
    await database.write(lambda c: store.due_now(c, "email", clock.now()))
    assert await database.write(lambda c: store.take(c, clock.now(), limit=9)) == []
    clock.advance(later - clock.now())
    (morning,) = await database.write(lambda c: store.take(c, clock.now(), limit=9))
    assert (morning.key, morning.state) == ("for the morning", "pending")
