"""Is the moment that somebody writes the one they mean, on the clock of their wall?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.approvals.when import LONGEST, parse_when

AMSTERDAM, NEW_YORK = ZoneInfo("Europe/Amsterdam"), ZoneInfo("America/New_York")
MONDAY = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)  # ten in Amsterdam


def local(text: str, now: datetime = MONDAY, zone: ZoneInfo = AMSTERDAM) -> str:
    return f"{parse_when(text, now, zone).astimezone(zone):%a %Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("30m", 30),
        ("90 min", 90),
        ("2h", 120),
        ("in 2 hours", 120),
        ("for 1 hour", 60),
        ("1h30", 90),
        ("1h 30m", 90),
        ("1 day and 2 hours", 26 * 60),
        ("3d", 3 * 24 * 60),
        ("1 week", 7 * 24 * 60),
        ("  2H. ", 120),
    ],
)
def test_a_length_of_time_counts_from_now(text: str, minutes: int) -> None:
    assert parse_when(text, MONDAY, AMSTERDAM) == MONDAY + timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("tomorrow", "Tue 2026-03-03 09:00"),
        ("tomorrow 14:30", "Tue 2026-03-03 14:30"),
        ("tomorrow at 2pm", "Tue 2026-03-03 14:00"),
        ("tomorrow afternoon", "Tue 2026-03-03 14:00"),
        ("today 17:00", "Mon 2026-03-02 17:00"),
        ("17:00", "Mon 2026-03-02 17:00"),
        ("at 9", "Tue 2026-03-03 09:00"),
        ("9am", "Tue 2026-03-03 09:00"),
        ("12am", "Tue 2026-03-03 00:00"),
        ("12pm", "Mon 2026-03-02 12:00"),
        ("noon", "Mon 2026-03-02 12:00"),
        ("Fri", "Fri 2026-03-06 09:00"),
        ("Friday", "Fri 2026-03-06 09:00"),
        ("until Fri, 8:15", "Fri 2026-03-06 08:15"),
        ("on thursday evening", "Thu 2026-03-05 18:00"),
        ("Mon", "Mon 2026-03-09 09:00"),
        ("Mon 17:00", "Mon 2026-03-02 17:00"),
        ("Mon 8:00", "Mon 2026-03-09 08:00"),
        ("next Mon 17:00", "Mon 2026-03-09 17:00"),
        ("2026-03-09", "Mon 2026-03-09 09:00"),
        ("2026-03-09 16:45", "Mon 2026-03-09 16:45"),
        ("2026-03-09T16:45", "Mon 2026-03-09 16:45"),
        ("2026-03-09T16:45:30+00:00", "Mon 2026-03-09 17:45"),
        ("2026-03-09T16:45Z", "Mon 2026-03-09 17:45"),
    ],
)
def test_a_day_or_a_time_is_meant_on_the_wall_of_the_person(text: str, meant: str) -> None:
    assert local(text) == meant


def test_what_tomorrow_is_depends_on_where_somebody_is() -> None:
    late = datetime(2026, 3, 3, 1, 0, tzinfo=UTC)  # still Monday in New York
    assert local("tomorrow", late, NEW_YORK) == "Tue 2026-03-03 09:00"
    assert local("tomorrow", late) == "Wed 2026-03-04 09:00"


@pytest.mark.parametrize(
    ("now", "text", "meant"),
    [
        (datetime(2026, 3, 28, 12, 0, tzinfo=UTC), "tomorrow 9:00", datetime(2026, 3, 29, 7, 0, tzinfo=UTC)),
        (datetime(2026, 3, 28, 12, 0, tzinfo=UTC), "tomorrow 2:30", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        (
            datetime(2026, 10, 24, 12, 0, tzinfo=UTC),
            "tomorrow 9:00",
            datetime(2026, 10, 25, 8, 0, tzinfo=UTC),
        ),
        (datetime(2026, 10, 24, 12, 0, tzinfo=UTC), "24h", datetime(2026, 10, 25, 12, 0, tzinfo=UTC)),
    ],
)
def test_a_clock_that_is_changed_in_between_moves_days_and_not_lengths(
    now: datetime, text: str, meant: datetime
) -> None:
    assert parse_when(text, now, AMSTERDAM) == meant


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "later",
            "soon",
            "Monday or Tuesday",
            "T",
            "mo",
            "sundae",
            "25:00",
            "13pm",
            "0pm",
            "9:75",
            "99",
        ),
        *("2x", "-2h", "2026-13-01", "2026-02-30 9:00", "tomorrow 25:00", "٢h", "1h" * 40, "2026-", "9999-"),
    ],
)
def test_what_is_no_time_is_told_what_can_be_written(text: str) -> None:
    with pytest.raises(ValueError, match="no time that can be understood; write 2h, 3 days, tomorrow"):
        parse_when(text, MONDAY, AMSTERDAM)


@pytest.mark.parametrize("text", ["today 8:00", "2026-03-01", "0h", "2020-01-01T00:00Z"])
def test_what_is_over_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="over already"):
        parse_when(text, MONDAY, AMSTERDAM)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
@pytest.mark.parametrize(
    "text", ["0001-01-01", "0001-01-01T00:00+09:00", "9999-12-31 23:59", "9999-12-31T23:59-09:00"]
)
def test_the_edges_of_the_calendar_are_told_a_sentence_in_every_zone(text: str, zone: str) -> None:
    with pytest.raises(ValueError, match=r"^This .*\.$"):
        parse_when(text, MONDAY, ZoneInfo(zone))


@pytest.mark.parametrize("text", ["53w", "2027-03-10", "9999-12-31"])
def test_what_is_too_far_away_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="more than a year away"):
        parse_when(text, MONDAY, AMSTERDAM)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    text=st.lists(
        st.sampled_from(
            [
                *("in", "2", "9", "30", "h", "m", "am", "pm", ":", "-", "at", "mon", "next", "today", "2026"),
                *("03", "tomorrow", "T", "Z", "+", "noon", ",", "."),
            ]
        ),
        max_size=7,
    ).map(" ".join)
    | st.text(max_size=70),
    now=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_whatever_is_written_is_a_time_to_come_or_a_sentence(text: str, now: datetime) -> None:
    try:
        found = parse_when(text, now, NEW_YORK)
    except ValueError:
        return
    assert now < found <= now + LONGEST
    assert found.tzinfo is UTC
