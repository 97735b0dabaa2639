"""Schedules over changes of the clock: literally for known nights, and against a walk over every minute."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from pizzabot.errors import Invalid
from pizzabot.triggers.schedules import Schedule
from tests.unit.triggers.expressions import random_expression, utc
from tests.unit.triggers.zones import ZONES, changes

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def shown(expression: str, zone: str, after: str, until: str) -> list[tuple[str, str]]:
    """Local time with offset, and key, of each firing."""
    schedule = Schedule.parse(expression, zone)
    local = ZoneInfo(zone)
    return [
        (f"{firing.at.astimezone(local):%d %H:%M %z}", firing.key)
        for firing in schedule.firings(utc(after), utc(until))
    ]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "until", "expected"),
    [
        pytest.param(
            "30 2 * * *",
            "Europe/Amsterdam",
            "2026-03-28 00:00",
            "2026-03-30 12:00",
            [
                ("28 02:30 +0100", "2026-03-28T02:30"),
                ("29 03:00 +0200", "2026-03-29T02:30"),
                ("30 02:30 +0200", "2026-03-30T02:30"),
            ],
            id="a fixed hour that is skipped fires when the gap ends",
        ),
        pytest.param(
            "30 2 * * *",
            "Europe/Amsterdam",
            "2026-10-24 00:00",
            "2026-10-26 12:00",
            [
                ("24 02:30 +0200", "2026-10-24T02:30"),
                ("25 02:30 +0200", "2026-10-25T02:30"),
                ("26 02:30 +0100", "2026-10-26T02:30"),
            ],
            id="a fixed hour that is shown twice fires the first time",
        ),
        pytest.param(
            "15,45 2,3 * * *",
            "America/New_York",
            "2026-03-08 00:00-05:00",
            "2026-03-09 00:00-04:00",
            [
                ("08 03:00 -0400", "2026-03-08T02:45"),
                ("08 03:15 -0400", "2026-03-08T03:15"),
                ("08 03:45 -0400", "2026-03-08T03:45"),
            ],
            id="skipped times fire together",
        ),
        pytest.param(
            "0 2,3 * * *",
            "America/New_York",
            "2026-03-08 00:00-05:00",
            "2026-03-09 00:00-04:00",
            [("08 03:00 -0400", "2026-03-08T03:00")],
            id="a skipped time joins the one at which the gap ends",
        ),
        pytest.param(
            "30 * * * *",
            "America/New_York",
            "2026-03-08 00:00-05:00",
            "2026-03-08 05:00-04:00",
            [
                ("08 00:30 -0500", "2026-03-08T05:30Z"),
                ("08 01:30 -0500", "2026-03-08T06:30Z"),
                ("08 03:30 -0400", "2026-03-08T07:30Z"),
                ("08 04:30 -0400", "2026-03-08T08:30Z"),
            ],
            id="every hour leaves out the hour that was not",
        ),
        pytest.param(
            "30 * * * *",
            "America/New_York",
            "2026-11-01 00:00-04:00",
            "2026-11-01 03:00-05:00",
            [
                ("01 00:30 -0400", "2026-11-01T04:30Z"),
                ("01 01:30 -0400", "2026-11-01T05:30Z"),
                ("01 01:30 -0500", "2026-11-01T06:30Z"),
                ("01 02:30 -0500", "2026-11-01T07:30Z"),
            ],
            id="every hour takes the hour that was twice twice",
        ),
        pytest.param(
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03 00:00+10:30",
            "2026-10-05 00:00+11:00",
            [("03 02:15 +1030", "2026-10-03T02:15"), ("04 02:30 +1100", "2026-10-04T02:15")],
            id="half an hour is skipped",
        ),
        pytest.param(
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04 00:00+11:00",
            "2026-04-06 00:00+10:30",
            [("04 01:45 +1100", "2026-04-04T01:45"), ("05 01:45 +1100", "2026-04-05T01:45")],
            id="half an hour is shown twice",
        ),
        pytest.param(
            "0 8,20 * * *",
            "Pacific/Apia",
            "2011-12-29 00:00-10:00",
            "2011-12-31 12:00+14:00",
            [
                ("29 08:00 -1000", "2011-12-29T08:00"),
                ("29 20:00 -1000", "2011-12-29T20:00"),
                ("31 00:00 +1400", "2011-12-30T20:00"),
                ("31 08:00 +1400", "2011-12-31T08:00"),
            ],
            id="a whole day is skipped",
        ),
        pytest.param(
            "30 23 * * *",
            "America/Havana",
            "2026-10-31 00:00-04:00",
            "2026-11-02 12:00-05:00",
            [("31 23:30 -0400", "2026-10-31T23:30"), ("01 23:30 -0500", "2026-11-01T23:30")],
            id="a change back from one to midnight touches no other hour",
        ),
        pytest.param(
            "30 23 7 11 *",
            "America/St_Johns",
            "2010-11-06 00:00-02:30",
            "2010-11-08 12:00-03:30",
            [("07 23:30 -0330", "2010-11-07T23:30")],
            id="a change back over midnight, looked at from the day after",
        ),
        pytest.param(
            "30 23 6 11 *",
            "America/St_Johns",
            "2010-11-06 00:00-02:30",
            "2010-11-08 12:00-03:30",
            [("06 23:30 -0230", "2010-11-06T23:30")],
            id="a change back over midnight shows the evening twice",
        ),
        pytest.param(
            "30 2 * * *",
            "Asia/Kolkata",
            "2026-03-28 00:00+05:30",
            "2026-03-30 00:00+05:30",
            [("28 02:30 +0530", "2026-03-28T02:30"), ("29 02:30 +0530", "2026-03-29T02:30")],
            id="nothing changes",
        ),
    ],
)
def test_known_nights(
    expression: str, zone: str, after: str, until: str, expected: list[tuple[str, str]]
) -> None:
    assert shown(expression, zone, after, until) == expected


@pytest.mark.parametrize("step", [1, 5, 15, 30])
@pytest.mark.parametrize("zone", ZONES)
def test_minutes_follow_the_time_that_passes(zone: str, step: int) -> None:
    """Also where the clock changes by half an hour; steps of an hour hold wherever it changes by hours."""
    schedule = Schedule.parse(f"*/{step} * * * *", zone)
    for change in changes(zone):
        found = [firing.at for firing in schedule.firings(change - DAY, change + DAY)]
        assert len(found) == 2 * DAY // (step * MINUTE)
        assert {b - a for a, b in pairwise(found)} == {step * MINUTE}


@pytest.mark.parametrize("minute", [0, 7, 30, 59])
@pytest.mark.parametrize("zone", [zone for zone in ZONES if zone != "Australia/Lord_Howe"])
def test_every_hour_has_neither_double_nor_hole(zone: str, minute: int) -> None:
    schedule = Schedule.parse(f"{minute} * * * *", zone)
    for change in changes(zone):
        found = [firing.at for firing in schedule.firings(change - DAY, change + DAY)]
        assert {b - a for a, b in pairwise(found)} == {HOUR}


def test_a_day_of_every_hour_is_as_long_as_the_day() -> None:
    for day, hours in (("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-07", 24)):
        noon = utc(f"{day} 12:00")
        schedule = Schedule.parse(f"0 * {noon.day} {noon.month} *", "Europe/Amsterdam")
        assert schedule.count(noon - 3 * DAY, noon + 3 * DAY) == hours


@pytest.mark.parametrize("hour", [0, 1, 2, 3, 8, 23])
@pytest.mark.parametrize("zone", [zone for zone in ZONES if ZONES[zone][0] >= 2009 and "Apia" not in zone])
def test_a_fixed_hour_fires_once_on_every_day_of_two_years(zone: str, hour: int) -> None:
    schedule = Schedule.parse(f"30 {hour} * * *", zone)
    year = ZONES[zone][0]
    local = ZoneInfo(zone)
    start = datetime(year, 1, 1, tzinfo=local).astimezone(UTC)
    end = datetime(year + 2, 1, 1, tzinfo=local).astimezone(UTC)
    firings = list(schedule.firings(start, end))
    first = datetime(year, 1, 1, hour, 30, tzinfo=UTC).replace(tzinfo=None)
    expected = [first + n * DAY for n in range((end - start) // DAY)]
    assert [firing.key for firing in firings] == [f"{wall:%Y-%m-%dT%H:%M}" for wall in expected]
    for firing, wall in zip(firings, expected, strict=True):
        late = firing.at.astimezone(local).replace(tzinfo=None) - wall
        assert timedelta() <= late < HOUR  # late by what the gap still lasted


@pytest.mark.parametrize("zone", [zone for zone in ZONES if ZONES[zone][1]])
def test_looking_from_within_a_change_finds_what_looking_over_it_finds(zone: str) -> None:
    schedule = Schedule.parse("*/10 0-4,20-23 * * *", zone)
    for change in changes(zone):
        start, end = change - 3 * HOUR, change + 3 * HOUR
        whole = list(schedule.firings(start, end))
        for minutes in range(5, 360, 10):
            between = start + minutes * MINUTE
            parts = [*schedule.firings(start, between), *schedule.firings(between, end)]
            assert parts == whole, between


# -- against a walk over every minute --------------------------------------------------------------------


def walked(schedule: Schedule, times: set[datetime], walls: list[datetime], start: datetime) -> Iterator[str]:
    """The rules, minute by minute: `walls` is what the clock shows from `start` on."""
    seen: set[datetime] = set()
    every_hour = schedule.follows_time
    for number, wall in enumerate(walls):
        at, fires = start + number * MINUTE, wall in times
        before = walls[number - 1] if number else wall - MINUTE
        between = [before + n * MINUTE for n in range(1, (wall - before) // MINUTE)]
        skipped = [time for time in between if time in times and time not in seen]
        if fires and every_hour:
            yield f"{at:%Y-%m-%dT%H:%M} {at:%Y-%m-%dT%H:%M}Z"
        elif fires and wall not in seen:
            yield f"{at:%Y-%m-%dT%H:%M} {wall:%Y-%m-%dT%H:%M}"
        elif skipped and not every_hour:
            yield f"{at:%Y-%m-%dT%H:%M} {skipped[-1]:%Y-%m-%dT%H:%M}"
        seen.add(wall)


@pytest.mark.parametrize("zone", ZONES)
def test_changes_of_the_clock_against_a_walk_over_every_minute(zone: str) -> None:
    dice = random.Random(zone)
    local = ZoneInfo(zone)
    looked_at = changes(zone) or [datetime(2025, 6, 1, tzinfo=UTC)]
    expressions = ["30 2 * * *", "0 2,3 * * *", "*/20 0-4 * * *", "7 * * * *", "15,45 1 * * *", "30 23 * * *"]
    while len(expressions) < 18:
        hours = dice.choice(("*", "0", "1-3", "2", "0-23/2", "*/3", "0,1,23", "1-23"))
        minutes = dice.choice(("0", "30", "*/15", "59", "1,31", "5-50/9"))
        expressions.append(f"{minutes} {hours} {random_expression(dice).split(maxsplit=2)[2]}")
    for change in looked_at:
        start, length = change - 14 * HOUR, 28 * 60
        walls = [(start + n * MINUTE).astimezone(local).replace(tzinfo=None) for n in range(length)]
        for expression in expressions:
            try:
                schedule = Schedule.parse(expression, zone)
            except Invalid:
                continue  # a random date that there is not
            plain = Schedule.parse(expression, "UTC")
            low, high = min(walls).replace(tzinfo=UTC), max(walls).replace(tzinfo=UTC)
            times = {firing.at.replace(tzinfo=None) for firing in plain.firings(low - MINUTE, high)}
            expected = list(walked(schedule, times, walls, start))
            end = start + length * MINUTE
            found = [
                f"{firing.at:%Y-%m-%dT%H:%M} {firing.key}"
                for firing in schedule.firings(start - timedelta.resolution, end - timedelta.resolution)
            ]
            assert found == expected, expression
