"""When is a digest made, once, and when not? Its firings, on both databases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.approvals.policy import Policy
from pizzabot.database.connection import Database
from pizzabot.digests import store as digests
from pizzabot.engine.endings import Endings
from pizzabot.ids import new_id
from pizzabot.inbox import threads
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person
from pizzabot.triggers import firing, store
from pizzabot.triggers.firing import Work
from pizzabot.triggers.trigger import Occurrence, OccurrenceState, Trigger, made
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ALLOWANCE, waits

ADA = Person("Ada", "owner", ("ada@example.com",), timezone="Europe/Amsterdam", quiet_hours="20:00-07:00")


class Email:
    repaints_silently = False

    def address_of(self, person: Person) -> str | None:
        return next(iter(person.emails), None)

    def is_with(self, person: Person, address: str) -> bool:
        return address in person.emails


@dataclass
class Room:
    """A digest of Ada's at eight, and what looks after it."""

    clock: FakeClock
    cron: str = "0 8 * * *"
    person: Person = ADA
    trigger: Trigger = field(init=False)
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        people, channels = People([self.person]), {"email": Email()}
        endings = Endings(
            self.clock, people, channels, "demo:demo", ALLOWANCE, Policy("annotations", (), False)
        )
        self.work = Work(
            people, endings, "demo:demo", ALLOWANCE, lambda: "http://pizza.example/", lambda _: True
        )
        written = {"name": "digest:Ada", "kind": "digest", "cron": self.cron}
        self.trigger = made(
            written, id=new_id(), owner=self.person, people=people, now=self.clock.now(), source="file"
        )

    def turn(self, connection: sa.Connection) -> list[Occurrence]:
        """What a tick does; the occurrences it ended."""
        now = self.clock.now()
        firing.note_due(connection, self.trigger.id, now, self.work)
        started = [firing.start(connection, one, now, self.work) for one in store.startable(connection)]
        return [one for one in started if one is not None]

    def at(self, moment: datetime) -> None:
        self.clock.advance(moment - self.clock.now())


def room(connection: sa.Connection, clock: FakeClock, **parts: Any) -> Room:
    found = Room(clock, **parts)
    store.put(connection, found.trigger, new=True)
    return found


EIGHT = datetime(2026, 3, 3, 7, 0, tzinfo=UTC)


async def test_a_digest_is_made_when_it_is_due_and_ends_at_once(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        here = room(connection, clock)
        waits(connection, clock)
        assert here.turn(connection) == []
        here.at(EIGHT)
        (ended,) = here.turn(connection)
        assert (ended.state, ended.error, ended.run_id) == (OccurrenceState.SUCCEEDED, None, None)
        stored = store.occurrence(connection, ended.id)
        assert stored == ended
        assert (stored.started_at, stored.ended_at) == (EIGHT, EIGHT)
        made_now = digests.newest_of(connection, "Ada")
        assert made_now is not None
        assert (made_now.thread_id, made_now.made_at) == (ended.thread_id, EIGHT)
        (row,) = outbox.take(connection, clock.now(), limit=9)
        assert (row.kind, row.address) == ("digest", "ada@example.com")
        assert here.turn(connection) == []

    await database.write(work)


async def test_nothing_to_tell_is_said_of_the_firing_and_to_nobody(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        here = room(connection, clock)
        here.at(EIGHT)
        (ended,) = here.turn(connection)
        assert (ended.state, ended.error) == (OccurrenceState.SKIPPED, "nothing to tell")
        assert digests.newest_of(connection, "Ada") is None
        assert outbox.take(connection, clock.now(), limit=9) == []

    await database.write(work)


async def test_in_quiet_hours_it_waits_for_their_end_and_tells_what_there_is_then(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        here = room(connection, clock, cron="0 2,4 * * *")
        here.at(datetime(2026, 3, 3, 1, 0, tzinfo=UTC))
        assert here.turn(connection) == []
        here.at(datetime(2026, 3, 3, 5, 59, tzinfo=UTC))
        assert here.turn(connection) == []
        waits(connection, clock)  # asked in the last minute of the night
        here.at(datetime(2026, 3, 3, 6, 0, tzinfo=UTC))
        skipped, sent = here.turn(connection)
        assert (skipped.state, skipped.error) == (OccurrenceState.SKIPPED, "a newer one took its place")
        assert sent.state is OccurrenceState.SUCCEEDED

    await database.write(work)


async def test_whoever_asks_for_it_now_gets_it_now(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        here = room(connection, clock)
        here.at(datetime(2026, 3, 3, 23, 0, tzinfo=UTC))
        waits(connection, clock)
        here.turn(connection)  # the one of the morning before, which is put off
        now = clock.now()
        asked = Occurrence(new_id(), here.trigger.id, "manual/x", OccurrenceState.PENDING, "manual", now, now)
        store.add(connection, asked)
        ended = firing.start(connection, asked.id, now, here.work)
        assert ended is not None
        assert ended.state is OccurrenceState.SUCCEEDED

    await database.write(work)


async def test_two_processes_make_one_digest(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        here = room(connection, clock)
        waits(connection, clock)
        here.at(EIGHT)
        firing.note_due(connection, here.trigger.id, clock.now(), here.work)
        (due,) = store.startable(connection)
        ended = [firing.start(connection, due, clock.now(), here.work) for _ in range(2)]
        assert [one is not None for one in ended] == [True, False]
        assert len(outbox.take(connection, clock.now(), limit=9)) == 1

    await database.write(work)


async def test_a_night_without_a_server_gives_one_digest(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        here = room(connection, clock, cron="0 8 * * *", person=replace(ADA, quiet_hours=None))
        waits(connection, clock)
        here.at(EIGHT + timedelta(days=5, hours=3))
        (ended,) = here.turn(connection)
        assert (ended.state, ended.reason, ended.missed) == (OccurrenceState.SUCCEEDED, "catch_up", 5)

    await database.write(work)


@pytest.mark.parametrize("seconds", [-1, 0, 1])
async def test_a_restart_around_the_firing_changes_nothing(
    database: Database, clock: FakeClock, seconds: int
) -> None:
    def work(connection: sa.Connection) -> None:
        here = room(connection, clock)
        waits(connection, clock)
        here.at(EIGHT + timedelta(seconds=seconds))
        first = here.turn(connection)
        here.at(EIGHT + timedelta(seconds=2))
        again = here.turn(connection)
        assert [one.state for one in first + again] == [OccurrenceState.SUCCEEDED]
        (thread,) = {one.thread_id for one in first + again}
        assert thread is not None
        assert len(threads.messages_of(connection, thread)) == 1

    await database.write(work)
