"""What does Slack cost: from an event to its acknowledgement, to the answer, and many at once?

A server in a process of its own, beside a bare bolt app that asks the same model and keeps nothing.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import write_home
from tests.fakes.slack import FakeSlack
from tests.lab.kill import Server

USERS = [f"U0PERSON{number:02}" for number in range(20)]
ASKED_EACH = 3
MODEL_SECONDS = 0.05

BARE = """
import asyncio, sys
import httpx
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

url, bot_token, app_token, model = sys.argv[1:]

async def main():
    app = AsyncApp(client=AsyncWebClient(token=bot_token, base_url=url))
    http = httpx.AsyncClient(base_url=model, timeout=60, trust_env=False)

    @app.event("message")
    async def hear(event, client):
        if event.get("bot_id"):
            return
        body = {"model": "mock", "messages": [{"role": "user", "content": event["text"]}]}
        said = (await http.post("/chat/completions", json=body)).json()["choices"][0]["message"]["content"]
        await client.chat_postMessage(
            channel=event["channel"], thread_ts=event.get("thread_ts") or event["ts"], text=said
        )

    handler = AsyncSocketModeHandler(app, app_token, web_client=AsyncWebClient(base_url=url))
    await handler.start_async()

asyncio.run(main())
"""


async def measured(folder: Path, model: ModelServer) -> dict[str, dict[str, float]]:
    """Figures of the bare app and of the product: seconds, and answers per second."""
    found = {}
    for name, app in (("bare", _bare), ("product", _product)):
        async with FakeSlack({user: user.lower() for user in USERS}) as slack, app(slack, folder, model):
            await slack.connected(60)
            for user in USERS:
                await _answered(slack, user, "[[say warm]]")
            found[name] = await _figures(slack, model)
    return found


@asynccontextmanager
async def _bare(slack: FakeSlack, folder: Path, model: ModelServer) -> AsyncIterator[None]:
    script = folder / "bare.py"
    script.write_text(BARE)
    tokens = [slack.url, slack.bot_token, slack.app_token, model.url]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), *tokens, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _product(slack: FakeSlack, folder: Path, model: ModelServer) -> AsyncIterator[None]:
    people = "".join(
        f'\n[[people]]\nname = "Person {n}"\nrole = "{"member" if n else "owner"}"\nslack = "{user}"\n'
        for n, user in enumerate(USERS)
    )
    tokens = f'bot_token = "{slack.bot_token}"\napp_token = "{slack.app_token}"\napi_url = "{slack.url}"\n'
    home = write_home(folder / "slack", model.url, people=people, more_toml=f"\n[slack]\n{tokens}")
    server = Server(home.path)
    server.start()
    try:
        yield
    finally:
        await asyncio.to_thread(server.stop)


async def _figures(slack: FakeSlack, model: ModelServer) -> dict[str, float]:
    await asyncio.sleep(1)
    took = [await _answered(slack, USERS[n % len(USERS)], f"[[say one {n}]]") for n in range(40)]
    acks = [delivery.seconds for delivery in slack.deliveries[-40:]]
    await asyncio.sleep(5)  # the pace of a conversation is full again
    model.latency_seconds = MODEL_SECONDS
    began = time.perf_counter()
    await asyncio.gather(*(_asks(slack, user) for user in USERS))
    many = time.perf_counter() - began
    await asyncio.sleep(5)
    model.latency_seconds = 3.0
    busy = [asyncio.create_task(slack.says(user, "[[say slowly]]")) for user in USERS]
    await asyncio.sleep(0.5)
    before = len(slack.deliveries)
    for number in range(100):
        await slack.says(USERS[number % len(USERS)], f"[[say busy {number}]]")
    await asyncio.gather(*busy)
    model.latency_seconds = 0.0
    strained = sorted(delivery.seconds for delivery in slack.deliveries[before:])
    return {
        "ack": statistics.median(acks),
        "answer": statistics.median(took),
        "slow answer": sorted(took)[int(len(took) * 0.95)],
        "per second": len(USERS) * ASKED_EACH / many,
        "busy ack": strained[int(len(strained) * 0.99)],
    }


async def _asks(slack: FakeSlack, user: str) -> None:
    ts = ""
    for number in range(ASKED_EACH):
        ts = await _ask(slack, user, f"[[say many {number} {user}]]", ts or None)


async def _answered(slack: FakeSlack, user: str, text: str) -> float:
    """Seconds from a message to its answer."""
    began = time.perf_counter()
    await _ask(slack, user, text, None)
    return time.perf_counter() - began


async def _ask(slack: FakeSlack, user: str, text: str, thread_ts: str | None) -> str:
    """Ask, wait for the answer; the thread's timestamp."""
    place, answer = slack.dm(user), text.removeprefix("[[say ").removesuffix("]]")
    ts = thread_ts or await slack.says(user, text)
    if thread_ts is not None:
        await slack.says(user, text, thread_ts=thread_ts)
    while True:
        said = [slack.words(m) for m in slack.messages(place, ts) if m.user == slack.bot_user]
        if any(answer in words for words in said):
            return ts
        await asyncio.sleep(0.002)
