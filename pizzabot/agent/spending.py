"""How much of today's budget is used? Promise 13 for a day, which all runs share.

The usage rows are the truth, so a restart changes nothing: what was used is summed from midnight of the
owner's zone on. Rows that are older than a minute change no more, and are summed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa

from pizzabot.agent import activity
from pizzabot.agent.activity import Sum
from pizzabot.agent.limits import used_up
from pizzabot.approvals import raises
from pizzabot.approvals.raises import DayBudgetName, Raised
from pizzabot.clock import day_of
from pizzabot.text import counted, dollars

NOTE_AT = 0.8  # of a budget
_NOTHING = Raised()

# A row is written within moments of its time; a minute is long enough for the slowest disk.
_SETTLED = timedelta(seconds=60)
_SUM_AGAIN = timedelta(seconds=65)  # what is younger is summed at every call


@dataclass(frozen=True, slots=True)
class DayBudget:
    """What a day may use; None is without bound. `zone` says when a day begins."""

    zone: str
    usd: float | None = None
    tokens: int | None = None
    of_person: Mapping[str, float] = field(default_factory=dict)  # dollars


@dataclass(frozen=True, slots=True)
class Bound:
    """One budget of a day and what was used of it. `base` is what the settings give."""

    name: DayBudgetName
    day: str
    used: float
    base: float
    raised: Raised = _NOTHING
    person: str | None = None
    unpriced: int = 0  # model calls that count as no money, because their price is not known

    @property
    def allowed(self) -> float:
        """What the settings give and people allowed since."""
        return self.base + self.raised.amount

    @property
    def is_used_up(self) -> bool:
        """Whether no further model call may start."""
        return used_up(self.used, self.allowed)

    @property
    def step(self) -> float:
        """What one approval allows more: a tenth of the budget, of money at least a dollar, and what was used
        beyond the budget already."""
        least = 1.0 if self.name != "day_tokens" else 1_000
        return min(self.base, max(self.base / 10, least)) + max(0.0, self.used - self.allowed)

    @property
    def key(self) -> str:
        """Names this budget of this day."""
        return "/".join(["budget", self.day, self.name, *([self.person] if self.person else [])])

    def spoken(self, amount: float) -> str:
        """An amount in words."""
        return f"{amount:,.0f} tokens" if self.name == "day_tokens" else dollars(amount)

    @property
    def uncounted(self) -> str:
        """What the budget leaves out, as a sentence behind another; empty when that is nothing."""
        if not self.unpriced:
            return ""
        return f" Not counted: {counted(self.unpriced, 'model call')} whose price is not known."

    @property
    def whose(self) -> str:
        """Whose budget it is, as a person reads it."""
        return f"{self.person}'s budget" if self.person else "the budget of everybody"


@dataclass(frozen=True, slots=True)
class Today:
    """The budgets that hold for one person's runs today."""

    day: str
    bounds: tuple[Bound, ...]

    def used_up(self) -> Bound | None:
        """The first budget that leaves no room."""
        return next((bound for bound in self.bounds if bound.is_used_up), None)


@dataclass(frozen=True, slots=True)
class _Settled:
    """By person, what was used of a day before `until`."""

    day: str
    until: datetime
    sums: Mapping[str, Sum]


class Spending:
    """The budgets of the day and what was used of them."""

    def __init__(self, budget: DayBudget) -> None:
        self.budget = budget
        self._settled: _Settled | None = None

    def today(self, connection: sa.Connection, now: datetime, person: str) -> Today:
        """What `person` and everybody used today, and what they may use."""
        day = day_of(now, self.budget.zone)
        sums = self._sums(connection, day.name, day.since, now)
        everybody, own = Sum().plus(*sums.values()), sums.get(person, Sum())
        found: list[Bound] = []
        if self.budget.usd is not None:
            found.append(
                Bound("day_usd", day.name, everybody.usd, self.budget.usd, unpriced=everybody.unpriced)
            )
        if self.budget.tokens is not None:
            found.append(Bound("day_tokens", day.name, everybody.tokens, self.budget.tokens))
        if (given := self.budget.of_person.get(person)) is not None:
            found.append(
                Bound("person_day_usd", day.name, own.usd, given, person=person, unpriced=own.unpriced)
            )
        if any(bound.is_used_up for bound in found):  # hardly ever: only then was anything allowed beyond it
            raised = raises.of_day(connection, day.name, person)
            found = [_raised(bound, raised) for bound in found]
        return Today(day.name, tuple(found))

    def _sums(self, connection: sa.Connection, day: str, since: datetime, now: datetime) -> Mapping[str, Sum]:
        settled = self._settled
        if settled is None or settled.day != day or settled.until > now:
            settled = _Settled(day, since, {})
        if now - settled.until > _SUM_AGAIN:
            until = now - _SETTLED
            more = activity.sums(connection, settled.until, until)
            settled = self._settled = _Settled(day, until, _both(settled.sums, more))
        return _both(settled.sums, activity.sums(connection, settled.until, None))


def _raised(bound: Bound, raised: Mapping[str, Raised]) -> Bound:
    return Bound(
        bound.name,
        bound.day,
        bound.used,
        bound.base,
        raised.get(bound.name, _NOTHING),
        bound.person,
        bound.unpriced,
    )


def _both(one: Mapping[str, Sum], other: Mapping[str, Sum]) -> Mapping[str, Sum]:
    return {person: one.get(person, Sum()).plus(other.get(person, Sum())) for person in {*one, *other}}
