"""What does Slack cost: from an event to its acknowledgement, to the answer, and many at once?

A server in a process of its own, beside a bare bolt app that asks the same model and keeps nothing.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.runtime import write_home
from tests.fakes.slack import FakeSlack, Message
from tests.fakes.slack.workspace import Json
from tests.lab.kill import Server

USERS = [f"U0PERSON{number:02}" for number in range(20)]
ASKED_EACH = 3
MODEL_SECONDS = 0.05

MODEL = """
import sys
from tests.fakes.model_server import ModelServer

with ModelServer() as model:
    print(model.url, flush=True)
    for line in sys.stdin:
        model.latency_seconds = float(line)
"""


class Model:
    """A scripted model in a process of its own, so that it does not slow down whoever measures."""

    def __enter__(self) -> Model:
        command = [sys.executable, "-c", MODEL]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def wait(self, seconds: float) -> None:
        """Answer so late from now on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()


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


async def measured(folder: Path) -> dict[str, dict[str, float]]:
    """Figures of the bare app and of the product: seconds, and answers per second."""
    with Model() as model:
        return await _both(folder, model)


async def _both(folder: Path, model: Model) -> dict[str, dict[str, float]]:
    found = {}
    for name, app in (("bare", _bare), ("product", _product)):
        async with Watched() as slack, app(slack, folder, model):
            await slack.connected()
            for user in USERS:
                await slack.asked(user, f"warm {user}")
            found[name] = await _figures(slack, model)
    return found


@asynccontextmanager
async def _bare(slack: FakeSlack, folder: Path, model: Model) -> AsyncIterator[None]:
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
async def _product(slack: FakeSlack, folder: Path, model: Model) -> AsyncIterator[None]:
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


async def _figures(slack: Watched, model: Model) -> dict[str, float]:
    await asyncio.sleep(1)
    took = [await slack.answer_seconds(USERS[n % len(USERS)], f"one {n}") for n in range(40)]
    acks = [delivery.seconds for delivery in slack.deliveries[-40:]]
    await asyncio.sleep(5)  # the pace of a conversation is full again
    model.wait(MODEL_SECONDS)
    began = time.perf_counter()
    await asyncio.gather(*(_asks(slack, user) for user in USERS))
    many = time.perf_counter() - began
    await asyncio.sleep(5)
    model.wait(3.0)
    busy = [asyncio.create_task(slack.says(user, "[[say slowly]]")) for user in USERS]
    await asyncio.sleep(0.5)
    before = len(slack.deliveries)
    for number in range(100):
        await slack.says(USERS[number % len(USERS)], f"[[say busy {number}]]")
    await asyncio.gather(*busy)
    model.wait(0.0)
    strained = sorted(delivery.seconds for delivery in slack.deliveries[before:])
    return {
        "ack": statistics.median(acks),
        "answer": statistics.median(took),
        "slow answer": sorted(took)[int(len(took) * 0.95)],
        "per second": len(USERS) * ASKED_EACH / many,
        "busy ack": strained[int(len(strained) * 0.99)],
    }


async def _asks(slack: Watched, user: str) -> None:
    ts = ""
    for number in range(ASKED_EACH):
        ts = await slack.asked(user, f"many {number} {user}", ts or None)


class Watched(FakeSlack):
    """A Slack whose people notice an answer when it is posted, without looking again and again."""

    def __init__(self) -> None:
        super().__init__({user: user.lower() for user in USERS})
        self._awaited: dict[str, asyncio.Event] = {}

    def post(
        self, channel: str, user: str, text: str = "", blocks: Iterable[Json] = (), **more: Any
    ) -> Message:
        message = super().post(channel, user, text, blocks, **more)
        if user == self.bot_user:
            shown = message.text + str(message.blocks)
            for words in [words for words in self._awaited if words in shown]:
                self._awaited.pop(words).set()
        return message

    async def asked(self, user: str, words: str, thread_ts: str | None = None) -> str:
        """Ask for an answer with these words and wait for it; the thread's timestamp."""
        answered = self._awaited[words] = asyncio.Event()
        ts = await self.says(user, f"[[say {words}]]", thread_ts=thread_ts)
        await answered.wait()
        return thread_ts or ts

    async def answer_seconds(self, user: str, words: str) -> float:
        """Seconds from a message to its answer."""
        began = time.perf_counter()
        await self.asked(user, words)
        return time.perf_counter() - began
