"""When may the next message go to a channel? Slack takes about one a second, some more in a burst.

A place in the line is kept for whoever was told to wait, so that waiting is never in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .client import Limited


class Pace:
    """A steady rate per name with a burst (the generic cell rate algorithm); times in seconds."""

    def __init__(self, per_second: float, burst: int, now: Callable[[], float]) -> None:
        self._interval, self._burst, self._now = 1 / per_second, burst, now
        self._next: dict[str, float] = {}  # by name: when the line would be empty
        self._kept: dict[tuple[str, str], float] = {}  # by name and who waits
        self._paused: dict[str, float] = {}

    def wait_seconds(self, name: str, who: str) -> float:
        """How long `who` still has to wait at `name`; 0 takes the place."""
        now = self._now()
        kept = self._kept.get((name, who))
        at = self._place(name, now) if kept is None else kept
        at = max(at, self._paused.get(name, at))
        if at <= now:
            self._kept.pop((name, who), None)
            return 0.0
        self._kept[name, who] = at
        return at - now

    async def take(self, name: str, who: str, patience_seconds: float) -> None:
        """Return when it is the turn of `who`; raises Limited when that takes longer than the patience."""
        while (wait := self.wait_seconds(name, who)) > 0:
            if wait > patience_seconds:
                raise Limited(wait)
            await asyncio.sleep(wait)

    def _place(self, name: str, now: float) -> float:
        line = max(self._next.get(name, now), now)
        self._next[name] = line + self._interval
        if len(self._next) > 10_000 or len(self._kept) > 1_000:
            self._next = {n: t for n, t in self._next.items() if t > now}
            self._kept = {k: t for k, t in self._kept.items() if t > now - 3600}
            self._paused = {n: t for n, t in self._paused.items() if t > now}
        return line - self._interval * (self._burst - 1)

    def pause(self, name: str, seconds: float) -> None:
        """Slack asked to wait: the line stands still, and moves on as it stood."""
        now = self._now()
        longer = now + seconds - max(self._paused.get(name, now), now)
        if longer <= 0:
            return
        self._paused[name] = now + seconds
        self._next[name] = max(self._next.get(name, now), now) + longer
        self._kept = {k: t + longer if k[0] == name else t for k, t in self._kept.items()}

    def is_free(self, name: str, spare: int) -> bool:
        """Whether there is room for `spare` more right now; takes no place."""
        now = self._now()
        line = max(self._next.get(name, now), now)
        free = line + self._interval * spare - self._interval * (self._burst - 1) <= now
        return free and self._paused.get(name, now) <= now
