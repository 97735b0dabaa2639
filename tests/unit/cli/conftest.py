"""A server that answers from a table, in place of a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pizzabot.cli.client import Api, httpx
from pizzabot.cli.place import Server
from pizzabot.home import Home

Answers = Callable[[httpx.Request], Any]


def thread_row(number: int, **changes: Any) -> dict[str, Any]:
    """A thread as the API lists it."""
    row = {
        "id": f"00000000-0000-7000-8000-{number:012x}",
        "title": f"Thread {number}",
        "unread": False,
        "action_count": 0,
        "state": "idle",
        "channel": "terminal",
        "last_message": "",
        "last_activity_at": "2026-03-09T12:00:00+00:00",
        "created_at": "2026-03-09T12:00:00+00:00",
    }
    return row | changes


def action_row(number: int, **changes: Any) -> dict[str, Any]:
    """An action as the API shows it."""
    row = {
        "id": f"00000000-0000-7000-9000-{number:012x}",
        "thread_id": thread_row(1)["id"],
        "run_id": "run-1",
        "kind": "tool",
        "tool": "mcp:ledger:submit",
        "title": "Run submit?",
        "args": {"amount": 3},
        "args_schema": {"properties": {"amount": {"type": "number"}}},
        "allowed_decisions": ["approve", "edit", "reject"],
        "digest": "d" * 64,
        "state": "pending",
        "created_at": "2026-03-09T12:00:00+00:00",
    }
    return row | changes


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[[Answers], Api]]:
    """Makes an Api whose server is a function from request to JSON, or to a whole response."""
    clients: list[httpx.Client] = []

    def make(answers: Answers) -> Api:
        def answer(request: httpx.Request) -> httpx.Response:
            found = answers(request)
            return (
                found if isinstance(found, httpx.Response) else httpx.Response(200, content=json.dumps(found))
            )

        client = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://127.0.0.1")
        clients.append(client)
        return Api(Server(Home(tmp_path), "http://127.0.0.1", "secret"), client)

    yield make
    for client in clients:
        client.close()
