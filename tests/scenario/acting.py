"""What a person does in a scenario, over the API: ask, wait, decide."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import Served

Json = dict[str, Any]
ENDED = ("idle", "failed", "stopped")
PAUSED = ("waiting", *ENDED)


def call(tool: str, skill: str = "bookkeeper", **args: Any) -> str:
    """The words that make the model call one tool of a skill."""
    return f"[[call {skill} {tool} {json.dumps(args)}]]"


async def ask(served: Served, text: str) -> str:
    """A new thread; its id."""
    response = await served.http.post("/api/threads", json={"text": text, "title": "A scenario"})
    assert response.status_code == 201, response.text
    return str(response.json()["thread_id"])


async def ask_until(served: Served, text: str, *states: str) -> Json:
    """A new thread, as soon as it is in one of these states."""
    return await served.wait(await ask(served, text), *states)


def pending(thread: Json) -> list[Json]:
    """The actions of a thread that wait."""
    return [action for action in thread["actions"] if action["state"] == "pending"]


async def decide(served: Served, action: Json, decision: str, *, status: int = 200, **more: Any) -> Json:
    """Say something to an action, having seen what it shows."""
    body = {"decision": decision, "digest": action["digest"], **more}
    response = await served.http.post(f"/api/actions/{action['id']}/decision", json=body)
    assert response.status_code == status, response.text
    found: Json = response.json()
    return found


async def settled(served: Served, thread_id: str, *states: str) -> Json:
    """The thread, once the decision just made has been carried out: it left `waiting` and came to rest."""
    return await served.wait(thread_id, *(states or ENDED))


async def connected(served: Served, server: str = "ledger") -> None:
    """Wait until an MCP server is there (again)."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            rows = (await served.http.get("/api/mcp")).json()["servers"]
            if next(row["state"] for row in rows if row["name"] == server) == "connected":
                return
            await asyncio.sleep(0.05)


async def until(found: Callable[[], object], seconds: float = 30) -> None:
    """Wait until something outside the server is so."""
    async with asyncio.timeout(seconds):
        while not found():  # noqa: ASYNC110 - a file of another process has no event
            await asyncio.sleep(0.02)


async def answered(served: Served, thread_id: str, count: int) -> Json:
    """The thread, once it is at rest with so many answers."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(answers(thread := await served.wait(thread_id, "idle"))) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return thread


def answers(thread: Json) -> list[str]:
    """What the agent answered."""
    return [message["text"] for message in thread["messages"] if message["role"] == "assistant"]


def notices(thread: Json) -> list[str]:
    """What the product itself said."""
    return [message["text"] for message in thread["messages"] if message["role"] == "notice"]
