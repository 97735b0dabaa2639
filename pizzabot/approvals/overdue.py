"""What becomes of an action that nobody decides? Its clock, whom else it is shown, how it expires.

    wound when it is asked and when it is reopened -> due -> escalated: others may decide, too
                                                          -> expired: parked, or closed and the agent is told

Everything that is due stands in the action's row. A decision and the expiry change the same row by
compare-and-set: whichever comes second finds the other, and nothing expires between a decision and its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.approvals import reminders, store
from pizzabot.approvals.policy import Timing
from pizzabot.inbox import runs
from pizzabot.messages import Action, ActionKind
from pizzabot.outbox import store as outbox
from pizzabot.outbox.store import Delivery

ACTOR, VIA = "Pizza Bot", "clock"


def wind(
    connection: sa.Connection, action: Action, timing: Timing, people: Iterable[str], now: datetime
) -> None:
    """Start the clock of a pending action; `people` are those who may decide it."""
    store.wind(
        connection,
        action.id,
        now,
        expires_at=now + timing.expire_after if timing.expire_after is not None else None,
        escalates_at=now + timing.escalate_after
        if timing.escalate_after is not None and not action.escalated_to
        else None,
    )
    if timing.reminder_after is not None:
        reminders.start(connection, action.id, people, now + timing.reminder_after)


def expire(
    connection: sa.Connection,
    action: Action,
    timing: Timing,
    now: datetime,
    put_off: Callable[[Delivery], datetime | None],
) -> Action | None:
    """Nobody decided in time: park the action, or close it and queue its run, as was configured.

    What became of a call cannot be guessed, so that question is only ever parked. `put_off`: see
    `outbox.repaint`. None: not due any more.
    """
    for_good = timing.on_expiry == "reject" and action.kind is not ActionKind.UNCERTAIN
    expired = store.expire(connection, action.id, now, for_good=for_good)
    if expired is None:
        return None
    if for_good:
        runs.requeue(connection, action.run_id, now)
    audit.append(
        connection,
        now,
        actor=ACTOR,
        via=VIA,
        event="action.expired",
        subject=action.id,
        data={
            "thread": action.thread_id,
            "tool": action.tool,
            "then": "reject" if for_good else "park",
        },
    )
    outbox.repaint(connection, action.id, expired.shown, now, put_off=put_off)
    return expired


def escalate(
    connection: sa.Connection, action: Action, timing: Timing, now: datetime, deciding: Sequence[str]
) -> Action | None:
    """Let the substitutes decide, too, besides those who are `deciding` now. None: not due any more."""
    added = [name for name in timing.escalate_to if name not in deciding]
    if not added:  # all of them may decide already; who may decide unnamed stays as it is
        store.escalate_no_more(connection, action.id)
        return None
    # From here on all are named: a list of the substitutes alone would shut out whoever may decide unnamed.
    approvers = list(dict.fromkeys((*action.approvers, *deciding, *timing.escalate_to)))
    escalated = store.escalate(connection, action, now, to=added, approvers=approvers)
    if escalated is None:
        return None
    if timing.reminder_after is not None:
        reminders.start(connection, action.id, added, now + timing.reminder_after)
    audit.append(
        connection,
        now,
        actor=ACTOR,
        via=VIA,
        event="action.escalated",
        subject=action.id,
        data={"thread": action.thread_id, "tool": action.tool, "to": added},
    )
    outbox.repaint(connection, action.id, escalated.shown, now)
    return escalated
