"""The rows that tests of the stores begin with: people, a message that arrived, an action that was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from pizzabot.approvals import store
from pizzabot.approvals.store import Question
from pizzabot.clock import Clock
from pizzabot.ids import new_id
from pizzabot.inbox import intake, runs
from pizzabot.messages import Accepted, Action, ActionKind, Attachment, InboundMessage, RunState, Verdict
from pizzabot.people import Person

ADA = Person("Ada", "owner")
BOB = Person("Bob", "approver")
CAY = Person("Cay", "member")
DAN = Person("Dan", "member")

ALLOWANCE = {"run_seconds": 600, "model_calls": 50, "tool_calls": 50}
PAY_SCHEMA = {
    "type": "object",
    "properties": {
        "invoice": {"type": "string", "minLength": 1},
        "amount": {"type": "number", "maximum": 1000},
        "copies": {"type": "integer"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"a/b": {"type": "integer"}}}},
    },
    "required": ["invoice", "amount"],
    "additionalProperties": False,
}


def arrives(
    connection: sa.Connection,
    clock: Clock,
    text: str = "Please look at this.",
    *,
    person: str = "Ada",
    channel: str = "web",
    files: Sequence[tuple[str, Attachment]] = (),
    **parts: Any,
) -> Accepted:
    """A checked message that is taken in."""
    attached = [attachment for _, attachment in files]
    message = InboundMessage(channel, person, text, attachments=attached, **parts)
    intake.check(message)
    return intake.accept(connection, message, files, clock.now(), model="demo:demo", allowance=ALLOWANCE)


def starts(connection: sa.Connection, clock: Clock) -> runs.Run:
    """The oldest queued run, claimed."""
    (run,) = runs.claim(connection, 1, clock.now())
    return run


def answers(connection: sa.Connection, clock: Clock) -> None:
    """The oldest queued run runs to its end."""
    assert runs.finish(connection, starts(connection, clock), RunState.DONE, clock.now(), used={})


def question(**changes: Any) -> Question:
    """May this invoice be paid?"""
    parts: dict[str, Any] = {
        "id": new_id(),
        "kind": ActionKind.TOOL,
        "tool": "mcp:ledger:pay",
        "title": "Pay an invoice",
        "args": {"invoice": "INV-7", "amount": 12.5},
        "args_schema": PAY_SCHEMA,
        "allowed_decisions": (Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT),
        "approvers": (),
    }
    return Question(**(parts | changes))


def waits(
    connection: sa.Connection,
    clock: Clock,
    *,
    person: str = "Ada",
    asks: int = 1,
    place: tuple[str, str | None] = ("web", None),
    **changes: Any,
) -> list[Action]:
    """A new thread, at a place of a channel, whose run waits for decisions: its actions."""
    accepted = arrives(connection, clock, person=person, channel=place[0], address=place[1])
    run = next(r for r in runs.claim(connection, 1000, clock.now()) if r.id == accepted.run_id)
    made = [
        store.ask(
            connection,
            question(**changes),
            clock.now(),
            thread_id=run.thread_id,
            run_id=run.id,
            requested_by=run.person,
        )[0]
        for _ in range(asks)
    ]
    assert runs.pause(connection, run, clock.now(), used={}, decided=False)
    return made
