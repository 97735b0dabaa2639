"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A `pizzabot.clock.Clock`."""

    def __init__(self, start: datetime = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, delta: timedelta | None = None, *, seconds: float = 0) -> datetime:
        """Move forward; returns the new time."""
        self._now += (delta or timedelta()) + timedelta(seconds=seconds)
        return self._now
