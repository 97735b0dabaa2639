"""What time is it, and for whom? Everything inside is aware UTC; zones appear only where a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
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


def spoken(moment: datetime, zone: str) -> str:
    """`moment` for a person or a prompt: weekday, date, time, offset and zone name."""
    local = moment.astimezone(ZoneInfo(zone))
    return f"{local:%A} {local:%Y-%m-%d %H:%M} (UTC{local:%z}, {zone})"


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
