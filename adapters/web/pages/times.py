"""How do times, sizes and costs read? Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from pizzabot.text import dollars

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Times:
    """Moments as somebody in `zone` reads them `now`."""

    now: datetime
    zone: str

    def ago(self, iso: str) -> str:
        """`just now`, `5 min ago`, `3 h ago`, `2 d ago`, then the date."""
        moment = datetime.fromisoformat(iso)
        seconds = (self.now - moment).total_seconds()
        if seconds < _MINUTE:
            return "just now"
        if seconds < _HOUR:
            return f"{int(seconds // _MINUTE)} min ago"
        if seconds < _DAY:
            return f"{int(seconds // _HOUR)} h ago"
        if seconds < 7 * _DAY:
            return f"{int(seconds // _DAY)} d ago"
        local, today = moment.astimezone(ZoneInfo(self.zone)), self.now.astimezone(ZoneInfo(self.zone))
        return f"{local.day} {local:%b}" + (f" {local.year}" if local.year != today.year else "")

    def full(self, iso: str) -> str:
        """`Mon 30 Nov 2026, 02:04 CET`."""
        local = datetime.fromisoformat(iso).astimezone(ZoneInfo(self.zone))
        return f"{local:%a} {local.day} {local:%b %Y, %H:%M %Z}"


def took(milliseconds: int | None) -> str:
    """`85 ms`, `1.2 s`, `3 min`, `5 h 20 min`, `2 d 3 h`; nothing when it is not known."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 100 * _MINUTE:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < _DAY:
        return f"{int(seconds // _HOUR)} h {int(seconds % _HOUR // _MINUTE)} min"
    return f"{int(seconds // _DAY)} d {int(seconds % _DAY // _HOUR)} h"


def size(count: int) -> str:
    """`812 B`, `4.1 KB`, `3.0 MB`."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} KB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def money(usd: float | None) -> str:
    """`$1.20`, `$0.0042`, `< $0.0001`; `price unknown` when it is not known."""
    return "price unknown" if usd is None else dollars(usd)


def bar(used: float, allowed: float) -> str:
    """How much of something is used, as ten blocks of text; all of them only when nothing is left."""
    filled = 10 if used >= allowed else min(9, int(10 * used / allowed))
    return "█" * filled + "░" * (10 - filled)
