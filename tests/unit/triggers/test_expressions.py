"""What a cron expression means, which ones are refused with which words, and how one is said."""

from __future__ import annotations

import pytest

from pizzabot.errors import Invalid
from pizzabot.triggers.schedules import LONGEST_EXPRESSION, Schedule
from tests.unit.triggers.expressions import utc


def moments(expression: str, after: str, count: int, zone: str = "UTC") -> list[str]:
    schedule = Schedule.parse(expression, zone)
    return [f"{firing.at:%Y-%m-%d %H:%M}" for firing in schedule.upcoming(utc(after), count)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 8 * * *", ["2026-01-01 08:30", "2026-01-02 08:30"]),
        ("0 9-17/4 * * *", ["2026-01-01 09:00", "2026-01-01 13:00", "2026-01-01 17:00", "2026-01-02 09:00"]),
        ("5/20 0 * * *", ["2026-01-01 00:05", "2026-01-01 00:25", "2026-01-01 00:45", "2026-01-02 00:05"]),
        ("7-7 0 * * *", ["2026-01-01 00:07", "2026-01-02 00:07"]),
        ("7-7/2 0 * * *", ["2026-01-01 00:07", "2026-01-02 00:07"]),
        ("0 0 * * mon-fri", ["2026-01-01 00:00", "2026-01-02 00:00", "2026-01-05 00:00"]),
        ("0 0 * * Mon,WED", ["2026-01-05 00:00", "2026-01-07 00:00", "2026-01-12 00:00"]),
        ("0 0 * * 0", ["2026-01-04 00:00", "2026-01-11 00:00"]),
        ("0 0 * * 7", ["2026-01-04 00:00", "2026-01-11 00:00"]),
        ("0 0 * * 5-7", ["2026-01-02 00:00", "2026-01-03 00:00", "2026-01-04 00:00", "2026-01-09 00:00"]),
        ("0 0 1 feb,JUN-aug/2 *", ["2026-02-01 00:00", "2026-06-01 00:00", "2026-08-01 00:00"]),
        ("@hourly", ["2026-01-01 00:00", "2026-01-01 01:00"]),
        ("@daily", ["2026-01-01 00:00", "2026-01-02 00:00"]),
        ("@midnight", ["2026-01-01 00:00", "2026-01-02 00:00"]),
        ("@Weekly", ["2026-01-04 00:00", "2026-01-11 00:00"]),
        ("@monthly", ["2026-01-01 00:00", "2026-02-01 00:00"]),
        ("@yearly", ["2026-01-01 00:00", "2027-01-01 00:00"]),
        ("@annually", ["2026-01-01 00:00", "2027-01-01 00:00"]),
        ("  0\t8 *  * * ", ["2026-01-01 08:00", "2026-01-02 08:00"]),
        ("08 08 01 01 *", ["2026-01-01 08:08", "2027-01-01 08:08"]),
    ],
)
def test_an_expression_fires_as_crontab_says(expression: str, expected: list[str]) -> None:
    assert moments(expression, "2025-12-31 23:59", len(expected)) == expected


def test_two_restricted_kinds_of_day_are_alternatives() -> None:
    expected = ["2026-02-01", "2026-02-02", "2026-02-09", "2026-02-13", "2026-02-16"]
    assert moments("0 0 1,13 2 mon", "2026-01-01", 5) == [f"{day} 00:00" for day in expected]


@pytest.mark.parametrize("expression", ["0 0 */2 * mon", "0 0 */31,3-31/2 * mon"])
def test_a_day_that_begins_with_a_star_has_to_match_too(expression: str) -> None:
    assert moments(expression, "2026-01-01", 3) == [
        "2026-01-05 00:00",
        "2026-01-19 00:00",
        "2026-02-09 00:00",
    ]


def test_the_31st_is_skipped_in_shorter_months() -> None:
    expected = ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31", "2026-08-31", "2026-10-31"]
    assert moments("0 0 31 * *", "2026-01-01", 6) == [f"{day} 00:00" for day in expected]


def test_the_29th_of_february_fires_in_leap_years_only() -> None:
    expected = ["2088-02-29", "2092-02-29", "2096-02-29", "2104-02-29"]  # 2100 is none
    assert moments("0 0 29 2 *", "2087-01-01", 4) == [f"{day} 00:00" for day in expected]


def test_the_rarest_of_all_expressions_is_found() -> None:
    """29 February on a Sunday: 40 years apart over 2100."""
    assert moments("0 0 29 2 */7", "2088-03-01", 2) == ["2128-02-29 00:00", "2156-02-29 00:00"]


def test_the_end_of_the_calendar_ends_the_firings() -> None:
    schedule = Schedule.parse("@yearly", "Pacific/Kiritimati")
    assert len(schedule.upcoming(utc("9990-06-01"), 100)) == 9
    assert schedule.upcoming(utc("9999-12-31 23:59"), 1) == []


def test_the_local_day_counts_in_the_zone() -> None:
    """Monday 00:30 in Auckland is still Sunday in UTC."""
    assert moments("30 0 * * mon", "2026-06-01", 1, "Pacific/Auckland") == ["2026-06-07 12:30"]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "it has 0 fields; write five (minute, hour, day of the month, month, day of the week)"),
        ("0 8 * *", "it has 4 fields; write five"),
        ("0 0 8 * * mon", "it has 6 fields (seconds and years are not part of it); write five"),
        ("@reboot", "with @ there are only @hourly, @daily"),
        ("@daily 8", "with @ there are only @hourly"),
        ("60 * * * *", 'minute: "60" is out of range; write 0 to 59'),
        ("0 24 * * *", 'hour: "24" is out of range; write 0 to 23'),
        ("0 0 0 * *", 'day of the month: "0" is out of range; write 1 to 31'),
        ("0 0 1 13 *", 'month: "13" is out of range; write 1 to 12'),
        ("0 0 * * 8", 'day of the week: "8" is out of range; write 0 to 7'),
        ("99999999999 * * * *", 'minute: "99999999999" is out of range'),
        ("0 17-9 * * *", 'hour: "17-9" runs backwards; write "17-23,0-9"'),
        ("0 0 * * fri-sun", 'day of the week: "fri-sun" runs backwards; write "5-7"'),
        ("0 0 * * sat-mon", 'day of the week: "sat-mon" runs backwards; write "6,0-1"'),
        ("0 0 * * 7-2", 'day of the week: "7-2" runs backwards; write "0-2"'),
        ("0 0 * nov-feb *", 'month: "nov-feb" runs backwards; write "11-12,1-2"'),
        ("*/0 * * * *", 'minute: "*/0" has a step of 0; write 1 to 60'),
        ("*/90 * * * *", 'minute: "*/90" has a step of 90; write 1 to 60'),
        ("0 9, * * *", 'hour: a place in the list is empty; write it as "1,5"'),
        ("0 0 ? * *", 'day of the month: "?" is not standard cron; write "*"'),
        ("0 0 L * *", 'day of the month: "L" is not standard cron; write the days as numbers'),
        ("0 0 15W * *", 'day of the month: "15W" is not standard cron'),
        ("0 0 * * friL", 'day of the week: "friL" is not standard cron'),
        ("0 0 * * mon#1", 'day of the week: "mon#1" is not standard cron'),
        ("H * * * *", 'minute: "H" is not standard cron; write one number'),
        ("R(1-5) * * * *", 'minute: "R(1-5)" is not standard cron; write one number'),
        ("0~30 * * * *", 'minute: "0~30" is not standard cron; write one number'),
        ("0 0 1 January *", 'month: "January" is not known; write "jan"'),
        ("0 0 * * monday-friday", 'day of the week: "monday-friday" is not known; write "mon-fri"'),
        ("0 0 * * jul", 'day of the week: "jul" is not known; write a number from 0 to 7, a name such as'),
        ("mon 0 * * *", 'minute: "mon" is not known; write a number from 0 to 59, a range'),
        ("-5 * * * *", 'minute: "-5" is not known'),
        ("1-3-5 * * * *", 'minute: "1-3-5" is not known'),
        ("*-5 * * * *", 'minute: "*-5" is not known'),
        ("1.5 * * * *", 'minute: "1.5" is not known'),
        ("٣ * * * *", 'minute: "٣" is not known'),
        ("0 8 *\n* *", "it has 4 fields"),
        ("0 8 *\u00a0* * *", r'day of the month: "*\xa0*" is not known'),
        ("0 0 * * \u202emon", r'day of the week: "\u202emon" is not known'),
        ("0 0 30 2 *", "it never fires, because February has no day 30; write a day that there is"),
        ("0 0 31 2,4,6 *", "it never fires, because none of these months has a day 31"),
        ("0 0 31 2 */2", "it never fires, because February has no day 31"),
        ("0," * 250 + "0 * * * *", f"it is longer than {LONGEST_EXPRESSION} characters"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_cure(expression: str, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        Schedule.parse(expression, "UTC")
    assert refused.value.code == "invalid_cron"
    assert f"is no schedule: {words}" in str(refused.value)
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()


def test_an_impossible_date_beside_a_weekday_fires_on_the_weekday() -> None:
    assert moments("0 0 30 2 mon", "2026-02-01", 2) == ["2026-02-02 00:00", "2026-02-09 00:00"]


@pytest.mark.parametrize(
    "zone", ["", "Mars/Olympus", "../etc/passwd", "Europe", "Europe/\u202eParis", "a\0b"]
)
def test_a_zone_that_is_not_known_is_refused(zone: str) -> None:
    with pytest.raises(Invalid, match="is not a time zone; write a name such as") as refused:
        Schedule.parse("@daily", zone)
    assert refused.value.code == "invalid_timezone"


def test_the_same_expression_and_zone_are_the_same_schedule() -> None:
    one, other = Schedule.parse("0  8 * * *", "UTC"), Schedule.parse("0 8 * * *", "UTC")
    assert one == other
    assert hash(one) == hash(other)
    assert one != Schedule.parse("0 8 * * *", "Europe/London")
    assert repr(one) == "Schedule(expression='0 8 * * *', zone='UTC')"


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 8 * * 1-5", "weekdays at 08:00"),
        ("0 8 * * mon,tue,wed,thu,fri", "weekdays at 08:00"),
        ("0 8 * * *", "every day at 08:00"),
        ("0 8,17 * * *", "every day at 08:00 and 17:00"),
        ("15 6,12,18 * * 0,6", "weekends at 06:15, 12:15 and 18:15"),
        ("0 8 * * mon,sun", "Mondays and Sundays at 08:00"),
        ("0 9 1 * *", "on day 1 of each month at 09:00"),
        ("0 9 1,15 * *", "on day 1 and 15 of each month at 09:00"),
        ("@yearly", "every year on 1 January at 00:00"),
        ("@hourly", "every hour"),
        ("30 * * * *", "every hour at :30"),
        ("*/15 * * * *", "every 15 minutes"),
        ("* * * * *", "every minute"),
        ("*/20 * * * mon-fri", "weekdays, every 20 minutes"),
        ("0 8 1-31 * mon", "every day at 08:00"),
        ("0 8 1 * 0-6", "every day at 08:00"),
        ("0 8 1 * mon", "0 8 1 * mon"),
        ("*/7 * * * *", "*/7 * * * *"),
        ("0 0-23/2 * * *", "0 0-23/2 * * *"),
        ("0 8 * 1 *", "0 8 * 1 *"),
        ("0 8 */2 * mon", "0 8 */2 * mon"),
    ],
)
def test_a_simple_schedule_is_said_in_words(expression: str, words: str) -> None:
    assert Schedule.parse(expression, "Europe/Amsterdam").spoken() == f"{words} (Europe/Amsterdam)"
