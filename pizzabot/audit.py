"""What happened, by whom? An append-only log whose lines are chained by hashes.

Each line's hash covers its own fields and the hash of the line before, so a changed, removed or inserted line
breaks the chain from there on. `verify` walks it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from pizzabot.database.schema import audit, to_microseconds

GENESIS = "0" * 64


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
    """The result of a walk; `broken_at` is the first line that does not fit, None when all do."""

    lines: int
    head: str
    broken_at: int | None


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
    if connection.dialect.name == "postgresql":
        # Two writers must not both take the same line as their predecessor.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(0x9122AB07)))
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


def page(connection: sa.Connection, *, limit: int, before: int | None = None) -> list[AuditLine]:
    """Newest lines first, older than `before`."""
    query = sa.select(audit).order_by(audit.c.seq.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.seq < before)
    return [
        AuditLine(r.seq, r.at, r.actor, r.via, r.event, r.subject, json.loads(r.data))
        for r in connection.execute(query)
    ]


def verify(connection: sa.Connection) -> Verification:
    """Walk the whole chain."""
    previous, lines = GENESIS, 0
    query = sa.select(audit).order_by(audit.c.seq).execution_options(yield_per=1000)
    with connection.execute(query) as rows:
        for row in rows:
            expected = line_hash(previous, row.at, row.actor, row.via, row.event, row.subject, row.data)
            if row.previous_hash != previous or row.hash != expected:
                return Verification(lines, previous, row.seq)
            previous, lines = row.hash, lines + 1
    return Verification(lines, previous, None)
