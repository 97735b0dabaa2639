"""Triggers on a database, with a ticker that the test moves and runs that end as the test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from pizzabot.approvals import decide
from pizzabot.approvals import store as actions
from pizzabot.approvals.policy import Policy
from pizzabot.database.connection import Database
from pizzabot.database.schema import messages, outbox
from pizzabot.database.schema import runs as runs_table
from pizzabot.engine import control
from pizzabot.engine.endings import Endings
from pizzabot.ids import new_id
from pizzabot.inbox import intake, runs, threads
from pizzabot.messages import Accepted, Action, Decision, Event, InboundMessage, Verdict
from pizzabot.people import People, Person
from pizzabot.triggers import store
from pizzabot.triggers.firing import Work
from pizzabot.triggers.ticker import Ticker
from pizzabot.triggers.trigger import Occurrence, Trigger, made
from pizzabot.triggers.triggers import Triggers
from pizzabot.triggers.webhooks import Seal
from tests.fakes.clock import FakeClock
from tests.fakes.rows import ADA, ALLOWANCE, BOB, CAY

PEOPLE = People([ADA, BOB, CAY])


@dataclass(frozen=True)
class Reaches:
    """A channel that reaches everybody."""

    repaints_silently = True

    def address_of(self, person: Person) -> str | None:
        return f"@{person.name}"

    def is_with(self, person: Person, address: str) -> bool:
        return address == f"@{person.name}"


@dataclass
class Unattended:
    """The room of triggers, without the engine: `end` says what became of a run."""

    database: Database
    clock: FakeClock
    people: People = PEOPLE
    told: list[Event] = field(default_factory=list)
    skills: set[str] = field(default_factory=lambda: {"books"})
    channels: dict[str, Reaches] = field(
        default_factory=lambda: {"web": Reaches(), "email": Reaches(), "slack": Reaches()}
    )

    def __post_init__(self) -> None:
        self.endings = Endings(
            self.clock, self.people, self.channels, "demo:demo", ALLOWANCE, Policy("annotations", (), False)
        )
        self.ticker = self.another_ticker()

    def another_ticker(self) -> Ticker:
        """As a process makes it that starts now."""

        async def ready() -> None:
            pass

        return Ticker(self.database, self.work, ready=ready, began=lambda: None, publish=self.told.append)

    @property
    def work(self) -> Work:
        """What firings know."""
        return Work(
            self.people,
            self.endings,
            "demo:demo",
            ALLOWANCE,
            lambda: "http://pizza.example",
            lambda name: name in self.skills,
        )

    def doors(self, home: Path) -> Triggers:
        """What people and programs do with triggers, at the ticker of this room."""
        return Triggers(
            database=self.database,
            clock=self.clock,
            people=self.people,
            seal=Seal(home / "seal.key"),
            ticker=self.ticker,
            has_skill=lambda name: name in self.skills,
            has_channel=lambda name: True,
            publish=self.told.append,
            changed=lambda: None,
        )

    def leaves(self, name: str) -> None:
        """A person is taken out of the file, and the server starts anew."""
        self.people = People(person for person in self.people if person.name != name)
        self.__post_init__()

    def switch_off(self, channel: str) -> None:
        """The server starts anew without a channel."""
        self.channels.pop(channel)
        self.__post_init__()

    async def stop_everything(self) -> None:
        now = self.clock.now()
        await self.database.write(lambda c: runs.stop_everything(c, now, person="Ada", via="web"))

    async def make(self, **written: Any) -> Trigger:
        """A trigger of Ada's, every minute unless it is said otherwise."""
        kind = written.get("kind", "cron")
        fields = {"name": "Morning", "prompt": "Look.", "timezone": "UTC"} | written
        if kind == "cron":
            fields.setdefault("cron", "* * * * *")
        trigger = made(fields, id=new_id(), owner=ADA, people=self.people, now=self.clock.now(), source="api")
        await self.database.write(lambda c: store.put(c, trigger, new=True))
        return trigger

    async def change(self, trigger: Trigger, **written: Any) -> Trigger:
        known = await self.trigger(trigger)
        now = self.clock.now()
        after = made(written, id=known.id, owner=ADA, people=self.people, now=now, source="api", known=known)
        await self.database.write(lambda c: store.put(c, after, new=False))
        return after

    async def trigger(self, known: Trigger) -> Trigger:
        found = await self.database.read(lambda c: store.get(c, known.id))
        assert found is not None
        return found

    async def tick(self, *, seconds: float = 0) -> datetime | None:
        """A turn of the ticker, so many seconds later."""
        return await self.ticker.tick(self.clock.advance(seconds=seconds))

    async def firings(self, trigger: Trigger) -> list[Occurrence]:
        """All of a trigger's firings, the oldest first."""
        found = await self.database.read(lambda c: store.of_trigger(c, trigger.id, limit=1000))
        return found[::-1]

    async def states(self, trigger: Trigger) -> list[str]:
        return [str(one.state) for one in await self.firings(trigger)]

    async def action(self, known: Action) -> Action:
        found = await self.database.read(lambda c: actions.get(c, known.id))
        assert found is not None
        return found

    async def places(self, action: Action) -> list[tuple[str, str]]:
        """Where a question goes."""
        query = sa.select(outbox.c.channel, outbox.c.address).where(outbox.c.action_id == action.id)
        return [tuple(row) for row in await self.database.read(lambda c: c.execute(query).all())]

    async def delivery(self, trigger: Trigger, **parts: Any) -> Occurrence:
        """Something that a webhook brought, or a press of "run now"; not begun yet."""
        now = self.clock.now()
        values: dict[str, Any] = {"key": f"hook/{new_id()}", "reason": "webhook", "state": "pending"} | parts
        one = Occurrence(id=new_id(), trigger_id=trigger.id, scheduled_at=now, created_at=now, **values)
        assert await self.database.write(lambda c: store.add(c, one))
        return one

    async def said(self) -> list[tuple[str, str, str]]:
        """The notices that were told: to whom, where, and the words."""
        query = (
            sa.select(outbox.c.person, outbox.c.channel, messages.c.text)
            .join(messages, messages.c.seq == outbox.c.message_seq)
            .where(outbox.c.kind == "notice")
            .order_by(outbox.c.id)
        )
        return [tuple(row) for row in await self.database.read(lambda c: c.execute(query).all())]

    async def told_of(self, kind: str) -> list[tuple[str | None, str, str]]:
        """To whom, and where, messages of a kind go, the oldest first."""
        query = sa.select(outbox.c.person, outbox.c.channel, outbox.c.address).where(outbox.c.kind == kind)
        rows = await self.database.read(lambda c: c.execute(query.order_by(outbox.c.id)).all())
        return [tuple(row) for row in rows]

    async def writes(
        self, thread_id: str | None, text: str, person: Person = ADA, channel: str = "web"
    ) -> Accepted:
        """A person goes on with a thread."""
        message, now = InboundMessage(channel, person.name, text, thread_id=thread_id), self.clock.now()
        return await self.database.write(
            lambda c: intake.accept(c, message, (), now, model="demo:demo", allowance=ALLOWANCE)
        )

    # -- the engine's part -------------------------------------------------------------------------------

    async def claim(self) -> runs.Run:
        """The oldest queued run begins."""
        (run,) = await self.database.write(lambda c: runs.claim(c, 1, self.clock.now()))
        return run

    async def end(self, *errors: str | None) -> None:
        """The queued runs end, one after the other: well, or with these words."""
        for error in errors or (None,):
            run = await self.claim()
            if error is None:
                await self.database.write(lambda c, r=run: self.endings.done(c, r, {}, "Pizza Bot", "Done."))  # type: ignore[misc]
            else:
                await self.database.write(
                    lambda c, r=run, e=error: self.endings.failed(c, r, {}, "model_failed", e)  # type: ignore[misc]
                )

    async def fail(self, trigger: Trigger, times: int = 1, error: str = "It broke.") -> None:
        """So many firings, a minute apart, each of which fails."""
        for _ in range(times):
            await self.tick(seconds=60)
            await self.end(error)
            await self.tick()

    async def retry(self, thread_id: str | None) -> None:
        assert thread_id is not None
        now = self.clock.now()
        await self.database.write(lambda c: control.retry(c, thread_id, now, person="Ada", via="web"))

    async def questions(self) -> list[Action]:
        """What people are asked now."""

        def read(connection: sa.Connection) -> list[Action]:
            found = []
            for trigger in store.asking(connection):
                assert trigger.paused_action is not None
                action = actions.get(connection, trigger.paused_action)
                assert action is not None
                found.append(action)
            return found

        return await self.database.read(read)

    async def answer(self, action: Action, verdict: Verdict, person: Person = ADA) -> decide.Decided:
        decision = Decision(action_id=action.id, verdict=verdict, person=person.name, via="web")
        now = self.clock.now()
        return await self.database.write(lambda c: decide.decide(c, decision, person, now, self.people))

    async def runs(self) -> Sequence[sa.Row[Any]]:
        """Every run there is, the oldest first."""
        query = sa.select(runs_table).order_by(runs_table.c.id)
        return await self.database.read(lambda c: c.execute(query).all())

    async def thread(self, thread_id: str | None) -> threads.Thread:
        assert thread_id is not None
        found = await self.database.read(lambda c: threads.get(c, thread_id))
        assert found is not None
        return found

    async def asked(self, thread_id: str | None) -> str:
        """The text that began a thread."""
        assert thread_id is not None
        return (await self.database.read(lambda c: threads.messages_of(c, thread_id)))[0].text
