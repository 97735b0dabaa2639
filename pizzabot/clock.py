"""What time is it, and for whom? Everything inside is aware UTC; zones appear only where a person reads."""

from __future__ import annotations

from datetime import UTC, datetime
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


def spoken(moment: datetime, zone: str) -> str:
    """`moment` for a person or a prompt: weekday, date, time, offset and zone name."""
    local = moment.astimezone(ZoneInfo(zone))
    return f"{local:%A} {local:%Y-%m-%d %H:%M} (UTC{local:%z}, {zone})"
