"""What holds for every schedule in every zone over every interval."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pizzabot.errors import Invalid
from pizzabot.triggers.schedules import Schedule
from tests.unit.triggers.expressions import random_expression

ZONES = [
    "UTC",
    "Europe/Amsterdam",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/St_Johns",
    "Antarctica/Troll",
]
# Around a change of the clock of one of these zones, or anywhere.
CHANGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),
    datetime(2010, 11, 7, 2, 31, tzinfo=UTC),
    datetime(2018, 11, 4, 3, tzinfo=UTC),
]
SPANS = st.timedeltas(timedelta(), timedelta(days=4))
MOMENTS = st.one_of(
    st.builds(lambda change, span: change - span, st.sampled_from(CHANGES), SPANS),
    st.integers(0, 42_000).map(lambda days: datetime(1975, 1, 1, tzinfo=UTC) + timedelta(days, days, days)),
)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    expression = random_expression(random.Random(draw(st.integers(0, 2**32))))
    try:
        return Schedule.parse(expression, draw(st.sampled_from(ZONES)))
    except Invalid:
        assume(False)
        raise


@given(schedules(), MOMENTS, SPANS, st.fractions(0, 1), st.integers(0, 50))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_an_interval_has_the_same_firings_however_it_is_asked_for(
    schedule: Schedule, after: datetime, span: timedelta, part: float, number: int
) -> None:
    until, between = after + span, after + span * float(part)
    firings = list(schedule.firings(after, until))
    assert all(after < firing.at <= until for firing in firings)
    assert all(a.at < b.at for a, b in pairwise(firings))
    assert all(a.key < b.key for a, b in pairwise(firings))
    assert [*schedule.firings(after, between), *schedule.firings(between, until)] == firings
    assert schedule.count(after, until) == len(firings)
    assert schedule.newest(after, until, number) == firings[max(0, len(firings) - number) :]
    assert schedule.upcoming(after, min(number, len(firings))) == firings[:number]
    for firing in firings[:3]:
        assert list(schedule.firings(firing.at - timedelta.resolution, firing.at)) == [firing]


@given(schedules(), MOMENTS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_every_schedule_fires_again_within_forty_years(schedule: Schedule, after: datetime) -> None:
    (firing,) = schedule.upcoming(after, 1)
    assert firing.at - after < timedelta(days=40 * 366)
    assert firing.at.tzinfo is UTC


@given(schedules(), MOMENTS, SPANS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_nothing_fires_in_an_interval_that_runs_backwards(
    schedule: Schedule, after: datetime, span: timedelta
) -> None:
    assert list(schedule.firings(after, after - span)) == []
    assert schedule.count(after, after - span) == 0
    assert schedule.newest(after, after - span, 3) == []
