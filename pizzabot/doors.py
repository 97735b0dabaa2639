"""Through which doors do channels reach the core? `accept`, `decide`, the ways to steer, and reports.

Every door takes the person who acts and the channel they act through, checks what they may do, writes in one
transaction, and only then returns. Channels need no other part of the core.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.approvals import decide as approvals
from pizzabot.approvals.when import parse_when
from pizzabot.clock import Clock
from pizzabot.database.connection import Database, write_now
from pizzabot.digests import store as digests
from pizzabot.engine import control, switches
from pizzabot.engine.retention import KINDS
from pizzabot.errors import Forbidden, Invalid, NotFound, Refused, Unavailable
from pizzabot.events import Events
from pizzabot.home import Home
from pizzabot.ids import new_id
from pizzabot.inbox import intake, notes, pages, staging, threads
from pizzabot.messages import (
    Accepted,
    Action,
    Attachment,
    Beginning,
    Decision,
    Digest,
    Event,
    InboundMessage,
    Staged,
    Told,
    Working,
)
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person, administer, may_write

if TYPE_CHECKING:
    from pizzabot.engine.engine import Engine
    from pizzabot.engine.retention import Retention
    from pizzabot.metrics import Metrics
    from pizzabot.outbox.delivery import Delivery
    from pizzabot.reports import Reports
    from pizzabot.sessions import Sessions
    from pizzabot.settings import Settings
    from pizzabot.skills.catalogue import SkillCatalogue
    from pizzabot.tokens import Tokens
    from pizzabot.triggers.triggers import Triggers

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Checkpoints(Protocol):
    """What deleting and forking need of the graph's state."""

    async def adelete_thread(self, thread_id: str) -> None: ...

    async def acopy_thread(self, source: str, target: str, upto_checkpoint_id: str | None = None) -> None: ...

    def alist(
        self, config: Any, *, filter: dict[str, Any] | None = None, limit: int | None = None
    ) -> Any: ...


class Servers(Protocol):
    """What steering MCP servers needs."""

    async def reconnect(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An attachment on disk; `filename` is untrusted text, `path` is ours."""

    filename: str
    media_type: str
    path: Path


class Skills(Protocol):
    """What switching skills needs."""

    def __call__(self) -> SkillCatalogue: ...

    def disable(self, disabled: Collection[str]) -> None: ...


class Doors:
    """Everything a channel may ask of the core."""

    def __init__(
        self,
        *,
        settings: Settings,
        home: Home,
        people: People,
        tokens: Tokens,
        database: Database,
        clock: Clock,
        events: Events,
        engine: Engine,
        delivery: Delivery,
        checkpoints: Checkpoints,
        servers: Servers,
        skills: Skills,
        reports: Reports,
        triggers: Triggers,
        metrics: Metrics,
        retention: Retention,
        sessions: Sessions,
        routes: Callable[[], Sequence[Any]],
        url: Callable[[], str],
    ) -> None:
        self.settings, self.people, self.tokens, self.reports = settings, people, tokens, reports
        self.triggers = triggers
        self.sessions, self.events, self.routes, self.clock = sessions, events, routes, clock
        self.url, self.metrics, self._retention = url, metrics, retention
        self._home, self._database = home, database
        self._engine, self._delivery = engine, delivery
        self._checkpoints, self._servers, self._skills = checkpoints, servers, skills

    @property
    def folder(self) -> Path:
        """The home: where files lie that settings name without a path of their own."""
        return self._home.path

    # -- in ----------------------------------------------------------------------------------------------

    async def accept(self, message: InboundMessage) -> Accepted:
        """Commit what arrived, then return: only after this may a channel acknowledge it.

        Raises:
            Invalid: it cannot be stored or answered; nothing was changed.
            NotFound: `thread_id` names no thread that the person may see.
        """
        person = self._person(message.person)
        message = replace(message, person=person.name)
        intake.check(message)
        if message.thread_id is not None and not message.is_guest:
            self._only_owner(await self.thread(message.thread_id, person), person, "write in")
        if message.key is not None and message.attachments:
            # Sent again: the files are there already. Only a race gets past this, and is swept.
            known = await self.taken(message.key)
            if known is not None:
                return known
        try:
            files = await self._store_files(message.attachments)
        except OSError as error:
            logger.exception("a file was not stored")
            raise Unavailable(
                f"The files cannot be stored ({error.strerror}). Send it again later."
            ) from error
        allowance = self._engine.endings.allowance
        now = self.clock.now()
        accepted = await self._write(
            lambda c: intake.accept(c, message, files, now, model=self.settings.model, allowance=allowance)
        )
        if accepted.duplicate:
            return accepted
        self._engine.wake()
        self.events.publish(Event("message", accepted.thread_id, {"message_id": accepted.message_id}))
        return accepted

    async def taken(self, key: str) -> Accepted | None:
        """What became of the item with this key; None when it was never taken."""
        return await self._database.read(lambda c: intake.known(c, key))

    async def answer(self, message: InboundMessage, text: str) -> Accepted:
        """A message did at once what it says: a notice of its thread says what, and no run takes it.

        Raises NotFound when the thread is gone.
        """
        now = self.clock.now()
        accepted = await self._write(lambda c: intake.answer(c, message, text, now))
        self.events.publish(Event("message", accepted.thread_id, {"message_id": accepted.message_id}))
        return accepted

    async def stage(self, channel: str, item: Staged) -> bool:
        """Commit what cannot be understood within the time its sender waits; whether it is new.

        The channel finds it again in `staged` until it calls `unstage`.
        """
        now = self.clock.now()
        return await self.taken(item.key) is None and await self._write(
            lambda c: staging.put(c, channel, item, now)
        )

    async def staged(self, channel: str) -> list[Staged]:
        """What a channel has yet to understand, oldest first."""
        return await self._database.read(lambda c: staging.of_channel(c, channel))

    async def unstage(self, channel: str, key: str) -> None:
        """It was accepted, or refused for good."""
        await self._write(lambda c: staging.remove(c, channel, key))

    async def _store_files(self, sent: Sequence[Attachment]) -> list[tuple[str, Attachment]]:
        return await asyncio.to_thread(intake.store_files, self._home.attachments, sent) if sent else []

    async def _write(self, work: Callable[[sa.Connection], T]) -> T:
        return await write_now(self._database, work)

    def _person(self, name: str) -> Person:
        person = self.people.by_name(name)
        if person is None:
            raise Forbidden("You are not in [[people]] of pizzabot.toml.", code="unknown_person")
        return person

    async def decide(self, decision: Decision) -> Action:
        """Store a person's word on an action; see `approvals.decide.decide` for what can be refused."""
        person, now = self._person(decision.person), self.clock.now()
        try:
            decided = await self._write(lambda c: approvals.decide(c, decision, person, now, self.people))
        except Refused as error:
            refusal = error
            if not isinstance(refusal, NotFound):
                await self._write(lambda c: approvals.record_refusal(c, decision, person.name, refusal, now))
            raise
        self._engine.wake()
        for action in (decided.action, *decided.also):
            self._action_changed(action)
        return decided.action

    async def asked(self, action_id: str, person: Person) -> Action:
        """An action that the person may see; NotFound for everybody else."""
        return (await self._database.read(lambda c: approvals.seen_action(c, action_id, person)))[0]

    async def began_with(self, action: Action, person: Person) -> Beginning | None:
        """With which words, or by which trigger, the run of an action began.

        None for somebody who may decide the action and not read its thread.
        """
        return await self._database.read(lambda c: pages.beginning_of(c, action.run_id, person))

    async def digest(self, digest_id: str, person: Person) -> Digest:
        """A digest that was made for the person, its items as they stand; NotFound for everybody else."""
        found = await self._database.read(lambda c: digests.get(c, digest_id))
        if found is None or found.person != person.name:
            raise NotFound("There is no such digest.")
        return found

    async def digest_in(self, thread_id: str, before_message: int | None = None) -> str | None:
        """The newest digest of a thread, of those before a message; None when there is none."""
        before = before_message if before_message is not None else 2**62
        made = await self._database.read(lambda c: digests.newest_in(c, thread_id, before))
        return made.id if made is not None else None

    async def digest_of_copy(self, channel: str, address: str, external_id: str) -> str | None:
        """The digest that was delivered there under that name; None when it is something else."""
        return await self._database.read(lambda c: outbox.digest_of_copy(c, channel, address, external_id))

    async def reopen(self, action_id: str, person: Person, via: str) -> Action:
        """Make an expired action pending again; its clock starts anew."""
        reopened = self._engine.endings.reopened
        action = await self._write(lambda c: reopened(c, action_id, person, via))
        self._action_changed(action)
        self._engine.due()
        return action

    async def snooze(
        self, action_id: str, person: Person, when: str, via: str, key: str | None = None
    ) -> Action:
        """Put an action off for the person until a time in their words: "2h", "tomorrow 9:00", ISO 8601.

        `key` names what said so: the same one again changes nothing, whatever became of it since.

        Raises Invalid `invalid_time` when that is no time to come, and what `approvals.decide.snooze` does.
        """
        now, mark = self.clock.now(), f"deciding/snoozed/{key}/{action_id}"

        def work(connection: sa.Connection) -> Action:
            if key is not None and notes.get(connection, via, mark) is not None:
                return approvals.seen_action(connection, action_id, person)[0]
            try:
                until = parse_when(when, now, ZoneInfo(person.timezone))
            except ValueError as error:
                raise Invalid(str(error), code="invalid_time") from error
            snoozed = approvals.snooze(connection, action_id, person, until, via, now, self.people)
            if key is not None:
                notes.put(connection, via, {mark: ""}, now)
            return snoozed

        action = await self._write(work)
        self._action_changed(action)
        self._engine.due()
        return action

    def _action_changed(self, action: Action) -> None:
        self._delivery.wake()
        data = {"action_id": action.id, "state": str(action.state)}
        self.events.publish(Event("action", action.thread_id, data))

    # -- out ---------------------------------------------------------------------------------------------

    async def show_status(self, thread_id: str, channel: str) -> Working | None:
        """Have a status message delivered for the run at work in a thread that lives in `channel`.

        Once per run; returns the run and, when its message is there already, the copy's name. None when
        nothing is at work there.
        """
        work = self._engine.endings.show_status
        shown = await self._write(lambda c: work(c, thread_id, channel))
        self._delivery.wake()
        return shown

    async def is_back(self, channel: str) -> None:
        """The channel can deliver again: what waits for it is due now."""
        await self._delivery.is_back(channel)

    async def tell(self, told: Told) -> None:
        """Say something in a thread that one person is told in one place; once per `key`."""
        await self._write(lambda c: self._engine.endings.told(c, told))
        self._delivery.wake()
        self.events.publish(Event("message", told.thread_id))

    async def tell_elsewhere(
        self, channel: str, thread_id: str, action_id: str | None, person: Person
    ) -> None:
        """A channel cannot reach the person: tell what waits, or that there is news, on another one."""
        await self._write(
            lambda c: self._engine.endings.told_elsewhere(c, channel, thread_id, action_id, person)
        )
        self._delivery.wake()

    # -- what a channel remembers ------------------------------------------------------------------------

    async def note(self, channel: str, key: str) -> str | None:
        """What the channel keeps under a key."""
        return await self._database.read(lambda c: notes.get(c, channel, key))

    async def notes(self, channel: str, prefix: str) -> dict[str, str]:
        """Everything that the channel keeps under keys with that beginning."""
        return await self._database.read(lambda c: notes.under(c, channel, prefix))

    async def keep(self, channel: str, values: Mapping[str, str]) -> None:
        """Keep texts under keys; committed when it returns."""
        now = self.clock.now()
        await self._write(lambda c: notes.put(c, channel, values, now))

    async def forget(self, channel: str, prefix: str, *, before: datetime | None = None) -> None:
        """Remove what the channel keeps under keys with that beginning, and wrote before a time."""
        await self._write(lambda c: notes.forget(c, channel, prefix, before=before))

    # -- threads -----------------------------------------------------------------------------------------

    async def thread_of_copy(self, channel: str, address: str, external_id: str) -> str | None:
        """The thread of something that was delivered there; None when nothing was."""
        return await self._database.read(lambda c: outbox.thread_of_copy(c, channel, address, external_id))

    async def thread_at(self, channel: str, address: str) -> str | None:
        """The thread that lives at an address; None when none does."""
        return await self._database.read(lambda c: threads.at_address(c, channel, address))

    async def thread(self, thread_id: str, person: Person) -> threads.Thread:
        """The thread, for somebody who may see it; NotFound for everybody else."""

        def read(connection: sa.Connection) -> threads.Thread | None:
            return pages.visible_thread(connection, thread_id, person)

        thread = await self._database.read(read)
        if thread is None:
            raise NotFound("There is no such thread.")
        return thread

    async def attachment(self, thread_id: str, attachment_id: str, person: Person) -> StoredFile:
        """A file of a thread that the person may see; its place comes from the row, never from its name."""
        await self.thread(thread_id, person)
        rows = await self._database.read(lambda c: threads.attachments_of(c, thread_id))
        row = next((row for row in rows if row.id == attachment_id), None)
        if row is None or not await asyncio.to_thread((self._home.attachments / row.id).is_file):
            raise NotFound("There is no such attachment.")
        return StoredFile(row.filename, row.media_type, self._home.attachments / row.id)

    async def change_thread(
        self,
        thread_id: str,
        person: Person,
        *,
        unread: bool | None = None,
        archived: bool | None = None,
        title: str | None = None,
    ) -> None:
        """Set the given of read state, archive state and title."""
        self._only_owner(await self.thread(thread_id, person), person, "change")
        if title is not None:
            intake.check_text(title, "title", intake.MAX_TITLE)
            if not title.strip():
                raise Invalid("A title needs at least one visible character.", code="invalid_title")

        def work(connection: sa.Connection) -> None:
            threads.mark(connection, thread_id, unread=unread, archived=archived)
            if title is not None:
                threads.rename(
                    connection, thread_id, threads.one_line(title, intake.MAX_TITLE), source="user"
                )

        await self._write(work)
        self.events.publish(Event("thread", thread_id))

    async def delete_thread(self, thread_id: str, person: Person, via: str) -> None:
        """Remove everything of a thread: rows, checkpoints, files. Its line in the audit and its costs stay.

        The rows go first, in one transaction: what a crash leaves behind is swept at the next start.
        """
        thread = await self.thread(thread_id, person)
        self._only_owner(thread, person, "delete")
        await self._end_run(thread_id, person, via)
        now = self.clock.now()
        files, copies = await self._write(
            lambda c: control.delete_thread(c, thread_id, now, person=person.name, via=via)
        )
        await self._checkpoints.adelete_thread(thread_id)
        for name in files:
            await asyncio.to_thread((self._home.attachments / name).unlink, missing_ok=True)
        closed = [[copy.channel, copy.external_id] for copy in copies]
        self.events.publish(
            Event("thread", thread_id, {"deleted": True, "owner": thread.owner, "copies": closed})
        )

    # An approver sees a thread for what is to be decided in it, and may do no more there than decide.
    def _only_owner(self, thread: threads.Thread, person: Person, what: str) -> None:
        if not may_write(person, thread.owner):
            raise Forbidden(f"Only {thread.owner} or an owner may {what} this thread.", code="not_yours")

    async def _end_run(self, thread_id: str, person: Person, via: str) -> bool:
        endings = self._engine.endings
        stopped = await self._write(lambda c: endings.stopped(c, thread_id, person=person.name, via=via))
        await self._engine.break_off([thread_id])
        return stopped

    async def fork_thread(self, thread_id: str, message_id: str, person: Person, via: str) -> str:
        """A new thread that goes on from one of this thread's messages; its id."""
        thread = await self.thread(thread_id, person)
        self._only_owner(thread, person, "fork")
        if not message_id.isascii() or not message_id.isdigit() or len(message_id) > 18:
            raise NotFound("There is no such message in this thread.")
        seq, target = int(message_id), new_id()
        run_id = await self._database.read(lambda c: control.last_answered(c, thread_id, seq))
        if run_id is not None:
            await self._copy_state(thread_id, target, run_id)
        now, name = self.clock.now(), person.name
        await self._write(lambda c: control.fork(c, thread, seq, now, person=name, via=via, target=target))
        return target

    async def _copy_state(self, source: str, target: str, run_id: str) -> None:
        """Give the fork the graph's state as it was right after the run."""
        config = {"configurable": {"thread_id": source, "checkpoint_ns": ""}}
        async for found in self._checkpoints.alist(config, filter={"run_id": run_id}, limit=1):
            checkpoint_id = found.config["configurable"]["checkpoint_id"]
            await self._checkpoints.acopy_thread(source, target, checkpoint_id)

    # -- steering ----------------------------------------------------------------------------------------

    async def stop_thread(self, thread_id: str, person: Person, via: str) -> bool:
        """Stop the thread's run before its next step, breaking off what is in flight."""
        thread = await self.thread(thread_id, person)
        self._only_owner(thread, person, "stop")
        stopped = await self._end_run(thread_id, person, via)
        if stopped:
            self._delivery.wake()
            self.events.publish(Event("run", thread_id, {"state": "stopped"}))
        return stopped

    async def stop_own(self, person: Person, via: str) -> int:
        """Stop everything that the person has under way in threads of their own; how many runs."""
        endings = self._engine.endings
        busy = await self._write(lambda c: endings.own_stopped(c, person=person.name, via=via))
        await self._engine.break_off(busy)
        self._delivery.wake()
        for thread_id in busy:
            self.events.publish(Event("run", thread_id, {"state": "stopped"}))
        return len(busy)

    async def stop_everything(self, person: Person, via: str) -> None:
        """Stop all runs of all people, and start none until `resume_everything`."""
        administer(person)
        endings = self._engine.endings
        busy = await self._write(lambda c: endings.everything_stopped(c, person=person.name, via=via))
        await self._engine.break_off(busy)
        self._delivery.wake()
        self.events.publish(Event("stopped", None, {"stopped": True, "by": person.name}))

    async def resume_everything(self, person: Person, via: str) -> bool:
        """Undo `stop_everything`; what is queued starts."""
        administer(person)
        now = self.clock.now()
        resumed = await self._write(lambda c: control.resume_everything(c, now, person=person.name, via=via))
        self._engine.wake()
        self._engine.due()  # what webhooks brought meanwhile
        self.events.publish(Event("stopped", None, {"stopped": False, "by": person.name}))
        return resumed

    async def retry(self, thread_id: str, person: Person, via: str) -> str:
        """Go on with a failed or stopped run from where it got; the run's id."""
        thread = await self.thread(thread_id, person)
        self._only_owner(thread, person, "retry")
        now = self.clock.now()
        run_id = await self._write(lambda c: control.retry(c, thread_id, now, person=person.name, via=via))
        self._engine.wake()
        self.events.publish(Event("run", thread_id, {"state": "queued"}))
        return run_id

    async def old(self, person: Person) -> dict[str, Any]:
        """What `[retention]` would remove now; for owners.

        `{"kinds": [{"kind", "age_seconds", "count", "bytes"}]}`, an age of None for what is kept.
        """
        administer(person)
        amounts = await self._retention.amounts(self.clock.now())
        ages = self._retention.ages
        return {
            "kinds": [
                {
                    "kind": kind,
                    "age_seconds": int(age.total_seconds()) if (age := getattr(ages, kind)) else None,
                    "count": amounts[kind].count if kind in amounts else 0,
                    "bytes": amounts[kind].bytes if kind in amounts else 0,
                }
                for kind in KINDS
            ]
        }

    async def remove_old(self, person: Person, via: str) -> dict[str, Any]:
        """Remove some of it now: `{"removed": {kind: count}, "finished": bool}`; for owners."""
        administer(person)
        now = self.clock.now()
        removed, finished = await self._retention.work(now)
        if removed:
            about: dict[str, Any] = {"actor": person.name, "via": via, "subject": "all", "data": removed}
            await self._write(lambda c: audit.append(c, now, event="retention.removed", **about))
        return {"removed": removed, "finished": finished}

    async def reconnect(self, server: str, person: Person) -> None:
        """Connect to an MCP server anew."""
        administer(person)
        await self._servers.reconnect(server)

    async def switch_skill(self, skill_id: str, *, enabled: bool, person: Person, via: str) -> None:
        """Switch a skill on or off, from the next run on and also after a restart."""
        administer(person)
        skill = self._skills().get(skill_id)
        if skill is None:
            raise NotFound("There is no such skill.")
        now, name = self.clock.now(), skill.id.casefold()
        off = await self._write(
            lambda c: switches.switch(c, name, now, enabled=enabled, person=person.name, via=via)
        )
        self._skills.disable(off)
        self.events.publish(Event("servers"))
