"""How does a message that was handed over come to its end, as far as somebody at a terminal waits for it?"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pizzabot.cli.client import Api, NoAnswer, Refusal
from pizzabot.cli.failures import Failed, NotRunning
from pizzabot.cli.progress import Told
from pizzabot.cli.sse import Heard, Stream

_READ_AGAIN_SECONDS = 15.0
_OUTAGE_SECONDS = 60.0

Ending = Literal["answered", "waiting", "failed", "stopped", "paused", "going"]


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that was taken. Without `run_id` it is held for the thread's next run, or was answered at
    once: then `message_id` is the answer."""

    thread_id: str
    run_id: str | None
    message_id: str | None
    held: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the work stands. `going` is the only one that is no end; `paused`: everything is stopped."""

    ending: Ending
    text: str = ""
    actions: tuple[Mapping[str, Any], ...] = ()


GOING = Outcome("going")


def outcome_of(thread: Mapping[str, Any], posted: Posted) -> Outcome:
    """Where the posted message's work stands, from the thread as it is now."""
    notices = (m for m in thread["messages"] if m["role"] == "notice" and m["id"] == posted.message_id)
    if posted.run_id is None and (notice := next(notices, None)) is not None:
        return Outcome("answered", notice["text"])
    run_id = posted.run_id or _run_of(thread, posted.message_id)
    run = next((run for run in thread["runs"] if run["id"] == run_id), None)
    pending = tuple(action for action in thread["actions"] if action["state"] == "pending")
    if run is None:
        return Outcome("waiting", actions=pending) if thread["state"] == "waiting" and pending else GOING
    state = run["state"]
    if state == "done":
        return Outcome("answered", _answer(thread, run["id"]))
    if state == "failed":
        error = run.get("error") or {}
        return Outcome("failed", str(error.get("message") or "The run failed."))
    if state == "stopped":
        return Outcome("stopped")
    mine = tuple(action for action in pending if action.get("run_id", run["id"]) == run["id"])
    return Outcome("waiting", actions=mine) if state == "waiting" and mine else GOING


def _run_of(thread: Mapping[str, Any], message_id: str | None) -> str | None:
    messages = [m for m in thread["messages"] if m["role"] == "user" and message_id in (None, m["id"])]
    return messages[-1].get("run_id") if messages else None


def _answer(thread: Mapping[str, Any], run_id: str) -> str:
    said = [m["text"] for m in thread["messages"] if m["role"] == "assistant" and m.get("run_id") == run_id]
    return "\n\n".join(said)


def follow(api: Api, posted: Posted, seconds: float | None, say: Callable[[str], None]) -> Outcome:
    """Tell what happens until the work ends, waits for a decision, or the time is up.

    Events only say that something changed; what counts is the thread, read again after each of them. So a
    broken stream loses nothing and an answer cannot come twice.
    """
    deadline = time.monotonic() + seconds if seconds is not None else None
    told, stream, outage_since = Told(), Stream(api, posted.thread_id), None
    while True:
        changed = _listen(stream, told, deadline, say)
        if changed:
            try:
                outcome = _look(api, posted, told, say)
                outage_since = None
            except (NotRunning, NoAnswer):
                outage_since = outage_since or time.monotonic()
                if time.monotonic() - outage_since > _OUTAGE_SECONDS:
                    raise
                outcome = GOING
            if outcome.ending != "going":
                return outcome
        if deadline is not None and time.monotonic() >= deadline:
            return GOING


def _listen(stream: Stream, told: Told, deadline: float | None, say: Callable[[str], None]) -> bool:
    """Tell activities until something else happened; True when the thread is to be read."""
    patience = _READ_AGAIN_SECONDS
    if deadline is not None:
        patience = min(patience, deadline - time.monotonic())
    event = stream.next(patience)
    changed = event is None or _is_change(event, told, say)
    while (event := stream.next(0)) is not None:
        changed = _is_change(event, told, say) or changed
    return changed


def _is_change(event: Heard, told: Told, say: Callable[[str], None]) -> bool:
    if event.kind != "activity":
        return True
    if (line := told.hear(event.data)) is not None:
        say(line)
    return False


def _look(api: Api, posted: Posted, told: Told, say: Callable[[str], None]) -> Outcome:
    try:
        thread = api.get(f"/api/threads/{posted.thread_id}")
    except Refusal as refusal:
        if refusal.status == 404:
            raise Failed("the thread was deleted meanwhile") from refusal
        raise
    run_id = posted.run_id or _run_of(thread, posted.message_id)
    for line in told.catch_up(row for row in thread["activity"] if row.get("run_id") == run_id):
        say(line)
    outcome = outcome_of(thread, posted)
    if (
        outcome.ending == "going"
        and thread["state"] in ("queued", "stopped")
        and api.get("/api/status")["stopped"]
    ):
        return Outcome("paused")
    return outcome
