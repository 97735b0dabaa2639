"""Does a stop reach what is just being claimed, and do two count? Transactions at once, on PostgreSQL."""

from __future__ import annotations

import asyncio

from pizzabot import audit
from pizzabot.database.connection import PostgresDatabase
from pizzabot.inbox import runs
from pizzabot.messages import RunState
from tests.fakes.clock import FakeClock
from tests.fakes.rows import arrives
from tests.unit.engine.test_undecided import Office


async def test_a_run_that_is_claimed_while_everything_is_stopped_does_not_go_on(
    postgres_database: PostgresDatabase, clock: FakeClock
) -> None:
    """A node claims it in a transaction that began before the stop and ends after it."""
    await postgres_database.write(lambda c: arrives(c, clock))
    endings = Office(postgres_database, clock).endings
    with postgres_database._engine.connect() as node, node.begin():
        (claimed,) = runs.claim(node, 1, clock.now())

        async def stop() -> None:
            await postgres_database.write(lambda c: endings.everything_stopped(c, person="Ada", via="email"))

        stopping = asyncio.create_task(stop())
        await asyncio.wait([stopping], timeout=0.5)
        node.commit()
    await asyncio.wait_for(stopping, 5)
    after = await postgres_database.read(lambda c: runs.get(c, claimed.id))
    assert after is not None
    assert after.state is not RunState.RUNNING


async def test_two_owners_who_stop_everything_at_once_are_both_heeded(
    postgres_database: PostgresDatabase, clock: FakeClock
) -> None:
    endings = Office(postgres_database, clock).endings
    with postgres_database._engine.connect() as one, one.begin():
        endings.everything_stopped(one, person="Ada", via="web")

        async def stop() -> None:
            await postgres_database.write(lambda c: endings.everything_stopped(c, person="Eve", via="email"))

        stopping = asyncio.create_task(stop())
        await asyncio.wait([stopping], timeout=0.5)
        one.commit()
    await asyncio.wait_for(stopping, 5)
    lines = await postgres_database.read(lambda c: audit.page(c, limit=9))
    assert {line.actor for line in lines if line.event == "everything.stopped"} == {"Ada", "Eve"}
