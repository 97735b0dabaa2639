"""Does the story of a run say what was done when, who decided, what it cost and where it was said?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from pizzabot import traces
from pizzabot.agent import activity, effects
from pizzabot.agent.activity import Activity, Tokens
from pizzabot.approvals import store as actions
from pizzabot.cli.text import took
from pizzabot.cli.traces import trace_lines
from pizzabot.database.connection import Database
from pizzabot.inbox import runs, threads
from pizzabot.messages import ActionState, RunState, Verdict
from pizzabot.outbox import store as outbox
from tests.fakes.clock import FakeClock
from tests.fakes.rows import arrives, question, starts

UTC_ZONE = ZoneInfo("UTC")


def _tells(connection: sa.Connection, clock: FakeClock) -> str:
    """Asked, queued 5 s, a model call, an approval after 2 hours, the call at the second try, an answer that
    was delivered at the third try."""
    thread_id = arrives(connection, clock, "Please pay INV-7.").thread_id
    clock.advance(seconds=5)
    run = starts(connection, clock)
    about = {"thread_id": thread_id, "run_id": run.id}
    clock.advance(seconds=2)
    thought = Activity("model", "demo:a", "ok", None, None, 1500)
    activity.record(connection, thought, clock.now(), **about)
    activity.spend(connection, Tokens(100, 7, 0.25), clock.now(), person="Ada", model="demo:a", **about)
    action, _ = actions.ask(
        connection, question(skill="bookkeeper"), clock.now(), requested_by="Ada", **about
    )
    outbox.enqueue(
        connection,
        clock.now(),
        key="card",
        channel="slack",
        address="D1",
        kind="action",
        thread_id=thread_id,
        person="Bob",
        action_id=action.id,
    )
    runs.pause(connection, run, clock.now(), used={"run_seconds": 2.0}, decided=False)
    clock.advance(timedelta(hours=2))
    actions.settle(
        connection,
        action.id,
        [ActionState.PENDING],
        state=ActionState.APPROVED,
        decision=Verdict.APPROVE,
        decided_by="Bob",
        decided_via="slack",
        decided_at=clock.now(),
        reason="fine",
    )
    runs.requeue(connection, run.id, clock.now())
    run = starts(connection, clock)
    effect: dict[str, Any] = {"tool": "mcp:ledger:pay", "args": {}, **about}
    effects.start(connection, "c", clock.now(), previous=None, **effect)
    effects.lose(connection, "c", clock.now())
    clock.advance(seconds=1)
    effects.start(connection, "c", clock.now(), previous=effects.get(connection, "c"), **effect)
    clock.advance(seconds=3)
    effects.end(connection, "c", clock.now(), {"text": "paid"})
    paid = Activity("tool", "mcp:ledger:pay", "ok", "bookkeeper", None, 3000)
    activity.record(connection, paid, clock.now(), **about)
    seq = threads.add_message(
        connection, thread_id, clock.now(), role="assistant", author="Pizza Bot", text="Paid.", run_id=run.id
    )
    runs.finish(connection, run, RunState.DONE, clock.now(), used={"run_seconds": 6.0})
    outbox.enqueue(
        connection,
        clock.now(),
        key="answer",
        channel="email",
        address="ada@example.com",
        kind="answer",
        thread_id=thread_id,
        person="Ada",
        message_seq=seq,
    )
    for _ in range(3):
        (row,) = (r for r in outbox.take(connection, clock.now(), limit=9) if r.key in ("answer",))
        clock.advance(seconds=10)
        outbox.try_later(connection, row, clock.now(), "busy", unknown=False)
    outbox.sent(connection, row, "m1", None, clock.now())
    return thread_id


async def _trace(database: Database, clock: FakeClock, thread_id: str, **more: Any) -> list[dict[str, Any]]:
    options = {"limit": 20, "before": None} | more
    now = clock.now()
    return await database.read(lambda c: traces.assembled(traces.read(c, thread_id, **options), now))


async def _told(database: Database, clock: FakeClock) -> dict[str, Any]:
    thread_id = await database.write(lambda c: _tells(c, clock))
    (run,) = await _trace(database, clock, thread_id)
    return run


def _step(run: dict[str, Any], kind: str, **values: Any) -> dict[str, Any]:
    (found,) = (
        s for s in run["steps"] if s["kind"] == kind and all(s.get(k) == v for k, v in values.items())
    )
    return dict(found)


async def test_the_time_of_a_run_is_divided_into_queue_work_and_waiting(
    database: Database, clock: FakeClock
) -> None:
    run = await _told(database, clock)
    assert (run["state"], run["attempts"], run["person"]) == ("done", 2, "Ada")
    assert run["queued_milliseconds"] == 5_000
    assert run["working_milliseconds"] == 6_000
    assert run["waiting_milliseconds"] == 7_200_000
    assert run["total_milliseconds"] == 7_200_000 + 11_000
    assert run["usage"]["cost_usd"] == 0.25


async def test_steps_stand_in_the_order_in_which_they_began(database: Database, clock: FakeClock) -> None:
    run = await _told(database, clock)
    assert [step["kind"] for step in run["steps"]] == [
        "queued",
        "message",
        "model",
        "decision",
        "delivery",
        "tool",
        "effect",
        "message",
        "delivery",
    ]


async def test_a_model_call_says_how_long_it_took_and_what_it_cost(
    database: Database, clock: FakeClock
) -> None:
    step = _step(await _told(database, clock), "model")
    assert (step["milliseconds"], step["input_tokens"], step["output_tokens"]) == (1500, 100, 7)
    assert step["cost_usd"] == 0.25


async def test_a_decision_says_who_where_and_after_how_long(database: Database, clock: FakeClock) -> None:
    step = _step(await _told(database, clock), "decision")
    assert (step["outcome"], step["decided_by"], step["decided_via"]) == ("approved", "Bob", "slack")
    assert (step["milliseconds"], step["reason"], step["worker"]) == (7_200_000, "fine", "bookkeeper")


async def test_each_of_several_approvals_is_a_step_of_its_own(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> str:
        thread_id = arrives(connection, clock).thread_id
        run = starts(connection, clock)
        action, _ = actions.ask(
            connection,
            question(quorum=2),
            clock.now(),
            requested_by="Ada",
            thread_id=thread_id,
            run_id=run.id,
        )
        clock.advance(seconds=60)
        actions.vote(connection, action, "Bob", "email", clock.now())
        return thread_id

    thread_id = await database.write(work)
    (run,) = await _trace(database, clock, thread_id)
    step = _step(run, "vote")
    assert (step["outcome"], step["decided_by"], step["decided_via"]) == ("approved", "Bob", "email")
    assert _step(run, "decision")["until"] is None


async def test_a_run_that_a_trigger_began_names_it_on_the_terminal(
    database: Database, clock: FakeClock
) -> None:
    run = await _told(database, clock) | {"trigger_id": "t1", "trigger": "Morn\x1bing"}
    thread = {"id": "t1", "title": "Pay", "state": "idle", "usage": run["usage"], "has_older": False}
    lines = list(trace_lines(thread | {"runs": [run]}, UTC_ZONE))
    assert any(" · by the trigger Morn\\x1bing" in line for line in lines)


async def test_a_call_that_was_sent_again_shows_its_tries(database: Database, clock: FakeClock) -> None:
    step = _step(await _told(database, clock), "effect")
    assert (step["name"], step["tries"], step["outcome"]) == ("mcp:ledger:pay", 2, "done")


async def test_a_delivery_says_its_tries_and_not_its_address(database: Database, clock: FakeClock) -> None:
    run = await _told(database, clock)
    answer = _step(run, "delivery", name="answer")
    assert (answer["outcome"], answer["tries"], answer["channel"], answer["person"]) == (
        "sent",
        3,
        "email",
        "Ada",
    )
    assert answer["milliseconds"] == 30_000
    card = _step(run, "delivery", name="action")
    assert (card["outcome"], card["until"]) == ("sending", None)
    assert "ada@example.com" not in str(run)


async def test_two_questions_that_wait_at_once_wait_once(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> str:
        thread_id = arrives(connection, clock).thread_id
        run = starts(connection, clock)
        for _ in range(2):
            actions.ask(
                connection, question(), clock.now(), thread_id=thread_id, run_id=run.id, requested_by="Ada"
            )
            clock.advance(seconds=10)
        runs.pause(connection, run, clock.now(), used={}, decided=False)
        return thread_id

    thread_id = await database.write(work)
    clock.advance(seconds=40)
    (run,) = await _trace(database, clock, thread_id)
    assert run["waiting_milliseconds"] == 60_000
    assert run["ended_at"] is None


async def test_a_question_that_was_withdrawn_waits_no_longer_than_until_then(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> str:
        thread_id = arrives(connection, clock).thread_id
        run = starts(connection, clock)
        actions.ask(
            connection, question(), clock.now(), thread_id=thread_id, run_id=run.id, requested_by="Ada"
        )
        runs.pause(connection, run, clock.now(), used={}, decided=False)
        clock.advance(timedelta(hours=12))
        (withdrawn,) = actions.withdraw(connection, thread_id, clock.now())
        assert withdrawn.decided_by is None
        runs.requeue(connection, run.id, clock.now())
        return thread_id

    thread_id = await database.write(work)
    clock.advance(timedelta(hours=18))
    (run,) = await _trace(database, clock, thread_id)
    assert (run["ended_at"], run["waiting_milliseconds"]) == (None, 12 * 3_600_000)
    step = _step(run, "decision", outcome="withdrawn")
    assert (step["milliseconds"], step.get("decided_by")) == (12 * 3_600_000, None)


async def test_a_long_thread_is_told_in_parts(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> str:
        thread_id = arrives(connection, clock).thread_id
        for _ in range(4):
            run = starts(connection, clock)
            runs.finish(connection, run, RunState.DONE, clock.now(), used={})
            arrives(connection, clock, thread_id=thread_id)
        return thread_id

    thread_id = await database.write(work)
    every = [run["id"] for run in await _trace(database, clock, thread_id)]
    assert len(every) == 5
    newest = [run["id"] for run in await _trace(database, clock, thread_id, limit=2)]
    assert newest == every[-2:]
    assert [r["id"] for r in await _trace(database, clock, thread_id, limit=2, before=newest[0])] == every[
        1:3
    ]


async def test_the_terminal_tells_it_line_by_line(database: Database, clock: FakeClock) -> None:
    run = await _told(database, clock)
    thread = {"id": "t1", "title": "Pay\x1b[2J", "state": "idle", "usage": run["usage"], "has_older": False}
    lines = list(trace_lines(thread | {"runs": [run]}, UTC_ZONE))
    assert lines[0] == "Pay\\x1b[2J"
    assert "   2 h 0 min in all: 5.0 s queued, 6.0 s of work, 2 h 0 min waiting for a decision" in lines
    told = [line for line in lines if "decision  mcp:ledger:pay" in line]
    assert told == [
        "        +7.0 s  decision  mcp:ledger:pay in bookkeeper approved by Bob in slack 2 h 0 min: fine"
    ]
    assert any(line.endswith("model     demo:a 1.5 s (100 in, 7 out, $0.2500)") for line in lines)
    assert any("answer sent to email for Ada 30.0 s (3 tries)" in line for line in lines)


@pytest.mark.parametrize(
    ("milliseconds", "read"),
    [
        (340, "340 ms"),
        (2100, "2.1 s"),
        (200_000, "3 min 20 s"),
        (19_200_000, "5 h 20 min"),
        (183_600_000, "2 d 3 h"),
    ],
)
def test_durations_read_as_people_say_them(milliseconds: int, read: str) -> None:
    assert took(milliseconds) == read
