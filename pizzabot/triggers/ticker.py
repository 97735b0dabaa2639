"""When do triggers fire? A tick of the clockwork: note what is due, begin what may begin, follow what began.

While everything is stopped nothing fires; what was due meanwhile counts as missed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa

from pizzabot.database.connection import Database, DatabaseClosed
from pizzabot.inbox import runs
from pizzabot.messages import Event
from pizzabot.triggers import firing, store
from pizzabot.triggers.firing import Work
from pizzabot.triggers.trigger import OccurrenceState

logger = logging.getLogger(__name__)
T = TypeVar("T", str, store.Behind)
R = TypeVar("R")


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
                await self._alone(trigger.id, firing.note_due, now, otherwise=firing.pause_broken)
            await self._start(await self._database.read(store.startable), now)
            return await self._database.read(store.next_due)

    async def follow(self, now: datetime) -> None:
        """Bring occurrences to where their runs stand, and heed what people said of paused triggers."""
        changed = [
            await self._alone(behind, firing.follow, now)
            for behind in await self._database.read(store.behind)
        ]
        answered = [
            await self._alone(trigger_id, firing.heed_answer, now)
            for trigger_id in await self._database.read(firing.answered)
        ]
        if any(one is not None for one in (*changed, *answered)):
            self._began()
            self._publish(Event("triggers"))

    async def _alone(
        self,
        one: T,
        step: Callable[[sa.Connection, T, datetime, Work], R],
        now: datetime,
        *,
        otherwise: Callable[[sa.Connection, T, datetime, Work], R] | None = None,
    ) -> R | None:
        """A step in a transaction of its own, or what is to be done when it cannot be: what is wrong with one
        trigger must not hold up those of everybody else.
        """
        try:
            return await self._database.write(lambda c: step(c, one, now, self._work))
        except (sa.exc.OperationalError, DatabaseClosed):  # it is tried again
            raise
        except Exception:
            about = one if isinstance(one, str) else one[0].id
            logger.exception("%s failed for %s", step.__name__, about)
        return await self._alone(one, otherwise, now) if otherwise is not None else None

    def concerns(self, thread_id: str | None) -> bool:
        """Whether a firing is at work in that thread, as far as the last turn saw."""
        return thread_id in self._at_work

    async def begin(self, occurrence_id: str, now: datetime) -> None:
        """Begin what was just asked for, without waiting for the next turn.

        It stays pending when it is not its turn yet, and while everything is stopped.
        """

        def found(connection: sa.Connection) -> list[str]:
            if runs.stopped_by(connection) is not None:
                return []
            return [one for one in store.startable(connection) if one == occurrence_id]

        async with self._turn:
            await self._start(await self._database.read(found), now)

    async def _start(self, pending: Sequence[str], now: datetime) -> None:
        began = False
        for one in pending:
            started = await self._alone(one, firing.start, now, otherwise=firing.give_up)
            if started is None:
                continue
            began = True  # or somebody is told that it could not
            if started.state in (OccurrenceState.RUNNING, OccurrenceState.SUCCEEDED):
                self._publish(Event("message", started.thread_id))
        self._at_work = await self._database.read(store.threads_at_work)
        if began:
            self._began()
            self._publish(Event("triggers"))
