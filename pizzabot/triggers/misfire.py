"""What has to start now for everything that was scheduled since somebody looked last?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pizzabot.triggers.schedules import Firing, Schedule

MisfirePolicy = Literal["latest", "skip", "all"]

# However long the grace is, a downtime does not start more than this at once.
MOST_ON_TIME = 100


@dataclass(frozen=True, slots=True)
class Due:
    """What to start, the oldest first, and how many more were scheduled and will not start."""

    firings: tuple[Firing, ...]
    missed: int


def due(
    schedule: Schedule,
    since: datetime,
    now: datetime,
    *,
    policy: MisfirePolicy,
    most: int,
    grace: timedelta,
) -> Due:
    """What to start of everything scheduled in `since < at <= now`.

    What is at most `grace` late is on time and starts (the newest `MOST_ON_TIME` of it). Everything older is
    a misfire, and the policy says what becomes of it:

    - `latest`: the newest one starts as the catch-up for all, unless something on time starts anyway;
    - `skip`: none starts;
    - `all`: the newest `most` start.

    `missed` counts the rest exactly. The cost grows with the days since `since` (some microseconds each) and
    with what is started, not with what was missed.
    """
    if since >= now:
        return Due((), 0)
    patience = min(grace, now - since)
    on_time = schedule.newest(max(since, now - patience - timedelta.resolution), now, MOST_ON_TIME)
    late_until = on_time[0].at - timedelta.resolution if on_time else now
    started = on_time
    if policy == "all":
        started = schedule.newest(since, late_until, most) + on_time
    elif policy == "latest" and not on_time:
        started = schedule.newest(since, now, 1)
    return Due(tuple(started), schedule.count(since, now) - len(started))
