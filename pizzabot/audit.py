"""What happened, by whom? An append-only log whose lines are chained by hashes.

Each line's hash covers its own fields and the hash of the line before, so a changed, removed or inserted line
breaks the chain from there on. `verify` walks it. Where old lines were pruned, the chain begins after an
anchor: the hash of the last line that is gone, which a line of the chain itself attests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

import sqlalchemy as sa

from pizzabot.database.dialects import hold
from pizzabot.database.schema import audit, audit_anchors, to_microseconds

GENESIS = "0" * 64
PRUNED = "audit.pruned"


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line as it is read back."""

    seq: int
    at: datetime
    actor: str
    via: str
    event: str
    subject: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a walk; `broken_at` is the first line that does not fit, None when all do.

    `pruned` lines are gone from before the first one.
    """

    lines: int
    head: str
    broken_at: int | None
    pruned: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """A line as it is chained; `data` is the text that was hashed."""

    seq: int
    at: datetime
    actor: str
    via: str
    event: str
    subject: str
    data: str
    previous_hash: str
    hash: str

    def fits(self, previous: str) -> bool:
        """Whether it follows the line with that hash, unchanged."""
        fields = (self.at, self.actor, self.via, self.event, self.subject, self.data)
        return self.previous_hash == previous and self.hash == line_hash(previous, *fields)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last line that was pruned, and how many were in all."""

    seq: int = 0
    hash: str = GENESIS
    lines: int = 0


def canonical_json(value: Any) -> str:
    """One text for equal values: sorted keys, no spaces, Unicode as it stands."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def line_hash(previous: str, at: datetime, actor: str, via: str, event: str, subject: str, data: str) -> str:
    """The hash of one line: SHA-256 over the canonical JSON list of its fields."""
    fields = canonical_json([previous, to_microseconds(at), actor, via, event, subject, data])
    return hashlib.sha256(fields.encode("utf-8", "surrogatepass")).hexdigest()


# Built once: building a statement costs four times as much as running it.
_NEWEST = sa.select(audit.c.hash).order_by(audit.c.seq.desc()).limit(1)
_INSERT = sa.insert(audit)
_LOCK = 0x9122AB07


def append(
    connection: sa.Connection,
    at: datetime,
    *,
    actor: str,
    via: str,
    event: str,
    subject: str,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Add a line inside the caller's transaction: the deed and its record are stored together."""
    hold(connection, _LOCK)  # two writers must not both take the same line as their predecessor
    previous = connection.execute(_NEWEST).scalar() or GENESIS
    text = canonical_json(data or {})
    connection.execute(
        _INSERT,
        {
            "at": at,
            "actor": actor,
            "via": via,
            "event": event,
            "subject": subject,
            "data": text,
            "previous_hash": previous,
            "hash": line_hash(previous, at, actor, via, event, subject, text),
        },
    )


def page(
    connection: sa.Connection,
    *,
    limit: int,
    before: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[AuditLine]:
    """Newest lines first, older than the number `before`, of the time from `since` to before `until`."""
    query = sa.select(audit).order_by(audit.c.seq.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.seq < before)
    if since is not None:
        query = query.where(audit.c.at >= since)
    if until is not None:
        query = query.where(audit.c.at < until)
    return [
        AuditLine(r.seq, r.at, r.actor, r.via, r.event, r.subject, json.loads(r.data))
        for r in connection.execute(query)
    ]


_LINKS = [audit.c[name] for name in Link.__dataclass_fields__]


def links(connection: sa.Connection, *, after: int, upto: int, limit: int) -> list[Link]:
    """The next lines of the chain after a number, oldest first."""
    query = sa.select(*_LINKS).where(audit.c.seq > after, audit.c.seq <= upto).order_by(audit.c.seq)
    return [Link(*row) for row in connection.execute(query.limit(limit))]


def span(
    connection: sa.Connection, since: datetime | None, until: datetime | None
) -> tuple[int, int, Anchor] | None:
    """The first and the last number of a time, and the line before them; None when there is no line.

    Everything in between belongs to it, also what a clock that was set wrote down out of order.
    """
    numbers = sa.select(sa.func.min(audit.c.seq), sa.func.max(audit.c.seq))
    if since is not None:
        numbers = numbers.where(audit.c.at >= since)
    if until is not None:
        numbers = numbers.where(audit.c.at < until)
    first, last = connection.execute(numbers).one()
    if first is None:
        return None
    before = (
        sa.select(audit.c.seq, audit.c.hash).where(audit.c.seq < first).order_by(audit.c.seq.desc()).limit(1)
    )
    row = connection.execute(before).first()
    return first, last, Anchor(row.seq, row.hash) if row is not None else anchor(connection)


def anchor(connection: sa.Connection) -> Anchor:
    """What the chain begins after."""
    query = sa.select(audit_anchors).order_by(audit_anchors.c.seq.desc()).limit(1)
    row = connection.execute(query).first()
    return Anchor(row.seq, row.hash, row.lines) if row is not None else Anchor()


def verify(connection: sa.Connection) -> Verification:
    """Walk the whole chain."""
    begin = anchor(connection)
    previous, lines, first, is_attested = begin.hash, 0, begin.seq, begin.seq == 0
    query = sa.select(*_LINKS).order_by(audit.c.seq).execution_options(yield_per=1000)
    with connection.execute(query) as rows:
        for row in rows:
            link = Link(*row)
            if link.seq <= begin.seq or not link.fits(previous):
                return Verification(lines, previous, link.seq, begin.lines)
            is_attested = is_attested or _attests(link, begin)
            first = first if lines else link.seq
            previous, lines = link.hash, lines + 1
    return Verification(lines, previous, None if is_attested else first, begin.lines)


def _attests(link: Link, begin: Anchor) -> bool:
    return (
        link.event == PRUNED
        and link.subject == str(begin.seq)
        and json.loads(link.data) == {"hash": begin.hash, "lines": begin.lines}
    )


def prunable(connection: sa.Connection, before: datetime) -> tuple[int, int]:
    """How many lines from the beginning are older than that, and about how many bytes they take."""
    kept = sa.select(sa.func.min(audit.c.seq)).where(audit.c.at >= before).scalar_subquery()
    texts = (audit.c.data, audit.c.actor, audit.c.via, audit.c.event, audit.c.subject)
    size = sum((sa.func.length(text) for text in texts), start=sa.literal(150))
    query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(size), 0))
    row = connection.execute(query.where(sa.or_(kept.is_(None), audit.c.seq < kept))).one()
    return int(row[0]), int(row[1])


def prune(connection: sa.Connection, before: datetime, now: datetime, *, limit: int) -> int:
    """Remove at most `limit` lines from the beginning that are older than that; how many.

    A line that says so is added first, so the chain never ends with what is gone.
    """
    oldest = sa.select(audit.c.seq, audit.c.at, audit.c.hash).order_by(audit.c.seq).limit(limit)
    rows = list(takewhile(lambda row: row.at < before, connection.execute(oldest)))
    if not rows:
        return 0
    gone = Anchor(rows[-1].seq, rows[-1].hash, anchor(connection).lines + len(rows))
    append(
        connection,
        now,
        actor="Pizza Bot",
        via="retention",
        event=PRUNED,
        subject=str(gone.seq),
        data={"hash": gone.hash, "lines": gone.lines},
    )
    connection.execute(sa.delete(audit).where(audit.c.seq <= gone.seq))
    connection.execute(sa.delete(audit_anchors))
    values = {"seq": gone.seq, "hash": gone.hash, "lines": gone.lines, "at": now}
    connection.execute(sa.insert(audit_anchors), values)
    return len(rows)
