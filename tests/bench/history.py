"""A home with years of work in it: a hundred thousand threads, and one long one. Rows, made in bulk."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pizzabot.database.connection import sqlite_engine
from pizzabot.database.migrate import migrate
from pizzabot.database.schema import activity, messages, runs, threads, usage
from pizzabot.home import Home
from pizzabot.ids import new_id

_WORDS = "invoice taxi meeting budget draft review customer travel hotel contract offer report lunch"
_ANSWER = """\
I looked at **{0}** and at *{1}*. Three things stand out:

1. The {0} of last month was higher than the {1}.
2. Nobody answered the {2} yet.
3. See <https://example.com/{0}> for the rest.

| what | amount |
|---|---:|
| {0} | 42.50 |
| {1} | 18.00 |
"""


def fill(home: Home, count: int, long: int) -> str:
    """`count` short threads of Ada and Cay; the id of one with `long` messages."""
    migrate("", home.app_database)
    engine = sqlite_engine(home.app_database)
    chance, start = random.Random(7), datetime(2026, 1, 1, tzinfo=UTC)
    thread_id = new_id()
    with engine.begin() as connection:
        for some in _batches(range(count), 5000):
            _threads(connection, some, start, chance)
        _long(connection, thread_id, long, start + timedelta(days=400), chance)
    engine.dispose()
    return thread_id


def _batches(numbers: range, size: int) -> Iterator[Sequence[int]]:
    return (numbers[at : at + size] for at in range(0, len(numbers), size))


def _threads(
    connection: sa.Connection, numbers: Sequence[int], start: datetime, chance: random.Random
) -> None:
    rows, said = [], []
    for number in numbers:
        at, words = start + timedelta(minutes=5 * number), chance.sample(_WORDS.split(), 3)
        title, answer = f"{words[0].capitalize()} and {words[1]}, number {number}", _ANSWER.format(*words)
        row = _thread(new_id(), title, at, owner="Cay" if number % 10 == 0 else "Ada") | {
            "unread": chance.random() < 0.3,
            "action_count": int(chance.random() < 0.02),
            "last_message": " ".join(answer.split())[:160],
        }
        rows.append(row)
        said.append(_message(row["id"], "title", "", title, at, None))
        said.append(_message(row["id"], "user", row["owner"], f"Please look at the {words[0]}.", at, None))
        said.append(_message(row["id"], "assistant", "Pizza Bot", answer, at, None))
    connection.execute(sa.insert(threads), rows)
    connection.execute(sa.insert(messages), said)


def _long(
    connection: sa.Connection, thread_id: str, count: int, start: datetime, chance: random.Random
) -> None:
    connection.execute(sa.insert(threads), _thread(thread_id, "A long story", start))
    said, done, steps, spent = [], [], [], []
    for number in range(count // 2):
        at, run_id, words = start + timedelta(minutes=number), new_id(), chance.sample(_WORDS.split(), 3)
        said.append(_message(thread_id, "user", "Ada", f"And the {words[0]}?", at, run_id))
        said.append(_message(thread_id, "assistant", "Pizza Bot", _ANSWER.format(*words), at, run_id))
        done.append(_run(run_id, thread_id, at))
        for name in ("openai:mock", "mcp:ledger:lookup", "openai:mock"):
            steps.append(_step(thread_id, run_id, name, at))
        spent.append(_spent(thread_id, run_id, at))
    for table, rows in ((messages, said), (runs, done), (activity, steps), (usage, spent)):
        connection.execute(sa.insert(table), rows)


def _thread(thread_id: str, title: str, at: datetime, *, owner: str = "Ada") -> dict[str, Any]:
    return {
        "id": thread_id,
        "title": title,
        "title_source": "model",
        "owner": owner,
        "channel": "api",
        "address": thread_id,
        "state": "idle",
        "unread": False,
        "action_count": 0,
        "archived": False,
        "last_message": "",
        "last_activity_at": at,
        "created_at": at,
    }


def _message(
    thread_id: str, role: str, author: str, text: str, at: datetime, run_id: str | None
) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "run_id": run_id or "before",
        "role": role,
        "author": author,
        "text": text,
        "channel": None,
        "created_at": at,
    }


def _run(run_id: str, thread_id: str, at: datetime) -> dict[str, Any]:
    return {
        "id": run_id,
        "thread_id": thread_id,
        "person": "Ada",
        "model": "openai:mock",
        "state": "done",
        "attempt": 1,
        "created_at": at,
        "queued_at": at,
        "started_at": at,
        "ended_at": at,
        "used": {},
        "allowance": {},
    }


def _step(thread_id: str, run_id: str, name: str, at: datetime) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "run_id": run_id,
        "kind": "tool" if name.startswith("mcp:") else "model",
        "worker": None,
        "name": name,
        "outcome": "ok",
        "detail": None,
        "milliseconds": 120,
        "at": at,
    }


def _spent(thread_id: str, run_id: str, at: datetime) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "run_id": run_id,
        "person": "Ada",
        "model": "openai:mock",
        "input_tokens": 1200,
        "output_tokens": 80,
        "cost_usd": None,
        "at": at,
    }
