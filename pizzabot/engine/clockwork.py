"""What has to happen by itself as time passes? One loop that gives every regular work its turn.

    turn: each tick in order, `tick(now)` -> when it is next due -> sleep until the first of these

What is due stands in rows, never here: a tick that comes late, twice or after a crash finds the same rows. So
each is also called when nothing is known to be due, at least every half minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from pizzabot.clock import Clock

logger = logging.getLogger(__name__)

LONGEST_SECONDS = 30.0
_SHORTEST_SECONDS = 1.0  # before what was due a moment ago is tried again
_AGAIN_SECONDS = 5.0  # after a failure


class Tick(Protocol):
    """One kind of regular work."""

    async def tick(self, now: datetime) -> datetime | None:
        """Do everything that is due at `now`, in short transactions; returns when something is next due.

        None: nothing is known to be due. Doing it twice, or in two processes at once, does it once.
        """
        ...


class Clockwork:
    """Gives every tick its turn until it is stopped; `wake` it when something may be due earlier."""

    def __init__(self, ticks: Sequence[Tick], clock: Clock) -> None:
        self._ticks, self._clock = ticks, clock
        self._sooner = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin in the background, with what became due while nothing ran."""
        self._loop = asyncio.create_task(self._run(), name="clockwork")

    async def stop(self) -> None:
        """Do nothing more; what is in the middle of a transaction stores it or not."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    def wake(self) -> None:
        """Something may be due earlier than was known."""
        self._sooner.set()

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

    async def _run(self) -> None:
        while True:
            self._sooner.clear()
            wait = await self.turn()
            # Not wait_for: in Python 3.11 it can swallow the cancellation that ends this loop.
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._sooner.wait()
