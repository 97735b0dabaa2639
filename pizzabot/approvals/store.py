"""Which decisions are asked for, and which were given? The rows of actions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot.approvals.arguments import digest
from pizzabot.database.schema import ACTION_PENDING, action_approvers, actions, threads
from pizzabot.ids import new_id
from pizzabot.messages import FAILURES, Action, ActionKind, ActionState, Args, Verdict

DECIDED = (
    ActionState.APPROVED,
    ActionState.EDITED,
    ActionState.REJECTED,
    ActionState.RESPONDED,
    ActionState.RESOLVED,
)


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


def _action(row: Any) -> Action:
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
    )


def get(connection: sa.Connection, action_id: str) -> Action | None:
    """The action, or None."""
    row = connection.execute(sa.select(actions).where(actions.c.id == action_id)).first()
    return _action(row) if row else None


def answered(connection: sa.Connection, question_id: str) -> Action | None:
    """The newest action that asked this question and was not withdrawn; it may still be pending."""
    row = connection.execute(
        sa.select(actions)
        .where(_asks(question_id), actions.c.state != ActionState.WITHDRAWN)
        .order_by(actions.c.id.desc())
        .limit(1)
    ).first()
    return _action(row) if row else None


def _asks(question_id: str) -> sa.ColumnElement[bool]:
    # `#` ends the id, the number after it counts how often the question was withdrawn and asked anew.
    return sa.and_(actions.c.question >= f"{question_id}#", actions.c.question < f"{question_id}$")


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
        )
    )
    if question.approvers:
        connection.execute(
            sa.insert(action_approvers),
            [{"person": p, "thread_id": thread_id, "action_id": action_id} for p in question.approvers],
        )
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


def settle(
    connection: sa.Connection, action_id: str, from_states: Sequence[ActionState], **values: Any
) -> Action | None:
    """Compare-and-set: change the action when it is in one of `from_states`; None when it is not."""
    row = connection.execute(
        sa.update(actions)
        .where(actions.c.id == action_id, actions.c.state.in_(from_states))
        .values(**values)
        .returning(*actions.c)
    ).first()
    if row is None:
        return None
    count_pending(connection, row.thread_id)
    return _action(row)


def withdraw(connection: sa.Connection, thread_id: str) -> list[Action]:
    """Nobody needs to decide what the thread's run asked; the withdrawn actions.

    What is asked about a trigger stays: it is no affair of a run.
    """
    rows = connection.execute(
        sa.update(actions)
        .where(
            actions.c.thread_id == thread_id,
            actions.c.state.in_((ActionState.PENDING, ActionState.EXPIRED)),
            _OF_RUN,
        )
        .values(state=ActionState.WITHDRAWN)
        .returning(*actions.c)
    ).all()
    count_pending(connection, thread_id)
    return [_action(row) for row in rows]


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
    return [_action(row) for row in connection.execute(query)]


def pending_in(
    connection: sa.Connection, thread_ids: Collection[str], *, limit: int
) -> list[tuple[str, str, str, Args]]:
    """What waits in these threads, oldest first: thread, action, title and arguments."""
    query = sa.select(actions.c.thread_id, actions.c.id, actions.c.title, actions.c.args)
    waiting = query.where(ACTION_PENDING, actions.c.thread_id.in_(thread_ids))
    return [tuple(row) for row in connection.execute(waiting.order_by(actions.c.id).limit(limit))]


def limits_of_run(connection: sa.Connection, run_id: str) -> list[Action]:
    """The answers to "may this run go on?"."""
    query = sa.select(actions).where(actions.c.run_id == run_id, actions.c.kind == ActionKind.LIMIT, _OF_RUN)
    return [_action(row) for row in connection.execute(query.order_by(actions.c.id))]


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
    return [_action(row) for row in connection.execute(query)]


def skills_of_run(connection: sa.Connection, run_id: str) -> frozenset[str]:
    """The skills for which this run asked something that was not withdrawn."""
    query = sa.select(actions.c.skill).where(
        actions.c.run_id == run_id, actions.c.skill.is_not(None), actions.c.state != ActionState.WITHDRAWN
    )
    return frozenset(connection.execute(query).scalars())


def any_decided(connection: sa.Connection, question_ids: Sequence[str]) -> bool:
    """Whether one of these questions has its answer by now."""
    return any(
        (action := answered(connection, question_id)) is not None and action.state in DECIDED
        for question_id in question_ids
    )
