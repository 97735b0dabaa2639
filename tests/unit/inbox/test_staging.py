"""Is what arrived kept until it is understood, once, apart for each channel, in order?"""

from __future__ import annotations

from pizzabot.database.connection import Database
from pizzabot.inbox import staging
from pizzabot.messages import Staged
from tests.fakes.clock import FakeClock


async def test_an_item_is_kept_once_until_it_is_removed(database: Database, clock: FakeClock) -> None:
    item = Staged("key", "body")
    assert await database.write(lambda c: staging.put(c, "slack", item, clock.now()))
    assert not await database.write(lambda c: staging.put(c, "slack", Staged("key", "other"), clock.now()))
    assert await database.read(lambda c: staging.of_channel(c, "slack")) == [item]
    await database.write(lambda c: staging.remove(c, "slack", "key"))
    assert await database.read(lambda c: staging.of_channel(c, "slack")) == []


async def test_each_channel_has_its_own_in_the_order_of_arrival(database: Database, clock: FakeClock) -> None:
    for key, channel in (("b", "slack"), ("a", "slack"), ("c", "email")):
        await database.write(lambda c, k=key, n=channel: staging.put(c, n, Staged(k, ""), clock.now()))  # type: ignore[misc]
        clock.advance(seconds=1)
    found = await database.read(lambda c: staging.of_channel(c, "slack"))
    assert [item.key for item in found] == ["b", "a"]
