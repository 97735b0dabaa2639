"""How does the audit leave the house, so that somebody else can verify it without us? JSON lines.

    {"pizzabot_audit": 1, "begins_after": {"seq", "hash"}, "since", "until", "exported_at", "version"}
    {"seq", "at", "microseconds", "actor", "via", "event", "subject", "data", "previous_hash", "hash"}  each
    {"lines", "head": {"seq", "hash"}}

The last line makes a file that was cut off different from a short one. The algorithm stands in
docs/observability.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from pizzabot import __version__
from pizzabot.audit import Anchor, Link, Verification
from pizzabot.database.schema import to_microseconds
from pizzabot.errors import PizzaBotError

FORMAT = 1
_LONGEST_LINE = 10_000_000


class NoAuditFile(PizzaBotError):
    """The file is no export of an audit, or not a whole one."""

    code = "no_audit_file"


def head(begin: Anchor, since: datetime | None, until: datetime | None, now: datetime) -> str:
    """The first line of the file."""
    return _dumped(
        {
            "pizzabot_audit": FORMAT,
            "begins_after": {"seq": begin.seq, "hash": begin.hash},
            "since": since.isoformat() if since is not None else None,
            "until": until.isoformat() if until is not None else None,
            "exported_at": now.isoformat(),
            "version": __version__,
        }
    )


def line(link: Link) -> str:
    """A line of the audit."""
    return _dumped(
        {
            "seq": link.seq,
            "at": link.at.isoformat(timespec="microseconds"),
            "microseconds": to_microseconds(link.at),
            "actor": link.actor,
            "via": link.via,
            "event": link.event,
            "subject": link.subject,
            "data": link.data,
            "previous_hash": link.previous_hash,
            "hash": link.hash,
        }
    )


def foot(lines: int, seq: int, hash: str) -> str:
    """The last line of the file."""
    return _dumped({"lines": lines, "head": {"seq": seq, "hash": hash}})


def _dumped(row: Mapping[str, Any]) -> str:
    return json.dumps(row) + "\n"


def verify(text: Iterable[str]) -> Verification:
    """Walk an exported file; needs no server and no database.

    Raises:
        NoAuditFile: it is not one, or its end is missing.
    """
    rows = _rows(text)
    begin = next(rows, {})
    try:
        if begin["pizzabot_audit"] != FORMAT:
            raise NoAuditFile("This export has a form that this version does not know; use a newer pizzabot.")
        previous, seq, lines = str(begin["begins_after"]["hash"]), int(begin["begins_after"]["seq"]), 0
        for row in rows:
            if "head" in row:
                told = (row["lines"], row["head"]["seq"], row["head"]["hash"])
                if told != (lines, seq, previous) or next(rows, None) is not None:
                    raise NoAuditFile("The end of the file does not belong to the lines before it.")
                return Verification(lines, previous, None)
            link = _link(row)
            if link.seq <= seq or not link.fits(previous) or to_microseconds(link.at) != row["microseconds"]:
                return Verification(lines, previous, link.seq)
            previous, seq, lines = link.hash, link.seq, lines + 1
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise NoAuditFile("This is not an export of `pizzabot audit --export`, or it was damaged.") from error
    raise NoAuditFile("The end of the file is missing; export it again.")


def _rows(text: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for each in text:
        try:
            row = json.loads(each) if len(each) <= _LONGEST_LINE else None
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise NoAuditFile("This is not an export of `pizzabot audit --export`, or it was damaged.")
        yield row


def _link(row: Mapping[str, Any]) -> Link:
    names = ("actor", "via", "event", "subject", "data", "previous_hash", "hash")
    texts = {name: row[name] for name in names}
    if not all(isinstance(value, str) for value in texts.values()) or not isinstance(row["seq"], int):
        raise ValueError("a field has another type")
    return Link(seq=row["seq"], at=datetime.fromisoformat(row["at"]), **texts)
