"""How many mails are too many? Breakers against loops and floods, per person and hour."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

_HOUR = 3600.0


class HourlyCap:
    """At most `most` in any hour for each name; `now` gives seconds that only grow."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most, self._now = most, now
        self._taken: defaultdict[str, deque[float]] = defaultdict(deque)

    def takes(self, name: str) -> bool:
        """Whether one more is within the cap; it counts then."""
        taken, now = self._taken[name], self._now()
        while taken and taken[0] <= now - _HOUR:
            taken.popleft()
        if len(taken) >= self._most:
            return False
        taken.append(now)
        return True

    def give_back(self, name: str) -> None:
        """What was counted last did not happen."""
        if self._taken[name]:
            self._taken[name].pop()

    def reached(self) -> list[str]:
        """Whose cap is reached now."""
        since = self._now() - _HOUR
        return [name for name, taken in self._taken.items() if sum(t > since for t in taken) >= self._most]
