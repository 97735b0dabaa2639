"""What is done about actions that nobody decides? Remind, escalate and expire, when their rows say so.

Each action and each person is a transaction of its own. A row that another process took first is left alone,
and what became due while nothing ran is done once, late: the rows do not know how often it was missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.agent.spending import Spending
from pizzabot.approvals import overdue, raises, reminders
from pizzabot.approvals import store as actions
from pizzabot.approvals.reminders import Reminder
from pizzabot.database.connection import Database
from pizzabot.database.schema import to_microseconds
from pizzabot.engine.endings import Endings
from pizzabot.inbox import runs, threads
from pizzabot.messages import Action, ActionState, RunState
from pizzabot.outbox import recipients
from pizzabot.outbox import store as outbox
from pizzabot.people import Person, quiet_until

T = TypeVar("T")
_AT_ONCE = 100
NEW_DAY = "that day is over, and the work goes on with the budget of the next one"
MORE_ROOM = "the budget has room again, and the work goes on"


class Undecided:
    """A `clockwork.Tick`. `changed` is called with each action that something was done about, once stored;
    `spending` says what of a day's budget is left.
    """

    def __init__(
        self, database: Database, endings: Endings, spending: Spending, changed: Callable[[Action], None]
    ) -> None:
        self._database, self._endings, self._changed = database, endings, changed
        self._spending = spending

    async def tick(self, now: datetime) -> datetime | None:
        """Do whatever is due at `now`; returns when something of it is next due."""
        await self._each(lambda c: actions.unwound(c, limit=_AT_ONCE), self._wind)
        for waiting in await self._database.read(raises.asked):
            gone = await self._database.write(lambda c, action=waiting: self._has_room(c, action, now))  # type: ignore[misc]
            if gone is not None:
                self._changed(gone)
        await self._each(
            lambda c: actions.expiring(c, now, limit=_AT_ONCE), lambda c, action: self._expire(c, action, now)
        )
        await self._each(
            lambda c: actions.escalating(c, now, limit=_AT_ONCE),
            lambda c, action: self._escalate(c, action, now),
        )
        await self._each(
            lambda c: reminders.due(c, now, limit=_AT_ONCE), lambda c, due: self._remind(c, due, now)
        )
        return await self._database.read(_next_due)

    async def _each(
        self,
        due: Callable[[sa.Connection], list[T]],
        work: Callable[[sa.Connection, T], Action | None],
    ) -> None:
        """Do `work` on everything that is `due`; it leaves nothing due that it was given."""
        while found := await self._database.read(due):
            for one in found:
                changed = await self._database.write(lambda c, one=one: work(c, one))  # type: ignore[misc]
                if changed is not None:
                    self._changed(changed)
            if len(found) < _AT_ONCE:
                return

    def _wind(self, connection: sa.Connection, action: Action) -> None:
        """An action of a version that had no clock: its time begins now, so nobody is taken by surprise."""
        thread = threads.get(connection, action.thread_id)
        if thread is not None:
            self._endings.wind(connection, action, thread)

    def _has_room(self, connection: sa.Connection, action: Action, now: datetime) -> Action | None:
        """A run that waits for more of a day goes on when there is room: with the next day's budget, or when
        the settings give more than they did."""
        run = runs.get(connection, action.run_id)
        if run is None or run.state is not RunState.WAITING:
            return None  # it has only just asked: it is looked at again once it waits
        person = action.args.get("person") or action.requested_by or ""
        today = self._spending.today(connection, now, person)
        if today.day == action.args["day"] and any(
            bound.is_used_up for bound in today.bounds if bound.name == action.args["limit"]
        ):
            return None
        why = NEW_DAY if today.day != action.args["day"] else MORE_ROOM
        still_open = [ActionState.PENDING, ActionState.EXPIRED]
        withdrawn = actions.settle(
            connection,
            action.id,
            still_open,
            state=ActionState.WITHDRAWN,
            reason=why,
            decided_at=now,
        )
        if withdrawn is None:
            return None
        runs.requeue(connection, action.run_id, now)
        authors = self._authors(connection, action)
        outbox.repaint(
            connection,
            action.id,
            withdrawn.shown,
            now,
            put_off=lambda copy: self._endings.repainted_when(copy, authors, now),
        )
        about = {"thread": action.thread_id, "reason": why}
        audit.append(
            connection,
            now,
            actor=overdue.ACTOR,
            via=overdue.VIA,
            event="action.withdrawn",
            subject=action.id,
            data=about,
        )
        return withdrawn

    def _expire(self, connection: sa.Connection, action: Action, now: datetime) -> Action | None:
        endings, authors = self._endings, self._authors(connection, action)
        expired = overdue.expire(
            connection,
            action,
            endings.timing(action),
            now,
            lambda copy: endings.repainted_when(copy, authors, now),
        )
        thread = threads.get(connection, action.thread_id)
        if expired is None or thread is None or expired.lapsed:
            return expired
        # The work stands still until somebody does something: that is news, where a card is only changed.
        threads.add_message(
            connection,
            thread.id,
            now,
            role="notice",
            author=threads.AGENT_NAME,
            text=f"Nobody decided in time: {action.title} The work waits. Reopen it to decide after all.",
            run_id=action.run_id,
        )
        for place, quiet in endings.told_when(endings.places_of_news(thread), authors, now):
            self._say(connection, expired, place, now, put_off_until=quiet)
        return expired

    def _authors(self, connection: sa.Connection, action: Action) -> Sequence[tuple[Person, str]]:
        """Who is there, when nobody decides: whoever wrote what the run of the action answers."""
        thread, run = threads.get(connection, action.thread_id), runs.get(connection, action.run_id)
        return (
            self._endings.authors(connection, thread, run) if thread is not None and run is not None else ()
        )

    def _escalate(self, connection: sa.Connection, action: Action, now: datetime) -> Action | None:
        thread = threads.get(connection, action.thread_id)
        if thread is None:
            return None
        endings = self._endings
        deciding = [person.name for person in endings.deciding(action, thread)]
        timing = endings.timing(action)
        escalated = overdue.escalate(connection, action, timing, now, deciding)
        if escalated is not None:
            endings.show_cards(connection, escalated, thread)
        return escalated

    def _remind(self, connection: sa.Connection, due: Reminder, now: datetime) -> Action | None:
        """Tell one person of one action again, or put that off, or give it up."""
        action = actions.get(connection, due.action_id)
        thread = threads.get(connection, action.thread_id) if action is not None else None
        person = self._endings.people.by_name(due.person)
        if action is None:
            reminders.move(connection, due, None)
            return None
        if thread is None or person is None or not self._waits_for(person, action, thread):
            moved = self._move(connection, action, due, None, now)
            return moved if moved != action else None
        timing = self._endings.timing(action)
        # A question without a clock is in the rows only for who put it off, and told once then.
        again = now + timing.reminder_after if timing.reminder_after is not None else None
        voted = any(vote.person == person.name for vote in action.votes)  # an edit can void that vote
        quiet = quiet_until(person, now)
        if voted or timing.urgent or (quiet is not None and _ends_before(action, quiet)):
            quiet = None
        moved = self._move(connection, action, due, quiet or again, now)
        if moved is None:
            return None  # another process was first
        if voted or quiet is not None:
            return moved if moved != action else None
        action = moved
        own = self._endings.own_places(thread)
        for place in recipients.for_reminder(own, person, self._endings.channels):
            self._say(connection, action, place, due.due_at)
        audit.append(
            connection,
            now,
            actor=overdue.ACTOR,
            via=overdue.VIA,
            event="action.reminded",
            subject=action.id,
            data={"thread": action.thread_id, "person": person.name},
        )
        return action

    def _move(
        self, connection: sa.Connection, action: Action, due: Reminder, again: datetime | None, now: datetime
    ) -> Action | None:
        """Take a reminder for done, and with it a snooze, which the cards show; None: somebody else did."""
        if not reminders.move(connection, due, again):
            return None
        if all(snooze.person != due.person for snooze in action.snoozes):
            return action
        action = actions.revise(connection, action.id) or action
        outbox.repaint(connection, action.id, action.shown, now)
        return action

    def _waits_for(self, person: Person, action: Action, thread: threads.Thread) -> bool:
        return action.state is ActionState.PENDING and self._endings.people.decides_action(
            person, action, thread.owner
        )

    def _say(
        self,
        connection: sa.Connection,
        action: Action,
        place: recipients.Place,
        due: datetime,
        *,
        put_off_until: datetime | None = None,
    ) -> None:
        """Queue a reminder for a place, once per time at which it was due: several may be reached there."""
        outbox.enqueue(
            connection,
            self._endings.clock.now(),
            key=f"reminder/{action.id}/{to_microseconds(due)}/{place.channel}/{place.address}",
            channel=place.channel,
            address=place.address,
            kind="reminder",
            thread_id=action.thread_id,
            person=place.person,
            action_id=action.id,
            put_off_until=put_off_until,
        )


def _ends_before(action: Action, moment: datetime) -> bool:
    """Whether the action expires by then, so that waiting with a word would be waiting too long."""
    return action.expires_at is not None and action.expires_at <= moment


def _next_due(connection: sa.Connection) -> datetime | None:
    due = (actions.next_due(connection), reminders.next_due(connection))
    return min((moment for moment in due if moment is not None), default=None)
