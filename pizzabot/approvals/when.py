"""Which moment does a person mean by "2h", "Mon" or "tomorrow 9:00"? Pure, in English, in their zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

LONGEST = timedelta(days=366)
_MORNING = time(9)  # of a day that is named without a time
_LONGEST_TEXT = 60
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PARTS = {"morning": _MORNING, "noon": time(12), "afternoon": time(14), "evening": time(18)}

_AMOUNT = r"([0-9]{1,4}) ?(m|min|mins|minutes?|h|hrs?|hours?|d|days?|w|weeks?)"
_DURATION = re.compile(rf"(?:in |for )?{_AMOUNT}(?:(?: | ?and ){_AMOUNT})?")
_COMPACT = re.compile(r"(?:in |for )?([0-9]{1,3})h([0-9]{1,2})m?")
_TIME = r"(?:(?:at )?(?:([0-9]{1,2})(?::([0-9]{2}))? ?(am|pm)?|(morning|noon|afternoon|evening)))"
_DAY = r"(today|tomorrow|(?:next |on )?(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}|[0-9]{4}-[0-9]{2}-[0-9]{2})"
_WHEN = re.compile(rf"(?:until |till |to )?(?:{_DAY}(?:[ ,]+{_TIME})?|{_TIME})")


def parse_when(text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """The moment in UTC that `text` means to somebody in `zone`, later than `now` and at most a year.

    A length of time ("90 min", "2h", "3 days", "1h 30m"); a day (`today`, `tomorrow`, a weekday, a date as
    2026-03-09) with or without a time ("9:00", "2pm", "afternoon"; nine in the morning without one); a time
    alone, which is the next such; or an ISO 8601 date-time, with an offset or in the person's zone.

    Raises ValueError with a sentence that says what can be written.
    """
    said = " ".join(text[: _LONGEST_TEXT + 1].lower().split()).rstrip(".!")
    moment = None
    if len(text) <= _LONGEST_TEXT and said.isascii():
        try:
            found = _after(said, now) or _at(said, now.astimezone(zone)) or _iso(text.strip(), zone)
            moment = found.astimezone(UTC) if found is not None else None
        except OverflowError:  # at the edge of the calendar, in a zone where it is already beyond
            moment = None
    if moment is None:
        raise ValueError(
            "This is no time that can be understood; write 2h, 3 days, tomorrow, tomorrow 9:00, Mon, "
            "Fri 14:30 or 2026-03-09 09:00."
        )
    if moment <= now:
        raise ValueError("This time is over already; write one that is still to come.")
    if moment - now > LONGEST:
        raise ValueError("This is more than a year away; write an earlier time.")
    return moment


def _after(said: str, now: datetime) -> datetime | None:
    if compact := _COMPACT.fullmatch(said):
        return now + timedelta(hours=int(compact[1]), minutes=int(compact[2]))
    found = _DURATION.fullmatch(said)
    if found is None:
        return None
    length = timedelta()
    for amount, unit in ((found[1], found[2]), (found[3], found[4])):
        if amount is not None:
            length += timedelta(**{_UNITS[unit[0]]: int(amount)})
    return now + length


def _at(said: str, local: datetime) -> datetime | None:
    """A day, a time or both, on the clock on the wall."""
    found = _WHEN.fullmatch(said)
    if found is None:
        return None
    name = found[1]
    wanted = _time(*(found.groups()[1:5] if name is not None else found.groups()[5:9]))
    if name is not None and wanted is None and any(found.groups()[1:5]):
        return None
    if name is None:
        return _next(local, wanted) if wanted is not None else None
    day = _day(name, local, is_timed=wanted is not None and _on(local.date(), wanted, local) > local)
    return _on(day, wanted or _MORNING, local) if day is not None else None


def _time(hour: str | None, minute: str | None, half: str | None, part: str | None) -> time | None:
    if part is not None:
        return _PARTS[part]
    if hour is None:
        return None
    hours = int(hour)
    if half is not None:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + (12 if half == "pm" else 0)
    elif minute is None and hours > 23:
        return None
    return time(hours, int(minute or 0)) if hours <= 23 and int(minute or 0) <= 59 else None


def _day(name: str, local: datetime, *, is_timed: bool) -> date | None:
    """The day of that name; today's weekday means today only when its time is still to come."""
    today = local.date()
    if name in ("today", "tomorrow"):
        return today + timedelta(days=name == "tomorrow")
    if name[0].isdigit():
        try:
            return date.fromisoformat(name)
        except ValueError:
            return None
    word = name.removeprefix("next ").removeprefix("on ")
    number = next((n for n, full in enumerate(_WEEKDAYS) if full.startswith(word)), None)
    if number is None:
        return None
    ahead = (number - today.weekday()) % 7
    return today + timedelta(days=ahead if ahead or (is_timed and not name.startswith("next ")) else 7)


def _next(local: datetime, wanted: time) -> datetime:
    today = _on(local.date(), wanted, local)
    return today if today > local else _on(local.date() + timedelta(days=1), wanted, local)


def _on(day: date, at: time, local: datetime) -> datetime:
    # Compared in UTC: on the wall an hour can come twice, or not at all.
    return datetime.combine(day, at, local.tzinfo).astimezone(UTC)


def _iso(text: str, zone: ZoneInfo) -> datetime | None:
    if not re.match(r"[0-9]{4}-", text):
        return None
    try:
        found = datetime.fromisoformat(text.replace("z", "Z"))
        return found if found.tzinfo is not None else found.replace(tzinfo=zone)
    except ValueError:
        return None
