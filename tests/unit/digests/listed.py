"""A digest for tests that look at how it reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pizzabot.messages import (
    Action,
    ActionKind,
    ActionState,
    DayUsage,
    Digest,
    DigestItem,
    Failure,
    UnreadThread,
    Upcoming,
    Verdict,
)

NOW = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)
URL = "http://pizza.example"
ARGS = {"vendor": "Northwind", "amount": 12.5, "items": ["A4", "C5"]}
SCHEMA = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "amount": {"type": "number"},
        "items": {"type": "array", "items": {"type": "string"}},
    },
}


def action(number: int, **changes: Any) -> Action:
    """An action that waits."""
    parts: dict[str, Any] = {
        "id": f"a{number}",
        "thread_id": f"t{number}",
        "run_id": f"r{number}",
        "kind": ActionKind.TOOL,
        "tool": "mcp:ledger:pay_invoice",
        "title": f"Pay invoice {number}",
        "args": ARGS,
        "args_schema": SCHEMA,
        "digest": f"d{number}",
        "allowed_decisions": (Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT),
        "approvers": (),
        "state": ActionState.PENDING,
        "created_at": NOW - timedelta(hours=3 * number),
        "requested_by": "Cay",
    }
    return Action(**(parts | changes))


def item(number: int, **changes: Any) -> DigestItem:
    """A listed action, changed since or not."""
    return DigestItem(number, action(number, **changes), f"About {number}", f"d{number}")


def digest(*items: DigestItem, **changes: Any) -> Digest:
    """A digest with something of everything."""
    made = Digest(
        id="digest-1",
        person="Ada",
        thread_id="t0",
        made_at=NOW,
        since=NOW - timedelta(days=1),
        zone="Europe/Amsterdam",
        items=items,
        unread=(UnreadThread("u1", "News", "The summary is ready", NOW - timedelta(hours=1)),),
        failed=(Failure("Weekly", "The model did not answer", NOW - timedelta(minutes=5), "f1"),),
        usage=DayUsage(12_345, 0.42, of_everybody=True),
        coming=(Upcoming("Morning", NOW + timedelta(days=1)),),
    )
    return replace(made, **changes)
