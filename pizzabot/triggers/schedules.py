"""When does a cron expression fire in a time zone, and what is each firing called?

Cron as crontab(5) of Debian describes it: minute, hour, day of the month, month, day of the week. When both
kinds of day are restricted, either of them is enough; a field that begins with `*`, also as `*/2`, does not
count as restricted, and both have to match.

What happens when the clocks change depends on the hours. A schedule of every hour follows the time that
passes: an hour that the clock shows twice is two hours. A schedule of fixed hours follows the clock on the
wall, each time of it once: a time that is shown twice fires when it is shown first; times that are skipped
fire together, once, at the moment the gap ends.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

from pizzabot.clock import is_zone
from pizzabot.errors import Invalid
from pizzabot.text import exact, visible

LONGEST_EXPRESSION = 500

_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_TICK = timedelta.resolution
# Clocks were set back by up to a day (Kwajalein 1969); what they showed before that, they have shown.
_LONGEST_FOLD = 2 * _DAY
# No zone took a change of its clock back sooner than after a week (Recife 2000), or after four days (Freetown
# 1939).
_STRIDE = 3 * _DAY
# After so long the calendar repeats itself, so a schedule that has not fired until then never does.
_CYCLE = timedelta(days=146_097)
_EARLIEST = datetime(1, 1, 10, tzinfo=UTC)
_LATEST = datetime(9999, 12, 20, tzinfo=UTC)


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    values: int
    names: Mapping[str, int]


_MONTHS: tuple[str, ...] = ("January", "February", "March", "April", "May", "June")
_MONTHS += ("July", "August", "September", "October", "November", "December")
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_FIELDS = (
    _Field("minute", 0, 59, 60, {}),
    _Field("hour", 0, 23, 24, {}),
    _Field("day of the month", 1, 31, 31, {}),
    _Field("month", 1, 12, 12, {name[:3].lower(): i for i, name in enumerate(_MONTHS, 1)}),
    _Field("day of the week", 0, 7, 7, {name[:3].lower(): i for i, name in enumerate(_DAYS)}),
)
_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_VALUE = "[0-9]+|[a-z]{3}"
_ITEM = re.compile(rf"(?:\*|({_VALUE})(?:-({_VALUE}))?)(?:/([0-9]+))?", re.IGNORECASE | re.ASCII)
_EXAMPLE = '"0 8 * * mon-fri" for weekdays at eight'


@dataclass(frozen=True, slots=True)
class Firing:
    """One occurrence of a schedule.

    `at` is the scheduled moment, aware, in UTC. `key` names the occurrence among those of its schedule: local
    time without an offset (`2026-03-29T02:30`) for fixed hours, UTC (`2026-03-29T00:30Z`) for every hour.
    """

    at: datetime
    key: str


class _Stretch(NamedTuple):
    """A part of the time line without a change of the clock.

    The clock shows the times from `first` until before `end`, the first of them at the moment `begin`; or it
    skips all of them at `begin`.
    """

    begin: datetime
    first: datetime
    end: datetime
    skipped: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression in a time zone; made by `parse`."""

    expression: str
    zone: str
    _clock: ZoneInfo = field(repr=False, compare=False)
    _minutes: tuple[int, ...] = field(repr=False, compare=False)
    _hours: tuple[int, ...] = field(repr=False, compare=False)
    _days: frozenset[int] = field(repr=False, compare=False)
    _months: frozenset[int] = field(repr=False, compare=False)
    _weekdays: frozenset[int] = field(repr=False, compare=False)
    _either_day: bool = field(repr=False, compare=False)
    _times: tuple[int, ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, expression: str, zone: str) -> Schedule:
        """The schedule of a cron expression, with five fields or as `@daily`, in an IANA zone.

        Raises:
            Invalid: code `invalid_cron` for an expression that is none or never fires, `invalid_timezone` for
                a zone that this machine does not know; the sentence says what to write instead.
        """
        if not is_zone(zone):
            raise Invalid(
                f'"{_quoted(zone)}" is not a time zone; write a name such as "Europe/Amsterdam".',
                code="invalid_timezone",
            )
        try:
            texts = _fields(expression)
            minutes, hours, days, months, weekdays = map(_values, _FIELDS, texts)
            either_day = not (texts[2].startswith("*") or texts[4].startswith("*"))
            if not either_day:
                _see_a_day(days, months)
        except _Unusable as error:
            raise Invalid(f'"{_quoted(expression)}" is no schedule: {error}.', code="invalid_cron") from None
        return cls(
            expression=" ".join(expression.split()),
            zone=zone,
            _clock=ZoneInfo(zone),
            _minutes=minutes,
            _hours=hours,
            _days=frozenset(days),
            _months=frozenset(months),
            _weekdays=frozenset(day % 7 for day in weekdays),
            _either_day=either_day,
            _times=tuple(hour * 60 + minute for hour in hours for minute in minutes),
        )

    @property
    def follows_time(self) -> bool:
        """Whether it fires in every hour and so follows the time that passes, not the clock on the wall."""
        return len(self._hours) == 24

    def firings(self, after: datetime, until: datetime) -> Iterator[Firing]:
        """What fires in `after < at <= until` (both aware), in order; no moment and no key comes twice."""
        for stretch in self._stretches(after, until):
            if stretch.skipped:
                if (wall := self._stands_for(stretch)) is not None:
                    yield Firing(stretch.begin, _local(wall))
                continue
            for midnight, low, high in self._on(stretch.first, stretch.end):
                for minute in self._times[low:high]:
                    wall = midnight + minute * _MINUTE
                    at = stretch.begin + (wall - stretch.first)
                    yield Firing(at, f"{_local(at)}Z" if self.follows_time else _local(wall))

    def upcoming(self, after: datetime, count: int) -> list[Firing]:
        """The next `count` firings after that moment; fewer only when 400 years do not hold so many."""
        after = after.astimezone(UTC)
        until = after + _CYCLE if after < _LATEST - _CYCLE else _LATEST
        return list(islice(self.firings(after, until), count))

    def newest(self, after: datetime, until: datetime, count: int) -> list[Firing]:
        """The last `count` firings in `after < at <= until`, in order; quick however long ago `after` is."""
        span = _DAY
        while count > 0 and after < until:
            start = until - span if span < until - after else after
            found = list(self.firings(start, until))
            if len(found) >= count or start == after:
                return found[-count:]
            span *= 2
        return []

    def count(self, after: datetime, until: datetime) -> int:
        """How many firings there are in `after < at <= until`: days are walked, their times only counted."""
        return sum(
            self._stands_for(stretch) is not None
            if stretch.skipped
            else sum(high - low for _, low, high in self._on(stretch.first, stretch.end))
            for stretch in self._stretches(after, until)
        )

    def spoken(self) -> str:
        """`weekdays at 08:00 (Europe/Amsterdam)` where that is short, else the expression with the zone."""
        return f"{self._when() or self.expression} ({self.zone})"

    def _when(self) -> str | None:
        day, clock = self._which_days(), self._which_times()
        if day is None or clock is None:
            return None
        if not self.follows_time:
            return f"{day} {clock}"
        return clock if day == "every day" else f"{day}, {clock}"

    def _which_times(self) -> str | None:
        minutes = self._minutes
        if self.follows_time:
            step = 60 // len(minutes)
            if minutes == tuple(range(0, 60, step)):
                return {60: "every hour", 1: "every minute"}.get(step, f"every {step} minutes")
            return f"every hour at :{minutes[0]:02}" if len(minutes) == 1 else None
        if len(self._times) > 3:
            return None
        return "at " + _listed([f"{hour:02}:{minute:02}" for hour in self._hours for minute in minutes])

    def _which_days(self) -> str | None:
        every_date, every_weekday = len(self._days) == 31, len(self._weekdays) == 7
        all_months = len(self._months) == 12
        if all_months and self._either_day:
            return "every day" if every_date or every_weekday else None
        if all_months and every_date:
            return _spoken_weekdays(self._weekdays)
        if self._either_day or not every_weekday or len(self._days) > 3:
            return None
        days = [str(day) for day in sorted(self._days)]
        if all_months:
            return f"on day {_listed(days)} of each month"
        if len(self._months) == len(days) == 1:
            (month,) = self._months
            return f"every year on {days[0]} {_MONTHS[month - 1]}"
        return None

    def _stretches(self, after: datetime, until: datetime) -> Iterator[_Stretch]:
        """The time line of `after < moment <= until` as this schedule sees the clock on it."""
        start = max(after.astimezone(UTC), _EARLIEST)
        stop = min(until.astimezone(UTC), _LATEST) + _TICK
        if start >= stop:
            return
        start += _TICK
        if self.follows_time:
            for begin, end, offset in _offsets(self._clock, start, stop):
                yield _Stretch(begin, _shown(begin, offset), _shown(end, offset), skipped=False)
            return
        before = _offsets(self._clock, start - _LONGEST_FOLD, start)
        furthest = max(_shown(end, offset) for _, end, offset in before)
        for begin, end, offset in _offsets(self._clock, start, stop):
            first, last = _shown(begin, offset), _shown(end, offset)
            if first > furthest:
                yield _Stretch(begin, furthest, first, skipped=True)
            elif first < furthest:  # these times were shown before
                begin, first = begin + (furthest - first), furthest
            if first < last:
                yield _Stretch(begin, first, last, skipped=False)
            furthest = max(furthest, last)

    def _stands_for(self, gap: _Stretch) -> datetime | None:
        """The skipped time in whose name the end of the gap fires; None when it does not, or fires itself."""
        last = None
        for midnight, low, high in self._on(gap.first, gap.end):
            last = midnight + self._times[high - 1] * _MINUTE if low < high else last
        fires_itself = any(low < high for _, low, high in self._on(gap.end, gap.end + _TICK))
        return None if fires_itself else last

    def _on(self, first: datetime, end: datetime) -> Iterator[tuple[datetime, int, int]]:
        """Of each day that matches its midnight, and which of its times lie in `first <= time < end`."""
        midnight = datetime.combine(first, time())
        while midnight < end:
            if self._matches(midnight):
                # Rounded up to minutes: a time that has begun is not before itself.
                low, high = -((midnight - first) // _MINUTE), -((midnight - end) // _MINUTE)
                yield midnight, bisect_left(self._times, low), bisect_left(self._times, high)
            midnight += _DAY

    def _matches(self, day: datetime) -> bool:
        if day.month not in self._months:
            return False
        by_date, by_weekday = day.day in self._days, day.isoweekday() % 7 in self._weekdays
        return (by_date or by_weekday) if self._either_day else (by_date and by_weekday)


def _shown(moment: datetime, offset: timedelta) -> datetime:
    """What a clock with that offset shows, without a zone."""
    return moment.replace(tzinfo=None) + offset


def _local(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="minutes")


def _offsets(
    zone: ZoneInfo, start: datetime, stop: datetime
) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """Parts of `start <= moment < stop`, each of some days, in which the zone keeps one offset.

    `zoneinfo` tells the offset of a moment, not when it changes, so it is asked in strides.
    """

    offset = _offset(zone, start)
    while start < stop:
        end = min(start + _STRIDE, stop)
        if (then := _offset(zone, end)) != offset:
            end = _change(zone, start, end, offset)
        yield start, end, offset
        start, offset = end, then


def _change(zone: ZoneInfo, start: datetime, end: datetime, offset: timedelta) -> datetime:
    """From which moment in `start < moment <= end` the zone has another offset: a whole second."""
    base = start.replace(microsecond=0)
    seconds = range(1, (end - base) // _SECOND + 1)
    before = bisect_left(seconds, True, key=lambda s: _offset(zone, base + s * _SECOND) != offset)
    return base + seconds[before] * _SECOND


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


# -- reading ---------------------------------------------------------------------------------------------


class _Unusable(Exception):
    """Why an expression is no schedule, and what to write: the end of a sentence."""


def _fields(expression: str) -> list[str]:
    """The five fields of an expression, or of what an alias stands for."""
    if len(expression) > LONGEST_EXPRESSION:
        raise _Unusable(f"it is longer than {LONGEST_EXPRESSION} characters; write ranges and steps")
    texts = [text for text in re.split(r"[ \t]+", expression.strip()) if text]
    if texts and texts[0].startswith("@"):
        known = ", ".join(_ALIASES)
        if len(texts) > 1 or texts[0].lower() not in _ALIASES:
            raise _Unusable(f"with @ there are only {known}; write one of these, or five fields")
        return _ALIASES[texts[0].lower()].split()
    if len(texts) != len(_FIELDS):
        names = ", ".join(each.name for each in _FIELDS)
        more = " (seconds and years are not part of it)" if len(texts) > len(_FIELDS) else ""
        fields = "1 field" if len(texts) == 1 else f"{len(texts)} fields"
        raise _Unusable(f"it has {fields}{more}; write five ({names}), such as {_EXAMPLE}")
    return texts


def _see_a_day(days: tuple[int, ...], months: tuple[int, ...]) -> None:
    """Refuse days of the month that no month of these has."""
    if days[0] > max(_LENGTHS[month - 1] for month in months):
        lacking = f"{_MONTHS[months[0] - 1]} has no" if len(months) == 1 else "none of these months has a"
        raise _Unusable(f"it never fires, because {lacking} day {days[0]}; write a day that there is")


def _values(kind: _Field, text: str) -> tuple[int, ...]:
    """The numbers that a field stands for, sorted."""
    found: set[int] = set()
    for item in text.split(","):
        found.update(_item(kind, item))
    return tuple(sorted(found))


def _item(kind: _Field, item: str) -> range:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise _Unusable(f"{kind.name}: {_why(kind, item)}")
    first, last, step = match.groups()
    low = kind.low if first is None else _number(kind, item, first)
    # A single value with a step goes on to the end of the field, as in cronie: 5/15 is 5-59/15.
    high = _number(kind, item, last) if last else low if first and not step else kind.high
    if low > high:
        raise _Unusable(
            f'{kind.name}: "{_quoted(item)}" runs backwards; write "{_forwards(kind, low, high)}"'
        )
    width = int(step or 1)
    if not 1 <= width <= kind.values:
        raise _Unusable(
            f'{kind.name}: "{_quoted(item)}" has a step of {_quoted(step)}; write 1 to {kind.values}, '
            "because each step begins anew with the field"
        )
    return range(low, high + 1, width)


def _number(kind: _Field, item: str, text: str) -> int:
    if not text.isdigit():
        if (named := kind.names.get(text.lower())) is None:
            raise _Unusable(f"{kind.name}: {_why(kind, item)}")
        return named
    if not kind.low <= (number := int(text)) <= kind.high:
        raise _Unusable(f'{kind.name}: "{_quoted(text)}" is out of range; write {kind.low} to {kind.high}')
    return number


# What other schedulers know: the sign, and what to write here.
_ELSEWHERE = (
    (re.compile(r".*\?.*"), 'write "*"'),
    (re.compile(r".*#.*"), "write the days of the month or the days of the week"),
    (re.compile(r".*~.*|[hr](\(.*\))?(/.*)?"), "write one number"),
    (
        re.compile(r"l(w|-[0-9]+)?|([0-9]+|[a-z]{3})l"),
        'write the days as numbers; "1" is the day after the last of a month',
    ),
    (re.compile(r"[0-9]+w|w[0-9]*"), 'write the days as numbers, or "mon-fri" as day of the week'),
)


def _why(kind: _Field, item: str) -> str:
    """What is wrong with a piece of a field, and what to write."""
    if not item:
        return 'a place in the list is empty; write it as "1,5"'
    lowered = item.lower()
    for sign, instead in _ELSEWHERE:
        if sign.fullmatch(lowered):
            return f'"{_quoted(item)}" is not standard cron; {instead}'
    shortened = re.sub(r"[a-z]{4,}", lambda word: word[0][:3], lowered)
    if shortened != lowered and all(name in kind.names for name in re.findall(r"[a-z]+", shortened)):
        return f'"{_quoted(item)}" is not known; write "{_quoted(shortened)}"'
    name = f', a name such as "{max(kind.names)}"' if kind.names else ""
    return (
        f'"{_quoted(item)}" is not known; write a number from {kind.low} to {kind.high}{name}, '
        'a range such as "1-5", a list such as "1,5" or a step such as "*/2"'
    )


def _forwards(kind: _Field, low: int, high: int) -> str:
    """A range that runs over the end of its field, as a list."""
    if kind.high == 7:  # Sunday is both ends
        if high == 0:
            return f"{low}-7"
        if low == 7:
            return f"0-{high}"
    end = kind.low + kind.values - 1
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ((low, end), (kind.low, high)))


def _quoted(text: str) -> str:
    return visible(exact(text[:40])) + ("…" if len(text) > 40 else "")


# -- speaking --------------------------------------------------------------------------------------------


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _spoken_weekdays(weekdays: frozenset[int]) -> str:
    if len(weekdays) == 7:
        return "every day"
    if weekdays == {1, 2, 3, 4, 5}:
        return "weekdays"
    if weekdays == {0, 6}:
        return "weekends"
    return _listed([f"{_DAYS[day]}s" for day in sorted(weekdays, key=lambda day: day or 7)])


def spoken_schedule(cron: str, timezone: str) -> str:
    """A schedule in words, as it is written where that cannot be said."""
    try:
        return Schedule.parse(cron, timezone).spoken()
    except Invalid:
        return f"{cron} ({timezone})"
