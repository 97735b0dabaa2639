"""How much of today's budget is used, whoever sums it up and however often?"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from pizzabot.agent import activity
from pizzabot.agent.activity import Sum, Tokens
from pizzabot.agent.prices import amount_of, cost_usd
from pizzabot.agent.spending import Bound, DayBudget, Spending, Today
from pizzabot.approvals.raises import Raised, is_first_note
from pizzabot.database.connection import Database
from pizzabot.database.schema import day_raises
from tests.fakes.clock import FakeClock

BUDGET = DayBudget("Europe/Amsterdam", usd=10.0, tokens=1_000, of_person={"Cay": 3.0})


async def spend(
    database: Database, at: datetime, usd: float | None, *, person: str = "Ada", tokens: int = 0
) -> None:
    used = Tokens(tokens, 0, usd)
    place = {"thread_id": "t", "run_id": "r", "person": person, "model": "openai:mock"}
    await database.write(lambda c: activity.spend(c, used, at, **place))


async def today(
    database: Database, clock: FakeClock, person: str = "Ada", by: Spending | None = None
) -> Today:
    summed = by or Spending(BUDGET)
    return await database.read(lambda c: summed.today(c, clock.now(), person))


def used(found: Today) -> dict[str, float]:
    return {bound.name: bound.used for bound in found.bounds}


async def test_everybody_shares_the_day_and_a_person_may_have_a_budget_besides(
    database: Database, clock: FakeClock
) -> None:
    await spend(database, clock.now(), 2.0, tokens=100)
    await spend(database, clock.now(), 1.5, person="Cay", tokens=50)
    assert used(await today(database, clock)) == {"day_usd": 3.5, "day_tokens": 150}
    assert used(await today(database, clock, "Cay")) == {
        "day_usd": 3.5,
        "day_tokens": 150,
        "person_day_usd": 1.5,
    }


async def test_a_day_begins_at_midnight_of_the_owner(database: Database) -> None:
    clock = FakeClock(
        datetime(2026, 3, 29, 21, 59, tzinfo=UTC)
    )  # a day of 23 hours, one minute before its end
    await spend(database, datetime(2026, 3, 28, 22, 59, 59, tzinfo=UTC), 1.0)
    await spend(database, datetime(2026, 3, 28, 23, 0, tzinfo=UTC), 2.0)
    found = await today(database, clock)
    assert (found.day, used(found)["day_usd"]) == ("2026-03-29", 2.0)
    clock.advance(seconds=60)
    found = await today(database, clock)
    assert (found.day, used(found)["day_usd"]) == ("2026-03-30", 0.0)


async def test_a_call_without_a_price_counts_as_tokens_and_is_named(
    database: Database, clock: FakeClock
) -> None:
    await spend(database, clock.now(), None, tokens=1_000)
    found = await today(database, clock)
    assert used(found) == {"day_usd": 0.0, "day_tokens": 1_000}
    assert found.bounds[0].unpriced == 1
    reached = found.used_up()
    assert reached is not None
    assert reached.name == "day_tokens"


async def test_what_was_allowed_beyond_a_budget_counts_on_its_day_and_for_its_person(
    database: Database, clock: FakeClock
) -> None:
    await spend(database, clock.now(), 12.0)
    await spend(database, clock.now(), 3.0, person="Cay")

    def allow(connection: sa.Connection) -> None:
        for number, (day, budget, person, amount) in enumerate(
            [
                ("2026-03-02", "day_usd", None, 2.0),
                ("2026-03-02", "day_usd", None, 3.5),
                ("2026-03-01", "day_usd", None, 100.0),
                ("2026-03-02", "person_day_usd", "Cay", 3.0),
                ("2026-03-02", "person_day_usd", "Dan", 3.0),
            ]
        ):
            row = {"day": day, "budget": budget, "person": person, "amount": amount}
            connection.execute(
                sa.insert(day_raises).values(
                    **row, action_id=str(number), allowed_by="Ada", via="web", at=clock.now()
                )
            )

    await database.write(allow)
    found = {bound.name: bound for bound in (await today(database, clock, "Cay")).bounds}
    assert found["day_usd"].raised == Raised(5.5, 2)
    assert (found["day_usd"].allowed, found["day_usd"].is_used_up) == (15.5, False)
    assert (found["person_day_usd"].allowed, found["person_day_usd"].is_used_up) == (6.0, False)


async def test_summing_in_steps_finds_what_summing_at_once_finds(sqlite_database: Database) -> None:
    rng, clock, long_running = random.Random(7), FakeClock(), Spending(BUDGET)
    for _ in range(60):
        for _ in range(rng.randrange(4)):
            usd = rng.choice([None, 0.125, 0.5])
            person = rng.choice(["Ada", "Cay"])
            await spend(sqlite_database, clock.now(), usd, person=person, tokens=rng.randrange(9))
        for person in ("Ada", "Cay"):
            stepwise = await today(sqlite_database, clock, person, long_running)
            assert stepwise == await today(sqlite_database, clock, person)
        clock.advance(seconds=rng.choice([0, 1, 59, 61, 500, 5_000]))


async def test_a_clock_that_was_set_back_loses_nothing(sqlite_database: Database) -> None:
    clock, long_running = FakeClock(), Spending(BUDGET)
    await spend(sqlite_database, clock.now(), 1.0)
    clock.advance(timedelta(hours=1))
    await today(sqlite_database, clock, by=long_running)
    back = FakeClock(datetime(2026, 3, 2, 9, 30, tzinfo=UTC))
    await spend(sqlite_database, back.now(), 1.0)
    assert used(await today(sqlite_database, back, by=long_running))["day_usd"] == 2.0


async def test_of_each_note_one_is_the_first(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> list[bool]:
        return [is_first_note(connection, key, clock.now()) for key in ("80 %", "80 %", "another")]

    assert await database.write(work) == [True, False, True]
    assert await database.write(work) == [False, False, False]


@pytest.mark.parametrize(
    ("usd", "is_used_up"), [(9.99, False), (10.0, True), (0.1 * 100, True), (11.0, True)]
)
def test_a_budget_is_used_up_when_nothing_is_left(usd: float, is_used_up: bool) -> None:
    assert Bound("day_usd", "2026-03-02", usd, 10.0).is_used_up is is_used_up


def test_sums_add_up() -> None:
    assert Sum(1.0, 2, 3, 4).plus(Sum(1.0, 1, 1, 1), Sum(0.5, 0, 1, 0)) == Sum(2.5, 3, 5, 5)


async def test_usage_beyond_what_a_database_counts_is_kept(database: Database, clock: FakeClock) -> None:
    amount = amount_of({"input_tokens": 10**20, "output_tokens": 1})
    cost = cost_usd("openai:gpt-5-mini", amount, {})
    tokens = Tokens(amount.input, amount.output, cost)
    await database.write(
        lambda c: activity.spend(
            c, tokens, clock.now(), thread_id="t", run_id="r", person="Ada", model="openai:gpt-5-mini"
        )
    )
    day = clock.now().replace(hour=0)
    assert (await database.read(lambda c: activity.sums(c, day, None)))["Ada"].usd >= 1.0


async def test_one_absurd_answer_keeps_nobody_from_summing_up_the_day(
    database: Database, clock: FakeClock
) -> None:
    """Each number fits into its column; together they do not."""
    tokens = Tokens(2_000_000_000, 2_000_000_000, 1.0)
    await database.write(
        lambda c: activity.spend(
            c, tokens, clock.now(), thread_id="t", run_id="r", person="Ada", model="openai:gpt-5-mini"
        )
    )
    spending = Spending(DayBudget("UTC", usd=10.0))
    found = await database.read(lambda c: spending.today(c, clock.now(), "Bob"))
    assert found.bounds[0].used == 1.0
