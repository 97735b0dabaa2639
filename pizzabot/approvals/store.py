"""Which decisions are asked for, and which were given? The rows of actions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot.approvals.arguments import digest
from pizzabot.database.schema import (
    ACTION_PENDING,
    ACTION_UNANSWERED,
    action_approvers,
    actions,
    messages,
    reminders,
    threads,
    votes,
)
from pizzabot.ids import new_id
from pizzabot.inbox.threads import Message, message_of
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, Args, Snooze, Verdict, Vote

# Waits, or expired and can be reopened: the same as Action.is_open.
_OPEN = sa.or_(
    ACTION_PENDING,
    sa.and_(actions.c.state == ActionState.EXPIRED, actions.c.decision.is_(None)),
)
CLOSED = sa.not_(_OPEN)


@dataclass(frozen=True, slots=True)
class Question:
    """What the agent wants to know before it goes on.

    `id` is the same whenever the same point of the same run is reached again, also in another process.
    """

    id: str
    kind: ActionKind
    tool: str
    title: str
    args: Args
    args_schema: Mapping[str, Any]
    allowed_decisions: tuple[Verdict, ...]
    approvers: tuple[str, ...]
    skill: str | None = None
    why: str | None = None
    quorum: int = 1


def _actions(connection: sa.Connection, rows: Iterable[Any]) -> list[Action]:
    """Rows as actions, with who approved them and who put them off."""
    found = list(rows)
    voted = _votes(connection, [row for row in found if row.quorum > 1])
    snoozed = _snoozes(connection, [row.id for row in found if row.state == ActionState.PENDING])
    return [_action(row, voted.get(row.id, ()), snoozed.get(row.id, ())) for row in found]


def _first(connection: sa.Connection, row: Any) -> Action | None:
    return _actions(connection, [row])[0] if row is not None else None


def _votes(connection: sa.Connection, rows: Sequence[Any]) -> dict[str, tuple[Vote, ...]]:
    if not rows:
        return {}
    digests, found = {row.id: row.digest for row in rows}, dict[str, tuple[Vote, ...]]()
    query = sa.select(votes).where(votes.c.action_id.in_(digests)).order_by(votes.c.at, votes.c.person)
    for vote in connection.execute(query):
        if vote.digest == digests[vote.action_id]:
            found[vote.action_id] = (
                *found.get(vote.action_id, ()),
                Vote(vote.person, vote.via, vote.at),
            )
    return found


def _snoozes(connection: sa.Connection, ids: Sequence[str]) -> dict[str, tuple[Snooze, ...]]:
    if not ids:
        return {}
    found = dict[str, tuple[Snooze, ...]]()
    query = (
        sa.select(reminders)
        .where(reminders.c.action_id.in_(ids), reminders.c.snoozed_until.is_not(None))
        .order_by(reminders.c.snoozed_until, reminders.c.person)
    )
    for row in connection.execute(query):
        found[row.action_id] = (*found.get(row.action_id, ()), Snooze(row.person, row.snoozed_until))
    return found


def _action(row: Any, voted: tuple[Vote, ...], snoozed: tuple[Snooze, ...]) -> Action:
    return Action(
        id=row.id,
        thread_id=row.thread_id,
        run_id=row.run_id,
        kind=ActionKind(row.kind),
        tool=row.tool,
        title=row.title,
        args=row.args,
        args_schema=row.args_schema,
        digest=row.digest,
        allowed_decisions=tuple(Verdict(word) for word in row.allowed_decisions),
        approvers=tuple(row.approvers),
        state=ActionState(row.state),
        created_at=row.created_at,
        skill=row.skill,
        requested_by=row.requested_by,
        why=row.why,
        decision=Verdict(row.decision) if row.decision else None,
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        decided_via=row.decided_via,
        reason=row.reason,
        response=row.response,
        final_args=row.final_args,
        waiting_since=row.waiting_since,
        expires_at=row.expires_at,
        escalated_to=tuple(row.escalated_to),
        quorum=row.quorum,
        votes=voted,
        asked_args=row.asked_args,
        edited_by=row.edited_by,
        revision=row.revision,
        snoozes=snoozed,
    )


def get(connection: sa.Connection, action_id: str) -> Action | None:
    """The action, or None."""
    return _first(connection, connection.execute(sa.select(actions).where(actions.c.id == action_id)).first())


def lock(connection: sa.Connection, action_id: str) -> None:
    """Hold the action until the commit: of two votes at once the second must count the first one."""
    connection.execute(sa.select(actions.c.id).where(actions.c.id == action_id).with_for_update())


def answered(connection: sa.Connection, question_id: str) -> Action | None:
    """The newest action that asked this question and was not withdrawn; it may still be pending."""
    return _newest(connection, sa.and_(_asks(question_id), actions.c.state != ActionState.WITHDRAWN))


def _newest(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Action | None:
    query = sa.select(actions).where(condition).order_by(actions.c.id.desc()).limit(1)
    return _first(connection, connection.execute(query).first())


def _asks(question_id: str) -> sa.ColumnElement[bool]:
    # `#` ends the id, the number after it counts how often the question was withdrawn and asked anew.
    return sa.and_(actions.c.question >= f"{question_id}#", actions.c.question < f"{question_id}$")


def asides(connection: sa.Connection, question_id: str, thread_id: str, run_id: str) -> list[Message]:
    """What was written about a question, and about those that came of it, without deciding; oldest first.

    Left out is what another run was handed already.
    """
    # `/` begins what came of it, such as what became of its call; the ids of all end at `#`, before `0`.
    asked = sa.select(actions.c.id).where(
        actions.c.question >= f"{question_id}#", actions.c.question < f"{question_id}0"
    )
    query = sa.select(messages).where(
        messages.c.thread_id == thread_id,
        messages.c.aside_to.in_(asked),
        sa.or_(messages.c.run_id.is_(None), messages.c.run_id == run_id),
    )
    return [message_of(row) for row in connection.execute(query.order_by(messages.c.seq))]


def hand_over(connection: sa.Connection, said: Sequence[Message], run_id: str) -> None:
    """The run has been told of these: they are not held any more."""
    connection.execute(
        sa.update(messages).where(messages.c.seq.in_([m.seq for m in said])).values(run_id=run_id)
    )


def ask(
    connection: sa.Connection,
    question: Question,
    now: datetime,
    *,
    thread_id: str,
    run_id: str,
    requested_by: str,
) -> tuple[Action, bool]:
    """The action for a question, and whether it is new: asking twice finds the first one."""
    known = answered(connection, question.id)
    if known is not None:
        return known, False
    withdrawn = connection.execute(
        sa.select(sa.func.count()).select_from(actions).where(_asks(question.id))
    ).scalar_one()
    action_id = new_id()
    connection.execute(
        sa.insert(actions).values(
            id=action_id,
            question=f"{question.id}#{withdrawn}",
            thread_id=thread_id,
            run_id=run_id,
            kind=question.kind,
            tool=question.tool,
            title=question.title,
            skill=question.skill,
            why=question.why,
            requested_by=requested_by,
            args=dict(question.args),
            args_schema=dict(question.args_schema),
            digest=digest(action_id, question.tool, question.args),
            allowed_decisions=[str(verdict) for verdict in question.allowed_decisions],
            approvers=list(question.approvers),
            state=ActionState.PENDING,
            created_at=now,
            waiting_since=now,
            escalated_to=[],
            quorum=question.quorum,
        )
    )
    _name(connection, thread_id, action_id, question.approvers)
    count_pending(connection, thread_id)
    action = get(connection, action_id)
    assert action is not None
    return action, True


def pending_counts(connection: sa.Connection) -> dict[ActionKind, int]:
    """How many actions of each kind wait for a decision."""
    query = sa.select(actions.c.kind, sa.func.count()).where(ACTION_PENDING).group_by(actions.c.kind)
    waiting = {ActionKind(row[0]): row[1] for row in connection.execute(query)}
    return dict.fromkeys(ActionKind, 0) | waiting


def oldest_pending(connection: sa.Connection) -> datetime | None:
    """Since when the first action waits; None when none does."""
    return connection.execute(sa.select(sa.func.min(actions.c.created_at)).where(ACTION_PENDING)).scalar()


def _name(connection: sa.Connection, thread_id: str, action_id: str, people: Sequence[str]) -> None:
    if people:
        connection.execute(
            sa.insert(action_approvers),
            [{"person": p, "thread_id": thread_id, "action_id": action_id} for p in people],
        )


def settle(
    connection: sa.Connection, action_id: str, from_states: Sequence[ActionState], **values: Any
) -> Action | None:
    """Compare-and-set: change the action when it is in one of `from_states`; None when it is not."""
    return _change(connection, action_id, actions.c.state.in_(from_states), values)


def _change(
    connection: sa.Connection, action_id: str, condition: sa.ColumnElement[bool], values: Mapping[str, Any]
) -> Action | None:
    row = connection.execute(
        sa.update(actions).where(actions.c.id == action_id, condition).values(**values).returning(*actions.c)
    ).first()
    if row is None:
        return None
    if row.state != ActionState.PENDING:
        connection.execute(sa.delete(reminders).where(reminders.c.action_id == action_id))
    count_pending(connection, row.thread_id)
    return _first(connection, row)


def revise(connection: sa.Connection, action_id: str, **values: Any) -> Action | None:
    """Change a pending action, and with it what its cards show; None when it does not wait any more."""
    return _change(connection, action_id, ACTION_PENDING, values | {"revision": actions.c.revision + 1})


def reopen(connection: sa.Connection, action_id: str) -> Action | None:
    """expired -> pending; None when it is not expired, or is so for good."""
    condition = sa.and_(actions.c.state == ActionState.EXPIRED, actions.c.decision.is_(None))
    return _change(connection, action_id, condition, {"state": ActionState.PENDING})


# -- time ------------------------------------------------------------------------------------------------


def wind(
    connection: sa.Connection,
    action_id: str,
    now: datetime,
    *,
    expires_at: datetime | None,
    escalates_at: datetime | None,
) -> Action | None:
    """Start the clock of a pending action, once more when it was reopened."""
    values = {"waiting_since": now, "expires_at": expires_at, "escalates_at": escalates_at}
    return _change(connection, action_id, ACTION_PENDING, values)


def unwound(connection: sa.Connection, *, limit: int) -> list[Action]:
    """Pending actions whose clock was never started: asked by a version that had none."""
    query = sa.select(actions).where(ACTION_PENDING, actions.c.waiting_since.is_(None))
    return _actions(connection, connection.execute(query.order_by(actions.c.id).limit(limit)))


def expiring(connection: sa.Connection, now: datetime, *, limit: int) -> list[Action]:
    """Pending actions whose time is up, the first first."""
    return _due(connection, actions.c.expires_at, now, limit)


def escalating(connection: sa.Connection, now: datetime, *, limit: int) -> list[Action]:
    """Pending actions that others have to look at, the first first."""
    return _due(connection, actions.c.escalates_at, now, limit)


def _due(connection: sa.Connection, at: sa.Column[Any], now: datetime, limit: int) -> list[Action]:
    query = sa.select(actions).where(ACTION_PENDING, at <= now).order_by(at).limit(limit)
    return _actions(connection, connection.execute(query))


def expire(connection: sa.Connection, action_id: str, now: datetime, *, for_good: bool) -> Action | None:
    """pending -> expired, when its time is up; None when it is not, or somebody was first."""
    values: dict[str, Any] = {"state": ActionState.EXPIRED}
    if for_good:
        values |= {"decision": Verdict.REJECT, "decided_at": now}
    condition = sa.and_(ACTION_PENDING, actions.c.expires_at <= now)
    return _change(connection, action_id, condition, values)


def escalate(
    connection: sa.Connection, action: Action, now: datetime, *, to: Sequence[str], approvers: Sequence[str]
) -> Action | None:
    """Let others decide, too, when that is due; None when it is not, or somebody was first."""
    values = {
        "escalates_at": None,
        "escalated_to": list(to),
        "approvers": list(approvers),
        "revision": actions.c.revision + 1,
    }
    condition = sa.and_(ACTION_PENDING, actions.c.escalates_at <= now)
    escalated = _change(connection, action.id, condition, values)
    if escalated is not None:
        added = [name for name in approvers if name not in action.approvers]
        _name(connection, action.thread_id, action.id, added)
    return escalated


def escalate_no_more(connection: sa.Connection, action_id: str) -> None:
    """There is nobody else to ask: forget when that was due."""
    connection.execute(sa.update(actions).where(actions.c.id == action_id).values(escalates_at=None))


def next_due(connection: sa.Connection) -> datetime | None:
    """When the next action expires or is escalated; None when none does."""
    found = [
        connection.execute(sa.select(sa.func.min(at)).where(ACTION_PENDING)).scalar()
        for at in (actions.c.expires_at, actions.c.escalates_at)
    ]
    return min((moment for moment in found if moment is not None), default=None)


# -- votes -----------------------------------------------------------------------------------------------


def vote(connection: sa.Connection, action: Action, person: str, via: str, now: datetime) -> None:
    """Count a person's approval of the action as it is."""
    row = {"action_id": action.id, "person": person, "digest": action.digest, "via": via, "at": now}
    connection.execute(sa.insert(votes), row)


def forget_votes(connection: sa.Connection, action_id: str) -> None:
    """What was approved is not what is asked any more."""
    connection.execute(sa.delete(votes).where(votes.c.action_id == action_id))


# -- reading ---------------------------------------------------------------------------------------------


def withdraw(connection: sa.Connection, thread_id: str, now: datetime) -> list[Action]:
    """Nobody needs to decide any more what the thread's run asked; the withdrawn actions.

    What is asked about a trigger stays: it is no affair of a run.
    """
    rows = connection.execute(
        sa.update(actions)
        .where(actions.c.thread_id == thread_id, _OPEN, _OF_RUN)
        .values(state=ActionState.WITHDRAWN, decided_at=now)
        .returning(*actions.c)
    ).all()
    if rows:
        connection.execute(sa.delete(reminders).where(reminders.c.action_id.in_([row.id for row in rows])))
    count_pending(connection, thread_id)
    return _actions(connection, rows)


_OF_RUN = actions.c.tool != FAILURES


def count_pending(connection: sa.Connection, thread_id: str) -> None:
    """Store on the thread how many of its actions wait."""
    # First the row, then the count: of two at once the second must count what the first one stored.
    connection.execute(sa.select(threads.c.id).where(threads.c.id == thread_id).with_for_update())
    pending = (
        sa.select(sa.func.count())
        .select_from(actions)
        .where(actions.c.thread_id == thread_id, actions.c.state == ActionState.PENDING)
        .scalar_subquery()
    )
    connection.execute(sa.update(threads).where(threads.c.id == thread_id).values(action_count=pending))


def of_thread(
    connection: sa.Connection, thread_id: str, run_ids: Collection[str] | None = None
) -> list[Action]:
    """Every action of a thread, oldest first; or those of some runs, and what waits."""
    query = sa.select(actions).where(actions.c.thread_id == thread_id).order_by(actions.c.id)
    if run_ids is not None:
        query = query.where(sa.or_(actions.c.run_id.in_(run_ids), ACTION_PENDING))
    return _actions(connection, connection.execute(query))


def pending_in(
    connection: sa.Connection, thread_ids: Collection[str], person: str, now: datetime, *, limit: int
) -> list[tuple[str, dict[str, Any]]]:
    """What waits in these threads, oldest first: the thread and, of the action, what tells it apart.

    `put_off_until` is until when the person put it off; None when they did not, or that is over `now`.
    """
    mine = sa.and_(
        reminders.c.action_id == actions.c.id, reminders.c.person == person, reminders.c.snoozed_until > now
    )
    told = (actions.c.id, actions.c.kind, actions.c.title, actions.c.why, actions.c.args)
    query = sa.select(actions.c.thread_id, *told, reminders.c.snoozed_until.label("put_off_until"))
    waiting = query.select_from(actions.outerjoin(reminders, mine)).where(
        ACTION_PENDING, actions.c.thread_id.in_(thread_ids)
    )
    rows = connection.execute(waiting.order_by(actions.c.id).limit(limit)).mappings()
    return [(row["thread_id"], {name: row[name] for name in row if name != "thread_id"}) for row in rows]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending action as somebody stands to it: did they approve it already, as one of several, or put it
    off? `owner` is that of its thread."""

    action_id: str
    approvers: tuple[str, ...]
    quorum: int
    owner: str
    is_approved: bool
    is_put_off: bool


def waiting(
    connection: sa.Connection, visible: sa.ColumnElement[bool], person: str, now: datetime
) -> list[Waiting]:
    """What waits in threads that `visible` admits, oldest first, and how the person stands to it `now`."""
    approved = sa.exists().where(
        votes.c.action_id == actions.c.id, votes.c.person == person, votes.c.digest == actions.c.digest
    )
    put_off = sa.exists().where(
        reminders.c.action_id == actions.c.id,
        reminders.c.person == person,
        reminders.c.snoozed_until > now,
    )
    query = (
        sa.select(actions.c.id, actions.c.approvers, actions.c.quorum, threads.c.owner, approved, put_off)
        .join(threads, threads.c.id == actions.c.thread_id)
        .where(ACTION_PENDING, visible)
        .order_by(actions.c.id)
    )
    return [
        Waiting(action_id, tuple(approvers), *rest)
        for action_id, approvers, *rest in connection.execute(query)
    ]


def limits_of_run(connection: sa.Connection, run_id: str) -> list[Action]:
    """The answers to "may this run go on?"."""
    query = sa.select(actions).where(actions.c.run_id == run_id, actions.c.kind == ActionKind.LIMIT, _OF_RUN)
    return _actions(connection, connection.execute(query.order_by(actions.c.id)))


def open_of_tools(connection: sa.Connection, *tools: str) -> list[Action]:
    """Every action about these tools, or these limits, that can still be answered, oldest first."""
    query = sa.select(actions).where(actions.c.tool.in_(tools), ACTION_UNANSWERED, _OPEN)
    return _actions(connection, connection.execute(query.order_by(actions.c.id)))


def page(
    connection: sa.Connection,
    *,
    state: ActionState | None,
    visible: sa.ColumnElement[bool],
    limit: int,
    before: str | None = None,
) -> list[Action]:
    """Actions in threads that `visible` admits, newest first."""
    query = (
        sa.select(actions)
        .join(threads, threads.c.id == actions.c.thread_id)
        .where(visible)
        .order_by(actions.c.id.desc())
        .limit(limit)
    )
    if state is not None:
        query = query.where(actions.c.state == state)
    if before is not None:
        query = query.where(actions.c.id < before)
    return _actions(connection, connection.execute(query))


def skills_of_run(connection: sa.Connection, run_id: str) -> frozenset[str]:
    """The skills for which this run asked something that was not withdrawn."""
    query = sa.select(actions.c.skill).where(
        actions.c.run_id == run_id, actions.c.skill.is_not(None), actions.c.state != ActionState.WITHDRAWN
    )
    return frozenset(connection.execute(query).scalars())


def any_decided(connection: sa.Connection, question_ids: Sequence[str]) -> bool:
    """Whether one of these questions has its answer by now, or was withdrawn, so that nobody will answer."""
    asked = (_newest(connection, _asks(question_id)) for question_id in question_ids)
    return any(action is not None and not action.is_open for action in asked)
