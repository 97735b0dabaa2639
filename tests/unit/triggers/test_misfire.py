"""What starts after a downtime, and what is counted as missed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import get_args

import pytest

from pizzabot.triggers.misfire import MOST_ON_TIME, Due, MisfirePolicy, due
from pizzabot.triggers.schedules import Schedule
from tests.unit.triggers.expressions import utc

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
HOURLY = Schedule.parse("@hourly", "Europe/Amsterdam")
DAILY = Schedule.parse("0 8 * * *", "Europe/Amsterdam")
MINUTELY = Schedule.parse("* * * * *", "Europe/Amsterdam")
POLICIES = get_args(MisfirePolicy)


def looked(
    schedule: Schedule,
    since: str,
    now: str,
    policy: MisfirePolicy = "latest",
    *,
    most: int = 3,
    grace: timedelta = MINUTE,
) -> tuple[list[str], int]:
    found = due(schedule, utc(since), utc(now), policy=policy, most=most, grace=grace)
    return [f"{firing.at:%d %H:%M}" for firing in found.firings], found.missed


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_on_time_starts_under_every_policy(policy: MisfirePolicy) -> None:
    assert looked(HOURLY, "2026-06-01 08:59:50", "2026-06-01 09:00:20", policy) == (["01 09:00"], 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_due_when_nothing_was_scheduled(policy: MisfirePolicy) -> None:
    assert looked(HOURLY, "2026-06-01 08:00:00", "2026-06-01 08:59:59", policy) == ([], 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_clock_that_went_back_starts_nothing(policy: MisfirePolicy) -> None:
    assert looked(MINUTELY, "2026-06-01 09:00", "2026-06-01 08:00", policy) == ([], 0)
    assert looked(MINUTELY, "2026-06-01 09:00", "2026-06-01 09:00", policy) == ([], 0)


def test_latest_catches_up_once() -> None:
    assert looked(HOURLY, "2026-06-01 08:30", "2026-06-01 12:30", "latest") == (["01 12:00"], 3)


def test_latest_leaves_the_catch_up_to_what_is_on_time_anyway() -> None:
    """Otherwise yesterday's summary and today's came in the same minute."""
    assert looked(DAILY, "2026-06-01 12:00", "2026-06-05 06:00:10", "latest") == (["05 06:00"], 3)


def test_latest_starts_everything_that_is_on_time() -> None:
    found = looked(MINUTELY, "2026-06-01 08:00:30", "2026-06-01 09:00:30", "latest", grace=2 * MINUTE)
    assert found == (["01 08:59", "01 09:00"], 58)


def test_skip_only_counts() -> None:
    assert looked(HOURLY, "2026-06-01 08:30", "2026-06-01 12:30", "skip") == ([], 4)
    assert looked(HOURLY, "2026-06-01 08:30", "2026-06-01 12:00:30", "skip") == (["01 12:00"], 3)


def test_all_makes_up_for_the_newest() -> None:
    expected = ["01 10:00", "01 11:00", "01 12:00"]
    assert looked(HOURLY, "2026-06-01 06:30", "2026-06-01 12:30", "all", most=3) == (expected, 3)
    assert looked(HOURLY, "2026-06-01 06:30", "2026-06-01 12:30", "all", most=0) == ([], 6)


def test_all_makes_up_for_no_more_than_there_was_beside_what_is_on_time() -> None:
    expected = ["01 11:00", "01 12:00", "01 13:00"]
    assert looked(HOURLY, "2026-06-01 10:30", "2026-06-01 13:00:30", "all", most=9) == (expected, 0)


@pytest.mark.parametrize(
    ("late", "started"), [(timedelta(minutes=5), 1), (timedelta(minutes=5, seconds=1), 0)]
)
def test_the_grace_ends_to_the_second(late: timedelta, started: int) -> None:
    eight = utc("2026-06-01 06:00")
    found = due(DAILY, eight - DAY, eight + late, policy="skip", most=1, grace=5 * MINUTE)
    assert (len(found.firings), found.missed) == (started, 1 - started)


def test_without_grace_only_this_very_moment_is_on_time() -> None:
    eight = utc("2026-06-01 06:00")
    assert due(DAILY, eight - MINUTE, eight, policy="skip", most=1, grace=timedelta()).missed == 0
    assert due(DAILY, eight - MINUTE, eight + SECOND, policy="skip", most=1, grace=timedelta()).missed == 1


def test_a_grace_of_a_century_does_not_start_a_flood() -> None:
    now = utc("2026-06-01 06:00:30")
    found = due(MINUTELY, now - 365 * DAY, now, policy="skip", most=1, grace=timedelta(days=36500))
    assert len(found.firings) == MOST_ON_TIME
    assert found.firings[-1].at == utc("2026-06-01 06:00")
    assert found.missed == 365 * 24 * 60 - MOST_ON_TIME


@pytest.mark.parametrize(("policy", "started"), [("latest", 1), ("skip", 0), ("all", 50)])
def test_fifty_years_of_every_minute_are_counted_exactly(policy: MisfirePolicy, started: int) -> None:
    now, downtime = utc("2026-06-01 06:00:30"), timedelta(days=50 * 365)
    found = due(MINUTELY, now - downtime, now, policy=policy, most=50, grace=timedelta())
    assert len(found.firings) == started
    assert found.missed == downtime // MINUTE - started


def test_a_skipped_and_a_doubled_hour_are_missed_once_each() -> None:
    schedule = Schedule.parse("30 2 * * *", "Europe/Amsterdam")
    assert looked(schedule, "2026-01-01 00:00", "2026-12-31 12:00", "skip") == ([], 365)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "zone", ["Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
)
def test_a_restart_at_any_second_around_a_firing_starts_it_once(zone: str, policy: MisfirePolicy) -> None:
    """Whoever looks remembers when; wherever the restart falls, each firing is started or counted once."""
    schedule = Schedule.parse("30 1,2 * * *", zone)
    for change in (
        "2026-03-29 01:00",
        "2026-10-25 00:30",
        "2026-03-08 07:00",
        "2026-11-01 05:30",
        "2026-04-04 15:00",
    ):
        for firing in schedule.upcoming(utc(change) - DAY, 3):
            since, until = firing.at - 5 * MINUTE, firing.at + 5 * MINUTE
            expected = list(schedule.firings(since, until))
            for second in range(-30, 31):
                stops = [firing.at + second * SECOND, firing.at + (second + 20) * SECOND, until]
                assert started_and_missed(schedule, since, stops, policy) == (expected, 0)


def started_and_missed(
    schedule: Schedule, since: datetime, stops: list[datetime], policy: MisfirePolicy
) -> tuple[list[object], int]:
    found: list[Due] = []
    for now in stops:
        found.append(due(schedule, since, now, policy=policy, most=2, grace=10 * MINUTE))
        since = now
    return [firing for each in found for firing in each.firings], sum(each.missed for each in found)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "zone", ["Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]
)
def test_everything_scheduled_is_either_started_or_missed(zone: str, policy: MisfirePolicy) -> None:
    schedule = Schedule.parse("*/20 0-5 * * *", zone)
    start = utc("2011-12-25 00:00")
    for days in range(1, 12):
        for grace in (timedelta(), MINUTE, 90 * MINUTE, 40 * DAY):
            now = start + days * DAY + days * 37 * MINUTE
            found = due(schedule, start, now, policy=policy, most=5, grace=grace)
            everything = list(schedule.firings(start, now))
            assert list(found.firings) == everything[len(everything) - len(found.firings) :]
            assert len(found.firings) + found.missed == len(everything)
