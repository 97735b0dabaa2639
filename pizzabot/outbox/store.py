"""What has to be said, and what was said already? The rows of the outbox and of its deliveries.

    pending --take--> sending --sent--> sent
                        |--retry--> pending (later)     |--fail--> failed
                        |--lost--> unknown --take--> looked up, then sent or pending
    put_off --take, once it is due--> pending

A row is written in the transaction of what it tells; `key` makes saying it twice impossible. What is put off,
until somebody's quiet hours end, holds up nothing else for them; it counts as queued from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot.database.dialects import DIALECTS, insert
from pizzabot.database.schema import (
    OUTBOX_FAILED,
    OUTBOX_OPEN,
    OUTBOX_PUT_OFF,
    STATUS_QUEUED,
    STATUS_SHOWN,
    deliveries,
    digest_items,
    outbox,
)
from pizzabot.ids import new_id
from pizzabot.messages import OutboundKind


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A queued item; its content is loaded when it is delivered."""

    id: str
    key: str
    channel: str
    address: str
    person: str | None
    kind: OutboundKind
    thread_id: str
    message_seq: int | None
    action_id: str | None
    run_id: str | None
    digest_id: str | None
    external_id: str | None
    state: str
    tries: int
    created_at: datetime
    first_tried_at: datetime | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A copy that somebody can see."""

    channel: str
    address: str
    external_id: str
    thread_id: str
    action_id: str | None
    run_id: str | None
    digest_id: str | None
    person: str | None
    shown_state: str | None
    kind: str | None


# Built once per database: building a statement costs four times as much as running it.
_ENQUEUE = {
    dialect: insert(dialect, outbox).on_conflict_do_nothing(index_elements=["key"]).returning(outbox.c.id)
    for dialect in DIALECTS
}
_DIGESTS_REPAINTED = 10  # copies: older ones are not looked at any more, and their buttons tell who decided
_SHOWN = (
    *("thread_id", "action_id", "run_id", "digest_id", "person", "shown_state", "delivered_at"),
    "kind",
)


def _remember(dialect: str) -> Any:
    statement = insert(dialect, deliveries)
    return statement.on_conflict_do_update(
        index_elements=["channel", "address", "external_id"],
        set_={name: statement.excluded[name] for name in _SHOWN},
    )


_REMEMBER = {dialect: _remember(dialect) for dialect in DIALECTS}
_SENT = (
    sa.update(outbox)
    .where(outbox.c.id == sa.bindparam("row"))
    .values(state="sent", sent_at=sa.bindparam("now"), error=None)
)


_FIRST_IN_LINE = (
    sa.select(sa.func.min(outbox.c.id)).where(OUTBOX_OPEN).group_by(outbox.c.channel, outbox.c.address)
)
# A row that is being sent is first in its line, so its address has no other to offer.
_NEXT = sa.and_(OUTBOX_OPEN, outbox.c.state != "sending", outbox.c.id.in_(_FIRST_IN_LINE))
_DUE = (
    sa.select(outbox)
    .where(_NEXT, outbox.c.due_at <= sa.bindparam("now", type_=outbox.c.due_at.type))
    .order_by(outbox.c.due_at, outbox.c.id)
    .limit(sa.bindparam("count"))
    .with_for_update(skip_locked=True)
)
_TAKE = (
    sa.update(outbox)
    .where(outbox.c.id.in_(sa.bindparam("rows", expanding=True)))
    .values(
        state="sending",
        tries=outbox.c.tries + 1,
        first_tried_at=sa.func.coalesce(
            outbox.c.first_tried_at, sa.bindparam("now", type_=outbox.c.first_tried_at.type)
        ),
    )
)
_NEXT_DUE = sa.select(outbox.c.due_at).where(_NEXT).order_by(outbox.c.due_at).limit(1)
_PUT_OFF_UNTIL = sa.select(outbox.c.due_at).where(OUTBOX_PUT_OFF).order_by(outbox.c.due_at).limit(1)
_WAITING = sa.select(_NEXT_DUE.scalar_subquery(), _PUT_OFF_UNTIL.scalar_subquery())
_PUT_OFF_NO_MORE = (
    sa.update(outbox)
    .where(OUTBOX_PUT_OFF, outbox.c.due_at <= sa.bindparam("now", type_=outbox.c.due_at.type))
    # It was nobody's turn before that: counted from then, it does not look like something that got stuck.
    .values(state="pending", created_at=outbox.c.due_at)
)


def enqueue(
    connection: sa.Connection,
    now: datetime,
    *,
    key: str,
    channel: str,
    address: str,
    kind: OutboundKind,
    thread_id: str,
    person: str | None = None,
    message_seq: int | None = None,
    action_id: str | None = None,
    run_id: str | None = None,
    digest_id: str | None = None,
    external_id: str | None = None,
    put_off_until: datetime | None = None,
) -> bool:
    """Queue an item once for ever per `key`; whether it is new."""
    row = {
        "id": new_id(),
        "key": key,
        "channel": channel,
        "address": address,
        "person": person,
        "kind": kind,
        "thread_id": thread_id,
        "message_seq": message_seq,
        "action_id": action_id,
        "run_id": run_id,
        "digest_id": digest_id,
        "external_id": external_id,
        "state": "pending" if put_off_until is None else "put_off",
        "tries": 0,
        "due_at": put_off_until or now,
        "created_at": now,
    }
    return connection.execute(_ENQUEUE[connection.dialect.name], row).first() is not None


def is_queued(connection: sa.Connection, key: str) -> bool:
    """Whether an item with that key was ever queued."""
    return connection.execute(sa.select(outbox.c.id).where(outbox.c.key == key)).first() is not None


def take(connection: sa.Connection, now: datetime, *, limit: int) -> list[OutboxRow]:
    """Due rows, oldest first, at most one per address, none for addresses that are being served.

    The oldest open row of an address goes first, also while it waits for its next try or is being sent: that
    keeps the order in which things were said.
    """
    until = connection.execute(_PUT_OFF_UNTIL).scalar()
    if until is not None and until <= now:
        connection.execute(_PUT_OFF_NO_MORE, {"now": now})
    taken = [_row(row) for row in connection.execute(_DUE, {"now": now, "count": limit})]
    if taken:
        connection.execute(_TAKE, {"rows": [row.id for row in taken], "now": now})
    return taken


def _row(row: Any) -> OutboxRow:
    return OutboxRow(**{name: getattr(row, name) for name in OutboxRow.__dataclass_fields__})


def sent(
    connection: sa.Connection, row: OutboxRow, external_id: str, shown_state: str | None, now: datetime
) -> None:
    """The item arrived as `external_id`; remember the copy so that it can be repainted."""
    told = connection.execute(_SENT, {"row": row.id, "now": now})
    if told.rowcount == 0:
        return  # the thread was deleted meanwhile
    copy = {
        "channel": row.channel,
        "address": row.address,
        "external_id": external_id,
        "thread_id": row.thread_id,
        # Only a card or a list of them follows what becomes of it: a notice stays as it was said.
        "action_id": row.action_id if row.kind != "notice" else None,
        "run_id": row.run_id,
        "digest_id": row.digest_id if row.kind == "digest" else None,
        "person": row.person,
        "shown_state": shown_state,
        "delivered_at": now,
        "kind": row.kind if row.kind == "reminder" else None,
    }
    connection.execute(_REMEMBER[connection.dialect.name], copy)


def try_later(
    connection: sa.Connection, row: OutboxRow, due_at: datetime, error: str, *, unknown: bool
) -> None:
    """Not delivered now: again at `due_at`; `unknown` rows are looked up before they are sent."""
    state = "unknown" if unknown else "pending"
    connection.execute(
        sa.update(outbox).where(outbox.c.id == row.id).values(state=state, due_at=due_at, error=error[:500])
    )


def drop(connection: sa.Connection, row: OutboxRow) -> None:
    """It need not be said any more."""
    connection.execute(sa.delete(outbox).where(outbox.c.id == row.id))


def failed(connection: sa.Connection, row: OutboxRow, error: str) -> None:
    """Given up; shown in status."""
    connection.execute(
        sa.update(outbox).where(outbox.c.id == row.id).values(state="failed", error=error[:500])
    )


def recover(connection: sa.Connection, now: datetime) -> int:
    """After a crash: what was being sent may or may not have arrived, so it is looked up first."""
    result = connection.execute(
        sa.update(outbox).where(OUTBOX_OPEN, outbox.c.state == "sending").values(state="unknown", due_at=now)
    )
    return int(result.rowcount)


def next_due(connection: sa.Connection) -> datetime | None:
    """When the next row is due whose address is not being served; None when nothing waits."""
    due = connection.execute(_WAITING).one()
    return min((moment for moment in due if moment is not None), default=None)


def copies(connection: sa.Connection, action_id: str) -> list[Delivery]:
    """Every copy of an action's card."""
    query = sa.select(deliveries).where(deliveries.c.action_id == action_id)
    return [_delivery(row) for row in connection.execute(query)]


def _delivery(row: Any) -> Delivery:
    return Delivery(**{name: getattr(row, name) for name in Delivery.__dataclass_fields__})


_STATUS_COPIES = sa.select(deliveries).where(STATUS_SHOWN, deliveries.c.run_id == sa.bindparam("run"))
_UNSAID_STATUS = sa.delete(outbox).where(
    STATUS_QUEUED, outbox.c.run_id == sa.bindparam("run"), outbox.c.state == "pending"
)


def status_copies(connection: sa.Connection, run_id: str) -> list[Delivery]:
    """Every status message of a run."""
    return [_delivery(row) for row in connection.execute(_STATUS_COPIES, {"run": run_id})]


def repaint_status(connection: sa.Connection, run_id: str, now: datetime) -> None:
    """The run stands otherwise now: its status messages follow, and one that was not sent yet never is.

    A message that is on its way is looked at again when it arrives.
    """
    connection.execute(_UNSAID_STATUS, {"run": run_id})
    for copy in status_copies(connection, run_id):
        enqueue(
            connection,
            now,
            key=f"repaint/{new_id()}",
            channel=copy.channel,
            address=copy.address,
            kind="status",
            thread_id=copy.thread_id,
            run_id=run_id,
            external_id=copy.external_id,
        )


def thread_of_copy(connection: sa.Connection, channel: str, address: str, external_id: str) -> str | None:
    """The thread that a copy belongs to; None when there is no such copy."""
    query = sa.select(deliveries.c.thread_id).where(
        deliveries.c.channel == channel,
        deliveries.c.address == address,
        deliveries.c.external_id == external_id,
    )
    return connection.execute(query).scalar()


def open_copies(connection: sa.Connection, thread_id: str) -> list[Delivery]:
    """The copies in a thread that can still be acted on: cards that wait, status messages of runs at work."""
    query = sa.select(deliveries).where(
        deliveries.c.thread_id == thread_id,
        sa.or_(
            deliveries.c.shown_state.in_(("pending", "running", "waiting")),
            deliveries.c.shown_state.startswith("pending."),
        ),
    )
    return [_delivery(row) for row in connection.execute(query)]


def due_now(connection: sa.Connection, channel: str, now: datetime) -> None:
    """A channel that was away is back: what waits for it need not wait any longer."""
    connection.execute(
        sa.update(outbox)
        .where(OUTBOX_OPEN, outbox.c.state != "sending", outbox.c.channel == channel, outbox.c.due_at > now)
        .values(due_at=now)
    )


def card_at(connection: sa.Connection, action_id: str, channel: str, address: str) -> str | None:
    """The newest card of an action at an address; None when there is none."""
    query = (
        sa.select(deliveries.c.external_id)
        .where(
            deliveries.c.action_id == action_id,
            deliveries.c.channel == channel,
            deliveries.c.address == address,
            deliveries.c.kind.is_(None),
        )
        .order_by(deliveries.c.delivered_at.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def _at_once(_copy: Delivery) -> None:
    """No repaint is put off."""


def repaint(
    connection: sa.Connection,
    action_id: str,
    state: str,
    now: datetime,
    *,
    put_off: Callable[[Delivery], datetime | None] = _at_once,
) -> int:
    """Queue a repaint of every copy that shows another state than `state`, which is `Action.shown`; how many.

    A card still on its way needs none: it is rendered from the action's state at delivery. `put_off` says
    until when the repaint of a copy waits; None: it does not.
    """
    queued = 0
    for copy in copies(connection, action_id):
        if copy.shown_state == state:
            continue
        queued += enqueue(
            connection,
            now,
            key=f"repaint/{new_id()}",  # not once for ever: a reopened action comes back to a state it had
            channel=copy.channel,
            address=copy.address,
            kind="reminder" if copy.kind == "reminder" else "action",
            thread_id=copy.thread_id,
            person=copy.person,
            action_id=action_id,
            external_id=copy.external_id,
            put_off_until=put_off(copy),
        )
    return queued + _repaint_digests(connection, action_id, now)


def _repaint_digests(connection: sa.Connection, action_id: str, now: datetime) -> int:
    """Queue a repaint of the newest digests that list an action; one that waits already shows this, too."""
    query = (
        sa.select(deliveries)
        .join(digest_items, digest_items.c.digest_id == deliveries.c.digest_id)
        .where(digest_items.c.action_id == action_id)
        .order_by(deliveries.c.delivered_at.desc())
        .limit(_DIGESTS_REPAINTED)
    )
    queued = 0
    for copy in map(_delivery, connection.execute(query).all()):
        if not _is_to_be_repainted(connection, copy):
            queued += _enqueue_digest_repaint(connection, copy, now)
    return queued


@dataclass(frozen=True, slots=True)
class Said:
    """An item of the outbox as the story of its thread tells it: not where it went, but how."""

    channel: str
    person: str | None
    kind: OutboundKind
    message_seq: int | None
    action_id: str | None
    run_id: str | None
    state: str
    tries: int
    error: str | None
    created_at: datetime
    sent_at: datetime | None
    is_repaint: bool


def said_in(connection: sa.Connection, thread_id: str) -> list[Said]:
    """Everything that was or is to be said of a thread, in the order in which it was queued."""
    is_repaint = outbox.c.external_id.is_not(None).label("is_repaint")
    names = [outbox.c[name] for name in Said.__dataclass_fields__ if name != "is_repaint"]
    query = sa.select(*names, is_repaint).where(outbox.c.thread_id == thread_id).order_by(outbox.c.id)
    rows = connection.execute(query).mappings()
    return [Said(**{**row, "is_repaint": bool(row["is_repaint"])}) for row in rows]


def counts(connection: sa.Connection) -> dict[tuple[str, str], int]:
    """How many items of a channel are in a state, by `(channel, state)`; what was sent is not counted."""
    found: dict[tuple[str, str], int] = {}
    for some in (OUTBOX_OPEN, OUTBOX_PUT_OFF, OUTBOX_FAILED):
        query = sa.select(outbox.c.channel, outbox.c.state, sa.func.count()).where(some)
        rows = connection.execute(query.group_by(outbox.c.channel, outbox.c.state))
        found |= {(row[0], row[1]): row[2] for row in rows}
    return found


def oldest_open(connection: sa.Connection) -> dict[str, datetime]:
    """Of each channel with something to say, since when the oldest of it is to be said."""
    oldest = sa.func.min(outbox.c.created_at)
    query = sa.select(outbox.c.channel, oldest).where(OUTBOX_OPEN).group_by(outbox.c.channel)
    return {row[0]: row[1] for row in connection.execute(query)}


def _is_to_be_repainted(connection: sa.Connection, copy: Delivery) -> bool:
    """Whether a repaint of the copy waits, which nobody takes before this transaction ends."""
    query = sa.select(outbox.c.id).where(
        OUTBOX_OPEN,
        outbox.c.channel == copy.channel,
        outbox.c.address == copy.address,
        outbox.c.external_id == copy.external_id,
        outbox.c.state == "pending",
    )
    return connection.execute(query.limit(1).with_for_update()).first() is not None


def _enqueue_digest_repaint(connection: sa.Connection, copy: Delivery, now: datetime) -> bool:
    """Queue a repaint of the copy of a digest."""
    return enqueue(
        connection,
        now,
        key=f"repaint/{new_id()}",
        channel=copy.channel,
        address=copy.address,
        kind="digest",
        thread_id=copy.thread_id,
        person=copy.person,
        digest_id=copy.digest_id,
        external_id=copy.external_id,
    )


def repaint_digest(connection: sa.Connection, digest_id: str, state: str, now: datetime) -> None:
    """Queue a repaint of every copy of a digest that shows another state than `state`."""
    query = sa.select(deliveries).where(deliveries.c.digest_id == digest_id)
    for copy in map(_delivery, connection.execute(query).all()):
        if copy.shown_state != state and not _is_to_be_repainted(connection, copy):
            _enqueue_digest_repaint(connection, copy, now)


def digest_of_copy(connection: sa.Connection, channel: str, address: str, external_id: str) -> str | None:
    """The digest that a copy shows; None when it shows none."""
    query = sa.select(deliveries.c.digest_id).where(
        deliveries.c.channel == channel,
        deliveries.c.address == address,
        deliveries.c.external_id == external_id,
    )
    return connection.execute(query).scalar()


def summary(connection: sa.Connection) -> dict[str, Any]:
    """For status: how many wait, are put off and are unknown, and what failed last."""
    counted = (
        sa.select(outbox.c.state, sa.func.count().label("rows")).where(OUTBOX_OPEN).group_by(outbox.c.state)
    )
    states: dict[str, int] = {row.state: row.rows for row in connection.execute(counted)}
    put_off = connection.execute(sa.select(sa.func.count()).select_from(outbox).where(OUTBOX_PUT_OFF))
    newest = (
        sa.select(outbox.c.channel, outbox.c.address, outbox.c.error)
        .where(OUTBOX_FAILED)
        .order_by(outbox.c.id.desc())
        .limit(20)
    )
    lost = [{"channel": r.channel, "to": r.address, "error": r.error} for r in connection.execute(newest)]
    return {
        "pending": states.get("pending", 0) + states.get("sending", 0),
        "put_off": put_off.scalar_one(),
        "unknown": states.get("unknown", 0),
        "failed": lost,
    }
