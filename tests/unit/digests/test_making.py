"""What is a person told at regular times, of which rows, and where? On both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.agent import activity
from pizzabot.agent.activity import Tokens
from pizzabot.approvals import decide
from pizzabot.approvals import store as actions
from pizzabot.database.connection import Database
from pizzabot.digests import making, store
from pizzabot.inbox import runs, threads
from pizzabot.messages import Decision, Digest, RunState, Verdict
from pizzabot.outbox import store as outbox
from pizzabot.people import Notify, People, Person
from tests.fakes.clock import FakeClock
from tests.fakes.rows import arrives, starts, waits

ADA = Person("Ada", "owner", ("ada@example.com",), "U0ADA", timezone="Europe/Amsterdam")
BOB = Person("Bob", "approver", ("bob@example.com",))
CAY = Person("Cay", "member")
PEOPLE = People([ADA, BOB, CAY])
URL = "http://pizza.example"


class Reaching:
    """A channel that reaches everybody who has a place in it."""

    repaints_silently = True

    def __init__(self, name: str) -> None:
        self._name = name

    def address_of(self, person: Person) -> str | None:
        return person.slack if self._name == "slack" else next(iter(person.emails), None)

    def is_with(self, person: Person, address: str) -> bool:
        return address == self.address_of(person)


CHANNELS = {"slack": Reaching("slack"), "email": Reaching("email")}


def make(connection: sa.Connection, clock: FakeClock, person: Person = ADA) -> Digest | None:
    return making.make(connection, person, PEOPLE, CHANNELS, URL, clock.now())


def told(connection: sa.Connection, clock: FakeClock) -> list[outbox.OutboxRow]:
    """What is due in the outbox."""
    return outbox.take(connection, clock.now(), limit=50)


def fails(connection: sa.Connection, clock: FakeClock, why: str, *, person: str = "Ada") -> str:
    """A thread whose run failed."""
    accepted = arrives(connection, clock, f"Work that fails: {why}", person=person)
    run = starts(connection, clock)
    runs.finish(connection, run, RunState.FAILED, clock.now(), used={}, error=("model", why))
    threads.add_message(
        connection,
        accepted.thread_id,
        clock.now(),
        role="notice",
        author="Pizza Bot",
        text=why,
        run_id=run.id,
    )
    return accepted.thread_id


async def test_nothing_to_tell_is_not_told_and_leaves_nothing_behind(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        arrives(connection, clock)
        starts(connection, clock)
        assert make(connection, clock) is None
        assert told(connection, clock) == []
        assert threads.at_address(connection, threads.UNATTENDED, "digest/ada") is None

    await database.write(work)


async def test_what_was_used_and_what_comes_is_no_news_by_itself(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        spend(connection, clock, "Ada")
        assert make(connection, clock) is None

    await database.write(work)


def spend(connection: sa.Connection, clock: FakeClock, person: str, cost: float | None = 0.5) -> None:
    about: dict[str, Any] = {"thread_id": "t", "run_id": "r", "person": person, "model": "m"}
    activity.spend(connection, Tokens(100, 20, cost), clock.now(), **about)


async def test_each_person_is_told_what_they_may_decide_the_oldest_first(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        waits(connection, clock, person="Cay", title="First")
        waits(connection, clock, approvers=("Bob",), title="Second")
        waits(connection, clock, title="Third")
        listed = {}
        for person in (ADA, BOB, CAY):
            digest = make(connection, clock, person)
            listed[person.name] = [(i.number, i.action.title) for i in digest.items] if digest else []
            assert digest is None or [i.bound_to for i in digest.items] == [
                i.action.digest for i in digest.items
            ]
        assert listed == {
            "Ada": [(1, "First"), (2, "Third")],
            "Bob": [(1, "Second")],
            "Cay": [(1, "First")],
        }

    await database.write(work)


async def test_what_the_person_put_off_is_counted_and_not_listed_until_its_time_has_come(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        (later,) = waits(connection, clock, title="Later")
        waits(connection, clock, title="Now")
        until = clock.now() + timedelta(hours=2)
        decide.snooze(connection, later.id, ADA, until, "web", clock.now(), PEOPLE)
        mine, bobs = make(connection, clock), make(connection, clock, replace(BOB, role="owner"))
        assert mine is not None
        assert ([i.action.title for i in mine.items], mine.put_off, mine.more_items) == (["Now"], 1, 0)
        assert store.get(connection, mine.id) == mine
        assert bobs is not None  # it is put off for one person alone
        assert ([i.action.title for i in bobs.items], bobs.put_off) == (["Later", "Now"], 0)
        clock.advance(timedelta(hours=2))  # and nobody has looked at the reminders yet
        again = make(connection, clock)
        assert again is not None
        assert ([i.action.title for i in again.items], again.put_off) == (["Later", "Now"], 0)

    await database.write(work)


async def test_a_digest_of_nothing_but_what_was_put_off_is_not_sent(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        (action,) = waits(connection, clock)
        until = clock.now() + timedelta(hours=2)
        decide.snooze(connection, action.id, ADA, until, "web", clock.now(), PEOPLE)
        assert make(connection, clock) is None

    await database.write(work)


async def test_what_the_person_approved_waits_for_the_others_until_an_edit_voids_that(
    database: Database, clock: FakeClock
) -> None:
    def titles(connection: sa.Connection, person: Person) -> list[str]:
        digest = make(connection, clock, person)
        return [item.action.title for item in digest.items] if digest is not None else []

    def work(connection: sa.Connection) -> None:
        (action,) = waits(connection, clock, approvers=("Ada", "Bob"), quorum=2, title="Two of us")
        said = Decision(action.id, "Ada", "web", Verdict.APPROVE, digest=action.digest)
        decide.decide(connection, said, ADA, clock.now(), PEOPLE)
        assert (titles(connection, ADA), titles(connection, BOB)) == ([], ["Two of us"])
        args = {"invoice": "INV-8", "amount": 1.0}
        said = Decision(action.id, "Bob", "web", Verdict.EDIT, args=args, digest=action.digest)
        decide.decide(connection, said, BOB, clock.now(), PEOPLE)
        assert (titles(connection, ADA), titles(connection, BOB)) == (["Two of us"], [])

    await database.write(work)


async def test_what_does_not_fit_is_counted(
    database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "MOST_ITEMS", 2)
    monkeypatch.setattr(making, "MOST_UNREAD", 1)
    monkeypatch.setattr(making, "MOST_FAILED", 1)

    def work(connection: sa.Connection) -> None:
        waits(connection, clock, asks=3)
        for number in range(2):
            unread(connection, clock, f"News {number}")
            fails(connection, clock, f"Failure {number}")
        digest = make(connection, clock)
        assert digest is not None
        assert (len(digest.items), digest.more_items) == (2, 1)
        assert (len(digest.failed), digest.more_failed) == (1, 1)
        assert len(digest.unread) + digest.more_unread == 3  # one failed thread is told as such

    await database.write(work)


def unread(connection: sa.Connection, clock: FakeClock, text: str, person: str = "Ada") -> str:
    thread_id = arrives(connection, clock, f"About {text}", person=person).thread_id
    run = starts(connection, clock)
    runs.finish(connection, run, RunState.DONE, clock.now(), used={})
    threads.add_message(connection, thread_id, clock.now(), role="assistant", author="Bot", text=text)
    return thread_id


async def test_unread_is_the_persons_own_and_failures_are_told_once(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        mine, lost = unread(connection, clock, "News"), fails(connection, clock, "no such model")
        unread(connection, clock, "News of Cay", "Cay")
        fails(connection, clock, "Cay's", person="Cay")
        digest = make(connection, clock)
        assert digest is not None
        assert [(t.thread_id, t.last_message) for t in digest.unread] == [(mine, "News")]
        assert [(f.thread_id, f.why) for f in digest.failed] == [(lost, "no such model")]
        clock.advance(timedelta(minutes=1))
        again = make(connection, clock)
        assert again is not None
        assert again.failed == ()
        assert {t.thread_id for t in again.unread} == {mine, lost}
        assert again.since == digest.made_at

    await database.write(work)


async def test_what_was_tried_again_did_not_fail(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        thread_id = fails(connection, clock, "first try")
        arrives(connection, clock, "Again", thread_id=thread_id)
        runs.finish(connection, starts(connection, clock), RunState.DONE, clock.now(), used={})
        digest = make(connection, clock)
        assert digest is not None  # it is unread
        assert digest.failed == ()

    await database.write(work)


async def test_a_digest_is_a_message_of_a_thread_of_its_own_and_no_unread_work(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        (action,) = waits(connection, clock, title="Pay [the](http://evil.example) *bill*")
        digest = make(connection, clock)
        assert digest is not None
        thread = threads.get(connection, digest.thread_id)
        assert thread is not None
        assert (thread.title, thread.owner, thread.unread) == ("Digest", "Ada", False)
        (message,) = threads.messages_of(connection, thread.id)
        assert "1 to decide" in message.text.lower()
        assert f"({URL}/actions/{action.id})" in message.text
        assert r"Pay \[the\](http://evil.example) \*bill\*" in message.text
        assert "invoice: `INV-7`" in message.text
        clock.advance(timedelta(days=1))
        again = make(connection, clock)
        assert again is not None
        assert again.thread_id == thread.id
        assert again.unread == ()

    await database.write(work)


async def test_who_is_told_nowhere_else_finds_it_unread_once(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        waits(connection, clock, person="Cay")
        digest = make(connection, clock, CAY)
        assert digest is not None
        thread = threads.get(connection, digest.thread_id)
        assert thread is not None
        assert thread.unread
        assert told(connection, clock) == []
        again = make(connection, clock, CAY)
        assert again is not None
        assert again.unread == ()  # the digest before is no unread work of its own
        threads.add_message(
            connection, digest.thread_id, clock.now(), role="assistant", author="Bot", text="An answer"
        )
        third = make(connection, clock, CAY)
        assert third is not None
        assert [t.last_message for t in third.unread] == ["An answer"]

    await database.write(work)


@pytest.mark.parametrize(
    ("notify", "places"),
    [
        (Notify(), ["slack"]),
        (Notify(unread=("email",)), ["email"]),
        (Notify(unread=()), ["slack"]),  # nothing at once, so the digest is how they hear of it
        (Notify(unread=("slack",), digest=("email", "slack")), ["email", "slack"]),
        (Notify(digest=()), []),
        (Notify(digest=("web",)), []),
    ],
)
def test_where_a_digest_goes(notify: Notify, places: list[str]) -> None:
    found = making.places_of(replace(ADA, notify=notify), CHANNELS)
    assert [place.channel for place in found] == places


async def test_it_is_sent_to_the_person_in_the_transaction_that_makes_it(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        waits(connection, clock)
        digest = make(connection, clock)
        assert digest is not None
        (row,) = told(connection, clock)
        assert (row.kind, row.channel, row.address, row.person) == ("digest", "slack", "U0ADA", "Ada")
        assert (row.digest_id, row.message_seq) == (digest.id, store.message_of(connection, digest.id))

    await database.write(work)


async def test_usage_is_of_today_where_the_person_is_and_of_everybody_for_owners(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        early = FakeClock(clock.now().replace(hour=0) - timedelta(hours=1, minutes=1))  # still yesterday
        spend(connection, early, "Ada", 100.0)
        spend(connection, FakeClock(early.advance(timedelta(minutes=2))), "Ada")  # past midnight in Amsterdam
        spend(connection, clock, "Cay")
        waits(connection, clock, person="Cay")
        mine, theirs = make(connection, clock), make(connection, clock, CAY)
        assert mine is not None
        assert mine.usage is not None
        assert (mine.usage.tokens, mine.usage.cost_usd, mine.usage.of_everybody) == (240, 1.0, True)
        assert theirs is not None
        assert theirs.usage is not None
        assert (theirs.usage.tokens, theirs.usage.of_everybody) == (120, False)
        spend(connection, clock, "Ada", None)
        again = make(connection, clock)
        assert again is not None
        assert again.usage is not None
        assert again.usage.cost_usd is None

    await database.write(work)


async def test_a_digest_is_read_back_as_it_was_made_with_its_actions_as_they_are(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        (action, other) = waits(connection, clock, asks=2)
        unread(connection, clock, "News")
        fails(connection, clock, "lost")
        spend(connection, clock, "Ada")
        made = make(connection, clock)
        assert made is not None
        assert store.get(connection, made.id) == made
        said = Decision(action.id, "Ada", "web", Verdict.APPROVE, digest=action.digest)
        decide.decide(connection, said, ADA, clock.now(), PEOPLE)
        now = store.get(connection, made.id)
        assert now is not None
        assert [str(item.action.state) for item in now.items] == ["approved", "pending"]
        assert now.state == "1:approved 2:pending"
        threads.delete(connection, other.thread_id)
        gone = store.get(connection, made.id)
        assert gone is not None
        assert gone.items == ()

    await database.write(work)


async def test_a_decision_repaints_the_copies_of_the_digest_once(
    database: Database, clock: FakeClock
) -> None:
    def work(connection: sa.Connection) -> None:
        listed = waits(connection, clock, asks=2)
        digest = make(connection, clock)
        assert digest is not None
        (row,) = told(connection, clock)
        outbox.sent(connection, row, "D0/1.1", digest.state, clock.now())
        for action in listed:
            said = Decision(action.id, "Ada", "web", Verdict.REJECT, digest=action.digest)
            decide.decide(connection, said, ADA, clock.now(), PEOPLE)
        (repaint,) = told(connection, clock)
        assert (repaint.kind, repaint.digest_id, repaint.external_id) == ("digest", digest.id, "D0/1.1")
        assert outbox.digest_of_copy(connection, "slack", "U0ADA", "D0/1.1") == digest.id

    await database.write(work)


async def test_withdrawn_actions_repaint_it_as_well(database: Database, clock: FakeClock) -> None:
    def work(connection: sa.Connection) -> None:
        (action,) = waits(connection, clock, title="Gone soon")
        digest = make(connection, clock)
        assert digest is not None
        (row,) = told(connection, clock)
        outbox.sent(connection, row, "D0/1.1", digest.state, clock.now())
        for withdrawn in actions.withdraw(connection, action.thread_id, clock.now()):
            outbox.repaint(connection, withdrawn.id, withdrawn.state, clock.now())
        assert [row.kind for row in told(connection, clock)] == ["digest"]

    await database.write(work)
