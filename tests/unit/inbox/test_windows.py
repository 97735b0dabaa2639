"""Is a long thread read piece by piece without a gap, and does each piece bring only what belongs to it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.agent import activity
from pizzabot.agent.activity import Activity, Tokens
from pizzabot.agent.spending import DayBudget, Spending
from pizzabot.approvals import store
from pizzabot.database.connection import Database
from pizzabot.ids import new_id
from pizzabot.inbox import runs, threads
from pizzabot.inbox.threads import Window
from pizzabot.messages import Attachment, RunState
from pizzabot.people import People
from pizzabot.reports import Reports
from pizzabot.settings import Settings
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, BOB, CAY, DAN, arrives, question, starts


class House:
    """No skills, no servers."""

    def skills(self) -> list[dict[str, Any]]:
        return []

    servers = broken = skills


@pytest.fixture
def reports(database: Database, clock: FakeClock) -> Reports:
    return Reports(
        database=database,
        clock=clock,
        settings=Settings(),
        skills=House(),
        people=People([ADA]),
        channels={},
        context_of=lambda thread_id: None,
        spending=Spending(DayBudget("UTC")),
    )


def talk(connection: sa.Connection, clock: FakeClock, exchanges: int) -> str:
    """A thread of so many questions with their answers, each with an activity, a cost and an action."""
    thread_id: str | None = None
    for number in range(exchanges):
        files = [(new_id(), Attachment(f"{number}.txt", "text/plain", b"x"))]
        accepted = arrives(connection, clock, f"question {number}", thread_id=thread_id, files=files)
        thread_id = accepted.thread_id
        run = starts(connection, clock)
        done = Activity("model", f"step {number}", "ok")
        activity.record(connection, done, clock.now(), thread_id=thread_id, run_id=run.id)
        activity.spend(
            connection,
            Tokens(number + 1, 0, 0.0),
            clock.now(),
            thread_id=thread_id,
            run_id=run.id,
            person="Ada",
            model="demo:demo",
        )
        asked = question(title=f"action {number}")
        action, _ = store.ask(
            connection, asked, clock.now(), thread_id=thread_id, run_id=run.id, requested_by="Ada"
        )
        store.settle(connection, action.id, ["pending"], state="approved")  # type: ignore[list-item]
        threads.add_message(
            connection,
            thread_id,
            clock.now(),
            role="assistant",
            author="Pizza Bot",
            text=f"answer {number}",
            run_id=run.id,
        )
        assert runs.finish(connection, run, RunState.DONE, clock.now(), used={})
        clock.advance(seconds=60)
    assert thread_id is not None
    return thread_id


def texts(window: Window) -> list[str]:
    return [message.text for message in window.messages]


def seq_of(connection: sa.Connection, thread_id: str, text: str) -> int:
    return next(m.seq for m in threads.messages_of(connection, thread_id) if m.text == text)


ALL = [f"{word} {number}" for number in range(3) for word in ("question", "answer")]


Place = str | int | None
# limit, before, after: what is shown, is there more before, is there more behind
WINDOWS: list[tuple[int, Place, Place, list[str], bool, bool]] = [
    (10, None, None, ALL, False, False),
    (6, None, None, ALL, False, False),  # titles are stored beside messages, and are none
    (5, None, None, ALL[1:], True, False),
    (1, None, None, ALL[5:], True, False),
    (2, "question 2", None, ALL[2:4], True, True),
    (10, "question 2", None, ALL[:4], False, True),
    (4, "question 2", None, ALL[:4], False, True),
    (2, "question 0", None, [], False, True),
    (2, 2**62, None, ALL[4:], True, False),
    (2, None, "answer 0", ALL[2:4], True, True),
    (4, None, "answer 0", ALL[2:], True, False),
    (10, None, "answer 2", [], True, False),
    (2, None, 2**62, [], True, False),
    (3, None, 0, ALL[:3], False, True),
]


async def test_a_window_is_what_was_asked_for_and_says_whether_there_is_more(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> list[tuple[list[str], bool, bool]]:
        thread_id = talk(connection, clock, 3)
        talk(connection, clock, 1)  # another thread's messages are in no window

        def number(place: Place) -> int | None:
            return seq_of(connection, thread_id, place) if isinstance(place, str) else place

        windows = [
            threads.window(connection, thread_id, limit=limit, before=number(before), after=number(after))
            for limit, before, after, *_ in WINDOWS
        ]
        return [(texts(window), window.has_older, window.has_newer) for window in windows]

    for found, (limit, before, after, *expected) in zip(await database.write(work), WINDOWS, strict=True):
        assert list(found) == expected, (limit, before, after)


async def test_walking_either_way_shows_each_message_once(database: Database, clock: FakeClock) -> None:
    def back(connection: sa.Connection, thread_id: str, limit: int) -> list[str]:
        window = threads.window(connection, thread_id, limit=limit)
        found = texts(window)
        while window.has_older:
            window = threads.window(connection, thread_id, limit=limit, before=window.messages[0].seq)
            assert window.has_newer
            found = texts(window) + found
        return found

    def forth(connection: sa.Connection, thread_id: str, limit: int) -> list[str]:
        window = threads.window(connection, thread_id, limit=limit, after=0)
        found = texts(window)
        while window.has_newer:
            window = threads.window(connection, thread_id, limit=limit, after=window.messages[-1].seq)
            assert window.has_older
            found += texts(window)
        return found

    def work(connection: sa.Connection) -> list[list[str]]:
        thread_id = talk(connection, clock, 5)
        limits = (1, 2, 3, 5, 9, 10, 11)
        return [walk(connection, thread_id, limit) for walk in (back, forth) for limit in limits]

    whole = [f"{word} {number}" for number in range(5) for word in ("question", "answer")]
    assert await database.write(work) == [whole] * 14


async def test_an_unknown_thread_has_an_empty_window(database: Database) -> None:
    assert await database.read(lambda c: threads.window(c, "nothing", limit=5)) == Window(())


# -- what comes with the messages ------------------------------------------------------------------------


def numbers(found: dict[str, Any]) -> dict[str, list[str]]:
    """Which exchanges everything in a thread belongs to, by the last word of its text."""
    return {
        "messages": [row["text"] for row in found["messages"]],
        "actions": [row["title"] for row in found["actions"]],
        "activity": [row["name"] for row in found["activity"]],
        "spent": [str(row["usage"]["input_tokens"] - 1) for row in found["runs"]],
        "files": [file["filename"] for row in found["messages"] for file in row["attachments"]],
    }


async def test_a_piece_brings_only_the_work_of_its_messages(
    database: Database, clock: FakeClock, reports: Reports
) -> None:
    thread_id = await database.write(lambda c: talk(c, clock, 4))
    middle = await database.read(lambda c: seq_of(c, thread_id, "question 2"))
    found = await reports.thread(ADA, thread_id, limit=2, before=middle)
    assert found is not None
    assert numbers(found) == {
        "messages": ["question 1", "answer 1"],
        "actions": ["action 1"],
        "activity": ["step 1"],
        "spent": ["1"],
        "files": ["1.txt"],
    }
    assert (found["has_older"], found["has_newer"]) == (True, True)
    assert found["usage"]["input_tokens"] == 1 + 2 + 3 + 4  # of the whole thread
    assert found["usage"]["model_calls"] == 4


async def test_half_an_exchange_brings_its_run(
    database: Database, clock: FakeClock, reports: Reports
) -> None:
    thread_id = await database.write(lambda c: talk(c, clock, 3))
    answer = await database.read(lambda c: seq_of(c, thread_id, "answer 1"))
    for place in ({"before": answer}, {"after": answer - 1}):
        found = await reports.thread(ADA, thread_id, limit=1, **place)
        assert found is not None
        assert [run["usage"]["input_tokens"] for run in found["runs"]] == [2], place


async def test_without_a_limit_everything_is_there(
    database: Database, clock: FakeClock, reports: Reports
) -> None:
    thread_id = await database.write(lambda c: talk(c, clock, 3))
    found = await reports.thread(ADA, thread_id)
    assert found is not None
    assert numbers(found)["messages"] == ALL
    assert numbers(found)["activity"] == ["step 0", "step 1", "step 2"]
    assert (found["has_older"], found["has_newer"]) == (False, False)
    assert found == await reports.thread(ADA, thread_id, limit=6)


async def test_the_newest_piece_brings_a_run_that_said_nothing_yet(
    database: Database, clock: FakeClock, reports: Reports
) -> None:
    def work(connection: sa.Connection) -> tuple[str, str]:
        thread_id = talk(connection, clock, 2)
        arrives(connection, clock, "question 2", thread_id=thread_id)
        run = starts(connection, clock)
        arrives(connection, clock, "and this", thread_id=thread_id)  # held: of no run
        return thread_id, run.id

    thread_id, run_id = await database.write(work)
    newest = await reports.thread(ADA, thread_id, limit=1)
    assert newest is not None
    assert [(row["text"], row["held"]) for row in newest["messages"]] == [("and this", True)]
    assert [run["id"] for run in newest["runs"]] == [run_id]
    (held,) = newest["messages"]
    older = await reports.thread(ADA, thread_id, limit=2, before=int(held["id"]) - 1)
    assert older is not None
    assert older["has_newer"]
    assert run_id not in [run["id"] for run in older["runs"]]


async def test_what_waits_for_a_decision_is_in_every_piece(
    database: Database, clock: FakeClock, reports: Reports
) -> None:
    def work(connection: sa.Connection) -> str:
        thread_id = talk(connection, clock, 2)
        arrives(connection, clock, "question 2", thread_id=thread_id)
        run = starts(connection, clock)
        asked = question(title="pending")
        store.ask(connection, asked, clock.now(), thread_id=thread_id, run_id=run.id, requested_by="Ada")
        runs.pause(connection, run, clock.now(), used={}, decided=False)
        return thread_id

    thread_id = await database.write(work)
    oldest = await reports.thread(ADA, thread_id, limit=2, after=0)
    assert oldest is not None
    assert numbers(oldest)["messages"] == ["question 0", "answer 0"]
    assert numbers(oldest)["actions"] == ["action 0", "pending"]
    assert numbers(oldest)["activity"] == ["step 0"]


async def test_a_piece_of_somebody_elses_thread_is_nothing(
    database: Database, clock: FakeClock, reports: Reports
) -> None:
    thread_id = await database.write(lambda c: talk(c, clock, 1))
    for person in (BOB, CAY, DAN):
        assert await reports.thread(person, thread_id, limit=2) is None
        assert await reports.thread(person, thread_id, limit=2, before=10**6) is None


PLACES: list[Callable[[int], dict[str, int]]] = [lambda n: {"before": n}, lambda n: {"after": n - 1}]


@pytest.mark.parametrize("place", PLACES, ids=["before", "after"])
async def test_a_place_of_another_thread_cuts_this_one_there(
    database: Database, clock: FakeClock, reports: Reports, place: Callable[[int], dict[str, int]]
) -> None:
    first = await database.write(lambda c: talk(c, clock, 1))
    second = await database.write(lambda c: talk(c, clock, 1))
    border = await database.read(lambda c: seq_of(c, second, "question 0"))
    shown = {
        thread: [
            row["text"]
            for row in (await reports.thread(ADA, thread, limit=9, **place(border)) or {})["messages"]
        ]
        for thread in (first, second)
    }
    whole, nothing = ["question 0", "answer 0"], list[str]()
    is_before = "before" in place(border)
    assert shown == {first: whole if is_before else nothing, second: nothing if is_before else whole}
