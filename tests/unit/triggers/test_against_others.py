"""Ten thousand random expressions against implementations that share no line with ours."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from cronsim import CronSim, CronSimError

from pizzabot.errors import Invalid
from pizzabot.triggers.schedules import Schedule
from tests.unit.triggers.expressions import MONTHS, WEEKDAYS, random_expression
from tests.unit.triggers.zones import changes

EXPRESSIONS = 10_000
YEARS = timedelta(days=3653)


def drawn(seed: int, count: int) -> Iterator[tuple[str, datetime]]:
    """Expressions, each with a moment between 2020 and 2040."""
    dice = random.Random(seed)
    for _ in range(count):
        after = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(20 * 365 * 86400))
        yield random_expression(dice), after


def ours(expression: str, after: datetime, zone: str = "UTC") -> list[datetime] | None:
    """The next five firings within ten years; None when the expression is refused."""
    try:
        schedule = Schedule.parse(expression, zone)
    except Invalid:
        return None
    return [firing.at for firing in islice(schedule.firings(after, after + YEARS), 5)]


def test_random_expressions_fire_as_in_cronsim() -> None:
    refused = 0
    for expression, after in drawn(1, EXPRESSIONS):
        try:
            theirs = islice(CronSim(expression, after), 5)
            expected = list(takewhile(lambda at, end=after + YEARS: at <= end, theirs))  # type: ignore[misc]
        except CronSimError:
            assert ours(expression, after) is None, expression
            refused += 1
        else:
            assert ours(expression, after) == expected, (expression, after)
    assert 0 < refused < EXPRESSIONS / 100  # the 31st of months that have none


def test_random_expressions_fire_as_in_croniter() -> None:
    compared = 0
    for expression, after in drawn(2, 600):
        found = ours(expression, after)
        # There, Sunday is 0 alone when a step runs up to it, so that 4/3 stops at 6, and a star anywhere in a
        # list makes it unrestricted.
        if not found or re.search(r"[0-7a-z]/|,\*", " ".join(expression.split()[2::2]), re.IGNORECASE):
            continue
        theirs = croniter(expression, after, ret_type=datetime, implement_cron_bug=True)
        assert found == [theirs.get_next() for _ in found], (expression, after)
        compared += 1
    assert compared > 250


@pytest.mark.parametrize("zone", ["Europe/Amsterdam", "America/New_York", "Australia/Sydney", "Asia/Kolkata"])
def test_changes_of_the_clock_are_as_in_cronsim(zone: str) -> None:
    """Hours without a star are fixed there too, and with one it is every hour."""
    dice = random.Random(zone)
    for change in changes(zone) or [datetime(2026, 3, 29, tzinfo=UTC)]:
        start, end = change - timedelta(days=2), change + timedelta(days=2)
        for _ in range(12):
            hour = dice.choice(("*", "1-3", "2", "0,1,2,3", "0"))
            expression = f"{dice.choice(('0', '30', '10,50'))} {hour} * * {dice.choice(('*', '0', '0-3'))}"
            theirs = CronSim(expression, start.astimezone(ZoneInfo(zone)))
            # Times that a gap swallows come one by one there, at the same moment.
            expected = sorted({at.astimezone(UTC) for at in islice(theirs, 300)})
            found = [firing.at for firing in Schedule.parse(expression, zone).firings(start, end)]
            assert found == [at for at in expected if at <= end], expression


# -- systemd ---------------------------------------------------------------------------------------------


def calendar_event(expression: str) -> str | None:
    """The same as an OnCalendar= of systemd.time(7); None where that knows no such thing.

    Weekday and date always have to match both there, and weekdays have no steps. Days of the month do, but
    systemd 252 leaves out the first of January over them.
    """
    minute, hour, day, month, weekday = expression.lower().split()
    if "/" in weekday + day or not (day.startswith("*") or weekday.startswith("*")):
        return None
    month = re.sub("[a-z]{3}", lambda name: str(MONTHS.index(name[0]) + 1), month)
    weekday = re.sub("[0-7]", lambda number: WEEKDAYS[int(number[0]) % 7], weekday)
    if "sun-" in weekday:  # the week begins on Monday there
        return None
    days = "" if weekday == "*" else f"{weekday.replace('-', '..')} "
    date, clock = (
        f"*-{_part(month, 1, 12)}-{_part(day, 1, 31)}",
        f"{_part(hour, 0, 23)}:{_part(minute, 0, 59)}:00",
    )
    return f"{days}{date} {clock} UTC"


def _part(text: str, low: int, high: int) -> str:
    """The items of a field; a step that leads nowhere is an error there."""
    return ",".join(_one(item, low, high) for item in text.split(","))


def _one(item: str, low: int, high: int) -> str:
    span, _, step = item.partition("/")
    first, _, last = span.replace("*", str(low) if step else "*").partition("-")
    if step and int(first) + int(step) > int(last or high):
        return first
    return f"{first}{'..' if last else ''}{last}{'/' if step else ''}{step}"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_random_expressions_fire_as_in_systemd() -> None:
    compared = 0
    for expression, after in drawn(3, 600):
        event, found = calendar_event(expression), ours(expression, after)
        if event is None or not found:
            continue
        done = subprocess.run(
            [
                "systemd-analyze",
                "calendar",
                f"--iterations={len(found)}",
                f"--base-time=@{after.timestamp():.0f}",
                event,
            ],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
        )
        assert done.returncode == 0, (expression, event, done.stderr)
        times = re.findall(r"(?:Next elapse|Iter\. #\d+|Iteration #\d+): \w+ (\S+ \S+) UTC", done.stdout)
        assert times == [f"{at:%Y-%m-%d %H:%M:%S}" for at in found], (expression, event, after)
        compared += 1
    assert compared > 150
