"""What can be read of what was used: by day, person, model and trigger, and in one line?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from pizzabot.agent import activity
from pizzabot.agent.activity import Tokens
from pizzabot.agent.spending import DayBudget, Spending
from pizzabot.database.connection import Database
from pizzabot.people import People, Person
from pizzabot.reports import Reports
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, CAY

DAN = Person("Dan", "member")
BUDGET = DayBudget("Europe/Amsterdam", usd=20.0, tokens=None, of_person={"Cay": 2.0})


def reports_of(database: Database, clock: FakeClock, budget: DayBudget = BUDGET) -> Reports:
    nobody = cast(Any, None)
    return Reports(
        database=database,
        clock=clock,
        settings=nobody,
        skills=nobody,
        people=People([ADA, CAY, DAN]),
        channels={},
        context_of=lambda _: None,
        spending=Spending(budget),
    )


async def spend(
    database: Database,
    at: datetime,
    usd: float | None,
    *,
    person: str = "Ada",
    trigger_id: str | None = None,
    model: str = "openai:gpt-5",
) -> None:
    def work(connection: Any) -> None:
        activity.spend(
            connection,
            Tokens(100, 10, usd),
            at,
            thread_id="t",
            run_id="r",
            person=person,
            model=model,
            trigger_id=trigger_id,
        )

    await database.write(work)


async def test_usage_is_summed_by_the_calendar_days_of_the_owner(database: Database) -> None:
    clock = FakeClock(datetime(2026, 3, 30, 12, tzinfo=UTC))
    for text, usd in [
        ("2026-03-28T22:59", 1.0),  # 28 March in Amsterdam
        ("2026-03-28T23:00", 2.0),  # 29 March, 23 hours long
        ("2026-03-29T21:59", 4.0),
        ("2026-03-29T22:00", 8.0),  # 30 March
        ("2026-03-27T22:59", 99.0),  # before all
    ]:
        await spend(database, datetime.fromisoformat(text).replace(tzinfo=UTC), usd)
    found = await reports_of(database, clock).usage(ADA, 3)
    assert [(row["day"], row["cost_usd"]) for row in found["by_day"]] == [
        ("2026-03-30", 8.0),
        ("2026-03-29", 6.0),
        ("2026-03-28", 1.0),
    ]
    assert (found["day"], found["zone"], found["since"]) == (
        "2026-03-30",
        "Europe/Amsterdam",
        "2026-03-27T23:00:00+00:00",
    )
    assert [row["cost_usd"] for row in found["today"]] == [8.0]
    assert [row["cost_usd"] for row in found["rows"]] == [15.0]


async def test_a_year_of_days_is_one_question(database: Database, clock: FakeClock) -> None:
    await spend(database, clock.now() - timedelta(days=365), 1.0)
    found = await reports_of(database, clock).usage(ADA, 366)
    assert [row["day"] for row in found["by_day"]] == ["2025-03-02"]


async def test_usage_is_summed_by_trigger_apart_from_what_people_asked(
    database: Database, clock: FakeClock
) -> None:
    await spend(database, clock.now(), 1.0)
    await spend(database, clock.now(), 2.0, trigger_id="morning")
    await spend(database, clock.now(), 4.0, trigger_id="morning", person="Cay")
    await spend(database, clock.now(), None, trigger_id="noon", model="openai:mock")
    reports = reports_of(database, clock)
    rows = (await reports.usage(ADA, 7))["by_trigger"]
    assert [(row["trigger_id"], row["cost_usd"]) for row in rows] == [("morning", 6.0), ("noon", None)]
    rows = (await reports.usage(CAY, 7))["by_trigger"]
    assert [(row["trigger_id"], row["cost_usd"]) for row in rows] == [("morning", 4.0)]


async def test_a_sum_with_an_unknown_price_says_so_beside_what_is_known(
    database: Database, clock: FakeClock
) -> None:
    await spend(database, clock.now(), 1.5)
    await spend(database, clock.now(), None, model="openai:mock")
    found = await reports_of(database, clock).usage(ADA, 7)
    (day,) = found["by_day"]
    assert (day["cost_usd"], day["known_usd"], day["unpriced_calls"]) == (None, 1.5, 1)
    assert found["unpriced_models"] == ["openai:mock"]
    everybodys = found["budgets"][0]
    assert (everybodys["text"], everybodys["unpriced_calls"]) == ("$1.50 of $20.00", 1)


async def test_budgets_are_for_owners_and_ones_own_for_everybody(
    database: Database, clock: FakeClock
) -> None:
    await spend(database, clock.now(), 5.0)
    await spend(database, clock.now(), 0.5, person="Cay")
    reports = reports_of(database, clock)
    seen = {
        person.name: [
            (b["name"], b["person"], b["text"]) for b in (await reports.usage(person, 1))["budgets"]
        ]
        for person in (ADA, CAY, DAN)
    }
    assert seen == {
        "Ada": [
            ("day_usd", None, "$5.50 of $20.00"),
            ("person_day_usd", "Cay", "$0.50 of $2.00"),
        ],
        "Cay": [("person_day_usd", "Cay", "$0.50 of $2.00")],
        "Dan": [],
    }


@pytest.mark.parametrize(
    ("person", "line"),
    [
        (ADA, "used $0.92 of $20.00 today, besides 1 model call whose price is not known"),
        (CAY, "used $0.50 of $2.00 today"),
        (DAN, "used 110 tokens today, whose price is not known"),
    ],
)
async def test_one_line_says_what_was_used_today(
    database: Database, clock: FakeClock, person: Person, line: str
) -> None:
    await spend(database, clock.now() - timedelta(days=1), 7.0)
    await spend(database, clock.now(), 0.42)
    await spend(database, clock.now(), 0.5, person="Cay")
    await spend(database, clock.now(), None, person="Dan", model="openai:mock")
    assert (await reports_of(database, clock).usage_summary(person))["line"] == line


async def test_a_summary_since_a_moment_has_no_budget_beside_it(database: Database, clock: FakeClock) -> None:
    await spend(database, clock.now() - timedelta(days=2), 7.0)
    found = await reports_of(database, clock).usage_summary(ADA, clock.now() - timedelta(days=3))
    assert (found["line"], found["budget_usd"], found["model_calls"]) == ("used $7.00", None, 1)
