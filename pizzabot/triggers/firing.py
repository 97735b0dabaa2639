"""How does a firing become work, and what becomes of it? Each step is one transaction, and may be repeated.

due -> an occurrence, once -> the owner's thread with a queued run -> follows that run to its end
                           -> of a digest: made and sent at once, unless there is nothing to tell
several failures in a row -> the trigger is paused, and its owner is asked
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.approvals import store as actions
from pizzabot.approvals.store import Question
from pizzabot.clock import spoken_seconds
from pizzabot.digests import making
from pizzabot.engine.endings import Endings
from pizzabot.errors import Invalid
from pizzabot.ids import new_id
from pizzabot.inbox import intake, threads
from pizzabot.inbox.intake import Unattended
from pizzabot.inbox.threads import TITLE_LENGTH, UNATTENDED
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, InboundMessage, Verdict
from pizzabot.outbox import store as outbox
from pizzabot.people import People, Person, quiet_until
from pizzabot.triggers import prompts, store
from pizzabot.triggers.misfire import due
from pizzabot.triggers.schedules import Firing, Schedule
from pizzabot.triggers.trigger import MAX_PENDING, Occurrence, OccurrenceState, Trigger

FAILURES_BEFORE_PAUSE = 3
NOTHING_TO_TELL = "nothing to tell"
_FINAL = (OccurrenceState.SUCCEEDED, OccurrenceState.FAILED, OccurrenceState.SKIPPED, OccurrenceState.DEAD)
_SCHEDULED = ("cron", "catch_up")  # reasons
_ERROR_SHOWN = 300  # characters


@dataclass(frozen=True, slots=True)
class Work:
    """What a firing needs to know to begin a run; `url` is that of the web view, which digests link to.
    `has_skill` says whether a skill can be used.
    """

    people: People
    endings: Endings
    model: str
    allowance: Mapping[str, Any]
    url: Callable[[], str]
    has_skill: Callable[[str], bool]


def note_due(connection: sa.Connection, trigger_id: str, now: datetime, work: Work) -> int:
    """Store the firings of a trigger that are due, and when it is due next; how many there are now."""
    trigger = store.lock(connection, trigger_id)
    if trigger is None or trigger.next_run_at is None:
        return 0
    # A clock that was ahead for a moment must not silence it until then: such a mark counts as now.
    is_ahead = trigger.watched_until > now + store.CLOCK_SKEW
    if trigger.next_run_at > now and not is_ahead:
        return 0
    try:
        schedule = trigger.schedule
    except Invalid as error:  # the zone is not known any more
        _pause_and_say(connection, trigger, str(error), now, work)
        return 0
    assert schedule is not None
    found = due(
        schedule,
        trigger.watched_until,
        now,
        policy=trigger.misfire,
        most=trigger.misfire_max,
        grace=timedelta(seconds=trigger.grace_seconds),
    )
    if not store.watched(connection, trigger, trigger.watched(now)):
        return 0  # another process was first
    room = max(0, MAX_PENDING - store.pending_of(connection, trigger.id))
    noted, missed = found.firings[:room], found.missed + len(found.firings[room:])
    for number, firing in enumerate(noted):
        late = max(0, int((now - firing.at).total_seconds()))
        is_late = late > trigger.grace_seconds
        occurrence = Occurrence(
            id=new_id(),
            trigger_id=trigger.id,
            key=_key(schedule, firing),
            state=OccurrenceState.PENDING,
            reason="catch_up" if is_late else "cron",
            scheduled_at=firing.at,
            created_at=now,
            late_seconds=late if is_late else 0,
            missed=missed if number == 0 else 0,
        )
        store.add(connection, occurrence)
    if missed:
        data = {"missed": missed, "policy": trigger.misfire}
        _audit(connection, now, "trigger.missed", trigger.id, data)
    return len(noted)


def _key(schedule: Schedule, firing: Firing) -> str:
    """What names a firing within its trigger. Eight o'clock in another zone is another one, also today."""
    return f"cron/{firing.key}" if schedule.follows_time else f"cron/{firing.key} {schedule.zone}"


def start(connection: sa.Connection, occurrence_id: str, now: datetime, work: Work) -> Occurrence | None:
    """Begin what is pending, unless an earlier firing is still at work; None when it stays as it is."""
    seen = store.occurrence(connection, occurrence_id)
    trigger = store.lock(connection, seen.trigger_id) if seen is not None else None
    known = store.occurrence(connection, occurrence_id)  # as it is now that the trigger is held
    if trigger is None or known is None or known.state is not OccurrenceState.PENDING:
        return None
    if known.reason != "manual" and not trigger.enabled:
        return _ended(connection, known, OccurrenceState.SKIPPED, "the trigger was switched off", now)
    if known.reason != "manual" and trigger.paused is not None:
        return None
    if trigger.overlap != "allow" and store.is_at_work(connection, trigger.id):
        if trigger.overlap == "queue":
            return None
        return _ended(connection, known, OccurrenceState.SKIPPED, "the one before was still at work", now)
    owner = work.people.by_name(trigger.owner)
    if owner is None:
        gone = f"{trigger.owner}, to whom it belongs, is nobody of [[people]] any more"
        return _cannot(connection, trigger, known, gone, now, work)
    if missing := [skill for skill in trigger.skills or () if not work.has_skill(skill)]:
        gone = f"its skill {missing[0]} is not there any more, or cannot be read"
        return _cannot(connection, trigger, known, gone, now, work)
    if trigger.kind == "digest":
        return _digest(connection, trigger, known, owner, now, work)
    late_seconds = _late_seconds(trigger, known, now)
    late = spoken_seconds(late_seconds) if late_seconds else None
    said = prompts.lateness(late, known.missed)
    prompt = prompts.filled(trigger.prompt, known.fields) if trigger.kind == "webhook" else trigger.prompt
    accepted = intake.accept(
        connection,
        InboundMessage(
            channel=UNATTENDED,
            person=owner.name,
            text=prompts.task(prompt, late=late, missed=known.missed, payload=known.payload),
            title=_title(trigger.name, said),
            key=f"occurrence/{known.id}",
        ),
        (),
        now,
        model=trigger.model or work.model,
        allowance=_allowance(trigger, work),
        unattended=Unattended(trigger.id, trigger.skills, trigger.channels),
    )
    store.ran(connection, trigger.id, now)
    about = {"trigger": trigger.id, "thread": accepted.thread_id, "reason": known.reason}
    _audit(connection, now, "trigger.fired", known.id, about)
    return store.moved(
        connection,
        known,
        state=OccurrenceState.RUNNING,
        started_at=now,
        late_seconds=late_seconds,
        thread_id=accepted.thread_id,
        run_id=accepted.run_id,
        payload=None,  # it stands in the message now
        fields=None,
    )


def _late_seconds(trigger: Trigger, known: Occurrence, now: datetime) -> int:
    """How late what a schedule wanted begins, also for having waited for the one before; 0 when on time."""
    if known.reason not in _SCHEDULED:
        return 0
    late = int((now - known.scheduled_at).total_seconds())
    return late if known.reason == "catch_up" or late > trigger.grace_seconds else 0


def give_up(connection: sa.Connection, occurrence_id: str, now: datetime, work: Work) -> Occurrence | None:
    """Leave out what cannot be started, so that it does not hold up everything else. That is a failure like
    any other, but that there is no thread in which its owner could be asked.
    """
    seen = store.occurrence(connection, occurrence_id)
    trigger = store.lock(connection, seen.trigger_id) if seen is not None else None
    if seen is None or trigger is None or seen.state is not OccurrenceState.PENDING:
        return None
    said = f"It could not be started; the log has the details under {seen.id}."
    dead = _ended(connection, seen, OccurrenceState.DEAD, said, now)
    if dead is None:
        return None
    trigger = replace(trigger, failures=store.count_failure(connection, trigger.id, failed=True))
    if trigger.fires and trigger.failures >= FAILURES_BEFORE_PAUSE:
        why = f"failed {trigger.failures} times in a row. The last time: {said}"
        _pause_and_say(connection, trigger, why, now, work)
    else:
        _say(connection, trigger, "not started", f"“{trigger.name}” did not work. {said}", now, work)
    return dead


def pause_broken(connection: sa.Connection, trigger_id: str, now: datetime, work: Work) -> int:
    """Pause a trigger of which nobody can say what is due: nothing is, then."""
    trigger = store.lock(connection, trigger_id)
    if trigger is not None and trigger.fires:
        why = f"what is due could not be found; the log has the details under {trigger.id}"
        _pause_and_say(connection, trigger, why, now, work)
    return 0


def _cannot(
    connection: sa.Connection, trigger: Trigger, known: Occurrence, why: str, now: datetime, work: Work
) -> Occurrence | None:
    """Pause a trigger that cannot do its work. What a webhook brought waits until it can."""
    dead = None
    if known.reason != "webhook":
        dead = _ended(connection, known, OccurrenceState.DEAD, why, now)
    _pause_and_say(connection, trigger, why, now, work)
    return dead


def _allowance(trigger: Trigger, work: Work) -> Mapping[str, Any]:
    """What its run may use: what any may, but for the trigger's own budget."""
    budget = {"usd": trigger.budget_usd} if trigger.budget_usd is not None else {}
    return dict(work.allowance) | budget


def _digest(
    connection: sa.Connection,
    trigger: Trigger,
    known: Occurrence,
    person: Person,
    now: datetime,
    work: Work,
) -> Occurrence | None:
    """Tell a person what there is to tell. In their quiet hours it stays pending: it is made when they end.

    Whoever asks for it now means now.
    """
    if known.reason != "manual":
        if quiet_until(person, now) is not None:
            return None
        if store.is_followed(connection, known):
            return _ended(connection, known, OccurrenceState.SKIPPED, "a newer one took its place", now)
    channels, url = work.endings.channels, work.url()
    digest = making.make(connection, person, work.people, channels, url.rstrip("/"), now)
    store.ran(connection, trigger.id, now)
    if digest is None:
        return _ended(connection, known, OccurrenceState.SKIPPED, NOTHING_TO_TELL, now)
    started = replace(known, started_at=now, thread_id=digest.thread_id)
    return _ended(connection, started, OccurrenceState.SUCCEEDED, None, now)


def follow(connection: sa.Connection, behind: store.Behind, now: datetime, work: Work) -> Occurrence | None:
    """Bring an occurrence to where its run stands; None when another process was first."""
    known, stands, said = behind
    if stands not in _FINAL:
        return store.moved(connection, known, state=stands, ended_at=None, error=None)
    moved = _ended(connection, known, stands, said, now)
    if moved is None:
        return None
    if moved.state is OccurrenceState.SUCCEEDED:
        store.count_failure(connection, moved.trigger_id, failed=False)
    if moved.state is OccurrenceState.FAILED and said != store.STOPPED:
        failures = store.count_failure(connection, moved.trigger_id, failed=True)
        trigger = store.lock(connection, moved.trigger_id)
        if trigger is not None and trigger.fires and failures >= FAILURES_BEFORE_PAUSE:
            _pause(connection, trigger, f"failed {failures} times in a row", now)
            _ask(connection, trigger, moved, failures, now, work)
    return moved


def answered(connection: sa.Connection) -> list[str]:
    """The paused triggers about which somebody answered, or whose question is gone."""
    return [one.id for one in store.asking(connection) if not _is_open(_question(connection, one))]


def heed_answer(connection: sa.Connection, trigger_id: str, now: datetime, work: Work) -> Trigger | None:
    """Go on with, or switch off, what people answered about; None when another process was first."""
    trigger = store.lock(connection, trigger_id)
    if trigger is None or trigger.paused_action is None:
        return None
    action, closed = _question(connection, trigger), replace(trigger, paused_action=None, changed_at=now)
    if _is_open(action):
        return None
    after, problem = closed, None
    if action is not None and action.state is ActionState.APPROVED:
        try:
            after = replace(closed, paused=None, failures=0).watched(now)
        except Invalid as error:  # the zone is not known any more
            problem = str(error)
    elif action is not None and action.state is ActionState.REJECTED:
        after = replace(closed, enabled=False, paused=None).watched(now)
    store.put(connection, after, new=False)
    data = {"enabled": after.enabled, "by": action.decided_by if action is not None else None}
    _audit(connection, now, "trigger.answered", trigger.id, data)
    if problem is not None:
        _pause_and_say(connection, closed, problem, now, work)
    return after


def _question(connection: sa.Connection, trigger: Trigger) -> Action | None:
    return actions.get(connection, trigger.paused_action or "")


def _is_open(action: Action | None) -> bool:
    return action is not None and action.state in (ActionState.PENDING, ActionState.EXPIRED)


def withdraw_question(connection: sa.Connection, trigger: Trigger, now: datetime) -> None:
    """Nobody needs to say any more whether a paused trigger goes on."""
    if trigger.paused_action is None:
        return
    open_states = [ActionState.PENDING, ActionState.EXPIRED]
    over = {"state": ActionState.WITHDRAWN, "decided_at": now}
    settled = actions.settle(connection, trigger.paused_action, open_states, **over)
    if settled is not None:
        outbox.repaint(connection, settled.id, settled.state, now)


def _ended(
    connection: sa.Connection, known: Occurrence, state: OccurrenceState, error: str | None, now: datetime
) -> Occurrence | None:
    moved = store.moved(
        connection,
        known,
        state=state,
        started_at=known.started_at,
        ended_at=now,
        thread_id=known.thread_id,
        error=error,
        payload=None,  # nothing will read it any more
        fields=None,
    )
    if moved is not None:
        about = {"trigger": moved.trigger_id, "run": moved.run_id, "error": error}
        _audit(connection, now, f"occurrence.{state}", moved.id, about)
    return moved


def _pause(connection: sa.Connection, trigger: Trigger, why: str, now: datetime) -> None:
    paused = replace(trigger, paused=why, changed_at=now).watched(now)
    store.put(connection, paused, new=False)
    _audit(connection, now, "trigger.paused", trigger.id, {"why": why})
    # When it goes on it fires at its next time, and not for what it missed.
    for one in store.pending_with(connection, trigger.id, _SCHEDULED):
        _ended(connection, one, OccurrenceState.SKIPPED, "the trigger was paused", now)


def _pause_and_say(connection: sa.Connection, trigger: Trigger, why: str, now: datetime, work: Work) -> None:
    """Pause a trigger and tell its owner."""
    _pause(connection, trigger, why, now)
    text = f"“{trigger.name}” is paused: {why.rstrip('.')}. Change it, then switch it on again."
    _say(connection, trigger, "paused", text, now, work)


def _say(
    connection: sa.Connection, trigger: Trigger, about: str, text: str, now: datetime, work: Work
) -> None:
    """Tell a trigger's owner, or one of the house when that is nobody any more, in one thread for each of
    them and each matter.
    """
    owner = work.people.by_name(trigger.owner) or work.people.owner
    address = f"{about}/{trigger.id}/{owner.name.casefold()}"
    thread_id = threads.at_address(connection, UNATTENDED, address) or threads.create(
        connection,
        now,
        owner=owner.name,
        channel=UNATTENDED,
        address=address,
        title=_title(trigger.name, about),
        title_source="user",
    )
    work.endings.said(connection, thread_id, text)


def _ask(
    connection: sa.Connection,
    trigger: Trigger,
    failed: Occurrence,
    failures: int,
    now: datetime,
    work: Work,
) -> None:
    """Ask in the thread of the newest failure whether it shall go on."""
    if failed.thread_id is None or failed.run_id is None:
        return
    question = Question(
        # One of its own for each pause: a firing whose run is retried can be what pauses the trigger again.
        id=f"trigger/{failed.id}/{new_id()}",
        kind=ActionKind.LIMIT,
        tool=FAILURES,
        title=f"“{trigger.name}” failed {failures} times in a row and is paused. Let it go on?",
        args={"limit": "failures", "used": failures, "trigger": trigger.name, "error": failed.error or ""},
        args_schema={},
        allowed_decisions=(Verdict.APPROVE, Verdict.REJECT),
        approvers=(),
        why=f"{_last_time(failed.error)}Approve lets it fire at its next time again; Reject switches it off.",
    )
    action, _ = actions.ask(
        connection,
        question,
        now,
        thread_id=failed.thread_id,
        run_id=failed.run_id,
        requested_by=trigger.owner,
    )
    work.endings.announce(connection, action)
    store.asked(connection, trigger.id, action.id)


def _title(name: str, said: str | None) -> str:
    """The name, shortened where it would push out why it comes now."""
    if said is None:
        return name
    return f"{threads.one_line(name, TITLE_LENGTH - len(said) - 3)} ({said})"


def _last_time(error: str | None) -> str:
    if not error:
        return ""
    flat = " ".join(error.split())
    said = flat if len(flat) <= _ERROR_SHOWN else f"{flat[: _ERROR_SHOWN - 1]}…"
    return f"The last time: {said}{'' if said.endswith(('.', '…', '!', '?')) else '.'} "


def _audit(
    connection: sa.Connection, now: datetime, event: str, subject: str, data: Mapping[str, Any]
) -> None:
    audit.append(connection, now, actor="Pizza Bot", via=UNATTENDED, event=event, subject=subject, data=data)
