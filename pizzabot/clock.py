"""What time is it, and for whom? Everything inside is aware UTC; zones appear only where a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo


class Clock(Protocol):
    """Tests hand in a clock that stands still; the product hands in `SystemClock`."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day of a zone: `name` is YYYY-MM-DD, `since` and `until` are UTC, `until` the next one's."""

    name: str
    since: datetime
    until: datetime


def day_of(moment: datetime, zone: str) -> Day:
    """The calendar day that `moment` lies in there; 23 or 25 hours long when the clocks change.

    Where midnight itself is skipped, the day begins with the change.
    """
    there = ZoneInfo(zone)
    today = moment.astimezone(there).date()
    begins = [datetime.combine(day, time(), there).astimezone(UTC) for day in (today, today + timedelta(1))]
    return Day(today.isoformat(), *begins)


def days_until(moment: datetime, zone: str, count: int) -> list[Day]:
    """The last `count` calendar days there, the newest first: that of `moment` and those before it."""
    days = [day_of(moment, zone)]
    while len(days) < count:
        days.append(day_of(days[-1].since - timedelta(microseconds=1), zone))
    return days


def spoken(moment: datetime, zone: str) -> str:
    """`moment` for a person or a prompt: weekday, date, time, offset and zone name."""
    local = moment.astimezone(ZoneInfo(zone))
    return f"{local:%A} {local:%Y-%m-%d %H:%M} (UTC{local:%z}, {zone})"


_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def spoken_seconds(seconds: int) -> str:
    """A length of time in its largest unit, such as "3 hours"."""
    for size, unit in _UNITS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "0 seconds"


def is_zone(name: str) -> bool:
    """Whether `name` is an IANA time zone of this machine."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError, folders are OSErrors
        return False
    return bool(name)


def system_zone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str:
    """The machine's own time zone where it has a name, else UTC."""
    named = environ.get("TZ", "").removeprefix(":")
    if named and is_zone(named):
        return named
    try:
        _, _, linked = str(localtime.resolve()).partition("/zoneinfo/")
    except OSError:
        return "UTC"
    return linked if linked and is_zone(linked) else "UTC"
