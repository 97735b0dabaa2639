"""Do the queries of every minute use an index, also when the history is long?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from pizzabot.approvals import raises, reminders
from pizzabot.approvals import store as actions
from pizzabot.database.connection import SqliteDatabase
from pizzabot.inbox import pages, runs
from pizzabot.outbox import store as outbox
from pizzabot.people import Person
from pizzabot.triggers import store as firings
from tests.fakes.clock import FakeClock
from tests.fakes.rows import arrives

ADA = Person("Ada", "owner")
NOW = FakeClock().now()


def _claims_of_many(connection: sa.Connection) -> None:
    """More is queued than may start, so the people take turns."""
    for person in ("Ada", "Ada", "Bob"):
        arrives(connection, FakeClock(), person=person)
    runs.claim(connection, 1, NOW)


def _taking_what_was_put_off(connection: sa.Connection) -> None:
    outbox.enqueue(
        connection,
        NOW,
        key="morning",
        channel="email",
        address="ada@example.com",
        kind="notice",
        thread_id=arrives(connection, FakeClock()).thread_id,
        message_seq=1,
        put_off_until=NOW,
    )
    outbox.take(connection, NOW, limit=5)


QUERIES: dict[str, Callable[[sa.Connection], Any]] = {
    "the next item of the outbox": outbox.next_due,
    "taking items of the outbox": lambda c: outbox.take(c, NOW, limit=5),
    "taking what was put off": _taking_what_was_put_off,
    "the outbox for status": outbox.summary,
    "the outbox after a crash": lambda c: outbox.recover(c, NOW),
    "claiming queued runs": lambda c: runs.claim(c, 5, NOW),
    "claiming some of many queued runs": _claims_of_many,
    "runs after a crash": runs.recover,
    "runs at work": runs.running,
    "actions that expire": lambda c: actions.expiring(c, NOW, limit=5),
    "actions that are escalated": lambda c: actions.escalating(c, NOW, limit=5),
    "when an action is next due": actions.next_due,
    "reminders that are due": lambda c: reminders.due(c, NOW, limit=5),
    "when a reminder is next due": reminders.next_due,
    "what asks for more of a day": raises.asked,
    "firings that stand otherwise than their runs": firings.behind,
    "firings that can start": firings.startable,
    "the first page": lambda c: pages.page(c, ADA, "all", limit=20, cursor=None, words=""),
    "the unread page": lambda c: pages.page(c, ADA, "unread", limit=20, cursor=None, words=""),
    "the action page": lambda c: pages.page(c, ADA, "action", limit=20, cursor=None, words=""),
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
async def test_no_table_is_scanned(
    sqlite_database: SqliteDatabase, query: Callable[[sa.Connection], Any]
) -> None:
    statements: list[tuple[str, Any]] = []

    def keep(_connection: object, _cursor: object, statement: str, parameters: Any, *_rest: object) -> None:
        if statement.lstrip().startswith(("SELECT", "UPDATE")):
            statements.append((statement, parameters))

    def explained(connection: sa.Connection) -> list[str]:
        sa.event.listen(sa.Engine, "before_cursor_execute", keep)
        try:
            query(connection)
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", keep)
        return [
            str(row[-1])
            for statement, parameters in statements
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]

    steps = await sqlite_database.write(explained)
    assert steps != []
    scans = [step for step in steps if step.startswith("SCAN") and "USING" not in step]
    assert [
        scan for scan in scans if scan.split()[1] in ("outbox", "runs", "threads", "actions", "reminders")
    ] == []
