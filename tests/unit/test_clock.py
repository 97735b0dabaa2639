"""When does a day begin and end, where the clocks change?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pizzabot.clock import day_of


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "zone", "name", "since", "hours"),
    [
        ("2026-03-02T09:00", "UTC", "2026-03-02", "2026-03-02T00:00", 24),
        ("2026-03-02T23:30", "Europe/Amsterdam", "2026-03-03", "2026-03-02T23:00", 24),
        ("2026-03-29T12:00", "Europe/Amsterdam", "2026-03-29", "2026-03-28T23:00", 23),
        ("2026-10-25T00:30", "Europe/Amsterdam", "2026-10-25", "2026-10-24T22:00", 25),
        ("2026-10-25T22:59", "Europe/Amsterdam", "2026-10-25", "2026-10-24T22:00", 25),
        ("2026-10-25T23:00", "Europe/Amsterdam", "2026-10-26", "2026-10-25T23:00", 24),
        ("2026-10-04T00:00", "Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30", 23.5),
        ("2026-04-05T00:00", "Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00", 24.5),
        # Midnight itself is skipped: the day begins at one o'clock, which is the moment of the change.
        ("2026-04-24T12:00", "Africa/Cairo", "2026-04-24", "2026-04-23T22:00", 23),
        # Midnight comes twice: the day begins with the first and has twenty-five hours.
        ("2026-11-01T12:00", "America/Havana", "2026-11-01", "2026-11-01T04:00", 25),
        ("2026-07-01T00:00", "Asia/Kathmandu", "2026-07-01", "2026-06-30T18:15", 24),
    ],
)
def test_a_day_is_that_of_the_zone_and_as_long_as_it_is_there(
    moment: str, zone: str, name: str, since: str, hours: float
) -> None:
    day = day_of(utc(moment), zone)
    assert (day.name, day.since, day.until - day.since) == (name, utc(since), timedelta(hours=hours))


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "America/Havana", "Africa/Cairo", "Pacific/Apia"])
def test_days_follow_each_other_without_gap_or_overlap(zone: str) -> None:
    day = day_of(utc("2025-12-31T12:00"), zone)
    for _ in range(800):
        following = day_of(day.until, zone)
        assert following.since == day.until
        assert following.name > day.name
        assert day_of(day.until - timedelta(microseconds=1), zone) == day
        day = following
