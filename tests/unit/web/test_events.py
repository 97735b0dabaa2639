"""Does a live view learn of every change it may see, and of no other?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from pizzabot.adapters.web import watching
from pizzabot.adapters.web.watching import EventStream, Sight

from pizzabot.events import Events
from pizzabot.messages import Event
from pizzabot.people import Person
from tests.fakes.patience import PATIENCE_SECONDS
from tests.fakes.runtime import Served

pytestmark = pytest.mark.asyncio(loop_scope="package")


class Watcher:
    """What one reader of the stream has heard."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def until(self, kind: str, thread_id: str | None = None) -> list[dict[str, Any]]:
        """The events up to the first one of that kind, of that thread when one is named."""
        heard: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in self._lines:
                if line.startswith("data: "):
                    heard.append(json.loads(line[6:]))
                    if heard[-1]["kind"] == kind and thread_id in (None, heard[-1]["thread_id"]):
                        return heard
        raise AssertionError(f"the stream ended before {kind}: {heard}")

    async def end(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for _ in self._lines:
                pass


@asynccontextmanager
async def watching_as(http: httpx.AsyncClient, **query: str) -> AsyncIterator[Watcher]:
    async with http.stream("GET", "/api/events", params=query) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        lines = response.aiter_lines()
        assert await anext(lines) == "retry: 2000"
        yield Watcher(lines)


async def start(http: httpx.AsyncClient, text: str = "[[say x]]") -> str:
    return str((await http.post("/api/threads", json={"text": text})).json()["thread_id"])


async def test_the_life_of_a_thread_is_told(served: Served) -> None:
    async with watching_as(served.http) as watcher:
        thread_id = await start(served.http)
        heard = await watcher.until("delivered", thread_id)
    told = [event["kind"] for event in heard if event["thread_id"] == thread_id]
    assert told[0] == "message"
    assert {"message", "run", "activity", "delivered"} <= set(told)


async def test_nobody_hears_of_others_threads(served: Served) -> None:
    cay, dan = await served.as_person("Cay"), await served.as_person("Dan")
    async with watching_as(dan) as dans, watching_as(cay) as cays, watching_as(served.http) as owners:
        foreign = await start(cay)
        await cays.until("delivered", foreign)
        await owners.until("delivered", foreign)
        own = await start(dan)
        heard = await dans.until("delivered")
        assert {event["thread_id"] for event in heard} == {own}
        assert foreign != own


async def test_one_thread_only(served: Served) -> None:
    thread_id = await start(served.http)
    await served.wait(thread_id, "idle")
    async with watching_as(served.http, thread=thread_id) as watcher:
        other = await start(served.http)
        await served.wait(other, "idle")
        await served.http.patch(f"/api/threads/{thread_id}", json={"unread": False})
        heard = await watcher.until("thread")
    assert {event["thread_id"] for event in heard} == {thread_id}


async def test_a_deletion_reaches_those_who_could_see(served: Served) -> None:
    cay, dan = await served.as_person("Cay"), await served.as_person("Dan")
    thread_id = await start(cay)
    await served.wait(thread_id, "idle")
    await asyncio.sleep(0.5)  # its title is made after the answer, and would be told too
    async with watching_as(cay) as cays, watching_as(dan) as dans:
        await cay.delete(f"/api/threads/{thread_id}")
        heard = await cays.until("thread")
        assert heard[-1] == {
            "kind": "thread",
            "thread_id": thread_id,
            "data": {"deleted": True, "owner": "Cay", "copies": []},
        }
        await start(dan)
        assert thread_id not in [event["thread_id"] for event in await dans.until("delivered")]


async def test_what_concerns_everybody_reaches_everybody(served: Served) -> None:
    cay = await served.as_person("Cay")
    async with watching_as(cay, thread=await start(cay)) as watcher:
        await served.http.post("/api/stop")
        (*_, event) = await watcher.until("stopped")
        assert event["data"] == {"stopped": True, "by": "Ada"}
        await served.http.post("/api/resume")


# -- the stream itself, without a network -------------------------------------------------------------------


class Doors:
    """As much of the doors as a stream uses."""

    def __init__(self) -> None:
        self.events = Events()
        self.visible = {"seen"}
        self.asked = 0

    async def thread(self, thread_id: str, person: Person) -> None:
        from pizzabot.errors import NotFound

        self.asked += 1
        if thread_id not in self.visible:
            raise NotFound("There is no such thread.")


class Reader:
    """The other end of a stream; `slow` stops taking what is sent."""

    def __init__(self, doors: Doors, **options: Any) -> None:
        self.sent: list[bytes] = []
        self.taking = asyncio.Event()
        self.taking.set()
        self.closing, self.gone, self.known = asyncio.Event(), asyncio.Event(), True
        sight = Sight(doors, Person("Cay", "member"), None)

        async def still_known() -> bool:
            return self.known

        stream = EventStream(sight, still_known, self.closing, **options)
        scope = {"type": "http", "method": "GET"}
        self.task = asyncio.create_task(stream(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        await self.taking.wait()
        self.sent.append(message.get("body", b""))

    def kinds(self) -> list[str]:
        return [line[7:].decode() for line in b"".join(self.sent).split(b"\n") if line.startswith(b"event: ")]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                if condition():
                    return
                await asyncio.sleep(0.01)

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


async def test_a_reader_that_is_too_slow_is_told_to_read_everything_anew() -> None:
    doors = Doors()
    reader = Reader(doors)
    await reader.settle()
    reader.taking.clear()
    for _ in range(5000):
        doors.events.publish(Event("run", "seen"))  # returns at once, whoever reads
    await reader.settle()
    reader.taking.set()
    await reader.until(lambda: "reset" in reader.kinds())
    assert len(reader.kinds()) < 2000
    reader.gone.set()
    await asyncio.wait_for(reader.task, 5)


async def test_a_stream_ends_when_the_server_closes_even_if_nobody_reads() -> None:
    doors = Doors()
    reader = Reader(doors)
    await reader.settle()
    doors.events.publish(Event("run", "seen"))
    await reader.settle()
    reader.closing.set()
    await asyncio.wait_for(reader.task, 5)
    assert reader.sent[-1] == b""


async def test_silence_is_broken_by_comments_and_a_void_token_ends_it() -> None:
    reader = Reader(Doors(), heartbeat_seconds=0.02)
    await reader.until(lambda: reader.sent.count(b": \n\n") >= 3)
    reader.known = False
    await asyncio.wait_for(reader.task, 5)


async def test_a_burst_asks_once_and_a_right_that_is_lost_counts_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors = Doors()
    reader = Reader(doors)
    await reader.settle()
    for _ in range(20):
        doors.events.publish(Event("activity", "seen"))
        doors.events.publish(Event("activity", "hidden"))
    await reader.settle()
    await asyncio.sleep(0.05)
    assert (len(reader.kinds()), doors.asked) == (20, 2)
    monkeypatch.setattr(watching, "_RECHECK_SECONDS", 0.0)
    doors.visible.clear()
    doors.events.publish(Event("activity", "seen"))
    await reader.settle()
    assert len(reader.kinds()) == 20
    reader.gone.set()
    await asyncio.wait_for(reader.task, 5)
