"""How much may a run use, and how much did it use? Promise 13 as numbers.

A run is bounded by what it used in all its parts together; waiting for a person is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from pizzabot.text import dollars

LimitName = Literal["run_seconds", "model_calls", "tool_calls", "usd", "tokens"]
BUDGETS: tuple[LimitName, ...] = ("usd", "tokens")  # known only once a call has ended

_SPOKEN: Mapping[LimitName, str] = {
    "run_seconds": "seconds of work",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
}
_A_TRIFLE = 1e-9  # sums of cents are not exact


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number for each limit: what is allowed, or what was used. As an allowance None is without bound."""

    run_seconds: float = 0.0
    model_calls: int = 0
    tool_calls: int = 0
    usd: float | None = 0.0
    tokens: int | None = 0

    @classmethod
    def from_json(cls, values: Mapping[str, Any], absent: Bounds | None = None) -> Self:
        """From a stored row; what is absent there is as in `absent`, else 0."""
        known = {name: values[name] for name in cls.__slots__ if name in values}
        return cls(**((absent.to_json() if absent is not None else {}) | known))

    def to_json(self) -> dict[str, Any]:
        """For a stored row."""
        return {name: getattr(self, name) for name in self.__slots__}  # asdict makes deep copies

    def plus(self, name: LimitName, amount: float) -> Self:
        """The same with one number raised."""
        return replace(self, **{name: getattr(self, name) + amount})


def used_up(used: float, allowed: float | None, beside: float = 0.0) -> bool:
    """Whether nothing is left, also when what is under way uses `beside`."""
    return allowed is not None and used + beside > allowed - _A_TRIFLE


def reached(used: Bounds, allowance: Bounds, names: tuple[LimitName, ...]) -> LimitName | None:
    """The first of these limits that leaves no room for another call."""
    for name in names:
        if used_up(getattr(used, name), getattr(allowance, name)):
            return name
    return None


def spoken(name: LimitName, amount: float) -> str:
    """`amount` of a limit in words, such as "40 model calls"."""
    if name == "usd":
        return dollars(amount)
    return f"{amount:,.0f} tokens" if name == "tokens" else f"{amount:g} {_SPOKEN[name]}"
