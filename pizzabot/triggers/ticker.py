"""When do triggers fire? A tick of the clockwork: note what is due, begin what may begin, follow what began.

While everything is stopped nothing fires; what was due meanwhile counts as missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

import sqlalchemy as sa

from pizzabot.database.connection import Database, DatabaseClosed
from pizzabot.inbox import runs
from pizzabot.messages import Event
from pizzabot.triggers import firing, store
from pizzabot.triggers.firing import Work
from pizzabot.triggers.trigger import Occurrence, OccurrenceState

logger = logging.getLogger(__name__)


class Ticker:
    """`ready` is awaited once, before anything begins: what catches up needs the tools that it uses.
    `began` is called when there are runs to start or messages to deliver.
    """

    def __init__(
        self,
        database: Database,
        work: Work,
        *,
        ready: Callable[[], Awaitable[None]],
        began: Callable[[], None],
        publish: Callable[[Event], None],
    ) -> None:
        self._database, self._work = database, work
        self._ready: Callable[[], Awaitable[None]] | None = ready
        self._began, self._publish = began, publish
        self._turn = asyncio.Lock()
        self._at_work: frozenset[str] = frozenset()

    async def tick(self, now: datetime) -> datetime | None:
        """See `engine.clockwork.Tick`."""
        if self._ready is not None:
            await self._ready()
            self._ready = None
        async with self._turn:
            await self.follow(now)
            if await self._database.read(runs.stopped_by) is not None:
                return None
            for trigger in await self._database.read(lambda c: store.scheduled(c, now)):
                trigger_id = trigger.id
                await self._database.write(lambda c, t=trigger_id: firing.note_due(c, t, now, self._work))  # type: ignore[misc]
            await self._start(now)
            return await self._database.read(store.next_due)

    async def follow(self, now: datetime) -> None:
        """Bring occurrences to where their runs stand, and heed what people said of paused triggers."""

        def work(connection: sa.Connection) -> int:
            changed = firing.follow(connection, now, self._work)
            return len(changed) + len(firing.heed_answers(connection, now))

        if await self._database.write(work):
            self._began()
            self._publish(Event("triggers"))

    async def _begin(self, occurrence_id: str, now: datetime) -> Occurrence | None:
        try:
            return await self._database.write(lambda c: firing.start(c, occurrence_id, now, self._work))
        except (sa.exc.OperationalError, DatabaseClosed):  # it is tried again
            raise
        except Exception:
            logger.exception("the firing %s could not be started", occurrence_id)
            return await self._database.write(lambda c: firing.give_up(c, occurrence_id, now))

    def concerns(self, thread_id: str | None) -> bool:
        """Whether a firing is at work in that thread, as far as the last turn saw."""
        return thread_id in self._at_work

    async def start_pending(self, now: datetime) -> None:
        """Begin what was just asked for, without waiting for the next turn."""
        async with self._turn:
            await self._start(now)

    async def _start(self, now: datetime) -> None:
        began = False
        for pending in await self._database.read(store.startable):
            started = await self._begin(pending, now)
            if started is not None and started.state in (OccurrenceState.RUNNING, OccurrenceState.SUCCEEDED):
                began = True
                self._publish(Event("message", started.thread_id))
        self._at_work = await self._database.read(store.threads_at_work)
        if began:
            self._began()
            self._publish(Event("triggers"))
