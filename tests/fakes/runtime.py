"""A whole running server for tests: a home on disk, the real runtime in this process, clients with tokens.

One at a time: the workflow engine is a singleton of the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from pizzabot.clock import Clock
from pizzabot.database.schema import actions, reminders
from pizzabot.doors import Doors
from pizzabot.home import Home
from pizzabot.settings import load_settings
from pizzabot.tracing import Tracer
from pizzabot.wiring import Runtime, open_runtime

LEDGER_SERVER = Path(__file__).with_name("ledger_server.py")

PEOPLE = """
[[people]]
name = "Ada"
role = "owner"
timezone = "Europe/Amsterdam"

[[people]]
name = "Bob"
role = "approver"

[[people]]
name = "Cay"
role = "member"

[[people]]
name = "Dan"
role = "member"
"""

BOOKKEEPER = """---
name: bookkeeper
description: Keeps the books.
tools: "mcp:ledger:*"
---
Do what is asked with your tools.
"""


def write_home(
    path: Path,
    model_url: str,
    *,
    people: str = PEOPLE,
    more_toml: str = "",
    skills: Mapping[str, str] | None = None,
    ledger_env: Mapping[str, str] | None = None,
) -> Home:
    """A prepared home: the scripted model, the fake ledger server, a skill that uses it, a free port."""
    home = Home(path)
    home.prepare()
    home.toml.write_text(
        f'model = "openai:mock"\n[models.openai]\nbase_url = "{model_url}"\napi_key = "not-a-real-key"\n'
        f"[web]\nport = 0\n{people}{more_toml}"
    )
    ledger = {
        "command": sys.executable,
        "args": [str(LEDGER_SERVER)],
        "env": {"LEDGER": str(ledger_file(home)), **(ledger_env or {})},
    }
    home.mcp_json.write_text(json.dumps({"mcpServers": {"ledger": ledger}}))
    for name, content in (skills or {"bookkeeper": BOOKKEEPER}).items():
        folder = home.skills / name
        folder.mkdir(exist_ok=True)
        (folder / "SKILL.md").write_text(content)
    return home


def ledger_file(home: Home) -> Path:
    """Where the fake ledger server writes down its calls."""
    return home.path / "ledger.jsonl"


def ledger_calls(home: Home, event: str = "end") -> list[dict[str, Any]]:
    """The calls that reached the ledger server."""
    path = ledger_file(home)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in rows if row["event"] == event]


@dataclass(slots=True)
class Served:
    """A running server and how to talk to it."""

    runtime: Runtime
    url: str
    http: httpx.AsyncClient
    _stack: AsyncExitStack
    _clients: dict[str, httpx.AsyncClient] = field(default_factory=dict)

    @property
    def home(self) -> Home:
        return self.runtime.home

    @property
    def doors(self) -> Doors:
        return self.runtime.doors

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def as_person(self, name: str) -> httpx.AsyncClient:
        """A client with that person's token."""
        if name not in self._clients:
            token = self.runtime.tokens.issue(name)
            self._clients[name] = await self._stack.enter_async_context(client(self.url, token))
        return self._clients[name]

    async def wait(self, thread_id: str, *states: str, seconds: float = 30) -> dict[str, Any]:
        """The thread, as soon as it is in one of these states."""
        found: dict[str, Any] = {}
        async with asyncio.timeout(seconds):
            while found.get("state") not in states:
                found = (await self.http.get(f"/api/threads/{thread_id}")).json()
                await asyncio.sleep(0.02)
        return found

    async def is_late(self, action_id: str, column: str) -> None:
        """Let something of an action be due now: a column of its row, or `due_at` of its reminders."""
        table, key = (reminders, "action_id") if column == "due_at" else (actions, "id")
        due = sa.update(table).where(table.c[key] == action_id).values({column: self.doors.clock.now()})
        await self.doors._database.write(lambda connection: connection.execute(due))
        self.doors._engine.due()


def client(url: str, token: str | None, **headers: str) -> httpx.AsyncClient:
    """A client of the API."""
    sent = headers | ({"Authorization": f"Bearer {token}"} if token else {})
    return httpx.AsyncClient(base_url=url, headers=sent, timeout=30, trust_env=False)


_DBOS = threading.Lock()  # it is one for all of a process


@asynccontextmanager
async def serving(
    home: Home,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    tracer: Tracer | None = None,
) -> AsyncIterator[Served]:
    """Open the runtime on a home; yields when requests are answered. One at a time, as DBOS is one."""
    seen = {"PATH": os.environ["PATH"], **(environ or {})}
    settings = load_settings(home.path, seen)
    async with AsyncExitStack() as opened, AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(
            open_runtime(home, settings, seen, clock=clock, tracer=tracer)
        )
        # Only now: a home that cannot be opened is tried beside one that is.
        if not _DBOS.acquire(blocking=False):
            raise AssertionError("a server of this process is open already")
        opened.callback(_DBOS.release)
        port = runtime.channels["api"].port  # type: ignore[attr-defined]
        url = f"http://127.0.0.1:{port}"
        http = await stack.enter_async_context(client(url, runtime.tokens.owner_token()))
        yield Served(runtime, url, http, stack)
