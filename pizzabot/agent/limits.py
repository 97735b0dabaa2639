"""How much may a run use, and how much did it use? Promise 13 as numbers.

A run is bounded by what it used in all its parts together; waiting for a person is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self

LimitName = Literal["run_seconds", "model_calls", "tool_calls"]

_SPOKEN: Mapping[LimitName, str] = {
    "run_seconds": "seconds of work",
    "model_calls": "model calls",
    "tool_calls": "tool calls",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number for each limit: what is allowed, or what was used."""

    run_seconds: float = 0.0
    model_calls: int = 0
    tool_calls: int = 0

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """From a stored row; what is absent is 0."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})

    def to_json(self) -> dict[str, Any]:
        """For a stored row."""
        return asdict(self)

    def plus(self, name: LimitName, amount: float) -> Self:
        """The same with one number raised."""
        return replace(self, **{name: getattr(self, name) + amount})


def reached(used: Bounds, allowance: Bounds, names: tuple[LimitName, ...]) -> LimitName | None:
    """The first of these limits that leaves no room for another call."""
    for name in names:
        if getattr(used, name) >= getattr(allowance, name):
            return name
    return None


def spoken(name: LimitName, amount: float) -> str:
    """`amount` of a limit in words, such as "40 model calls"."""
    return f"{amount:g} {_SPOKEN[name]}"
