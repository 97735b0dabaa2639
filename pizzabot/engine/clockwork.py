"""What has to happen by itself as time passes? One loop that gives every regular work its turn.

    turn: each tick in order, `tick(now)` -> when it is next due -> sleep until the first of these

What is due stands in rows, never here: a tick that comes late, twice or after a crash finds the same rows. So
each is also called when nothing is known to be due, at least every half minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from apscheduler.job import Job
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from pizzabot.clock import Clock

logger = logging.getLogger(__name__)
logging.getLogger("apscheduler").setLevel(logging.WARNING)  # each turn is no news

LONGEST_SECONDS = 30.0
_SHORTEST_SECONDS = 1.0  # before what was due a moment ago is tried again
_AGAIN_SECONDS = 5.0  # after a failure
_WOKEN_AT_ONCE = 1_000  # each only looks whether a turn is under way; one that is left out would be warned of


class Tick(Protocol):
    """One kind of regular work."""

    async def tick(self, now: datetime) -> datetime | None:
        """Do everything that is due at `now`, in short transactions; returns when something is next due.

        None: nothing is known to be due. Doing it twice, or in two processes at once, does it once.
        """
        ...


class Clockwork:
    """Gives every tick its turn until it is stopped; `wake` it when something may be due earlier.

    APScheduler keeps the time: one job that is never missed, never doubled, and moved to what is due first.
    """

    def __init__(self, ticks: Sequence[Tick], clock: Clock) -> None:
        self._ticks, self._clock = ticks, clock
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._job: Job | None = None
        self._turning: asyncio.Task[None] | None = None
        self._sooner = False

    async def start(self) -> None:
        """Begin in the background, with what became due while nothing ran."""
        self._job = self._scheduler.add_job(
            self._begin_turn,
            "interval",
            seconds=LONGEST_SECONDS,
            next_run_time=datetime.now(UTC),
            coalesce=True,
            misfire_grace_time=None,
            max_instances=_WOKEN_AT_ONCE,
        )
        self._scheduler.start()

    async def stop(self) -> None:
        """Do nothing more; what is in the middle of a transaction stores it or not."""
        if self._job is None:
            return
        self._job = None
        self._scheduler.shutdown(wait=False)
        if self._turning is not None:
            self._turning.cancel()
            await asyncio.gather(self._turning, return_exceptions=True)

    def wake(self) -> None:
        """Something may be due earlier than was known."""
        self._sooner = True
        self._turn_in(0.0)

    async def turn(self) -> float:
        """Call every tick once; the seconds until the next turn. A tick that fails stops no other."""
        wait = LONGEST_SECONDS
        for tick in self._ticks:
            try:
                due = await tick.tick(self._clock.now())
            except Exception:
                logger.exception("%s failed; trying again", type(tick).__name__)
                wait = min(wait, _AGAIN_SECONDS)
                continue
            if due is not None:
                seconds = (due - self._clock.now()).total_seconds()
                wait = min(wait, seconds if seconds > 0 else _SHORTEST_SECONDS)
        return wait

    async def _begin_turn(self) -> None:
        # A task of its own, which `stop` can wait for: the scheduler cancels its jobs and does not look back.
        if self._turning is None or self._turning.done():
            self._turning = asyncio.create_task(self._turn(), name="clockwork")

    async def _turn(self) -> None:
        self._sooner = False
        wait = await self.turn()
        self._turn_in(0.0 if self._sooner else wait)

    def _turn_in(self, seconds: float) -> None:
        if self._job is not None:
            self._job.modify(next_run_time=datetime.now(UTC) + timedelta(seconds=seconds))
