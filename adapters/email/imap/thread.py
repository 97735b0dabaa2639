"""How does a library that blocks work beside an event loop? One thread that makes its calls one by one.

Not an executor: its threads are waited for when the process ends, and a call into a dead network lasts long.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_Call = tuple["Future[Any] | None", Callable[[], Any]]


class BlockingThread:
    """Runs calls in the order in which they were asked for."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, function: Callable[[], T]) -> T:
        """What `function` returns or raises. When the caller is cancelled, a running call goes on."""
        future: Future[T] = Future()
        self._calls.put((future, function))
        return await asyncio.wrap_future(future)

    def end(self, last: Callable[[], None]) -> None:
        """End after the calls that were asked for already, and after `last`, which raises nothing."""
        self._calls.put((None, last))

    def _run(self) -> None:
        while True:
            future, function = self._calls.get()
            if future is None:
                function()
                return
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - raised where it was called
                future.set_exception(error)
            else:
                future.set_result(result)
            del future, function  # nothing stays alive while the next call is waited for
