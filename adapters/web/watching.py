"""What changes, as it changes? Server-Sent Events of what the person may see, for the API and for pages.

    event: run
    data: {"kind": "run", "thread_id": "…", "data": {"state": "waiting"}}

Kinds: message, thread, run, action, activity, delivered, servers, triggers, stopped; `reset` says that some
were missed and everything shown has to be read anew. A comment every 15 s keeps the line open and finds out
who left; then, and whenever a session ended, the stream asks whether its reader is still known.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import Response

from pizzabot.doors import Doors
from pizzabot.errors import NotFound
from pizzabot.messages import Event
from pizzabot.people import Person, may_see

from .render import json_bytes

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

HEARTBEAT_SECONDS = 15.0
_RECHECK_SECONDS = 5.0
_REMEMBERED_THREADS = 5000


@dataclass(slots=True)
class Sight:
    """What one person may see; remembered for some seconds, because events come in bursts."""

    doors: Doors
    person: Person
    only: str | None
    known: dict[str, tuple[bool, float]] = field(default_factory=dict)

    async def admits(self, event: Event) -> bool:
        """Whether the person is told."""
        if event.thread_id is None:
            return True
        if self.only is not None and event.thread_id != self.only:
            return False
        if event.data.get("deleted"):
            return self._saw(event)
        now = asyncio.get_running_loop().time()
        allowed, checked = self.known.get(event.thread_id, (False, -_RECHECK_SECONDS))
        if now - checked >= _RECHECK_SECONDS:
            allowed = await self._asks(event.thread_id)
            if len(self.known) >= _REMEMBERED_THREADS:
                self.known.clear()
            self.known[event.thread_id] = (allowed, now)
        return allowed

    async def _asks(self, thread_id: str) -> bool:
        try:
            await self.doors.thread(thread_id, self.person)
        except NotFound:
            return False
        return True

    def _saw(self, event: Event) -> bool:
        """The thread is gone and can no longer be asked for."""
        before, _ = self.known.pop(event.thread_id or "", (False, 0.0))
        return before or may_see(self.person, str(event.data.get("owner", "")), may_decide_here=False)


def frame(event: Event) -> bytes:
    """One event on the wire; the kind stands in the data too, for readers that look only there."""
    data = {"kind": event.kind, "thread_id": event.thread_id, "data": dict(event.data)}
    return b"event: %s\ndata: %s\n\n" % (event.kind.encode(), json_bytes(data))


class EventStream(Response):
    """An answer that ends when the reader leaves, is no longer known, or the server stops."""

    media_type = "text/event-stream"

    def __init__(
        self,
        sight: Sight,
        still_known: Callable[[], Awaitable[bool]],
        closing: asyncio.Event,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._sight, self._still_known, self._closing = sight, still_known, closing
        self._heartbeat_seconds = heartbeat_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [*self.raw_headers, (b"x-accel-buffering", b"no")]
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        # The reader watches from before the first byte: nothing that happens after it is missed.
        with self._sight.doors.events.subscribe(self._sight.person.name) as happening:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"retry: 2000\n\n", "more_body": True})
            await _first(self._tell(happening, send), _left(receive), self._closing.wait())
        await send({"type": "http.response.body", "body": b""})

    async def _tell(self, happening: AsyncIterator[Event], send: Send) -> None:
        # A slow reader holds up only this task; the bus throws away and says `reset`.
        async with aclosing(_with_pauses(happening, self._heartbeat_seconds)) as told:
            async for event in told:
                if event is None or event.kind == "sessions":
                    if not await self._still_known():
                        return
                    await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
                elif await self._sight.admits(event):
                    await send({"type": "http.response.body", "body": frame(event), "more_body": True})


async def _with_pauses(happening: AsyncIterator[Event], seconds: float) -> AsyncGenerator[Event | None, None]:
    """The events, and None after every so many seconds, whatever happened meanwhile."""
    clock = asyncio.get_running_loop().time
    upcoming: asyncio.Future[Event] | None = None
    due = clock() + seconds
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(happening))
            await asyncio.wait([upcoming], timeout=max(0.0, due - clock()))
            if clock() >= due:
                due = clock() + seconds
                yield None
            elif upcoming.done():
                event, upcoming = upcoming.result(), None
                yield event
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(*waits: Awaitable[object]) -> None:
    """Return when one of these ends; the others are broken off."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
