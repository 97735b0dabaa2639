"""Does exactly what is old enough go, in small pieces, and never anything that is still needed?"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from langgraph.checkpoint.base import empty_checkpoint

from pizzabot import audit
from pizzabot.agent import activity
from pizzabot.agent.activity import Activity
from pizzabot.agent.checkpoints import GroupCommitSaver, open_checkpoints
from pizzabot.approvals import raises
from pizzabot.approvals import store as actions
from pizzabot.cli.retention import _compacted, size
from pizzabot.database import schema
from pizzabot.database.connection import Database, SqliteDatabase, sqlite_engine
from pizzabot.engine import retention as module
from pizzabot.engine.retention import Ages, Retention
from pizzabot.inbox import runs, tallies, threads
from pizzabot.messages import ActionState, Attachment, Event, RunState
from pizzabot.outbox import store as outbox
from pizzabot.people import People
from pizzabot.triggers import store
from pizzabot.triggers.trigger import Occurrence, OccurrenceState, made
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, arrives, question, starts

OLD, DAY = timedelta(days=100), timedelta(days=1)
EVERYTHING = Ages(*(timedelta(days=90),) * 6)


@pytest.fixture
async def saver(tmp_path: Path) -> AsyncIterator[GroupCommitSaver]:
    async with open_checkpoints(tmp_path / "checkpoints.sqlite") as opened:
        yield opened


class House:
    """Rooms that retention works in; `busy` are threads that something works on."""

    def __init__(self, database: Database, clock: FakeClock, saver: GroupCommitSaver, folder: Path) -> None:
        self.database, self.clock, self.saver, self.folder = database, clock, saver, folder
        self.busy: set[str] = set()
        self.events: list[Event] = []
        folder.mkdir()

    def retention(self, ages: Ages = EVERYTHING) -> Retention:
        async def saved() -> GroupCommitSaver:
            return self.saver

        @asynccontextmanager
        async def still(thread_id: str) -> AsyncIterator[bool]:
            yield thread_id not in self.busy

        return Retention(
            database=self.database,
            ages=ages,
            folder=self.folder,
            saved=saved,
            still=still,
            publish=self.events.append,
        )

    async def work(self, ages: Ages = EVERYTHING) -> dict[str, int]:
        removed, finished = await self.retention(ages).work(self.clock.now())
        assert finished
        return removed

    async def write(self, work: Callable[[sa.Connection], Any]) -> Any:
        return await self.database.write(work)

    async def count(self, table: sa.Table) -> int:
        query = sa.select(sa.func.count()).select_from(table)
        return int(await self.database.read(lambda c: c.execute(query).scalar_one()))

    async def remembers(self, thread_id: str) -> None:
        config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        await self.saver.aput(config, empty_checkpoint(), {}, {})

    async def thread(self, *, state: RunState | None = RunState.DONE, file: str | None = None) -> str:
        """A thread with one run in that state (None: still at work), a step, an answer that was sent."""

        def work(connection: sa.Connection) -> str:
            files = [(file, Attachment("a.txt", "text/plain", b"12345"))] if file else []
            thread_id = arrives(connection, self.clock, files=files).thread_id
            run = starts(connection, self.clock)
            done = Activity("tool", "mcp:ledger:pay", "ok")
            activity.record(connection, done, self.clock.now(), thread_id=thread_id, run_id=run.id)
            if state is not None:
                error = ("other", "x") if state is RunState.FAILED else None
                assert runs.finish(connection, run, state, self.clock.now(), used={}, error=error)
            return thread_id

        thread_id: str = await self.write(work)
        if file:
            (self.folder / file).write_bytes(b"12345")
        await self.remembers(thread_id)
        return thread_id

    async def says(self, thread_id: str, key: str, *, sent: bool = True, **about: Any) -> None:
        def work(connection: sa.Connection) -> None:
            kind = about.pop("kind", "notice")
            where: dict[str, Any] = {"channel": "slack", "address": key}
            outbox.enqueue(
                connection, self.clock.now(), key=key, kind=kind, thread_id=thread_id, **where, **about
            )
            if sent:
                (row,) = (r for r in outbox.take(connection, self.clock.now(), limit=99) if r.key == key)
                outbox.sent(connection, row, f"id-{key}", None, self.clock.now())

        await self.write(work)

    async def keys(self) -> list[str]:
        query = sa.select(schema.outbox.c.key).order_by(schema.outbox.c.id)
        return list(await self.database.read(lambda c: c.execute(query).scalars().all()))


@pytest.fixture
def house(database: Database, clock: FakeClock, saver: GroupCommitSaver, tmp_path: Path) -> House:
    return House(database, clock, saver, tmp_path / "files")


# -- threads ---------------------------------------------------------------------------------------------

MESSAGES = Ages(messages=timedelta(days=90))


async def test_a_thread_at_rest_goes_with_rows_files_and_state(house: House) -> None:
    old = await house.thread(file="f1")
    house.clock.advance(OLD)
    young = await house.thread(file="f2")
    assert await house.work(MESSAGES) == {"messages": 1}
    assert await house.database.read(lambda c: threads.existing(c, [old, young])) == {young}
    assert [path.name for path in house.folder.iterdir()] == ["f2"]
    assert await house.saver.thread_ids() == [young]
    assert [(e.kind, e.thread_id) for e in house.events] == [("thread", old)]
    (line,) = await house.database.read(lambda c: audit.page(c, limit=1))
    assert (line.event, line.via, line.subject) == ("thread.deleted", "retention", old)


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.STOPPED])
async def test_what_failed_or_was_stopped_long_ago_goes_too(house: House, state: RunState) -> None:
    await house.thread(state=state)
    house.clock.advance(OLD)
    assert await house.work(MESSAGES) == {"messages": 1}


async def _asks(house: House) -> str:
    """A thread whose run waits for a decision."""

    def work(connection: sa.Connection) -> str:
        thread_id = arrives(connection, house.clock).thread_id
        run = starts(connection, house.clock)
        about = {"thread_id": thread_id, "run_id": run.id}
        actions.ask(connection, question(), house.clock.now(), requested_by="Ada", **about)
        activity.record(connection, Activity("model", "m", "ok"), house.clock.now(), **about)
        assert runs.pause(connection, run, house.clock.now(), used={}, decided=False)
        return thread_id

    thread_id: str = await house.write(work)
    await house.remembers(thread_id)
    return thread_id


async def test_nothing_goes_of_what_waits_works_or_has_something_left_to_say(house: House) -> None:
    waiting = await _asks(house)
    await house.says(waiting, f"action/{waiting}/slack")
    await house.thread(state=None)
    unsaid = await house.thread()
    await house.says(unsaid, "repaint/1", sent=False)
    queued = await house.write(lambda c: arrives(c, house.clock).thread_id)
    await house.remembers(queued)
    audit_lines = await house.count(schema.audit)
    house.clock.advance(OLD)
    removed = await house.work()
    assert set(removed) == {"activity", "audit"}  # the step of the thread whose answer is still to be said
    assert removed == {"activity": 1, "audit": audit_lines}
    assert len(await house.saver.thread_ids()) == 4
    assert await house.count(schema.threads) == 4
    assert await house.keys() == [f"action/{waiting}/slack", "repaint/1"]


async def test_a_thread_that_something_works_on_is_left_alone(house: House) -> None:
    house.busy.add(await house.thread())
    house.clock.advance(OLD)
    assert await house.work(Ages(messages=DAY, checkpoints=DAY)) == {}
    assert len(await house.saver.thread_ids()) == 1


async def test_the_counts_for_prometheus_stay(house: House) -> None:
    await house.thread()
    house.clock.advance(OLD)
    before = await house.database.read(lambda c: tallies.Totals().read(c, house.clock.now()))
    assert before["tool_calls"] == {"ok": (1,)}
    assert await house.work(Ages(activity=DAY)) == {"activity": 1}
    assert await house.database.read(lambda c: tallies.Totals().read(c, house.clock.now())) == before


# -- state and files -------------------------------------------------------------------------------------


async def test_the_state_of_what_is_done_goes_and_of_what_may_be_retried_stays(house: House) -> None:
    await house.thread()
    failed = await house.thread(state=RunState.FAILED)
    stopped = await house.thread(state=RunState.STOPPED)
    house.clock.advance(OLD)
    assert await house.work(Ages(checkpoints=DAY)) == {"checkpoints": 1}
    assert set(await house.saver.thread_ids()) == {failed, stopped}
    assert await house.count(schema.threads) == 3


async def test_files_of_threads_at_rest_go_and_messages_stay(house: House) -> None:
    await house.thread(file="f1")
    house.clock.advance(OLD)
    await house.thread(file="f2")
    assert await house.work(Ages(attachments=DAY)) == {"attachments": 1}
    assert [path.name for path in house.folder.iterdir()] == ["f2"]
    assert await house.count(schema.attachments) == 1
    assert await house.count(schema.threads) == 2


# -- what was said ---------------------------------------------------------------------------------------


async def test_what_was_sent_goes_but_for_keys_that_can_be_asked_for_again(house: House) -> None:
    thread_id = await house.thread()
    seq = await house.write(
        lambda c: threads.add_message(
            c, thread_id, house.clock.now(), role="assistant", author="x", text="Done."
        )
    )
    run = await house.database.read(lambda c: runs.newest(c, thread_id))
    assert run is not None
    await house.says(thread_id, f"message/{seq}/slack/C1", message_seq=seq, kind="answer")
    await house.says(thread_id, "told/mail-1", message_seq=seq)  # a channel's own: once for ever
    await house.says(thread_id, f"elsewhere/{thread_id}/slack", message_seq=seq)
    await house.says(thread_id, f"status/{run.id}/slack", run_id=run.id, kind="status")
    await house.says(thread_id, "repaint/1", run_id=run.id, kind="status", external_id="id-x")
    assert await house.work(Ages(outbox=DAY)) == {}
    house.clock.advance(OLD)
    removed = await house.work(Ages(outbox=DAY))
    assert removed == {"outbox": 3 + 5}  # items, and the notes of five copies
    assert await house.keys() == ["told/mail-1", f"elsewhere/{thread_id}/slack"]
    assert await house.count(schema.deliveries) == 0


async def test_copies_in_a_thread_that_goes_on_stay(house: House) -> None:
    thread_id = await house.thread()
    await house.says(thread_id, "repaint/1")
    house.clock.advance(OLD)
    await house.write(lambda c: arrives(c, house.clock, thread_id=thread_id))
    assert await house.work(Ages(outbox=DAY)) == {"outbox": 1}
    assert await house.count(schema.deliveries) == 1


async def test_what_a_digest_said_goes_also_while_its_thread_goes_on(house: House) -> None:
    thread_id = await house.thread()
    await house.says(thread_id, "digest/1/slack/C1", digest_id="1", kind="digest")
    house.clock.advance(OLD)
    await house.write(lambda c: arrives(c, house.clock, thread_id=thread_id))
    await house.says(thread_id, "digest/2/slack/C1", digest_id="2", kind="digest")
    assert await house.work(Ages(outbox=DAY)) == {"outbox": 2}  # the item, and the note of its copy
    assert await house.keys() == ["digest/2/slack/C1"]
    assert await house.count(schema.deliveries) == 1


async def test_what_is_put_off_is_never_old_and_nor_is_its_thread(house: House) -> None:
    thread_id = await house.thread()
    house.clock.advance(OLD)

    def put_off(connection: sa.Connection) -> None:
        outbox.enqueue(
            connection,
            house.clock.now() - OLD,
            key="repaint/late",
            channel="slack",
            address="C1",
            kind="notice",
            thread_id=thread_id,
            put_off_until=house.clock.now() + DAY,
        )

    await house.write(put_off)
    assert await house.work(Ages(outbox=DAY, messages=DAY)) == {}
    assert await house.keys() == ["repaint/late"]


async def test_the_copies_of_an_expired_action_stay_because_it_can_be_reopened(house: House) -> None:
    thread_id = await _asks(house)
    (action,) = await house.database.read(lambda c: actions.of_thread(c, thread_id))
    await house.says(thread_id, f"action/{action.id}/slack", action_id=action.id, kind="action")

    def lapse(connection: sa.Connection) -> None:
        actions.settle(connection, action.id, [ActionState.PENDING], state=ActionState.EXPIRED)
        run = runs.newest(connection, thread_id)
        assert run is not None
        runs.stop(connection, run.id, house.clock.now())
        connection.execute(sa.update(schema.threads).values(action_count=0))

    await house.write(lapse)
    house.clock.advance(OLD)
    assert await house.work(Ages(outbox=DAY)) == {}


async def test_a_firing_that_failed_stays_as_long_as_its_run_can_be_retried(house: House) -> None:
    now, thread_id = house.clock.now(), await house.thread(state=RunState.FAILED)
    written = {"name": "Morning", "prompt": "Look.", "cron": "* * * * *", "timezone": "UTC"}
    trigger = made(written, id="t1", owner=ADA, people=People([ADA]), now=now, source="api")

    def fails(connection: sa.Connection) -> None:
        run = runs.newest(connection, thread_id)
        assert run is not None
        store.put(connection, trigger, new=True)
        failed = OccurrenceState.FAILED
        one = Occurrence("o1", "t1", "cron/1", failed, "cron", now, now, ended_at=now, run_id=run.id)
        store.add(connection, one)

    await house.write(fails)
    house.clock.advance(OLD)
    await house.work(Ages(activity=DAY))
    assert await house.count(schema.occurrences) == 1
    await house.work(Ages(messages=DAY))
    await house.work(Ages(activity=DAY))
    assert await house.count(schema.occurrences) == 0


async def test_notes_that_were_given_long_ago_go(house: House) -> None:
    await house.write(lambda c: raises.is_first_note(c, "old", house.clock.now()))
    house.clock.advance(OLD)
    await house.write(lambda c: raises.is_first_note(c, "new", house.clock.now()))
    await house.work(Ages(activity=DAY))
    assert await house.count(schema.budget_notes) == 1


# -- firings ---------------------------------------------------------------------------------------------


async def test_a_firing_that_ended_goes_unless_its_key_must_count_once_for_ever(house: House) -> None:
    now = house.clock.now()
    written = {"name": "Morning", "prompt": "Look.", "cron": "* * * * *", "timezone": "UTC"}
    trigger = made(written, id="t1", owner=ADA, people=People([ADA]), now=now, source="api")
    kept = {"hook/1": "succeeded", "signed/1": "skipped", "manual/1": "failed", "cron/2": "pending"}

    def fires(connection: sa.Connection) -> None:
        store.put(connection, trigger, new=True)
        for key, state in {**kept, "cron/1": "succeeded", "cron/3": "skipped", "once/1": "dead"}.items():
            one = Occurrence(key, "t1", key, OccurrenceState(state), "cron", now, now, ended_at=now)
            store.add(connection, one if state != "pending" else replace(one, ended_at=None))

    await house.write(fires)
    assert await house.work(Ages(activity=DAY)) == {}
    house.clock.advance(OLD)
    amounts = await house.retention(Ages(activity=DAY)).amounts(house.clock.now())
    assert amounts["activity"].count == 3
    assert await house.work(Ages(activity=DAY)) == {"activity": 3}
    left = await house.database.read(lambda c: store.of_trigger(c, "t1", limit=9))
    assert {one.key for one in left} == kept.keys()


# -- how ---------------------------------------------------------------------------------------------------


async def test_what_is_counted_before_is_what_goes(house: House) -> None:
    thread_id = await house.thread(file="f1")
    await house.says(thread_id, "repaint/1")
    house.clock.advance(OLD)
    amounts = await house.retention().amounts(house.clock.now())
    assert {kind: amount.count for kind, amount in amounts.items()} == {
        "messages": 1,
        "checkpoints": 1,
        "attachments": 1,
        "outbox": 2,
        "activity": 1,
        "audit": await house.count(schema.audit),
    }
    assert amounts["attachments"].bytes == 5
    assert all(amount.bytes > 0 for amount in amounts.values())
    assert await house.count(schema.threads) == 1  # counting removes nothing
    parts = {kind: await house.work(Ages(**{kind: DAY})) for kind in ("audit", "activity", "outbox")}
    assert parts == {kind: {kind: amounts[kind].count} for kind in parts}


async def test_nothing_is_removed_unless_an_age_is_given(house: House) -> None:
    await house.thread(file="f1")
    house.clock.advance(timedelta(days=10_000))
    assert await house.work(Ages()) == {}
    assert await house.retention(Ages()).amounts(house.clock.now()) == {}


async def test_it_is_done_once_a_day_also_after_a_restart(house: House) -> None:
    now = house.clock.now()
    assert await house.retention().tick(now) == now + DAY
    await house.thread()
    house.clock.advance(OLD)
    assert await house.retention(Ages()).tick(house.clock.now()) == house.clock.now() + DAY
    house.clock.advance(timedelta(hours=23))
    assert await house.retention().tick(house.clock.now()) == house.clock.now() + timedelta(hours=1)
    assert await house.count(schema.threads) == 1
    house.clock.advance(timedelta(hours=1))
    await house.retention().tick(house.clock.now())
    assert await house.count(schema.threads) == 0


async def test_much_is_removed_in_turns_of_small_batches(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    for _ in range(9):
        await house.thread()
    house.clock.advance(OLD)
    work, now = house.retention(Ages(activity=DAY)), house.clock.now()
    assert await work.work(now, batches=3) == ({"activity": 6}, False)
    assert await house.count(schema.activity) == 3
    assert await work.tick(now) == now + DAY  # not done until nothing was left
    assert await house.count(schema.activity) == 0


# -- the disk --------------------------------------------------------------------------------------------


async def test_the_place_of_what_went_is_given_back(
    sqlite_database: SqliteDatabase,
    sqlite_path: Path,
    clock: FakeClock,
    saver: GroupCommitSaver,
    tmp_path: Path,
) -> None:
    house = House(sqlite_database, clock, saver, tmp_path / "files")
    text = "x" * 200_000
    for _ in range(10):
        await house.write(lambda c: arrives(c, clock, text))
    await house.write(lambda c: c.execute(sa.update(schema.runs).values(state="stopped")))
    await house.write(lambda c: c.execute(sa.update(schema.threads).values(state="stopped")))

    def pages(of: str) -> int:
        with closing(sqlite3.connect(sqlite_path)) as database:
            return int(database.execute(f"PRAGMA {of}").fetchone()[0])

    before = pages("page_count")
    house.clock.advance(OLD)
    assert await house.work(MESSAGES) == {"messages": 10}
    await house.work(MESSAGES)
    assert pages("freelist_count") == 0
    assert pages("page_count") < before / 2


def test_an_old_file_is_written_anew_and_shrinks_by_itself_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (a)")
        database.executemany("INSERT INTO t VALUES (?)", [("x" * 3000,)] * 500)
        database.execute("DELETE FROM t WHERE rowid > 10")
        assert database.execute("PRAGMA auto_vacuum").fetchone() == (0,)
    before, after = _compacted(path)
    assert after < before / 10
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("SELECT count(*) FROM t").fetchone() == (10,)


def test_new_files_can_give_back(tmp_path: Path) -> None:
    engine = sqlite_engine(tmp_path / "new.sqlite")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a)")
        assert connection.exec_driver_sql("PRAGMA auto_vacuum").scalar() == 2
    engine.dispose()


async def test_new_checkpoints_can_give_back(saver: GroupCommitSaver, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "checkpoints.sqlite")) as database:
        assert database.execute("PRAGMA auto_vacuum").fetchone() == (2,)


@pytest.mark.parametrize(("count", "read"), [(812, "812 B"), (4100, "4.1 KB"), (3 * 10**6, "3.0 MB")])
def test_sizes_read_as_people_say_them(count: int, read: str) -> None:
    assert size(count) == read
