"""Which notices are handed to a channel as something that can be retried? On both databases."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from pizzabot.agent.context import Note
from pizzabot.approvals.policy import Policy
from pizzabot.database.connection import Database
from pizzabot.engine import control
from pizzabot.engine.endings import Endings
from pizzabot.inbox import runs
from pizzabot.messages import ChannelState, OutboundItem, Receipt, Told
from pizzabot.outbox.delivery import Delivery
from pizzabot.people import People, Person
from tests.fakes.clock import FakeClock
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.rows import ADA, ALLOWANCE, arrives, starts

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


@dataclass
class Ear:
    """A channel that keeps what it was handed."""

    name: str = "web"
    repaints_silently: bool = True
    heard: asyncio.Queue[OutboundItem] = field(default_factory=asyncio.Queue)

    def routes(self) -> Sequence[BaseRoute]:
        return ()

    def address_of(self, person: Person) -> str | None:
        return person.name

    def is_with(self, person: Person, address: str) -> bool:
        return person.name == address

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def deliver(self, item: OutboundItem) -> Receipt:
        self.heard.put_nowait(item)
        return Receipt(item.key)

    async def find(self, item: OutboundItem) -> Receipt | None:
        return None

    def state(self) -> ChannelState:
        return ChannelState("ok")


@dataclass
class Thread:
    """One thread of Ada's, and everything that is said in it."""

    database: Database
    clock: FakeClock
    ear: Ear = field(default_factory=Ear)

    @property
    def endings(self) -> Endings:
        policy = Policy("ask", (), False)
        return Endings(self.clock, People([ADA]), {"web": self.ear}, "demo:demo", ALLOWANCE, policy)

    async def begins(self) -> runs.Run:
        def work(connection: sa.Connection) -> runs.Run:
            arrives(connection, self.clock, address="Ada")
            return starts(connection, self.clock)

        return await self.database.write(work)

    async def fails(self, run: runs.Run, why: str = "no answer") -> None:
        self.clock.advance(timedelta(seconds=1))
        assert await self.database.write(lambda c: self.endings.failed(c, run, {}, "model", why))

    async def stops(self, run: runs.Run) -> None:
        self.clock.advance(timedelta(seconds=1))
        assert await self.database.write(
            lambda c: self.endings.stopped(c, run.thread_id, person="Ada", via="web")
        )

    async def notes(self, run: runs.Run) -> None:
        self.clock.advance(timedelta(seconds=1))
        note = Note("budget/1", "80 % of the budget is used.", to_owners=False)
        assert await self.database.write(lambda c: self.endings.noted(c, run, note))

    async def tells(self, run: runs.Run) -> None:
        self.clock.advance(timedelta(seconds=1))
        told = Told("told/1", run.thread_id, "web", "Ada", "Ada", "Your message is kept.")
        await self.database.write(lambda c: self.endings.told(c, told))

    async def goes_on(self, run: runs.Run) -> runs.Run:
        """It is retried, and at work again."""

        def work(connection: sa.Connection) -> runs.Run:
            control.retry(connection, run.thread_id, self.clock.now(), person="Ada", via="web")
            return starts(connection, self.clock)

        return await self.database.write(work)

    async def said(self, count: int) -> list[tuple[str, bool]]:
        """So much that was handed over, and whether each can be retried."""
        delivery = Delivery(self.database, self.clock, {"web": self.ear})
        await delivery.start()
        async with asyncio.timeout(PATIENCE_SECONDS):
            items = [await self.ear.heard.get() for _ in range(count)]
        await delivery.stop()
        return [(re.split("[:.]", item.text)[0], item.can_be_retried) for item in items]


async def test_only_the_notice_of_how_the_run_ended_can_be_retried(
    database: Database, clock: FakeClock
) -> None:
    thread = Thread(database, clock)
    run = await thread.begins()
    await thread.notes(run)
    await thread.fails(run)
    await thread.tells(run)
    assert await thread.said(3) == [
        ("80 % of the budget is used", False),
        ("This did not work", True),
        ("Your message is kept", False),
    ]


async def test_what_was_stopped_can_be_retried(database: Database, clock: FakeClock) -> None:
    thread = Thread(database, clock)
    run = await thread.begins()
    await thread.notes(run)
    await thread.stops(run)
    assert await thread.said(2) == [("80 % of the budget is used", False), ("Stopped by Ada", True)]


async def test_what_is_told_after_it_was_retried_cannot_be_retried_again(
    database: Database, clock: FakeClock
) -> None:
    thread = Thread(database, clock)
    run = await thread.begins()
    await thread.fails(run)
    await thread.goes_on(run)
    assert await thread.said(1) == [("This did not work", False)]


async def test_of_two_failures_only_the_last_can_be_retried(database: Database, clock: FakeClock) -> None:
    thread = Thread(database, clock)
    run = await thread.begins()
    await thread.fails(run)
    await thread.fails(await thread.goes_on(run))
    assert await thread.said(2) == [("This did not work", False), ("This did not work", True)]


async def test_a_failure_that_a_new_message_followed_cannot_be_retried(
    database: Database, clock: FakeClock
) -> None:
    thread = Thread(database, clock)
    run = await thread.begins()
    await thread.fails(run)
    await database.write(lambda c: arrives(c, clock, "Try something else", thread_id=run.thread_id))
    assert await thread.said(1) == [("This did not work", False)]
