"""What do people see while a run works? A hint at once, a status message after a second, edited as it goes.

    run begins -> 0.3 s: "is working…" under the conversation -> 1 s: a status message, queued like everything
    that is said -> edited about once a second, less often the longer it lasts -> repainted at the end

A short run shows nothing but its answer. Edits are shown at best: how a run ended is repainted by the outbox,
and never overtaken by an edit, as both hold the message's lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pizzabot.errors import DeliveryFailed, PizzaBotError
from pizzabot.messages import Event, RunState, RunStatus, Step, Working

from .client import Limited
from .pacing import Pace
from .places import copy_named
from .status import status
from .workspace import VIA, Workspace

logger = logging.getLogger(__name__)

_HINT_SECONDS = 0.3
_STATUS_SECONDS = 0.7  # after the hint
_SHORTEST_SECONDS, _LONGEST_SECONDS = 1.0, 10.0
_TIME_IS_NEWS_SECONDS = 3.0
_AGAIN_SECONDS = 1.0
_STEPS_KEPT = 40
UPDATES = "chat.update"  # the name under which edits are paced, for the whole workspace
_SPARE_UPDATES = 12  # room that is left for cards


@dataclass(slots=True)
class _Watched:
    """A run at work; `done` are its steps since the status message was delivered last, and before."""

    task: asyncio.Task[None]
    done: list[Step] = field(default_factory=list)
    live: list[Step] = field(default_factory=list)
    dirty: asyncio.Event = field(default_factory=asyncio.Event)


class Progress:
    """Shows what runs do."""

    def __init__(self, workspace: Workspace, pace: Pace) -> None:
        self._workspace, self._pace = workspace, pace
        self._watched: dict[str, _Watched] = {}  # by thread
        self._copies: dict[str, str] = {}  # by run: the copy of its status message
        self._locks: dict[str, asyncio.Lock] = {}  # by run, as long as it has a copy

    async def stop(self) -> None:
        tasks = [watched.task for watched in self._watched.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- what happens ------------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """An event of the core."""
        thread_id = event.thread_id
        if event.kind == "run" and thread_id is not None:
            self._end(thread_id)
            if event.data.get("state") == RunState.RUNNING:
                self._begin(thread_id)
        elif event.kind == "activity" and event.data.get("kind") in ("tool", "worker"):
            self._note(event)
        elif event.kind == "thread" and thread_id is not None and event.data.get("deleted"):
            self._end(thread_id)
        elif event.kind == "stopped" and event.data.get("stopped"):
            for each in list(self._watched):
                self._end(each)
        elif event.kind == "reset":  # some events were missed: what still works is found again
            for each in list(self._watched):
                self._end(each)
                self._begin(each)

    def _begin(self, thread_id: str) -> None:
        task = asyncio.create_task(self._watch(thread_id), name="slack progress")
        self._watched[thread_id] = _Watched(task)

    def _end(self, thread_id: str) -> None:
        watched = self._watched.pop(thread_id, None)
        if watched is not None:
            watched.task.cancel()

    def _note(self, event: Event) -> None:
        watched = self._watched.get(event.thread_id or "")
        if watched is None:
            return
        data = event.data
        step = Step(str(data["name"]), data.get("worker"), str(data["outcome"]), data.get("milliseconds"))
        begun = replace(step, outcome="started", milliseconds=None)
        if step.outcome == "started":
            watched.live.append(step)
        else:
            if begun in watched.live:
                watched.live.remove(begun)
            watched.done.append(step)
            del watched.done[:-_STEPS_KEPT]
        watched.dirty.set()

    # -- what is shown -----------------------------------------------------------------------------------

    def steps(self, thread_id: str) -> Sequence[Step]:
        """What goes on right now in a thread."""
        watched = self._watched.get(thread_id)
        return tuple(watched.live) if watched is not None else ()

    def lock(self, run_id: str) -> asyncio.Lock:
        """Held by whoever writes the status message of a run."""
        return self._locks.setdefault(run_id, asyncio.Lock())

    def shown(self, thread_id: str, run: RunStatus, copy: str) -> None:
        """The status message of a run is there, or was repainted, with everything that is done so far."""
        if run.state in (RunState.DONE, RunState.FAILED, RunState.STOPPED):
            self._copies.pop(run.run_id, None)
            self._locks.pop(run.run_id, None)
            return
        self._copies[run.run_id] = copy
        if (watched := self._watched.get(thread_id)) is not None:
            watched.done = list(run.steps)

    def gone(self, copy: str) -> None:
        """A status message was deleted with its thread."""
        for run_id in [run_id for run_id, each in self._copies.items() if each == copy]:
            self._copies.pop(run_id)
            self._locks.pop(run_id, None)

    async def _watch(self, thread_id: str) -> None:
        try:
            await asyncio.sleep(_HINT_SECONDS)
            await self._hint(thread_id)
            await asyncio.sleep(_STATUS_SECONDS)
            await self._free_line(thread_id)
            working = await self._workspace.doors.show_status(thread_id, VIA)
            if working is not None:
                if working.copy is not None:
                    self._copies[working.run_id] = working.copy
                await self._keep_up(thread_id, working)
        except PizzaBotError as error:
            logger.info("a status message was not kept up: %s", error)
        except Exception:
            logger.exception("a status message was not kept up")

    async def _hint(self, thread_id: str) -> None:
        place = await self._workspace.place_of(thread_id)
        if place is None or place.user is None:
            return  # the hint belongs to the agent's own view: direct messages
        work = self._workspace.api.call(
            "assistant.threads.setStatus",
            channel_id=place.channel,
            thread_ts=place.thread_ts,
            status="is working…",
        )
        self._workspace.later(work, "a hint")

    async def _free_line(self, thread_id: str) -> None:
        """Return when nobody's answer waits to be posted there: it goes before what only tells of work."""
        place = await self._workspace.place_of(thread_id)
        while True:
            if place is None or self._workspace.is_line_free(place.channel or ""):
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _keep_up(self, thread_id: str, working: Working) -> None:
        """Edit the status message; ends when the run does, by being cancelled."""
        wait = _SHORTEST_SECONDS
        while True:
            watched = self._watched[thread_id]
            try:
                async with asyncio.timeout(max(wait, _TIME_IS_NEWS_SECONDS)):
                    await watched.dirty.wait()
            except TimeoutError:
                pass  # the time that has passed is news, too
            watched.dirty.clear()
            if self._pace.is_free(UPDATES, _SPARE_UPDATES):
                # Not broken off half-way: what comes next must find it done.
                await asyncio.shield(self._edit(thread_id, working))
            await asyncio.sleep(wait)
            wait = min(_LONGEST_SECONDS, wait * 1.3)

    async def _edit(self, thread_id: str, working: Working) -> None:
        if working.run_id not in self._copies:
            return  # not there yet
        async with self.lock(working.run_id):
            named, watched = self._copies.get(working.run_id), self._watched.get(thread_id)
            if named is None or watched is None:
                return
            now = self._workspace.doors.clock.now()
            run = RunStatus(working.run_id, RunState.RUNNING, working.started_at, None, tuple(watched.done))
            text, blocks = status(run, thread_id, now, live=watched.live)
            copy = copy_named(named)
            self._pace.wait_seconds(UPDATES, "an edit")  # there is room: this takes it
            try:
                await self._workspace.api.call(
                    "chat.update", channel=copy.channel, ts=copy.ts, text=text, blocks=blocks
                )
            except Limited as error:
                self._pace.pause(UPDATES, error.retry_after_seconds or 1.0)
            except DeliveryFailed as error:
                logger.info("a status message was not edited: %s", error)
