"""Does a channel find what it keeps, and nothing of another channel's?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pizzabot.database.connection import Database
from pizzabot.inbox import notes
from tests.fakes.clock import FakeClock


async def keep(database: Database, clock: FakeClock, channel: str, values: Mapping[str, str]) -> None:
    now = clock.now()
    await database.write(lambda c: notes.put(c, channel, values, now))


async def under(database: Database, channel: str, prefix: str) -> dict[str, str]:
    return await database.read(lambda c: notes.under(c, channel, prefix))


async def test_a_note_is_found_under_its_key_and_the_last_one_counts(database: Database) -> None:
    clock = FakeClock()
    await keep(database, clock, "email", {"a": "1", "b": "2"})
    await keep(database, clock, "email", {"a": "3"})
    assert await database.read(lambda c: notes.get(c, "email", "a")) == "3"
    assert await database.read(lambda c: notes.get(c, "email", "c")) is None
    assert await database.read(lambda c: notes.get(c, "slack", "a")) is None


async def test_notes_are_listed_by_the_beginning_of_their_keys(database: Database) -> None:
    kept = {"token/a": "1", "token/~": "2", "tokens": "3", "toke": "4"}
    await keep(database, FakeClock(), "email", kept)
    await keep(database, FakeClock(), "slack", {"token/b": "5"})
    assert await under(database, "email", "token/") == {"token/a": "1", "token/~": "2"}


async def test_old_notes_are_forgotten_and_the_others_stay(database: Database) -> None:
    clock = FakeClock()
    await keep(database, clock, "email", {"taken/old": "", "token/old": ""})
    clock.advance(timedelta(days=100))
    await keep(database, clock, "email", {"taken/new": ""})
    before = clock.now() - timedelta(days=90)
    await database.write(lambda c: notes.forget(c, "email", "taken/", before=before))
    assert await under(database, "email", "") == {"taken/new": "", "token/old": ""}
