"""Who is told when, in quiet hours? Results wait for their end, decisions do not. On both databases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
import sqlalchemy as sa

from pizzabot.agent.context import Note
from pizzabot.agent.spending import DayBudget, Spending
from pizzabot.approvals import store as actions
from pizzabot.approvals.policy import Policy, Timing
from pizzabot.database.connection import Database
from pizzabot.engine import control
from pizzabot.engine.endings import Endings
from pizzabot.engine.undecided import Undecided
from pizzabot.inbox import intake, runs
from pizzabot.inbox.intake import Unattended
from pizzabot.inbox.threads import UNATTENDED
from pizzabot.messages import Action, ActionKind, InboundMessage, RunState
from pizzabot.outbox import store as outbox
from pizzabot.people import Notify, People, Person
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ALLOWANCE, arrives, question, starts

NIGHT, MORNING = datetime(2026, 3, 2, 23, 0, tzinfo=UTC), datetime(2026, 3, 3, 7, 0, tzinfo=UTC)
ADA = Person(
    "Ada",
    "owner",
    ("ada@example.com",),
    quiet_hours="20:00-07:00",
    notify=Notify(action=("email",), unread=("email",)),
)
PEOPLE = People([ADA])


@dataclass(frozen=True)
class Email:
    """A channel in which what changes is told by another mail; or, for contrast, one like Slack."""

    repaints_silently: bool = False

    def address_of(self, person: Person) -> str | None:
        return next(iter(person.emails), None)

    def is_with(self, person: Person, address: str) -> bool:
        return address in person.emails


def endings(clock: FakeClock, times: Timing | None = None, *, silently: bool = False) -> Endings:
    return Endings(
        clock,
        PEOPLE,
        {"email": Email(silently)},
        "demo:demo",
        ALLOWANCE,
        Policy("annotations", (), False, times or Timing()),
    )


def fires(
    connection: sa.Connection,
    clock: FakeClock,
    key: str = "one",
    tells: tuple[str, ...] | None = None,
    owner: str = "Ada",
) -> runs.Run:
    """Work that nobody wrote, at work."""
    message = InboundMessage(UNATTENDED, owner, "Look at the books.", key=key)
    intake.accept(
        connection,
        message,
        (),
        clock.now(),
        model="demo:demo",
        allowance=ALLOWANCE,
        unattended=Unattended("trigger-1", tells=tells),
    )
    return starts(connection, clock)


def told(connection: sa.Connection, clock: FakeClock) -> list[tuple[str, str]]:
    return [(row.kind, row.address) for row in outbox.take(connection, clock.now(), limit=9)]


async def test_the_result_of_unattended_work_waits_for_the_end_of_the_night(database: Database) -> None:
    clock = FakeClock(NIGHT)

    def work(connection: sa.Connection) -> None:
        run = fires(connection, clock)
        assert endings(clock).done(connection, run, {}, "Pizza Bot", "All is well.")
        assert told(connection, clock) == []
        assert outbox.next_due(connection) == MORNING
        outbox.due_now(connection, "email", clock.now())  # the channel was away and is back: still night
        assert told(connection, clock) == []
        clock.advance(MORNING - NIGHT)
        assert told(connection, clock) == [("answer", "ada@example.com")]

    await database.write(work)


async def test_a_failure_waits_too(database: Database) -> None:
    clock = FakeClock(NIGHT)

    def work(connection: sa.Connection) -> None:
        run = fires(connection, clock)
        assert endings(clock).failed(connection, run, {}, "model", "no answer")
        assert told(connection, clock) == []
        assert outbox.next_due(connection) == MORNING

    await database.write(work)


async def test_a_failure_that_others_are_told_of_reaches_its_owner_in_the_morning(database: Database) -> None:
    clock = FakeClock(NIGHT)
    house = replace(endings(clock), channels={"email": Email(), "slack": Email()})

    def work(connection: sa.Connection) -> None:
        run = fires(connection, clock, tells=("slack:C0123",))
        assert house.failed(connection, run, {}, "model", "no answer")
        assert told(connection, clock) == [("notice", "C0123")]
        clock.advance(MORNING - NIGHT)
        assert told(connection, clock) == [("notice", "ada@example.com")]

    await database.write(work)


async def test_what_needs_a_decision_passes_and_is_not_held_up_by_what_waits(database: Database) -> None:
    clock = FakeClock(NIGHT)

    def work(connection: sa.Connection) -> None:
        assert endings(clock).done(connection, fires(connection, clock), {}, "Pizza Bot", "All is well.")
        run = fires(connection, clock, "two")
        action, _ = actions.ask(
            connection,
            question(),
            clock.now(),
            thread_id=run.thread_id,
            run_id=run.id,
            requested_by="Ada",
        )
        endings(clock).announce(connection, action)
        assert told(connection, clock) == [("action", "ada@example.com")]

    await database.write(work)


async def test_whoever_answers_at_night_is_answered_at_night(database: Database) -> None:
    clock = FakeClock(NIGHT)

    def work(connection: sa.Connection) -> None:
        run = fires(connection, clock)
        endings(clock).done(connection, run, {}, "Pizza Bot", "All is well.")
        arrives(connection, clock, "And the cellar?", channel="email", thread_id=run.thread_id)
        again = starts(connection, clock)
        endings(clock).done(connection, again, {}, "Pizza Bot", "Dry.")
        assert told(connection, clock) == [("answer", "ada@example.com")]

    await database.write(work)


async def test_an_answer_at_night_to_one_does_not_wake_the_others_who_are_told(database: Database) -> None:
    clock = FakeClock(NIGHT)
    bob = Person("Bob", "member", ("bob@example.com",), quiet_hours="20:00-07:00")
    people = replace(endings(clock), people=People([ADA, bob]))

    def work(connection: sa.Connection) -> None:
        run = fires(connection, clock, tells=("email", "Bob"))
        arrives(connection, clock, "And the cellar?", channel="email", thread_id=run.thread_id)
        people.done(connection, run, {}, "Pizza Bot", "All is well.")
        assert told(connection, clock) == []
        people.done(connection, starts(connection, clock), {}, "Pizza Bot", "Dry.")
        assert told(connection, clock) == [("answer", "ada@example.com")]

    await database.write(work)


async def test_what_a_person_had_tried_again_at_night_is_told_at_night(database: Database) -> None:
    clock = FakeClock(NIGHT)

    def work(connection: sa.Connection) -> None:
        run = fires(connection, clock)
        endings(clock).failed(connection, run, {}, "model", "no answer")
        assert told(connection, clock) == []
        control.retry(connection, run.thread_id, clock.now(), person="Ada", via="web")
        endings(clock).done(connection, starts(connection, clock), {}, "Pizza Bot", "All is well.")
        assert told(connection, clock) == [("answer", "ada@example.com")]

    await database.write(work)


async def test_what_somebody_else_had_tried_again_wakes_nobody(database: Database) -> None:
    clock = FakeClock(NIGHT)
    house = replace(endings(clock), people=People([ADA, Person("Bob", "owner", ("bob@example.com",))]))

    def work(connection: sa.Connection) -> None:
        run = fires(connection, clock)
        house.failed(connection, run, {}, "model", "no answer")
        control.retry(connection, run.thread_id, clock.now(), person="Bob", via="email")
        house.done(connection, starts(connection, clock), {}, "Pizza Bot", "All is well.")
        assert told(connection, clock) == [("answer", "bob@example.com")]

    await database.write(work)


def all_told(connection: sa.Connection, clock: FakeClock) -> list[str]:
    """What is told now, all of it, repaints as such."""
    found = []
    while rows := outbox.take(connection, clock.now(), limit=9):
        for row in rows:
            action = actions.get(connection, row.action_id) if row.action_id is not None else None
            shown = action.shown if action is not None else None
            outbox.sent(connection, row, row.external_id or f"<{row.id}@example.com>", shown, clock.now())
            found.append(row.kind if row.external_id is None else f"repaint of {row.kind}")
    return found


async def asked(
    database: Database, clock: FakeClock, house: Endings, *, went_on: bool = False, **changes: Any
) -> Action:
    """Work that nobody wrote, or that Ada went on with, waits for a decision that she was asked for."""

    def asks(connection: sa.Connection) -> Action:
        run = fires(connection, clock)
        if went_on:
            house.done(connection, run, {}, "Pizza Bot", "All is well.")
            arrives(connection, clock, "And the cellar?", channel="email", thread_id=run.thread_id)
            run = starts(connection, clock)
        action, _ = actions.ask(
            connection,
            question(**changes),
            clock.now(),
            thread_id=run.thread_id,
            run_id=run.id,
            requested_by="Ada",
        )
        house.announce(connection, action)
        assert runs.pause(connection, run, clock.now(), used={}, decided=False)
        assert all_told(connection, clock) == ["action"]
        return action

    return await database.write(asks)


REPAINT, NOTICE = "repaint of action", "reminder"


@pytest.mark.parametrize(
    ("went_on", "silently", "at_night"),
    [(False, False, []), (False, True, [REPAINT]), (True, False, [REPAINT, NOTICE])],
)
@pytest.mark.parametrize("then", ["park", "reject"])
async def test_that_an_action_expired_waits_for_the_end_of_the_night_of_who_is_not_there(
    database: Database, went_on: bool, silently: bool, at_night: list[str], then: Literal["park", "reject"]
) -> None:
    """Where its card changes without a word, it does so at once."""
    clock = FakeClock(NIGHT)
    house = endings(clock, Timing(expire_after=timedelta(hours=1), on_expiry=then), silently=silently)
    await asked(database, clock, house, went_on=went_on)
    clock.advance(timedelta(hours=1))
    await Undecided(database, house, Spending(DayBudget("UTC")), lambda _: None).tick(clock.now())
    news = [REPAINT, NOTICE] if then == "park" else [REPAINT]
    at_night = [told for told in at_night if told in news]
    assert await database.write(lambda c: all_told(c, clock)) == at_night
    clock.advance(MORNING - clock.now())
    late = await database.write(lambda c: all_told(c, clock))
    expected = [told for told in news if told not in at_night] + (["answer"] if went_on else [])
    assert sorted(late) == sorted(expected)


async def test_what_the_end_of_a_day_withdraws_at_midnight_is_told_in_the_morning(database: Database) -> None:
    clock = FakeClock(NIGHT)
    house = endings(clock)
    args = {"limit": "day_usd", "day": "2026-03-02", "used": 20.5, "allowance": 2.5}
    kind, tool = ActionKind.LIMIT, "limit:day_usd"
    await asked(database, clock, house, kind=kind, tool=tool, args=args, approvers=("Ada",))
    clock.advance(timedelta(hours=1))
    await Undecided(database, house, Spending(DayBudget("UTC")), lambda _: None).tick(clock.now())
    assert await database.write(lambda c: all_told(c, clock)) == []
    clock.advance(MORNING - clock.now())
    assert await database.write(lambda c: all_told(c, clock)) == [REPAINT]


@pytest.mark.parametrize(
    ("owner", "went_on", "to_owners", "at_night"),
    [
        ("Ada", False, False, []),
        ("Ada", False, True, []),
        ("Ada", True, False, ["ada@example.com"]),
        ("Ada", True, True, ["ada@example.com"]),
        ("Cay", False, False, ["cay@example.com"]),
        ("Cay", True, True, []),
    ],
)
async def test_a_note_about_a_budget_waits_for_the_end_of_the_night_of_who_is_not_there(
    database: Database, owner: str, went_on: bool, to_owners: bool, at_night: list[str]
) -> None:
    """Cay has no quiet hours, and is told nothing of the house; Ada has some, and is told all of it."""
    clock = FakeClock(NIGHT)
    cay = Person("Cay", "member", ("cay@example.com",))
    house = replace(endings(clock), people=People([ADA, cay]))

    def work(connection: sa.Connection) -> list[str]:
        run = fires(connection, clock, owner=owner)
        if went_on:
            runs.finish(connection, run, RunState.DONE, clock.now(), used={})
            arrives(connection, clock, "Go on.", person=owner, channel="email", thread_id=run.thread_id)
            run = starts(connection, clock)
        assert house.noted(connection, run, Note("budget", "80 % is used.", to_owners))
        return [address for _, address in told(connection, clock)]

    assert await database.write(work) == at_night
    clock.advance(MORNING - NIGHT)
    late = await database.write(lambda c: told(c, clock))
    assert late == ([] if at_night else [("notice", "ada@example.com")])


async def test_a_conversation_goes_on_in_its_place_and_only_the_note_besides_waits(
    database: Database,
) -> None:
    clock = FakeClock(NIGHT)

    def work(connection: sa.Connection) -> None:
        arrives(connection, clock, "Hello", channel="slack", address="C0/1.1")
        endings(clock).done(connection, starts(connection, clock), {}, "Pizza Bot", "Hello.")
        assert told(connection, clock) == [("answer", "C0/1.1")]
        assert outbox.next_due(connection) == MORNING

    await database.write(work)


async def test_by_day_nothing_waits(database: Database) -> None:
    clock = FakeClock(MORNING + timedelta(hours=2))

    def work(connection: sa.Connection) -> None:
        endings(clock).done(connection, fires(connection, clock), {}, "Pizza Bot", "All is well.")
        assert told(connection, clock) == [("answer", "ada@example.com")]

    await database.write(work)
