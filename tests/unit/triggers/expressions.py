"""Random cron expressions, and what the moments of tests are written as."""

from __future__ import annotations

import random
from datetime import UTC, datetime

WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Lowest and highest value, the longest step, the names.
FIELDS: tuple[tuple[int, int, int, tuple[str, ...]], ...] = (
    (0, 59, 60, ()),
    (0, 23, 24, ()),
    (1, 31, 31, ()),
    (1, 12, 12, MONTHS),
    (0, 7, 7, WEEKDAYS),
)


def utc(text: str) -> datetime:
    """`2026-03-29 01:00` in UTC; with an offset in the text, that moment."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def random_expression(dice: random.Random) -> str:
    """Five fields of every form that is standard, half of them plain stars."""
    return " ".join(_field(dice, *field) for field in FIELDS)


def _field(dice: random.Random, low: int, high: int, longest: int, names: tuple[str, ...]) -> str:
    if dice.random() < 0.4:
        return "*"
    count = dice.choice((1, 1, 1, 2, 3))
    return ",".join(_item(dice, low, high, longest, names) for _ in range(count))


def _item(dice: random.Random, low: int, high: int, longest: int, names: tuple[str, ...]) -> str:
    form = dice.choice(("value", "value", "range", "star/step", "range/step", "value/step"))
    first, last = sorted(dice.sample(range(low, high + 1), 2))
    step = dice.randint(1, longest)
    if form == "star/step":
        return f"*/{step}"
    if form.startswith("range"):
        start = f"{_value(dice, first, low, names)}-{_value(dice, last, low, names)}"
    else:
        start = _value(dice, dice.choice((first, last)), low, names)
    return f"{start}/{step}" if form.endswith("/step") else start


def _value(dice: random.Random, number: int, low: int, names: tuple[str, ...]) -> str:
    if number - low < len(names) and dice.random() < 0.5:
        name = names[number - low]
        return dice.choice((name, name.upper(), name.capitalize()))
    return str(number)
