"""What becomes of actions that nobody decides, as the clock goes on?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot import audit
from pizzabot.agent import activity
from pizzabot.agent.activity import Tokens
from pizzabot.agent.guard import still_counts
from pizzabot.agent.spending import DayBudget, Spending
from pizzabot.approvals import decide, store
from pizzabot.approvals.policy import Policy, Rule, Timing
from pizzabot.approvals.raises import DAY_BUDGETS
from pizzabot.database import schema
from pizzabot.database.connection import Database
from pizzabot.engine.endings import Endings
from pizzabot.engine.undecided import MORE_ROOM, NEW_DAY, Undecided
from pizzabot.errors import Conflict, Forbidden, Invalid, Refused
from pizzabot.inbox import pages, runs, threads
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, Decision, RunState, Verdict
from pizzabot.outbox import store as outbox
from pizzabot.people import Notify, People, Person
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ALLOWANCE, waits

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
ADA = Person("Ada", "owner", slack="U0ADA", timezone="Europe/Amsterdam")
BOB = Person("Bob", "approver", slack="U0BOB", timezone="America/New_York")
EVE = Person("Eve", "approver", slack="U0EVE")


@dataclass(frozen=True)
class _Private:
    """A channel that reaches everybody at their own address."""

    name: str
    repaints_silently = True

    def address_of(self, person: Person) -> str | None:
        return f"{self.name} of {person.name}"

    def is_with(self, person: Person, address: str) -> bool:
        return address == self.address_of(person)


CHANNELS = {name: _Private(name) for name in ("slack", "email")}


@dataclass
class Office:
    """The rows of a database, and the clock that is moved."""

    database: Database
    clock: FakeClock
    times: Timing = field(default_factory=lambda: Timing(reminder_after=4 * HOUR))
    rules: tuple[Rule, ...] = ()
    people: tuple[Person, ...] = (ADA, BOB, EVE)
    changed: list[Action] = field(default_factory=list)
    day_usd: float | None = 20.0

    @property
    def endings(self) -> Endings:
        policy = Policy("ask", self.rules, False, self.times)
        return Endings(self.clock, People(self.people), CHANNELS, "demo:demo", ALLOWANCE, policy)

    async def asks(self, **options: Any) -> Action:
        """An action that was just asked."""

        def work(connection: sa.Connection) -> Action:
            (action,) = waits(connection, self.clock, **options)
            self.endings.announce(connection, action)
            found = store.get(connection, action.id)
            assert found is not None
            return found

        return await self.database.write(work)

    async def later(self, delta: timedelta) -> datetime | None:
        """Time passes, and the clock's work is done; when it is next due."""
        self.clock.advance(delta)
        return await self.tick()

    async def tick(self) -> datetime | None:
        spending = Spending(
            DayBudget("Europe/Amsterdam", self.day_usd, tokens=100, of_person={"Ada": 20.0, "Cay": 20.0})
        )
        return await Undecided(self.database, self.endings, spending, self.changed.append).tick(
            self.clock.now()
        )

    async def action(self, action: Action) -> Action:
        found = await self.database.read(lambda c: store.get(c, action.id))
        assert found is not None
        return found

    async def run(self, action: Action) -> RunState:
        run = await self.database.read(lambda c: runs.get(c, action.run_id))
        assert run is not None
        return run.state

    async def said(self, kind: str = "reminder") -> list[str]:
        """The addresses to which something of a kind was queued, oldest first."""
        query = sa.select(schema.outbox.c.address).where(schema.outbox.c.kind == kind)
        ordered = query.order_by(schema.outbox.c.id)
        return await self.database.read(lambda c: list(c.execute(ordered).scalars()))

    async def events(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        lines = await self.database.read(lambda c: audit.page(c, limit=100))
        return [(line.event, line.actor, line.data) for line in reversed(lines)]

    async def decides(self, action: Action, verdict: Verdict = Verdict.APPROVE, who: Person = ADA) -> Action:
        word = Decision(action.id, who.name, "web", verdict)
        now, people = self.clock.now(), People(self.people)
        return (await self.database.write(lambda c: decide.decide(c, word, who, now, people))).action


@pytest.fixture
def office(database: Database, clock: FakeClock) -> Office:
    return Office(database, clock)


def expiring(office: Office, after: timedelta = 24 * HOUR, *, then: Any = "park") -> Office:
    office.times = Timing(expire_after=after, on_expiry=then)
    return office


# -- a new day -------------------------------------------------------------------------------------------


async def asks_for_the_day(office: Office, **changes: Any) -> Action:
    """A run that waits: may it go on though all of the day's budgets are used up?"""
    asked: dict[str, Any] = {
        "kind": ActionKind.LIMIT,
        "tool": "limit:day_usd",
        "args": {"limit": "day_usd", "day": "2026-03-02", "used": 20.5, "allowance": 2.5},
        "allowed_decisions": (Verdict.APPROVE, Verdict.REJECT),
        "approvers": ("Ada",),
    }
    action = await office.asks(**(asked | changes))

    def used(connection: sa.Connection) -> None:
        connection.execute(sa.update(schema.runs).values(state="waiting"))
        for person in ("Ada", "Cay"):
            about = {"thread_id": action.thread_id, "run_id": action.run_id, "person": person}
            activity.spend(connection, Tokens(100, 7, 20.5), office.clock.now(), model="demo:a", **about)

    await office.database.write(used)
    return action


@pytest.mark.parametrize("expired", [False, True])
async def test_a_run_that_waits_for_more_of_a_day_goes_on_with_the_next_one(
    office: Office, expired: bool
) -> None:
    """The day is that of the budget's zone: it ends at 23:00 UTC. It expired in earlier versions only."""
    action = await asks_for_the_day(office)
    if expired:
        states = [ActionState.PENDING]
        await office.database.write(
            lambda c: store.settle(c, action.id, states, state=ActionState.EXPIRED),
        )
    midnight = datetime(2026, 3, 2, 23, tzinfo=UTC)
    await office.later(midnight - office.clock.now() - timedelta(seconds=1))
    still = ActionState.EXPIRED if expired else ActionState.PENDING
    assert ((await office.action(action)).state, await office.run(action)) == (still, RunState.WAITING)
    office.changed.clear()
    await office.later(timedelta(seconds=1))
    over = await office.action(action)
    assert (over.state, over.reason) == (ActionState.WITHDRAWN, NEW_DAY)
    assert (over.decided_by, over.decided_at) == (None, midnight)
    assert await office.run(action) is RunState.QUEUED
    assert [changed.id for changed in office.changed] == [action.id]
    assert (await office.events())[-1][0] == "action.withdrawn"


@pytest.mark.parametrize("more", [50.0, None])
async def test_a_run_that_waits_for_more_of_a_day_goes_on_when_the_settings_give_more(
    office: Office, more: float | None
) -> None:
    action = await asks_for_the_day(office)
    await office.tick()
    assert (await office.action(action)).state is ActionState.PENDING
    office.day_usd = more
    await office.tick()
    over = await office.action(action)
    assert (over.state, over.reason) == (ActionState.WITHDRAWN, MORE_ROOM)
    assert await office.run(action) is RunState.QUEUED


async def test_a_run_that_has_only_just_asked_for_more_of_a_day_is_left_alone_until_it_waits(
    office: Office,
) -> None:
    action = await asks_for_the_day(office)
    office.day_usd = None
    await office.database.write(lambda c: c.execute(sa.update(schema.runs).values(state="running")).rowcount)
    await office.tick()
    assert (await office.action(action)).state is ActionState.PENDING
    await office.database.write(lambda c: c.execute(sa.update(schema.runs).values(state="waiting")).rowcount)
    await office.tick()
    assert await office.run(action) is RunState.QUEUED


@pytest.mark.parametrize("then", ["park", "reject"])
async def test_the_question_about_a_day_has_no_expiry_but_the_end_of_the_day(
    office: Office, then: str
) -> None:
    office.times = Timing(reminder_after=4 * HOUR, expire_after=HOUR, on_expiry=then)  # type: ignore[arg-type]
    action = await asks_for_the_day(office)
    assert action.expires_at is None
    await office.later(4 * HOUR)
    assert (await office.action(action)).state is ActionState.PENDING
    assert await office.run(action) is RunState.WAITING
    assert await office.said() == ["slack of Ada"]


async def test_what_an_earlier_version_gave_an_expiry_is_parked_and_goes_on_with_the_next_day(
    office: Office,
) -> None:
    action = await asks_for_the_day(expiring(office, then="reject"))
    due = sa.update(schema.actions).values(expires_at=office.clock.now() + HOUR)
    await office.database.write(lambda c: c.execute(due).rowcount)
    await office.later(HOUR)
    assert await office.run(action) is RunState.WAITING
    await office.later(24 * HOUR)
    assert (await office.action(action)).state is ActionState.WITHDRAWN
    assert await office.run(action) is RunState.QUEUED


async def test_a_run_pauses_for_no_question_that_was_withdrawn_before_it_paused(office: Office) -> None:
    action = await asks_for_the_day(office)
    at_work = sa.update(schema.runs).values(state="running")
    await office.database.write(lambda c: c.execute(at_work).rowcount)
    withdrawn = {"state": ActionState.WITHDRAWN}
    await office.database.write(
        lambda c: store.settle(c, action.id, [ActionState.PENDING], **withdrawn),
    )
    question = await office.database.read(
        lambda c: c.execute(sa.select(schema.actions.c.question)).scalar_one()
    )
    run = await office.database.read(lambda c: runs.get(c, action.run_id))
    assert run is not None
    await office.database.write(
        lambda c: office.endings.paused(c, run, {}, [question.rpartition("#")[0]]),
    )
    assert await office.run(action) is RunState.QUEUED


async def test_a_tool_that_is_named_like_a_days_budget_is_not_withdrawn_with_the_day(office: Office) -> None:
    action = await office.asks(tool="limit:day_usd", args={"limit": "day_usd", "day": "2026-03-02"})
    await office.later(48 * HOUR)
    assert (await office.action(action)).state is ActionState.PENDING


# -- expiry ----------------------------------------------------------------------------------------------


async def test_an_action_expires_when_its_time_is_up_and_not_before(office: Office) -> None:
    action = await expiring(office).asks()
    assert action.expires_at == office.clock.now() + 24 * HOUR
    assert await office.later(24 * HOUR - timedelta(microseconds=1)) == action.expires_at
    assert (await office.action(action)).state is ActionState.PENDING
    assert await office.later(timedelta(microseconds=1)) is None
    assert (await office.action(action)).state is ActionState.EXPIRED


async def test_without_a_time_an_action_waits_for_ever(office: Office) -> None:
    office.times = Timing()
    action = await office.asks()
    assert await office.later(timedelta(days=3650)) is None
    assert (await office.action(action)).state is ActionState.PENDING


async def test_a_parked_action_keeps_its_run_waiting_and_is_news_in_its_thread(office: Office) -> None:
    action = await expiring(office).asks()
    await office.later(24 * HOUR)
    thread = await office.database.read(lambda c: threads.get(c, action.thread_id))
    messages = await office.database.read(lambda c: threads.messages_of(c, action.thread_id))
    assert thread is not None
    assert (await office.run(action), thread.state, thread.action_count, thread.unread) == (
        RunState.WAITING,
        "waiting",
        0,
        True,
    )
    assert messages[-1].role == "notice"
    assert messages[-1].text.startswith("Nobody decided in time")
    assert await office.said() == [thread.address]
    assert ("action.expired", "Pizza Bot") in [(e, actor) for e, actor, _ in await office.events()]


async def test_a_reopened_action_has_its_whole_time_again(office: Office) -> None:
    action = await expiring(office).asks()
    await office.later(30 * HOUR)
    await office.database.write(lambda c: office.endings.reopened(c, action.id, ADA, "web"))
    reopened = await office.action(action)
    assert (reopened.state, reopened.expires_at) == (
        ActionState.PENDING,
        office.clock.now() + 24 * HOUR,
    )
    await office.later(23 * HOUR)
    assert (await office.action(action)).state is ActionState.PENDING
    await office.later(1 * HOUR)
    assert (await office.action(action)).state is ActionState.EXPIRED


async def test_with_reject_the_run_goes_on_and_the_action_is_closed(office: Office) -> None:
    action = await expiring(office, then="reject").asks()
    await office.later(24 * HOUR)
    closed = await office.action(action)
    assert (closed.state, closed.decision, closed.decided_by, closed.lapsed) == (
        ActionState.EXPIRED,
        Verdict.REJECT,
        None,
        True,
    )
    assert await office.run(action) is RunState.QUEUED
    assert [changed.id for changed in office.changed] == [action.id]
    with pytest.raises(Conflict, match="the agent was told"):
        await office.database.write(lambda c: office.endings.reopened(c, action.id, ADA, "web"))


async def test_what_became_of_a_call_is_never_guessed(office: Office) -> None:
    action = await expiring(office, then="reject").asks(
        kind=ActionKind.UNCERTAIN, allowed_decisions=(Verdict.RETRY, Verdict.DONE, Verdict.FAILED)
    )
    await office.later(24 * HOUR)
    assert (await office.action(action)).decision is None
    assert await office.run(action) is RunState.WAITING


@pytest.mark.parametrize(
    ("then", "told"), [("park", "Reopen it to decide after all"), ("reject", "the agent was told")]
)
async def test_a_word_that_comes_after_the_expiry_is_told_so(office: Office, then: str, told: str) -> None:
    action = await expiring(office, then=then).asks()
    await office.later(25 * HOUR)
    with pytest.raises(Conflict, match=f"expired because nobody decided in time.*{told}") as refused:
        await office.decides(action)
    assert refused.value.code == "already_decided"
    assert refused.value.details["action"].state is ActionState.EXPIRED


async def test_what_was_decided_never_expires(office: Office) -> None:
    action = await expiring(office).asks()
    office.clock.advance(24 * HOUR)
    await office.decides(action)  # its time is up, and nobody looked yet
    await office.tick()
    assert (await office.action(action)).state is ActionState.APPROVED
    assert await office.run(action) is RunState.QUEUED


@pytest.mark.parametrize("then", ["park", "reject"])
async def test_of_a_decision_and_the_expiry_at_the_same_moment_one_counts(office: Office, then: str) -> None:
    expiring(office, then=then)
    for _ in range(5):
        action = await office.asks()
        office.clock.advance(24 * HOUR)
        decided, *ticks = await asyncio.gather(
            office.decides(action), office.tick(), office.tick(), return_exceptions=True
        )
        assert not [tick for tick in ticks if isinstance(tick, BaseException)]
        stored = await office.action(action)
        mine = [(e, d) for e, _, d in await office.events() if d.get("thread") == action.thread_id]
        ends = [event for event, _ in mine if event in ("action.approved", "action.expired")]
        if isinstance(decided, Action):
            assert (stored.state, ends) == (ActionState.APPROVED, ["action.approved"])
            assert await office.run(action) is RunState.QUEUED
        else:
            assert isinstance(decided, Conflict)
            assert (stored.state, ends) == (ActionState.EXPIRED, ["action.expired"])


async def test_two_clocks_expire_an_action_once(office: Office) -> None:
    await expiring(office).asks()
    office.clock.advance(24 * HOUR)
    await asyncio.gather(*(office.tick() for _ in range(4)))
    assert [event for event, *_ in await office.events()].count("action.expired") == 1
    assert len(await office.said()) == 1


async def test_all_that_fell_due_during_a_long_pause_is_done_at_once(office: Office) -> None:
    expiring(office)
    asked = [await office.asks() for _ in range(3)]
    assert await office.later(timedelta(days=30)) is None
    assert {(await office.action(action)).state for action in asked} == {ActionState.EXPIRED}


async def test_an_action_from_before_there_was_a_clock_gets_its_whole_time(office: Office) -> None:
    (action,) = await office.database.write(lambda c: waits(c, office.clock))
    old = sa.update(schema.actions).values(waiting_since=None)
    await office.database.write(lambda c: c.execute(old))
    office.times = Timing(reminder_after=4 * HOUR, expire_after=24 * HOUR)
    office.clock.advance(timedelta(days=30))
    await office.tick()
    found = await office.action(action)
    assert (found.state, found.expires_at) == (ActionState.PENDING, office.clock.now() + 24 * HOUR)
    await office.later(4 * HOUR)
    assert len(await office.said()) == 1


# -- reminders -------------------------------------------------------------------------------------------


async def test_who_may_decide_is_reminded_once_per_interval(office: Office) -> None:
    await office.asks(approvers=("Bob",))
    assert await office.later(4 * HOUR - MINUTE) == office.clock.now() + MINUTE
    assert await office.said() == []
    await office.later(MINUTE)
    await office.later(4 * HOUR - MINUTE)
    assert await office.said() == ["slack of Bob"]
    await office.later(MINUTE)
    assert await office.said() == ["slack of Bob"] * 2
    reminded = [data["person"] for event, _, data in await office.events() if event == "action.reminded"]
    assert reminded == ["Bob", "Bob"]


async def test_after_a_long_pause_one_reminder_is_said_and_the_interval_begins_anew(office: Office) -> None:
    await office.asks(approvers=("Bob",))
    await office.later(41 * HOUR)
    await office.later(4 * HOUR - MINUTE)
    assert len(await office.said()) == 1


async def test_nobody_is_reminded_of_what_is_decided_or_stopped(office: Office) -> None:
    decided, stopped = await office.asks(), await office.asks()
    await office.decides(decided)
    await office.database.write(
        lambda c: office.endings.stopped(c, stopped.thread_id, person="Ada", via="web")
    )
    assert await office.later(8 * HOUR) is None
    assert await office.said() == []


async def test_without_an_interval_nobody_is_reminded(office: Office) -> None:
    office.times = Timing()
    await office.asks()
    assert await office.later(timedelta(days=365)) is None
    assert await office.said() == []


async def test_two_clocks_remind_a_person_once(office: Office) -> None:
    await office.asks(approvers=("Bob",))
    office.clock.advance(4 * HOUR)
    await asyncio.gather(*(office.tick() for _ in range(4)))
    assert await office.said() == ["slack of Bob"]


async def test_a_reminder_goes_where_the_person_wants_to_be_told(office: Office) -> None:
    office.people = (ADA, replace(BOB, notify=Notify(action=("email", "slack"))))
    await office.asks(approvers=("Bob",))
    await office.later(4 * HOUR)
    assert await office.said() == ["email of Bob", "slack of Bob"]


async def test_who_has_the_thread_before_them_is_reminded_there(office: Office) -> None:
    await office.asks(place=("slack", "slack of Ada"))
    await office.later(4 * HOUR)
    assert await office.said() == ["slack of Ada"]


async def test_in_a_place_that_several_share_it_is_said_once(office: Office) -> None:
    silent = Notify(action=())
    office.people = (replace(ADA, notify=silent), replace(BOB, notify=silent))
    await office.asks(place=("slack", "a channel"), approvers=("Ada", "Bob"))
    await office.later(4 * HOUR)
    assert await office.said() == ["a channel"]


async def test_a_person_who_may_no_longer_decide_is_not_reminded(office: Office) -> None:
    await office.asks(approvers=("Bob", "Eve"))
    office.people = (ADA, EVE)
    await office.later(4 * HOUR)
    assert await office.said() == ["slack of Eve"]


# -- quiet hours -----------------------------------------------------------------------------------------


def quiet(office: Office, hours: str = "20:00-07:00") -> Office:
    office.people = (ADA, replace(BOB, timezone="Europe/Amsterdam", quiet_hours=hours))
    return office


async def test_a_reminder_waits_for_the_end_of_quiet_hours(office: Office) -> None:
    quiet(office).clock.advance(9 * HOUR)  # 18:00 UTC is 19:00 in Amsterdam
    await office.asks(approvers=("Bob",))
    assert await office.later(4 * HOUR) == datetime(2026, 3, 3, 6, 0, tzinfo=UTC)
    assert await office.said() == []
    await office.later(8 * HOUR)
    assert await office.said() == ["slack of Bob"]


async def test_quiet_hours_end_by_the_clock_on_the_wall_when_it_was_changed(office: Office) -> None:
    night = FakeClock(datetime(2026, 3, 28, 18, 0, tzinfo=UTC))
    changing = quiet(replace(office, clock=night))
    await changing.asks(approvers=("Bob",))
    assert await changing.later(4 * HOUR) == datetime(2026, 3, 29, 5, 0, tzinfo=UTC)


async def test_an_urgent_reminder_passes_quiet_hours(office: Office) -> None:
    quiet(office).clock.advance(9 * HOUR)
    office.rules = (Rule("mcp:ledger:pay", urgent=True),)
    await office.asks(approvers=("Bob",))
    await office.later(4 * HOUR)
    assert await office.said() == ["slack of Bob"]


async def test_a_reminder_passes_quiet_hours_when_the_action_would_expire_in_them(office: Office) -> None:
    quiet(office).clock.advance(9 * HOUR)
    office.times = Timing(reminder_after=4 * HOUR, expire_after=10 * HOUR)
    await office.asks(approvers=("Bob",))
    await office.later(4 * HOUR)
    assert await office.said() == ["slack of Bob"]


# -- escalation ------------------------------------------------------------------------------------------


def escalating(office: Office, after: timedelta | None = 8 * HOUR, to: tuple[str, ...] = ("Eve",)) -> Office:
    office.times = Timing(escalate_after=after, escalate_to=to)
    return office


async def test_after_a_while_others_get_the_card_and_may_decide(office: Office) -> None:
    action = await escalating(office).asks(approvers=("Bob",))
    with pytest.raises(Refused):
        await office.decides(action, who=EVE)
    assert await office.later(8 * HOUR - MINUTE) == office.clock.now() + MINUTE
    assert (await office.action(action)).approvers == ("Bob",)
    assert await office.later(MINUTE) is None
    escalated = await office.action(action)
    assert (escalated.approvers, escalated.escalated_to) == (("Bob", "Eve"), ("Eve",))
    assert escalated.shown != action.shown
    assert "slack of Eve" in await office.said("action")
    assert [d["to"] for event, _, d in await office.events() if event == "action.escalated"] == [["Eve"]]
    assert (await office.decides(action, who=EVE)).decided_by == "Eve"


async def test_the_owner_of_the_work_may_still_decide_after_it_was_escalated(office: Office) -> None:
    cay = Person("Cay", "member")
    office.people = (ADA, BOB, EVE, cay)
    for who in (cay, ADA, EVE):
        action = await escalating(office).asks(person="Cay")
        await office.later(8 * HOUR)
        assert (await office.decides(action, who=who)).decided_by == who.name


async def test_what_was_decided_is_not_escalated(office: Office) -> None:
    action = await escalating(office).asks()
    await office.decides(action)
    assert await office.later(8 * HOUR) is None
    assert (await office.action(action)).escalated_to == ()


async def test_those_it_was_escalated_to_are_reminded_an_interval_later(office: Office) -> None:
    office.times = Timing(reminder_after=3 * HOUR, escalate_after=8 * HOUR, escalate_to=("Eve",))
    await office.asks(approvers=("Bob",))
    await office.later(8 * HOUR)
    assert await office.said() == ["slack of Bob"]
    await office.later(3 * HOUR)
    assert sorted(await office.said()) == ["slack of Bob", "slack of Bob", "slack of Eve"]


async def test_two_clocks_escalate_an_action_once(office: Office) -> None:
    await escalating(office).asks(approvers=("Bob",))
    office.clock.advance(8 * HOUR)
    await asyncio.gather(*(office.tick() for _ in range(4)))
    assert [event for event, *_ in await office.events()].count("action.escalated") == 1
    assert (await office.said("action")).count("slack of Eve") == 1


async def test_whom_it_would_be_escalated_to_and_who_may_decide_anyway_learns_nothing(office: Office) -> None:
    action = await escalating(office, to=("Ada",)).asks()
    assert await office.later(8 * HOUR) is None
    after = await office.action(action)
    assert (after.escalated_to, after.approvers, after.shown) == ((), action.approvers, action.shown)
    assert "action.escalated" not in [event for event, *_ in await office.events()]


async def test_an_owner_who_comes_later_may_decide_what_there_was_nobody_to_escalate_to(
    office: Office,
) -> None:
    action = await escalating(office, to=("Ada",)).asks()
    await office.later(8 * HOUR)
    gus = Person("Gus", "owner")
    office.people = (ADA, BOB, EVE, gus)
    assert (await office.decides(action, who=gus)).decided_by == "Gus"


async def test_a_rule_says_itself_when_and_to_whom(office: Office) -> None:
    escalating(office).rules = (Rule("mcp:ledger:pay", escalate_after=HOUR, escalate_to=("Bob",)),)
    action = await office.asks()
    await office.later(HOUR)
    assert (await office.action(action)).escalated_to == ("Bob",)


@pytest.mark.parametrize(("escalated", "counts"), [(("Eve",), True), ((), False)])
async def test_the_word_of_a_substitute_counts_when_the_call_is_made(
    office: Office, escalated: tuple[str, ...], counts: bool
) -> None:
    office.rules = (Rule("mcp:ledger:pay", approvers=("Bob",), escalate_after=HOUR, escalate_to=("Eve",)),)
    action = await office.asks(approvers=("Bob",))
    gate = office.endings.policy.gate("mcp:ledger:pay", read_only=False, skill=None)
    assert gate is not None
    approved = replace(action, decision=Verdict.APPROVE, decided_by="Eve", escalated_to=escalated)
    assert still_counts(gate, approved) is counts


@pytest.mark.parametrize("limit", DAY_BUDGETS)
async def test_more_of_a_day_is_passed_to_nobody_who_is_no_owner(office: Office, limit: str) -> None:
    args = {"limit": limit, "day": "2026-03-02", "used": 20.5, "allowance": 2.5}
    action = await asks_for_the_day(escalating(office), tool=f"limit:{limit}", args=args)
    assert await office.later(8 * HOUR) is None
    found = await office.action(action)
    assert (found.approvers, found.escalated_to) == (("Ada",), ())
    assert "slack of Eve" not in await office.said("action")


async def test_what_an_earlier_version_was_about_to_pass_on_stays_with_the_owners(office: Office) -> None:
    action = await asks_for_the_day(escalating(office))
    due = sa.update(schema.actions).values(escalates_at=office.clock.now() + HOUR)
    await office.database.write(lambda c: c.execute(due).rowcount)
    assert await office.later(HOUR) is None
    assert (await office.action(action)).approvers == ("Ada",)


@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.REJECT])
async def test_of_more_of_a_day_only_the_word_of_an_owner_counts_whoever_is_named(
    office: Office, verdict: Verdict
) -> None:
    action = await asks_for_the_day(office, approvers=("Ada", "Eve"))
    with pytest.raises(Forbidden, match="not yours to decide"):
        await office.decides(action, verdict, EVE)
    raised = sa.select(sa.func.count()).select_from(schema.day_raises)
    assert await office.database.read(lambda c: c.execute(raised).scalar()) == 0
    assert (await office.decides(action, verdict, ADA)).decided_by == "Ada"


# -- snooze ----------------------------------------------------------------------------------------------


async def snooze(office: Office, action: Action, who: Person, until: datetime) -> Action:
    people, now = People(office.people), office.clock.now()
    return await office.database.write(lambda c: decide.snooze(c, action.id, who, until, "web", now, people))


async def test_who_puts_an_action_off_is_told_then_and_not_before(office: Office) -> None:
    action = await office.asks(approvers=("Bob", "Eve"))
    until = office.clock.now() + 10 * HOUR
    snoozed = await snooze(office, action, BOB, until)
    assert [(s.person, s.until) for s in snoozed.snoozes] == [("Bob", until)]
    assert snoozed.shown != action.shown
    await office.later(8 * HOUR)
    await office.tick()
    assert await office.said() == ["slack of Eve"]
    await office.later(2 * HOUR)
    assert await office.said() == ["slack of Eve", "slack of Bob"]
    awake = await office.action(action)
    assert (awake.snoozes, awake.shown != snoozed.shown) == ((), True)
    (line,) = [(actor, data) for event, actor, data in await office.events() if event == "action.snoozed"]
    assert line == ("Bob", {"thread": action.thread_id, "until": until.isoformat()})


async def test_after_a_snooze_the_interval_begins_anew(office: Office) -> None:
    action = await office.asks(approvers=("Bob",))
    await snooze(office, action, BOB, office.clock.now() + 10 * HOUR)
    await office.later(10 * HOUR)
    assert await office.later(4 * HOUR - MINUTE) == office.clock.now() + MINUTE
    assert await office.said() == ["slack of Bob"]


async def test_a_snooze_is_said_again_also_where_nobody_is_reminded(office: Office) -> None:
    office.times = Timing()
    action = await office.asks(approvers=("Bob",))
    await snooze(office, action, BOB, office.clock.now() + HOUR)
    assert await office.later(HOUR) is None
    assert await office.said() == ["slack of Bob"]


async def test_a_question_without_a_clock_is_told_again_only_to_who_put_it_off_and_once(
    office: Office,
) -> None:
    office.times = Timing(reminder_after=4 * HOUR, expire_after=24 * HOUR)
    action = await office.asks(kind=ActionKind.LIMIT, tool=FAILURES, approvers=("Bob",))
    assert await office.later(timedelta(days=9)) is None
    assert await office.said() == []
    await snooze(office, action, BOB, office.clock.now() + HOUR)
    assert await office.later(HOUR) is None
    assert await office.said() == ["slack of Bob"]
    assert (await office.action(action)).state is ActionState.PENDING


async def painted(office: Office, action: Action) -> list[tuple[str, str | None]]:
    """Every copy of the card, once what is queued was delivered: where it is, and what it shows."""

    def work(connection: sa.Connection) -> list[tuple[str, str | None]]:
        now = office.clock.now()
        while rows := outbox.take(connection, now, limit=100):
            for row in rows:
                found = store.get(connection, action.id)
                assert found is not None
                outbox.sent(connection, row, row.external_id or row.key, found.shown, now)
        return [(copy.address, copy.shown_state) for copy in outbox.copies(connection, action.id)]

    return await office.database.write(work)


@pytest.mark.parametrize("then", ["in quiet hours", "approved by them", "decided by others only"])
async def test_cards_show_no_snooze_any_more_once_it_is_over_whatever_is_said_then(
    office: Office, then: str
) -> None:
    office.people = (ADA, BOB, EVE)
    action = await office.asks(approvers=("Bob", "Eve"), quorum=2)
    await snooze(office, action, BOB, office.clock.now() + HOUR)
    if then == "in quiet hours":
        quiet(office, "10:00-18:00")
    elif then == "approved by them":
        await office.decides(action, who=BOB)
    else:
        office.people = (ADA, EVE)
    before = await office.action(action)
    copies = await painted(office, action)
    assert copies == [(address, before.shown) for address, _ in copies] != []
    office.changed.clear()
    await office.later(HOUR)
    after = await office.action(action)
    assert (before.snoozes != (), after.snoozes) == (True, ())
    assert await office.said() == []
    assert [changed.id for changed in office.changed] == [action.id]
    copies = await painted(office, action)
    assert copies == [(address, after.shown) for address, _ in copies] != []
    assert after.shown != before.shown


async def test_a_second_snooze_takes_the_place_of_the_first(office: Office) -> None:
    action = await office.asks(approvers=("Bob",))
    await snooze(office, action, BOB, office.clock.now() + 2 * HOUR)
    await snooze(office, action, BOB, office.clock.now() + 3 * HOUR)
    await office.later(2 * HOUR)
    assert await office.said() == []
    await office.later(HOUR)
    assert await office.said() == ["slack of Bob"]


async def test_what_was_put_off_can_still_be_decided(office: Office) -> None:
    action = await office.asks()
    await snooze(office, action, ADA, office.clock.now() + HOUR)
    assert (await office.decides(action)).state is ActionState.APPROVED
    assert await office.later(HOUR) is None
    assert await office.said() == []


async def test_nothing_is_put_off_beyond_its_expiry(office: Office) -> None:
    action = await expiring(office, 2 * HOUR).asks()
    with pytest.raises(Invalid, match="expires before that, on Monday 2026-03-02 12:00") as refused:
        await snooze(office, action, ADA, office.clock.now() + 2 * HOUR)
    assert refused.value.code == "after_expiry"


async def test_only_what_is_yours_to_decide_can_be_put_off(office: Office) -> None:
    action = await office.asks(approvers=("Bob",))
    with pytest.raises(Refused, match="not yours to decide"):
        await snooze(office, action, ADA, office.clock.now() + HOUR)
    await office.decides(action, who=BOB)
    with pytest.raises(Conflict, match="Already approved by Bob"):
        await snooze(office, action, BOB, office.clock.now() + HOUR)


async def test_what_somebody_put_off_stands_below_the_rest_of_their_action_view(office: Office) -> None:
    asked = []
    for _ in range(5):
        office.clock.advance(MINUTE)
        asked.append(await office.asks())
    newest, *_ = reversed(asked)
    await snooze(office, asked[3], ADA, office.clock.now() + HOUR)
    await snooze(office, newest, ADA, office.clock.now() + HOUR)

    async def page(person: Person, limit: int, cursor: str | None) -> pages.Page:
        return await office.database.read(
            lambda c: pages.page(c, person, "action", limit=limit, cursor=cursor, words="")
        )

    async def view(person: Person, limit: int) -> list[int]:
        """The numbers of the actions whose threads stand there, page by page."""
        shown = await page(person, limit, None)
        found = [thread.id for thread in shown.threads]
        while shown.next_cursor is not None:
            shown = await page(person, limit, shown.next_cursor)
            found += [thread.id for thread in shown.threads]
        return [[action.thread_id for action in asked].index(thread_id) for thread_id in found]

    for limit in (1, 2, 3, 4, 5, 100):
        assert await view(ADA, limit) == [2, 1, 0, 4, 3]
        assert await view(replace(ADA, name="Olga"), limit) == [4, 3, 2, 1, 0]
    await office.later(HOUR)
    assert await view(ADA, 2) == [4, 3, 2, 1, 0]
