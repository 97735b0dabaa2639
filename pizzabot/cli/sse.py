"""What does a stream of server-sent events say, and what when it breaks?"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pizzabot.cli.client import Api, httpx

_SILENCE_SECONDS = 60.0
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.2, 3.0


@dataclass(frozen=True, slots=True)
class Heard:
    """An event. `opened` and `broken` are ours: after `opened` nothing more is missed, so read everything."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


def parsed(lines: Iterable[str]) -> Iterator[Heard]:
    """The events of a stream; comments, other fields and what is not ours are skipped."""
    kind, data = "", list[str]()
    for line in lines:
        field_name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field_name == "event":
            kind = value
        elif field_name == "data":
            data.append(value)
        elif not line:
            if data and (event := _event(kind, "\n".join(data))) is not None:
                yield event
            kind, data = "", []


def _event(kind: str, text: str) -> Heard | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    data = value.get("data") if isinstance(value, dict) else None
    return Heard(kind, data) if kind and isinstance(data, dict) else None


class Stream:
    """The events of one thread, listened to by a thread of its own that reconnects for ever."""

    def __init__(self, api: Api, thread_id: str) -> None:
        self._api, self._thread_id = api, thread_id
        self._heard: queue.Queue[Heard] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True, name="events").start()

    def next(self, timeout_seconds: float) -> Heard | None:
        """The next event; None when there was none in that time."""
        try:
            return self._heard.get(timeout=max(0.0, timeout_seconds))
        except queue.Empty:
            return None

    def _listen(self) -> None:
        delay = _FIRST_DELAY_SECONDS
        while True:
            try:
                self._hear()
                delay = _FIRST_DELAY_SECONDS
            except httpx.HTTPError:
                delay = min(delay * 2, _LONGEST_DELAY_SECONDS)
            except Exception:  # noqa: BLE001 - the client was closed under this thread: nobody listens any more
                return
            self._heard.put(Heard("broken"))
            time.sleep(delay)

    def _hear(self) -> None:
        timeout = httpx.Timeout(_SILENCE_SECONDS, connect=5.0)
        query = {"thread": self._thread_id}
        with self._api.http.stream("GET", "/api/events", params=query, timeout=timeout) as response:
            response.raise_for_status()
            self._heard.put(Heard("opened"))
            for event in parsed(response.iter_lines()):
                self._heard.put(event)
