"""Is nothing said faster than Slack takes it, and does whoever waits come to their turn?"""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.slack.pacing import Pace

SMALL = 1e-6


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _pace(per_second: float = 1.0, burst: int = 3) -> tuple[Pace, _Clock]:
    clock = _Clock()
    return Pace(per_second, burst, clock), clock


ARRIVALS = st.lists(st.floats(0, 30), min_size=1, max_size=40)
PAUSES = st.lists(st.tuples(st.floats(0, 40), st.floats(0, 20)), max_size=3)


def _granted(
    arrivals: list[float], pauses: list[tuple[float, float]], rate: float, burst: int
) -> list[tuple[float, int]]:
    """When who was let through; each comes back exactly when told to."""
    pace, clock = _pace(rate, burst)
    line: list[tuple[float, int, int, float]] = [(at, 1, n, 0.0) for n, at in enumerate(arrivals)]
    line += [(at, 0, n, seconds) for n, (at, seconds) in enumerate(pauses)]
    heapq.heapify(line)
    granted: list[tuple[float, int]] = []
    for _ in range(10_000):
        if not line:
            return granted
        clock.now, kind, number, seconds = heapq.heappop(line)
        if kind == 0:
            pace.pause("C0", seconds)
        elif wait := pace.wait_seconds("C0", str(number)):
            heapq.heappush(line, (clock.now + max(wait, SMALL / 1_000), 1, number, 0.0))
        else:
            granted.append((clock.now, number))
    raise AssertionError("somebody waits for ever")


@settings(deadline=None)
@given(ARRIVALS, PAUSES, st.sampled_from([0.5, 1.0, 3.0]), st.integers(1, 6))
def test_no_stretch_of_time_holds_more_than_the_burst_and_the_rate(
    arrivals: list[float], pauses: list[tuple[float, float]], rate: float, burst: int
) -> None:
    times = [at for at, _ in _granted(arrivals, pauses, rate, burst)]
    assert len(times) == len(arrivals)
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + rate * (times[last] - begin) + SMALL


@settings(deadline=None)
@given(ARRIVALS, PAUSES)
def test_nobody_passes_during_a_pause(arrivals: list[float], pauses: list[tuple[float, float]]) -> None:
    for at, _ in _granted(arrivals, pauses, 1.0, 3):
        assert not any(begin < at < begin + seconds - SMALL for begin, seconds in pauses)


@settings(deadline=None)
@given(ARRIVALS)
def test_who_waits_is_let_through_when_told(arrivals: list[float]) -> None:
    pace, clock = _pace(burst=2)
    for number, at in enumerate(sorted(arrivals)):
        clock.now = at
        told = pace.wait_seconds("C0", str(number))
        if told:
            clock.now = at + told + SMALL
            assert pace.wait_seconds("C0", str(number)) == 0
            clock.now = at


def test_who_comes_first_is_first() -> None:
    pace, _ = _pace(burst=1)
    assert [pace.wait_seconds("C0", who) for who in "abcd"] == [0, 1, 2, 3]


def test_asking_again_takes_no_second_place() -> None:
    pace, clock = _pace(burst=1)
    pace.wait_seconds("C0", "a")
    assert [pace.wait_seconds("C0", "b") for _ in range(5)] == [1.0] * 5
    clock.now = 0.75
    assert pace.wait_seconds("C0", "b") == 0.25
    assert pace.wait_seconds("C0", "c") == 1.25


def test_who_was_let_through_lines_up_anew() -> None:
    pace, _ = _pace(burst=1)
    assert [pace.wait_seconds("C0", "a") for _ in range(2)] == [0, 1]


def test_names_do_not_wait_for_each_other() -> None:
    pace, _ = _pace(burst=1)
    pace.pause("C0", 10)
    assert pace.wait_seconds("C0", "a") == 10
    assert pace.wait_seconds("C1", "a") == 0


def test_after_a_pause_the_line_moves_on_at_the_same_pace() -> None:
    pace, clock = _pace(burst=1)
    assert [pace.wait_seconds("C0", who) for who in "abc"] == [0, 1, 2]
    pace.pause("C0", 10)
    assert [pace.wait_seconds("C0", who) for who in "bcd"] == [11, 12, 13]
    clock.now = 11
    assert [pace.wait_seconds("C0", who) for who in "bcd"] == [0, 1, 2]


@pytest.mark.parametrize("second", [0.0, 3.0, 7.0])
def test_a_shorter_pause_does_not_end_a_longer_one(second: float) -> None:
    pace, _ = _pace()
    pace.pause("C0", 7)
    pace.pause("C0", second)
    assert pace.wait_seconds("C0", "a") == 7


def test_room_is_told_without_taking_it() -> None:
    pace, clock = _pace(burst=3)
    assert all(pace.is_free("C0", 2) for _ in range(9))
    assert not pace.is_free("C0", 3)
    pace.wait_seconds("C0", "a")
    assert (pace.is_free("C0", 1), pace.is_free("C0", 2)) == (True, False)
    clock.now = 1
    assert pace.is_free("C0", 2)
    pace.pause("C0", 1)
    assert not pace.is_free("C0", 0)


def test_what_is_long_over_is_forgotten_and_who_waits_is_not() -> None:
    pace, clock = _pace(burst=1)
    for number in range(10_000):
        pace.wait_seconds(f"C{number}", "a")
    clock.now = 5
    pace.wait_seconds("busy", "a")
    assert pace.wait_seconds("busy", "b") == 1
    pace.wait_seconds("C0", "a")
    clock.now = 6
    assert pace.wait_seconds("busy", "b") == 0
