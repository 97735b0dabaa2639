"""Does a run move only along the drawn lines, and is a superseded attempt's result dropped?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
import sqlalchemy as sa

from pizzabot.database.connection import Database
from pizzabot.database.schema import runs as rows
from pizzabot.inbox import runs, threads
from pizzabot.inbox.runs import Run
from pizzabot.messages import ACTIVE_RUN_STATES, THREAD_STATE_OF_RUN, RunState
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ALLOWANCE, answers, arrives, starts

NOW = FakeClock().now()
FINAL = (RunState.FAILED, RunState.STOPPED)

Step = Callable[[sa.Connection, Run], object]
STEPS: dict[str, Step] = {
    "finish": lambda c, run: runs.finish(c, run, RunState.DONE, NOW, used={"tool_calls": 3}),
    "fail": lambda c, run: runs.finish(c, run, RunState.FAILED, NOW, used={}, error=("auth", "no key")),
    "pause": lambda c, run: runs.pause(c, run, NOW, used={}, decided=False),
    "pause, decided meanwhile": lambda c, run: runs.pause(c, run, NOW, used={}, decided=True),
    "release": lambda c, run: runs.release(c, run),
    "stop": lambda c, run: runs.stop(c, run.id, NOW),
    "decide": lambda c, run: runs.requeue(c, run.id, NOW),
    "retry": lambda c, run: runs.retry(c, run.id, NOW, person="Ada", via="web"),
    "claim": lambda c, run: runs.claim(c, 10, NOW),
    "claim again": lambda c, run: runs.claim_again(c, run.id, run.attempt, NOW),
    "recover": lambda c, run: runs.recover(c),
}
# Everything that is not listed leaves the state as it is.
MOVES = {
    (RunState.RUNNING, "finish"): RunState.DONE,
    (RunState.RUNNING, "fail"): RunState.FAILED,
    (RunState.RUNNING, "pause"): RunState.WAITING,
    (RunState.RUNNING, "pause, decided meanwhile"): RunState.QUEUED,
    (RunState.RUNNING, "release"): RunState.QUEUED,
    (RunState.RUNNING, "recover"): RunState.QUEUED,
    (RunState.WAITING, "decide"): RunState.QUEUED,
    (RunState.FAILED, "retry"): RunState.QUEUED,
    (RunState.STOPPED, "retry"): RunState.QUEUED,
    (RunState.QUEUED, "claim"): RunState.RUNNING,
    (RunState.QUEUED, "claim again"): RunState.RUNNING,
    **{(state, "stop"): RunState.STOPPED for state in ACTIVE_RUN_STATES},
}


@pytest.mark.parametrize("step", STEPS)
async def test_every_step_from_every_state(database: Database, clock: FakeClock, step: str) -> None:
    for state in RunState:

        def work(connection: sa.Connection, state: RunState = state) -> tuple[str, str]:
            accepted = arrives(connection, clock)
            run = runs.get(connection, accepted.run_id or "")
            assert run is not None
            connection.execute(sa.update(rows).where(rows.c.id == run.id).values(state=state))
            STEPS[step](connection, run)
            after, thread = runs.get(connection, run.id), threads.get(connection, run.thread_id)
            assert after is not None
            assert thread is not None
            connection.execute(sa.update(rows).values(state=RunState.DONE))
            return after.state, thread.state

        after, shown = await database.write(work)
        expected = MOVES.get((state, step), state)
        assert after == expected, f"{step} from {state}"
        if expected is not state:
            assert shown == THREAD_STATE_OF_RUN[expected]


async def test_a_superseded_attempt_changes_nothing(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> tuple[Run, Run, list[bool], Run | None]:
        arrives(connection, clock)
        old = starts(connection, clock)
        runs.recover(connection)
        new = starts(connection, clock)
        dropped = [
            runs.finish(connection, old, RunState.DONE, NOW, used={}),
            runs.pause(connection, old, NOW, used={}, decided=False),
            runs.finish(connection, old, RunState.FAILED, NOW, used={}, error=("other", "late")),
        ]
        return old, new, dropped, runs.get(connection, new.id)

    old, new, dropped, now = await database.write(work)
    assert (old.attempt, new.attempt) == (1, 2)
    assert dropped == [False, False, False]
    assert now == new


async def test_an_interrupted_attempt_is_taken_back_unless_claimed_since(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> tuple[Run | None, Run | None]:
        arrives(connection, clock)
        old = starts(connection, clock)
        runs.recover(connection)
        back = runs.claim_again(connection, old.id, old.attempt, NOW)
        runs.recover(connection)
        starts(connection, clock)
        return back, runs.claim_again(connection, old.id, old.attempt, NOW)

    back, late = await database.write(work)
    assert back is not None
    assert (back.attempt, back.state) == (1, RunState.RUNNING)
    assert late is None


async def test_a_second_active_run_of_a_thread_cannot_be_stored(database: Database, clock: FakeClock) -> None:
    accepted = await database.write(lambda c: arrives(c, clock))
    with pytest.raises(sa.exc.IntegrityError):
        await database.write(
            lambda c: runs.create(c, accepted.thread_id, NOW, person="Ada", model="m", allowance=ALLOWANCE)
        )


async def test_runs_are_claimed_oldest_first_and_each_once(database: Database, clock: FakeClock) -> None:
    made = []
    for _ in range(12):
        made.append((await database.write(lambda c: arrives(c, clock))).run_id)
        clock.advance(seconds=1)
    assert [run.id for run in await database.write(lambda c: runs.claim(c, 4, NOW))] == made[:4]
    claimed = await asyncio.gather(*(database.write(lambda c: runs.claim(c, 4, NOW)) for _ in range(4)))
    # Those who look at the same moment leave to each other what they hold: it is there for who comes next.
    claimed.append(await database.write(lambda c: runs.claim(c, 12, NOW)))
    assert sorted(run.id for some in claimed for run in some) == made[4:]


async def test_many_runs_of_one_person_hold_up_nobody_elses(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> list[str]:
        for person in [*["Ada"] * 6, "Bob", "Bob", "Cay"]:
            arrives(connection, clock, person=person)
            clock.advance(seconds=1)
        return [run.person for count in (2, *[1] * 7) for run in runs.claim(connection, count, NOW)]

    assert await database.write(work) == ["Ada", "Bob", "Cay", "Ada", "Bob", "Ada", "Ada", "Ada", "Ada"]


async def test_whoever_has_much_at_work_waits_for_whoever_has_nothing(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> list[str]:
        for _ in range(5):
            arrives(connection, clock)
        runs.claim(connection, 3, NOW)
        clock.advance(seconds=60)
        arrives(connection, clock, person="Bob")
        return [run.person for run in runs.claim(connection, 2, NOW)]

    assert await database.write(work) == ["Bob", "Ada"]


async def test_a_resumed_run_queues_behind_those_that_wait(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> list[bool]:
        arrives(connection, clock)
        first = starts(connection, clock)
        runs.pause(connection, first, clock.now(), used={}, decided=False)
        arrives(connection, clock)
        later = clock.advance(seconds=5)
        runs.requeue(connection, first.id, later)
        return [run.id == first.id for run in runs.claim(connection, 2, later)]

    assert await database.write(work) == [False, True]


async def test_while_everything_is_stopped_nothing_starts(database: Database, clock: FakeClock) -> None:
    await database.write(lambda c: arrives(c, clock))
    run = await database.write(lambda c: starts(c, clock))
    await database.write(runs.recover)
    for person in ("Ada", "Bob"):
        await database.write(partial(runs.stop_everything, now=NOW, person=person, via="web"))
    assert await database.read(runs.stopped_by) == ("Ada", "web", NOW)
    assert await database.write(lambda c: runs.claim(c, 1, NOW)) == []
    assert await database.write(lambda c: runs.claim_again(c, run.id, run.attempt, NOW)) is None
    assert await database.write(runs.resume_everything)
    assert not await database.write(runs.resume_everything)
    assert await database.write(lambda c: runs.claim_again(c, run.id, run.attempt, NOW)) == run


async def test_a_retry_clears_what_went_wrong_and_keeps_what_was_used(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> Run | None:
        arrives(connection, clock)
        run = starts(connection, clock)
        runs.finish(connection, run, RunState.FAILED, NOW, used={"model_calls": 2}, error=("auth", "no key"))
        runs.retry(connection, run.id, NOW, person="Ada", via="web")
        return runs.get(connection, run.id)

    run = await database.write(work)
    assert run is not None
    assert (run.error_code, run.error_message, run.ended_at) == (None, None, None)
    assert run.used == {"model_calls": 2}


async def test_the_newest_run_of_a_thread_is_found(database: Database, clock: FakeClock) -> None:
    first = await database.write(lambda c: arrives(c, clock))
    await database.write(lambda c: answers(c, clock))
    assert await database.read(lambda c: runs.active(c, first.thread_id)) is None
    second = await database.write(lambda c: arrives(c, clock, thread_id=first.thread_id))
    newest = await database.read(lambda c: runs.newest(c, first.thread_id))
    assert newest is not None
    assert newest.id == second.run_id
    assert newest == await database.read(lambda c: runs.active(c, first.thread_id))
