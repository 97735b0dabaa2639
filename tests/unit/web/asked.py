"""What was written and asked before a page is looked at, and what is stored afterwards?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from pizzabot.clock import SystemClock
from pizzabot.database.connection import Database
from pizzabot.database.schema import metadata, sessions
from pizzabot.ids import new_id
from pizzabot.inbox import runs, threads
from pizzabot.messages import Action, Attachment, RunState
from tests.fakes.rows import arrives, waits
from tests.fakes.runtime import Served

CLOCK = SystemClock()


def store_of(served: Served) -> Database:
    return served.doors._database


async def stored(served: Served, *mine: str) -> dict[str, list[str]]:
    """Every row of every table, but rows of threads other than `mine`, when sessions were seen, and when the
    chores of the house were done."""

    def read(connection: sa.Connection) -> dict[str, list[str]]:
        others = [i for i in connection.execute(sa.text("SELECT id FROM threads")).scalars() if i not in mine]
        found = {}
        for table in metadata.sorted_tables:
            if table.name == "chores":
                continue
            columns = [column for column in table.c if column is not sessions.c.seen_at]
            rows = [repr(row) for row in connection.execute(sa.select(*columns))]
            found[table.name] = sorted(r for r in rows if not any(other in r for other in others))
        return found

    return await store_of(served).read(read)


def word() -> str:
    """A word that no other test's thread has."""
    return "w" + new_id().replace("-", "")


def done(connection: sa.Connection, text: str, person: str, answer: str | None = None, **parts: Any) -> str:
    """A thread with one finished run; nobody else works on it."""
    accepted = arrives(connection, CLOCK, text, person=person, **parts)
    for run in runs.claim(connection, 1000, CLOCK.now()):
        if run.id != accepted.run_id:
            runs.release(connection, run)
            continue
        if answer is not None:
            threads.add_message(
                connection,
                accepted.thread_id,
                CLOCK.now(),
                role="assistant",
                author="Pizza Bot",
                text=answer,
                run_id=run.id,
            )
        assert runs.finish(connection, run, RunState.DONE, CLOCK.now(), used={})
    return accepted.thread_id


async def finished(
    served: Served, text: str, person: str = "Ada", answer: str | None = None, **parts: Any
) -> str:
    return await store_of(served).write(lambda c: done(c, text, person, answer, **parts))


async def pending(served: Served, args: Mapping[str, Any] | None = None, **changes: Any) -> Action:
    """An action of Ada that waits."""
    given = {"args": dict(args), "args_schema": {}} if args is not None else {}
    (action,) = await store_of(served).write(lambda c: waits(c, CLOCK, **(given | changes)))
    return action


async def asked(served: Served, person: str = "Ada", **changes: Any) -> tuple[str, str, str]:
    """A thread that waits for a decision and has a file: the ids of thread, action and attachment."""
    name = new_id()
    (served.home.attachments / name).write_bytes(b"x")

    def work(connection: sa.Connection) -> tuple[str, str]:
        (action,) = waits(connection, SystemClock(), person=person, **changes)
        file = Attachment("a.txt", "text/plain", b"x")
        arrives(
            connection,
            SystemClock(),
            "And this file.",
            person=person,
            thread_id=action.thread_id,
            files=[(name, file)],
        )
        return action.thread_id, action.id

    thread_id, action_id = await store_of(served).write(work)
    return thread_id, action_id, name
