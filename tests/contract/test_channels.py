"""Does every channel behave as the outbox needs it to? Each behaviour over every channel, by the real loop.

Channels whose faults can be scripted are asked more: what the outbox does when a network misbehaves.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from pizzabot.adapters.email.channel import email_channel
from pizzabot.adapters.slack.channel import slack_channel
from pizzabot.adapters.terminal.channel import TerminalChannel
from pizzabot.adapters.web.channel import ApiChannel, WebChannel
from starlette.routing import BaseRoute

from pizzabot.approvals import store as actions
from pizzabot.channel import Channel
from pizzabot.database import schema
from pizzabot.database.connection import Database, open_database
from pizzabot.database.migrate import migrate
from pizzabot.errors import DeliveryUnknown, NotFound
from pizzabot.events import Events
from pizzabot.inbox import threads
from pizzabot.messages import (
    Action,
    ActionState,
    Beginning,
    ChannelState,
    Event,
    OutboundItem,
    Receipt,
    Staged,
    Verdict,
)
from pizzabot.outbox import store
from pizzabot.outbox.delivery import Delivery
from pizzabot.people import People, Person
from pizzabot.settings import Settings
from tests.fakes.clock import FakeClock
from tests.fakes.mail.smtp_sink import SmtpSink
from tests.fakes.mail.taken import parsed
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.push_channel import Fault, PushChannel, PushService
from tests.fakes.rows import ADA, arrives, waits
from tests.fakes.slack import FakeSlack


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


@dataclass(frozen=True)
class FewDoors:
    """As much of the doors as a channel needs that only shows things."""

    events: Events = field(default_factory=Events)
    settings: Settings = field(default_factory=lambda: Settings.model_validate({"web": {"port": 0}}))

    people: People = field(default_factory=lambda: People([ADA]))
    clock: FakeClock = field(default_factory=FakeClock)

    def routes(self) -> Sequence[Any]:
        return ()

    def url(self) -> str:
        return "http://127.0.0.1:8642"

    async def is_back(self, channel: str) -> None: ...

    async def note(self, channel: str, key: str) -> str | None:
        return None

    @property
    def reports(self) -> FewDoors:
        return self

    @property
    def metrics(self) -> FewDoors:
        return self

    def answered(self, method: str, route: str | None, status: int, seconds: float) -> None: ...

    async def stopped(self) -> None: ...

    async def thread(self, thread_id: str, person: Person) -> Any:
        raise NotFound("There is no such thread.")

    async def staged(self, channel: str) -> list[Staged]:
        return []

    async def forget(self, channel: str, prefix: str, *, before: datetime | None = None) -> None: ...


@dataclass
class Stage:
    """A channel and what somebody who looks at its other side sees: copy -> state, or None for a message."""

    channel: Channel
    shown: Callable[[], dict[str, str | None]]
    address: str = "here"


@asynccontextmanager
async def live(kind: Callable[[Any], Channel]) -> AsyncIterator[Stage]:
    doors, copies = FewDoors(), dict[str, str | None]()
    with doors.events.subscribe() as happening:

        async def watch() -> None:
            async for event in happening:
                note(event)

        def note(event: Event) -> None:
            if event.kind == "delivered":
                copies[event.data["external_id"]] = event.data["state"]

        watching = asyncio.create_task(watch())
        yield Stage(kind(doors), lambda: copies)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@asynccontextmanager
async def push() -> AsyncIterator[Stage]:
    service = PushService()
    await service.start()
    yield Stage(PushChannel(service), lambda: {name: c["state"] for name, c in service.copies.items()})
    await service.stop()


@asynccontextmanager
async def slack() -> AsyncIterator[Stage]:
    async with FakeSlack({"U0ADA": "ada"}) as service:
        tokens = {"bot_token": service.bot_token, "app_token": service.app_token, "api_url": service.url}
        doors: Any = FewDoors(settings=Settings.model_validate({"web": {"port": 0}, "slack": tokens}))
        channel = slack_channel(doors)
        assert channel is not None

        def shown() -> dict[str, str | None]:
            told = service.messages(service.dm("U0ADA")) if service.dm("U0ADA") in service.channels else []
            return {
                message.ts: _state_on(service.words(message), service.buttons(message)) for message in told
            }

        yield Stage(channel, shown, "U0ADA")
        assert service.refused == []


@dataclass(frozen=True)
class MailDoors(FewDoors):
    """What mail needs besides: its notes, and whose thread it is."""

    kept: dict[str, str] = field(default_factory=dict)
    folder: Path = Path()

    async def thread(self, thread_id: str, person: Person) -> Any:
        return SimpleNamespace(owner="Ada")

    async def began_with(self, action: Action, person: Person) -> Beginning:
        return Beginning((("Cay", "Please pay."),))

    async def note(self, channel: str, key: str) -> str | None:
        return self.kept.get(key)

    async def notes(self, channel: str, prefix: str) -> dict[str, str]:
        return {key: value for key, value in self.kept.items() if key.startswith(prefix)}

    async def keep(self, channel: str, values: Mapping[str, str]) -> None:
        self.kept.update(values)


@asynccontextmanager
async def email() -> AsyncIterator[Stage]:
    with SmtpSink() as sink:
        tables = {
            "address": "pizza@example.com",
            "listen": {"port": 0},
            "smtp": {"host": "127.0.0.1", "port": sink.port, "security": "none"},
        }
        ada = replace(ADA, emails=("ada@example.com",))
        settings = Settings.model_validate({"web": {"port": 0}, "email": tables})
        doors: Any = MailDoors(settings=settings, people=People([ada]))
        channel = email_channel(doors)
        assert channel is not None

        def shown() -> dict[str, str | None]:
            """A mail cannot be changed: what became of its question is said in another that answers it."""
            found: dict[str, str | None] = {}
            for sent in sink.mails:
                mail = parsed(sent.content)
                asks = str(mail["Subject"]).startswith("[Action]")
                if "Approved by Ada" in str(mail.get_body(("plain",))) and not asks:
                    found[str(mail["In-Reply-To"])] = "approved"
                else:
                    found[str(mail["Message-ID"])] = "pending" if asks else None
            return found

        yield Stage(channel, shown, "ada@example.com")


def _state_on(words: str, buttons: Sequence[str]) -> str | None:
    if "Approve" in buttons:
        return "pending"
    return "approved" if "Approved by Ada in Slack" in words else None


STAGES: dict[str, Callable[[], Any]] = {
    "api": lambda: live(ApiChannel),
    "web": lambda: live(WebChannel),
    "terminal": lambda: live(TerminalChannel),
    "push": push,
    "slack": slack,
    "email": email,
}


@pytest.fixture(params=STAGES)
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    async with STAGES[request.param]() as made:
        await made.channel.start()
        await until(lambda: made.channel.state().state == "ok")
        yield made
        await made.channel.stop()


@pytest.fixture
async def service() -> AsyncIterator[PushService]:
    made = PushService()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def pushing(service: PushService) -> AsyncIterator[PushChannel]:
    made = PushChannel(service)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "app.sqlite"
    migrate("", path)
    return path


@pytest.fixture
def database(migrated: Path, tmp_path: Path) -> Iterator[Database]:
    path = Path(shutil.copy(migrated, tmp_path))
    opened = open_database("", path)
    yield opened
    opened.close()


class Outbox:
    """The real loop over one or more channels, and the rows it works on."""

    def __init__(
        self, database: Database, clock: FakeClock, *channels: Channel, address: str = "here"
    ) -> None:
        self.database, self.clock, self.address = database, clock, address
        self.channels = {channel.name: channel for channel in channels}
        self.delivery = Delivery(database, clock, self.channels)

    async def __aenter__(self) -> Outbox:
        await self.delivery.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.delivery.stop()

    async def say(
        self, text: str, *, key: str, address: str | None = None, channel: str | None = None
    ) -> None:
        """Queue a message."""
        name = channel or next(iter(self.channels))

        def work(connection: sa.Connection) -> None:
            made = arrives(connection, self.clock)
            seq = threads.add_message(
                connection, made.thread_id, self.clock.now(), role="assistant", author="Bot", text=text
            )
            store.enqueue(
                connection,
                self.clock.now(),
                key=key,
                channel=name,
                address=address or self.address,
                kind="answer",
                thread_id=made.thread_id,
                message_seq=seq,
            )

        await self.database.write(work)
        self.delivery.wake()

    async def ask(self) -> Action:
        """Queue the card of a new action."""
        name = next(iter(self.channels))

        def work(connection: sa.Connection) -> Action:
            (action,) = waits(connection, self.clock)
            store.enqueue(
                connection,
                self.clock.now(),
                key=f"action/{action.id}",
                channel=name,
                address=self.address,
                kind="action",
                thread_id=action.thread_id,
                action_id=action.id,
            )
            return action

        action = await self.database.write(work)
        self.delivery.wake()
        return action

    async def approve(self, action: Action) -> None:
        """Settle the action and queue the repaint of its copies."""

        def work(connection: sa.Connection) -> None:
            decided = {"decision": Verdict.APPROVE, "decided_by": "Ada", "decided_via": "slack"}
            moment = self.clock.now()
            actions.settle(
                connection,
                action.id,
                [ActionState.PENDING],
                state=ActionState.APPROVED,
                decided_at=moment,
                **decided,
            )
            store.repaint(connection, action.id, ActionState.APPROVED, moment)

        await self.database.write(work)
        self.delivery.wake()

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)
        self.delivery.wake()

    async def rows(self) -> list[Any]:
        query = sa.select(schema.outbox).order_by(schema.outbox.c.id)
        return await self.database.read(lambda c: list(c.execute(query)))

    async def states(self, *wanted: str) -> list[Any]:
        """The rows, as soon as they are in these states, in the order in which they were queued."""
        found: list[Any] = []
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while [row.state for row in found] != list(wanted):
                    await asyncio.sleep(0.01)
                    found = await self.rows()
        except TimeoutError:
            raise AssertionError(f"{[(r.key, r.state, r.error) for r in found]} is not {wanted}") from None
        return found

    async def all_sent(self) -> None:
        """Return when nothing waits any more."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                if all(row.state == "sent" for row in await self.rows()):
                    return
                await asyncio.sleep(0.01)

    async def tried(self, times: int) -> Any:
        """The only row, as soon as it failed so often and waits for its next try."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                (row,) = await self.rows()
                if row.state == "pending" and row.tries == times and row.due_at > self.clock.now():
                    return row
                await asyncio.sleep(0.01)

    async def leave_as_after_a_crash(self) -> None:
        """Make sent rows look as if the process had died before it could note their arrival."""
        change = sa.update(schema.outbox).values(state="sending")
        await self.database.write(lambda c: c.execute(change) and None)
        await self.database.write(lambda c: c.execute(sa.delete(schema.deliveries)) and None)


class Between:
    """A channel in front of another, where a test can hold things up or lose the answer."""

    def __init__(self, inner: Channel) -> None:
        self.inner, self.name = inner, inner.name
        self.repaints_silently = inner.repaints_silently
        self.arrived, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()
        self.lose_answers = 0
        self.delivered = 0

    async def deliver(self, item: OutboundItem) -> Receipt:
        self.delivered += 1
        receipt = await self.inner.deliver(item)
        self.arrived.set()
        await self.go_on.wait()
        if self.lose_answers:
            self.lose_answers -= 1
            raise DeliveryUnknown("the answer was lost")
        return receipt

    async def find(self, item: OutboundItem) -> Receipt | None:
        return await self.inner.find(item)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def routes(self) -> Sequence[BaseRoute]:
        return self.inner.routes()

    def address_of(self, person: Person) -> str | None:
        return self.inner.address_of(person)

    def is_with(self, person: Person, address: str) -> bool:
        return self.inner.is_with(person, address)

    def state(self) -> ChannelState:
        return self.inner.state()


# -- every channel -----------------------------------------------------------------------------------------


async def test_a_channel_says_how_it_is(stage: Stage) -> None:
    assert stage.channel.name.isidentifier()
    assert stage.channel.state().state == "ok"
    await stage.channel.stop()
    assert stage.channel.state().state == "off"
    await stage.channel.stop()


async def test_a_channel_names_its_routes_and_addresses(stage: Stage) -> None:
    assert all(isinstance(route, BaseRoute) for route in stage.channel.routes())
    assert stage.channel.address_of(ADA) is None or isinstance(stage.channel.address_of(ADA), str)


async def test_a_message_is_shown_once(stage: Stage, database: Database, clock: FakeClock) -> None:
    async with Outbox(database, clock, stage.channel, address=stage.address) as outbox:
        await outbox.say("hello", key="one")
        await outbox.say("hello", key="one")
        await outbox.states("sent")
    assert len(stage.shown()) == 1


async def test_after_a_crash_the_same_item_shows_once(
    stage: Stage, database: Database, clock: FakeClock
) -> None:
    async with Outbox(database, clock, stage.channel, address=stage.address) as outbox:
        await outbox.say("hello", key="one")
        await outbox.states("sent")
    await outbox.leave_as_after_a_crash()
    async with Outbox(database, clock, stage.channel, address=stage.address) as outbox:
        await outbox.states("sent")
    assert len(stage.shown()) == 1


async def test_an_answer_that_was_lost_on_its_way_shows_once(
    stage: Stage, database: Database, clock: FakeClock
) -> None:
    between = Between(stage.channel)
    between.lose_answers = 1
    async with Outbox(database, clock, between, address=stage.address) as outbox:
        action = await outbox.ask()
        await outbox.states("unknown")
        await outbox.pass_time(60)
        await outbox.all_sent()
        await outbox.approve(action)
        await outbox.all_sent()
    assert list(stage.shown().values()) == ["approved"]


async def test_a_copy_that_is_found_shows_what_was_decided_meanwhile(
    stage: Stage, database: Database, clock: FakeClock
) -> None:
    between = Between(stage.channel)
    between.lose_answers = 1
    async with Outbox(database, clock, between, address=stage.address) as outbox:
        action = await outbox.ask()
        await outbox.states("unknown")
        await outbox.approve(action)
        await outbox.pass_time(60)
        await outbox.all_sent()
    assert list(stage.shown().values()) == ["approved"]


async def test_a_decision_repaints_the_copy_in_place(
    stage: Stage, database: Database, clock: FakeClock
) -> None:
    async with Outbox(database, clock, stage.channel, address=stage.address) as outbox:
        action = await outbox.ask()
        await outbox.states("sent")
        assert list(stage.shown().values()) == ["pending"]
        await outbox.approve(action)
        await outbox.states("sent", "sent")
    assert list(stage.shown().values()) == ["approved"]


async def test_a_card_that_is_decided_on_its_way_is_repainted(
    stage: Stage, database: Database, clock: FakeClock
) -> None:
    between = Between(stage.channel)
    between.go_on.clear()
    async with Outbox(database, clock, between, address=stage.address) as outbox:
        action = await outbox.ask()
        await asyncio.wait_for(between.arrived.wait(), PATIENCE_SECONDS)
        await outbox.approve(action)
        between.go_on.set()
        await outbox.states("sent", "sent")
    assert list(stage.shown().values()) == ["approved"]


async def test_stopping_lets_what_is_being_sent_end(
    stage: Stage, database: Database, clock: FakeClock
) -> None:
    between = Between(stage.channel)
    between.go_on.clear()
    outbox = Outbox(database, clock, between, address=stage.address)
    await outbox.delivery.start()
    await outbox.say("hello", key="one")
    await asyncio.wait_for(between.arrived.wait(), PATIENCE_SECONDS)
    stopping = asyncio.create_task(outbox.delivery.stop())
    await asyncio.sleep(0.05)
    assert not stopping.done()
    between.go_on.set()
    await asyncio.wait_for(stopping, PATIENCE_SECONDS)
    assert [row.state for row in await outbox.rows()] == ["sent"]
    await outbox.say("later", key="two")
    await asyncio.sleep(0.05)
    assert [row.state for row in await outbox.rows()] == ["sent", "pending"]


# -- a network that misbehaves -----------------------------------------------------------------------------


async def test_a_cut_after_arrival_is_looked_up_and_not_sent_again(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults = [Fault(cut=True)]
    async with Outbox(database, clock, pushing) as outbox:
        await outbox.say("hello", key="one")
        (row,) = await outbox.states("unknown")
        assert row.tries == 1
        await outbox.pass_time(5)
        await outbox.states("sent")
    assert service.written == [("here", "hello")]


async def test_what_cannot_be_looked_up_is_not_said_again(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults = [Fault(cut=True)]
    service.blind = 2
    async with Outbox(database, clock, pushing) as outbox:
        await outbox.say("hello", key="one")
        await outbox.states("unknown")
        for looked in (1, 2):
            await outbox.pass_time(60)
            await until(lambda looked=looked: service.blind == 2 - looked)  # type: ignore[misc]
            await outbox.states("unknown")
        await outbox.pass_time(60)
        await outbox.all_sent()
    assert service.written == [("here", "hello")]


async def test_a_failure_that_can_pass_is_tried_again_later_and_later(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults = [Fault(status=500)] * 4
    waits_seconds = []
    async with Outbox(database, clock, pushing) as outbox:
        await outbox.say("hello", key="one")
        for tries in range(1, 5):
            row = await outbox.tried(tries)
            waits_seconds.append((row.due_at - clock.now()).total_seconds())
            await outbox.pass_time(waits_seconds[-1])
        await outbox.states("sent")
    assert waits_seconds == sorted(waits_seconds)
    assert waits_seconds[0] <= 5
    assert waits_seconds[-1] >= 2 * waits_seconds[1]
    assert service.written == [("here", "hello")]


async def test_what_the_other_side_asks_for_is_waited(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults = [Fault(status=429, retry_after="120")]
    async with Outbox(database, clock, pushing) as outbox:
        await outbox.say("hello", key="one")
        row = await outbox.tried(1)
        assert (row.due_at - clock.now()).total_seconds() == 120
        await outbox.pass_time(119)
        await asyncio.sleep(0.1)
        assert service.written == []
        await outbox.pass_time(1)
        await outbox.states("sent")
    assert service.written == [("here", "hello")]


async def test_a_final_failure_is_shown_and_not_tried_again(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults = [Fault(status=403)]
    async with Outbox(database, clock, pushing) as outbox:
        await outbox.say("hello", key="one")
        await outbox.states("failed")
        await outbox.pass_time(100_000)
        await asyncio.sleep(0.1)
        summary = await database.read(store.summary)
    assert summary == {
        "pending": 0,
        "put_off": 0,
        "unknown": 0,
        "failed": [{"channel": "push", "to": "here", "error": "push answered 403"}],
    }
    assert service.written == []


async def test_a_failure_that_never_passes_ends_after_two_days(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults = [Fault(status=503)] * 2
    async with Outbox(database, clock, pushing) as outbox:
        await outbox.say("hello", key="one")
        await outbox.tried(1)
        await outbox.pass_time(48 * 3600)
        await outbox.states("failed")


async def test_one_address_is_told_in_order(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    async with Outbox(database, clock, pushing) as outbox:
        for number in range(6):
            await outbox.say(f"{number}", key=f"key {number}")
            clock.advance(seconds=0.001)
        await outbox.pass_time(1)
        await outbox.states(*["sent"] * 6)
    assert [text for _, text in service.written] == ["0", "1", "2", "3", "4", "5"]


async def test_what_is_tried_again_is_not_overtaken_by_what_was_said_later(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults = [Fault(status=500)]
    async with Outbox(database, clock, pushing) as outbox:
        await outbox.say("first", key="one")
        await outbox.tried(1)
        await outbox.say("second", key="two")
        await asyncio.sleep(0.1)
        await outbox.pass_time(60)
        await outbox.states("sent", "sent")
    assert [text for _, text in service.written] == ["first", "second"]


async def test_an_address_that_fails_holds_up_no_other(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    service.faults_at = {"broken": [Fault(status=500)] * 50}
    async with Outbox(database, clock, pushing) as outbox:
        for number in range(5):
            await outbox.say("lost", key=f"lost {number}", address="broken")
        for number in range(5):
            await outbox.say("fine", key=f"fine {number}", address=f"place {number}")
        await until(lambda: len(service.written) == 5)
    assert {text for _, text in service.written} == {"fine"}


async def test_an_address_that_hangs_holds_up_no_other(
    service: PushService, pushing: PushChannel, database: Database, clock: FakeClock
) -> None:
    between = Between(pushing)
    between.go_on.clear()
    async with Outbox(database, clock, between) as outbox:
        for number in range(5):
            await outbox.say("hello", key=f"key {number}", address=f"place {number}")
        await until(lambda: between.delivered == 5)
        between.go_on.set()
        await outbox.states(*["sent"] * 5)
