"""How does an attempt end, and who is told? Each ending is one transaction (promises 4, 7 and 10).

answer    -> run done, the answer, its outbox rows, and the next run for what was held
questions -> run waiting, or queued at once when an answer came meanwhile
failure   -> run failed, a notice in plain words, its outbox rows, and the next run for what was held
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.agent.context import Note
from pizzabot.approvals import decide, overdue, raises
from pizzabot.approvals import store as actions
from pizzabot.approvals.policy import Policy, Timing
from pizzabot.clock import Clock
from pizzabot.inbox import runs, threads
from pizzabot.inbox.runs import Run
from pizzabot.messages import FAILURES, Action, ActionState, OutboundKind, RunState, Told, Working
from pizzabot.outbox import recipients
from pizzabot.outbox import store as outbox
from pizzabot.outbox.store import Delivery
from pizzabot.people import People, Person, quiet_until


@dataclass(frozen=True, slots=True)
class Endings:
    """What the endings need to know. `allowance` and `model` are those of the next run."""

    clock: Clock
    people: People
    channels: Mapping[str, recipients.Reaches]
    model: str
    allowance: Mapping[str, Any]
    policy: Policy

    def done(
        self, connection: sa.Connection, run: Run, used: Mapping[str, Any], author: str, text: str
    ) -> bool:
        """Store the answer; False when the attempt no longer holds the run, and then nothing is stored."""
        now = self.clock.now()
        if not runs.finish(connection, run, RunState.DONE, now, used=used):
            return False
        seq = threads.add_message(
            connection, run.thread_id, now, role="assistant", author=author, text=text, run_id=run.id
        )
        self._settle(connection, run, seq, "answer", {"message": seq})
        return True

    def failed(
        self, connection: sa.Connection, run: Run, used: Mapping[str, Any], code: str, message: str
    ) -> bool:
        """Store the failure; False when the attempt no longer holds the run."""
        now = self.clock.now()
        if not runs.finish(connection, run, RunState.FAILED, now, used=used, error=(code, message)):
            return False
        seq = threads.add_message(
            connection,
            run.thread_id,
            now,
            role="notice",
            author=threads.AGENT_NAME,
            text=f"This did not work: {message}",
            run_id=run.id,
        )
        self._settle(connection, run, seq, "notice", {"code": code})
        return True

    def stopped(self, connection: sa.Connection, thread_id: str, *, person: str, via: str) -> bool:
        """Stop the thread's active run and withdraw what it asked; False when nothing was active.

        Held messages stay held: they go with the next message that a person sends.
        """
        now, run = self.clock.now(), runs.active(connection, thread_id)
        thread = threads.get(connection, thread_id)
        if run is None or thread is None or not runs.stop(connection, run.id, now):
            return False
        for action in actions.withdraw(connection, thread_id, now):
            outbox.repaint(connection, action.id, action.state, now)
        text = f"Stopped by {person}. Retry goes on from here; a new message starts anew."
        if runs.any_held(connection, thread_id):
            text += " What was written meanwhile is kept, and goes along with the next message."
        seq = threads.add_message(
            connection, thread_id, now, role="notice", author=threads.AGENT_NAME, text=text, run_id=run.id
        )
        if thread.owner == person:
            threads.mark(connection, thread_id, unread=thread.unread, archived=None)
        self._tell(connection, thread, seq, "notice", now, self.authors(connection, thread, run))
        outbox.repaint_status(
            connection, run.id, now
        )  # behind what matters more: one address is served in order
        audit.append(
            connection,
            now,
            actor=person,
            via=via,
            event="run.stopped",
            subject=run.id,
            data={"thread": thread_id},
        )
        return True

    def own_stopped(self, connection: sa.Connection, *, person: str, via: str) -> list[str]:
        """Stop every active run in threads that the person owns; these threads."""
        return [
            thread_id
            for thread_id in runs.active_of_owner(connection, person)
            if self.stopped(connection, thread_id, person=person, via=via)
        ]

    def everything_stopped(self, connection: sa.Connection, *, person: str, via: str) -> list[str]:
        """Stop what runs, and start nothing until resumed; the threads whose runs were stopped.

        What is queued stays queued, what waits for a decision keeps waiting: neither does anything meanwhile.
        """
        now = self.clock.now()
        runs.stop_everything(connection, now, person=person, via=via)
        audit.append(connection, now, actor=person, via=via, event="everything.stopped", subject="all")
        busy = [run.thread_id for run in runs.running(connection)]
        for thread_id in busy:
            self.stopped(connection, thread_id, person=person, via=via)
        return busy

    def paused(
        self, connection: sa.Connection, run: Run, used: Mapping[str, Any], questions: Sequence[str]
    ) -> RunState | None:
        """Leave the run waiting; its new state, or None when the attempt no longer holds the run."""
        # Held until the commit: a decision must not slip in between looking and pausing.
        threads.lock(connection, run.thread_id)
        decided = actions.any_decided(connection, questions)
        now = self.clock.now()
        if not runs.pause(connection, run, now, used=used, decided=decided):
            return None
        outbox.repaint_status(connection, run.id, now)
        return RunState.QUEUED if decided else RunState.WAITING

    def _settle(
        self, connection: sa.Connection, run: Run, seq: int, kind: OutboundKind, data: Mapping[str, Any]
    ) -> None:
        """What every end has in common: nothing is asked any more, people are told, the held go on."""
        now = self.clock.now()
        thread = threads.get(connection, run.thread_id)
        if thread is None:
            return
        if thread.action_count:
            for action in actions.withdraw(connection, run.thread_id, now):
                outbox.repaint(connection, action.id, action.state, now)
        places = self._told_of_end(thread, run, kind)
        self._tell(connection, thread, seq, kind, now, self.authors(connection, thread, run), places)
        outbox.repaint_status(
            connection, run.id, now
        )  # behind what matters more: one address is served in order
        state = "done" if kind == "answer" else "failed"
        self._audit(connection, f"run.{state}", run.id, {"thread": run.thread_id, **data})
        if (person := runs.held_from(connection, run.thread_id)) is not None:
            runs.create(
                connection,
                run.thread_id,
                now,
                person=person,
                model=self.model,
                allowance=self.allowance,
            )

    def said(self, connection: sa.Connection, thread_id: str, text: str) -> None:
        """Store a notice that no run wrote, and tell it like a result of unattended work."""
        now, thread = self.clock.now(), threads.get(connection, thread_id)
        if thread is None:
            return
        seq = threads.add_message(
            connection, thread_id, now, role="notice", author=threads.AGENT_NAME, text=text
        )
        self._tell(connection, thread, seq, "notice", now)

    def _tell(
        self,
        connection: sa.Connection,
        thread: threads.Thread,
        seq: int,
        kind: OutboundKind,
        now: datetime,
        authors: Sequence[tuple[Person, str]] = (),
        places: Sequence[recipients.Place] | None = None,
    ) -> None:
        """Queue a message for everybody who is told, or for `places`, for some when their quiet hours end.

        Whoever wrote what is answered is told at any time, and where they wrote.
        """
        if places is None:
            places = self.told_in(thread)
        for place, until in self.told_when(places, authors, now):
            _queue(connection, thread, seq, kind, place, now, put_off_until=until)

    def told_when(
        self, places: Sequence[recipients.Place], authors: Sequence[tuple[Person, str]], now: datetime
    ) -> list[tuple[recipients.Place, datetime | None]]:
        """Where that is told which would go to `places`, each with when, if that is not now."""
        there = recipients.where_written(places, authors, self.channels)
        return [(place, self._quiet(place.person, authors, now)) for place in there]

    def repainted_when(
        self, copy: Delivery, authors: Sequence[tuple[Person, str]], now: datetime
    ) -> datetime | None:
        """When a copy is repainted that the clock made stale, if not now: a repaint can be a message."""
        channel = self.channels.get(copy.channel)
        if channel is None or channel.repaints_silently:
            return None
        return self._quiet(copy.person, authors, now)

    def _quiet(
        self, name: str | None, authors: Sequence[tuple[Person, str]], now: datetime
    ) -> datetime | None:
        """When a person's quiet hours end; None when it is none of them now, or the person is there."""
        person = self.people.by_name(name) if name is not None else None
        if person is None or any(person == author for author, _ in authors):
            return None
        return quiet_until(person, now)

    def authors(
        self, connection: sa.Connection, thread: threads.Thread, run: Run
    ) -> list[tuple[Person, str]]:
        """Who wrote what a run answers in a thread that nobody began, or had it tried again, each with the
        channel."""
        if thread.channel != threads.UNATTENDED:
            return []  # it lives where it began
        asked = [(m.author, m.channel) for m in threads.messages_of_run(connection, run.id, thread.id)]
        if run.retried_by is not None:
            asked.append((run.retried_by, run.retried_via))
        return [
            (person, channel)
            for name, channel in asked
            if channel not in (None, threads.UNATTENDED) and (person := self.people.by_name(name)) is not None
        ]

    def own_places(self, thread: threads.Thread) -> list[recipients.Place]:
        """Where everybody in the conversation reads: none for a thread that nobody wrote, but for the
        conversations that its trigger names."""
        if thread.channel != threads.UNATTENDED:
            return [recipients.Place(thread.channel, thread.address, None)]
        owner = self.people.by_name(thread.owner)
        found = recipients.of_unattended(thread.tells or (), owner, self.people, self.channels)
        return [place for place in found if place.person is None]

    def told_in(self, thread: threads.Thread) -> list[recipients.Place]:
        """Where news of a thread is told."""
        owner = self.people.by_name(thread.owner)
        if thread.channel == threads.UNATTENDED:
            return recipients.of_unattended(thread.tells, owner, self.people, self.channels)
        own = recipients.Place(thread.channel, thread.address, None)
        return recipients.for_answer(own, owner, self.channels)

    def _told_of_end(self, thread: threads.Thread, run: Run, kind: OutboundKind) -> list[recipients.Place]:
        """Where the end of a run is told; of failed work that nobody wrote its owner hears in any case."""
        places, owner = self.told_in(thread), self.people.by_name(thread.owner)
        hears = owner is not None and any(place.person == owner.name for place in places)
        if kind == "answer" or run.trigger_id is None or owner is None or hears:
            return places
        return [*places, *recipients.places_of(owner, owner.notify.unread, self.channels)]

    def places_of_news(self, thread: threads.Thread) -> list[recipients.Place]:
        """Where something is said to the conversation itself: of one that nobody wrote, where it is told."""
        is_unattended = thread.channel == threads.UNATTENDED
        return self.told_in(thread) if is_unattended else self.own_places(thread)

    def show_status(self, connection: sa.Connection, thread_id: str, channel: str) -> Working | None:
        """Queue the status message of the run at work in a thread that lives in `channel`, once per run.

        Returns where it is, or None when nothing is at work there.
        """
        run, thread = runs.active(connection, thread_id), threads.get(connection, thread_id)
        if run is None or run.state is not RunState.RUNNING or thread is None or thread.channel != channel:
            return None
        copies = [c for c in outbox.status_copies(connection, run.id) if c.channel == channel]
        if copies:  # it waited, and goes on
            outbox.repaint_status(connection, run.id, self.clock.now())
            return Working(run.id, thread.address, run.started_at, copies[0].external_id)
        outbox.enqueue(
            connection,
            self.clock.now(),
            key=f"status/{run.id}/{channel}",
            channel=channel,
            address=thread.address,
            kind="status",
            thread_id=thread_id,
            run_id=run.id,
        )
        return Working(run.id, thread.address, run.started_at, None)

    def told(self, connection: sa.Connection, told: Told) -> None:
        """Store a notice for one person and queue it for one place, once per key."""
        now, thread = self.clock.now(), threads.get(connection, told.thread_id)
        if thread is None or outbox.is_queued(connection, told.key):
            return
        seq = threads.add_message(
            connection, told.thread_id, now, role="notice", author=threads.AGENT_NAME, text=told.text
        )
        # A word to one person is no news for the inbox.
        threads.mark(connection, thread.id, unread=thread.unread, archived=None)
        outbox.enqueue(
            connection,
            now,
            key=told.key,
            channel=told.channel,
            address=told.address,
            kind="notice",
            thread_id=told.thread_id,
            person=told.person,
            message_seq=seq,
            action_id=told.action_id,
            digest_id=told.digest_id,
        )

    def told_elsewhere(
        self,
        connection: sa.Connection,
        channel: str,
        thread_id: str,
        action_id: str | None,
        person: Person,
    ) -> None:
        """Queue what a channel could not bring to a person for their first other place.

        An action that still waits comes as a card, anything else as a notice.
        """
        others = {name: other for name, other in self.channels.items() if name != channel}
        places = recipients.places_of(person, None, others)
        action = actions.get(connection, action_id) if action_id is not None else None
        for place in places:
            if action is not None and action.state is ActionState.PENDING:
                outbox.enqueue(
                    connection,
                    self.clock.now(),
                    key=f"action/{action.id}/{place.channel}/{place.address}",
                    channel=place.channel,
                    address=place.address,
                    kind="action",
                    thread_id=thread_id,
                    person=person.name,
                    action_id=action.id,
                )
            else:
                text = f"A message to {person.name} by {channel} could not be delivered; it is in the inbox."
                key = f"elsewhere/{thread_id}/{place.channel}/{place.address}"
                told = Told(key, thread_id, place.channel, place.address, person.name, text)
                self.told(connection, told)

    def noted(self, connection: sa.Connection, run: Run, note: Note) -> bool:
        """Say a note in the run's thread, once per key; whether it was said now.

        What is about the house goes to where its owners are told; to the thread's place when it is theirs.
        """
        now, thread = self.clock.now(), threads.get(connection, run.thread_id)
        if thread is None or not raises.is_first_note(connection, note.key, now):
            return False
        seq = threads.add_message(
            connection,
            run.thread_id,
            now,
            role="notice",
            author=threads.AGENT_NAME,
            text=note.text,
            run_id=run.id,
        )
        owner = self.people.by_name(thread.owner)
        is_owners = owner is not None and owner.role == "owner"
        authors, told = self.authors(connection, thread, run), []
        if is_owners or not note.to_owners:
            told = self.told_when(self.places_of_news(thread), authors, now)
        if note.to_owners:
            others = [person for person in self.people.owners if person != owner]
            besides = recipients.for_people(self.own_places(thread), others, self.channels)
            told += [(place, self._quiet(place.person, authors, now)) for place in besides]
        for place, until in told:
            _queue(connection, thread, seq, "notice", place, now, put_off_until=until)
        return True

    def announce(self, connection: sa.Connection, action: Action) -> None:
        """Queue the cards of a new action, in the transaction that stores it."""
        thread = threads.get(connection, action.thread_id)
        if thread is None:
            return
        self.show_cards(connection, action, thread)
        self.wind(connection, action, thread)
        about = {"thread": thread.id, "tool": action.tool, "digest": action.digest, "kind": str(action.kind)}
        self._audit(connection, "action.asked", action.id, about)

    def show_cards(self, connection: sa.Connection, action: Action, thread: threads.Thread) -> None:
        """Queue a card for every place where there is none yet."""
        own = self.own_places(thread)
        for place in recipients.for_action(own, self.deciding(action, thread), self.channels):
            outbox.enqueue(
                connection,
                self.clock.now(),
                key=f"action/{action.id}/{place.channel}/{place.address}",
                channel=place.channel,
                address=place.address,
                kind="action",
                thread_id=thread.id,
                person=place.person,
                action_id=action.id,
            )

    def deciding(self, action: Action, thread: threads.Thread) -> list[Person]:
        """Everybody who may decide an action."""
        return [p for p in self.people if self.people.decides_action(p, action, thread.owner)]

    def timing(self, action: Action) -> Timing:
        """What becomes of an action that nobody decides: for a question about a trigger nothing ever does.

        That about a day's budget ends with the day, and nobody stands in for the owners whom it asks.
        """
        if action.tool == FAILURES:
            return Timing()
        timing = self.policy.timing(action.tool)
        if not raises.is_about_a_day(action):
            return timing
        return Timing(reminder_after=timing.reminder_after, urgent=timing.urgent)

    def wind(self, connection: sa.Connection, action: Action, thread: threads.Thread) -> None:
        """Start the clock of an action that waits."""
        names = [person.name for person in self.deciding(action, thread)]
        overdue.wind(connection, action, self.timing(action), names, self.clock.now())

    def reopened(self, connection: sa.Connection, action_id: str, person: Person, via: str) -> Action:
        """Make an expired action pending again, and its clock start anew; see `decide.reopen`."""
        action, thread = decide.reopen(connection, action_id, person, via, self.clock.now(), self.people)
        self.wind(connection, action, thread)
        return action

    def _audit(self, connection: sa.Connection, event: str, subject: str, data: Mapping[str, Any]) -> None:
        audit.append(
            connection,
            self.clock.now(),
            actor=threads.AGENT_NAME,
            via="engine",
            event=event,
            subject=subject,
            data=data,
        )


def _queue(
    connection: sa.Connection,
    thread: threads.Thread,
    seq: int,
    kind: OutboundKind,
    place: recipients.Place,
    now: datetime,
    *,
    put_off_until: datetime | None = None,
) -> None:
    """Queue a message of a thread for one place, once."""
    outbox.enqueue(
        connection,
        now,
        key=f"message/{seq}/{place.channel}/{place.address}",
        channel=place.channel,
        address=place.address,
        kind=kind,
        thread_id=thread.id,
        person=place.person,
        message_seq=seq,
        put_off_until=put_off_until,
    )
