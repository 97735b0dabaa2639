"""How many mails are too many? Breakers against loops and floods, per person and hour, both ways."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from pizzabot.errors import Unavailable

_HOUR = 3600.0


class TooMany(Unavailable):
    """More mail came from a person in an hour than is taken in. It is put off: bring it again."""

    code = "too_many"

    def __init__(self, person: str) -> None:
        super().__init__("more mail came from you in this hour than is taken in; keep it, and send it later")
        self.person = person


class HourlyCap:
    """At most `most` in any hour for each name; `now` gives seconds that only grow."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most, self._now = most, now
        self._taken: defaultdict[str, deque[float]] = defaultdict(deque)

    def takes(self, name: str) -> bool:
        """Whether one more is within the cap; it counts then."""
        if not self.has_room(name):
            return False
        self._taken[name].append(self._now())
        return True

    def has_room(self, name: str) -> bool:
        """Whether one more would be within the cap."""
        taken, now = self._taken[name], self._now()
        while taken and taken[0] <= now - _HOUR:
            taken.popleft()
        return len(taken) < self._most

    def give_back(self, name: str) -> None:
        """What was counted last did not happen."""
        if self._taken[name]:
            self._taken[name].pop()

    def reached(self) -> list[str]:
        """Whose cap is reached now."""
        since = self._now() - _HOUR
        return [name for name, taken in self._taken.items() if sum(t > since for t in taken) >= self._most]
