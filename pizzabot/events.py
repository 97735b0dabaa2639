"""Who watches, and how do they learn of a change? A bus inside the process, for live views only.

Nothing depends on an event arriving: whoever misses some reads the rows again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from pizzabot.errors import Unavailable
from pizzabot.messages import Event

_WAITING_EVENTS = 1000
MAX_SUBSCRIBERS = 200
MAX_OF_ONE = 40  # of one person: open pages and programs


class Events:
    """Publishes to every subscriber; one that does not keep up is told to read everything anew."""

    def __init__(self) -> None:
        self._subscribers: set[asyncio.Queue[Event]] = set()
        self._watching: Counter[str] = Counter()

    def publish(self, event: Event) -> None:
        """Hand the event to everybody who watches now; never waits. Call it on the event loop."""
        for subscriber in self._subscribers:
            if subscriber.full():
                while not subscriber.empty():
                    subscriber.get_nowait()
                subscriber.put_nowait(Event("reset"))
            subscriber.put_nowait(event)

    @contextmanager
    def subscribe(self, who: str = "") -> Iterator[AsyncIterator[Event]]:
        """Events from now on, until the block is left; for the person `who`, when it is one.

        Raises Unavailable when too many watch already, or this person too often.
        """
        if len(self._subscribers) >= MAX_SUBSCRIBERS or (who and self._watching[who] >= MAX_OF_ONE):
            raise Unavailable("Too many are watching; try again later.", code="too_many_watchers")
        subscriber: asyncio.Queue[Event] = asyncio.Queue(_WAITING_EVENTS + 1)
        self._subscribers.add(subscriber)
        self._watching[who] += 1
        try:
            yield _drain(subscriber)
        finally:
            self._subscribers.discard(subscriber)
            self._watching[who] -= 1
            self._watching += Counter()  # drops who no longer watches


async def _drain(subscriber: asyncio.Queue[Event]) -> AsyncIterator[Event]:
    while True:
        yield await subscriber.get()
