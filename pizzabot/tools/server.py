"""Is one MCP server there, and what becomes of a call to it?

    disabled, invalid       from the file; nothing runs
    connecting ──► connected ──► down ──► connecting …

Each server has one owner task that opens its connection, watches it and closes it: the scopes of the
library must be entered and left by the same task. Everybody else only calls. Tools are offered while the
server is connected. After a failure the owner waits, longer each time, and begins again.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from pizzabot.errors import ToolFailed
from pizzabot.tools.config import ServerSpec, redact
from pizzabot.tools.values import ServerState, State, ToolOutput, ToolSpec

if TYPE_CHECKING:
    from pizzabot.tools import connection as connections

logger = logging.getLogger(__name__)

STDERR_LINES = 100
LONGEST_ERROR = 1000


@dataclass(frozen=True)
class Pace:
    """How patient an owner is. `sleep` and `random` are there so that tests need not wait or guess."""

    first_delay_seconds: float = 0.5
    longest_delay_seconds: float = 60.0
    stable_after_seconds: float = 10.0
    ping_every_seconds: float = 30.0
    ping_timeout_seconds: float = 10.0
    call_patience_seconds: float = 3.0
    closing_seconds: float = 10.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random


def delay_seconds(failures: int, pace: Pace) -> float:
    """How long to wait after that many failures in a row: doubling, capped, the upper half of it random."""
    full = min(pace.longest_delay_seconds, pace.first_delay_seconds * 2.0 ** min(failures, 60))
    return full * (0.5 + pace.random() / 2)


class McpServer:
    """One server of the file. `on_change` is called when its state or its tools are other than before."""

    def __init__(self, spec: ServerSpec, on_change: Callable[[], None], pace: Pace | None = None) -> None:
        self.spec, self._on_change, self._pace = spec, on_change, pace or Pace()
        self._state: State = "disabled" if not spec.enabled else "invalid" if spec.error else "connecting"
        self._error = spec.error if spec.enabled else None
        self._tools: tuple[ToolSpec, ...] = ()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._connection: connections.Connection | None = None
        self._scope: anyio.CancelScope | None = None
        self._owner: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._stopping = self._restarting = False
        self._reported: str | None = None
        self._calls = 0
        self._stable_at = self._retry_at = 0.0

    @property
    def state(self) -> ServerState:
        """How it is at this moment, fit to be shown."""
        return ServerState(
            self.spec.name, self.spec.transport, self._state, self._error, self._tools, tuple(self._stderr)
        )

    @property
    def is_usable(self) -> bool:
        """Whether there is anything to start."""
        return self._state not in ("disabled", "invalid")

    def start(self) -> None:
        """Start the owner task. Returns at once."""
        if self.is_usable and self._owner is None:
            self._stopping = False
            self._owner = asyncio.create_task(self._own(), name=f"mcp:{self.spec.name}")

    async def stop(self) -> None:
        """Close the connection and end the process. Calls under way end with `OutcomeUnknown`."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        self._stopping = True
        self._interrupt()
        await asyncio.wait([owner], timeout=self._pace.closing_seconds * 2)
        if not owner.done():
            logger.warning("mcp server %s does not close; it is abandoned", self.spec.name)
            owner.cancel()
            await asyncio.wait([owner], timeout=1)

    def reconnect(self) -> None:
        """Close what is open and connect again now, without waiting out the back-off."""
        if self._owner is None:
            self.start()
            return
        self._restarting = True
        self._become("connecting")
        self._interrupt()

    async def settled(self) -> None:
        """Return when the server is no longer connecting."""
        while self._state == "connecting":
            await self._changed.wait()

    async def ready(self, deadline_seconds: float) -> None:
        """Return when calls can be sent.

        Raises:
            ToolFailed: they cannot, or not within the time; says why.
        """
        deadline = anyio.current_time() + deadline_seconds
        while not self._is_open():
            hopeless = not self.is_usable or self._stopping
            if hopeless or max(anyio.current_time(), self._retry_at) >= deadline:
                raise ToolFailed(self._why_not())
            with anyio.move_on_after(deadline - anyio.current_time()):
                await self._changed.wait()

    async def call(self, tool: str, args: dict[str, Any], *, timeout: float | None = None) -> ToolOutput:
        """Call a tool and wait for its answer. Cancelling the caller cancels the call on the server.

        Raises:
            OutcomeUnknown: the call was sent, and its end was not seen.
            ToolFailed: the tool answered with an error, or the call was not sent.
        """
        await self.ready(self._pace.call_patience_seconds)
        if tool not in {spec.name for spec in self._tools}:
            raise ToolFailed(f'MCP server "{self.spec.name}" has no tool "{tool}"')
        assert self._connection is not None  # ready() has seen it, and nothing was awaited since
        self._calls += 1
        try:
            return await self._connection.call(tool, args, timeout or self.spec.timeout_seconds)
        except ToolFailed as error:
            raise type(error)(redact(str(error), self.spec.secrets)) from error
        finally:
            self._calls -= 1

    async def _own(self) -> None:
        failures = 0
        # The library takes seconds to import: not on the event loop, and not without a server.
        await asyncio.to_thread(importlib.import_module, "pizzabot.tools.connection")
        while not self._stopping:
            self._restarting = False
            self._retry_at = 0.0
            self._become("connecting")
            try:
                await self._connect_and_attend()
                reason = "the connection was closed"
            except Exception as error:  # noqa: BLE001 - the top of a loop that must outlive what a server does
                reason = self._reason(error)
            if self._is_called_off():
                failures = 0
                continue
            if anyio.current_time() >= self._stable_at:
                failures = 0
            await self._rest(reason, delay_seconds(failures, self._pace))
            failures = 0 if self._is_called_off() else failures + 1
        self._become("down", "it was stopped")

    async def _connect_and_attend(self) -> None:
        from pizzabot.tools.connection import connect

        self._stable_at = float("inf")
        limit = self.spec.start_timeout_seconds
        opened = False
        with anyio.CancelScope(deadline=anyio.current_time() + limit) as self._scope:
            async with connect(self.spec, self._hear) as connection:
                tools, problems = await connection.tools(limit)
                opened, self._scope.deadline = True, float("inf")
                self._connection = connection
                self._stable_at = anyio.current_time() + self._pace.stable_after_seconds
                self._become("connected", "; ".join(problems) or None, tools)
                self._reported = None
                try:
                    await self._attend(connection)
                finally:
                    self._connection = None
                    if not self._restarting:
                        # Closing can take seconds, in which nothing must be offered.
                        self._become("down", "the connection ended")
                    self._scope.deadline = anyio.current_time() + self._pace.closing_seconds
        if not opened and not self._is_called_off():
            raise TimeoutError(f"it gave no answer within {limit:g} s")

    async def _attend(self, connection: connections.Connection) -> None:
        from pizzabot.tools.connection import ConnectionLost

        while not self._is_called_off():
            happened = await connection.wait(self._pace.ping_every_seconds)
            if connection.lost:
                raise ConnectionLost(connection.ending)
            if changed := connection.take_change():
                await self._ask(connection, changed)
            elif not happened:
                await self._ask(connection, connection.is_modern)

    async def _ask(self, connection: connections.Connection, for_tools: bool) -> None:
        limit = self._pace.ping_timeout_seconds
        try:
            if for_tools:
                tools, problems = await connection.tools(limit)
                if not self._is_called_off():
                    self._become("connected", "; ".join(problems) or None, tools)
            else:
                await connection.ping(limit)
        except TimeoutError as error:
            # Simple servers do one thing at a time: with a call under way silence says nothing.
            if not self._calls:
                raise TimeoutError(f"it gave no sign of life within {limit:g} s") from error
            if for_tools:
                connection.put_off_change()

    def _is_called_off(self) -> bool:
        return self._stopping or self._restarting

    async def _rest(self, reason: str, seconds: float) -> None:
        self._retry_at = anyio.current_time() + seconds
        self._become("down", reason)
        # A server that stays away for the same reason is news once.
        level = logging.DEBUG if self._error == self._reported else logging.WARNING
        logger.log(
            level, "mcp server %s is down, next try in %.1f s: %s", self.spec.name, seconds, self._error
        )
        self._reported = self._error
        with anyio.CancelScope() as self._scope:
            await self._pace.sleep(seconds)

    def _interrupt(self) -> None:
        if self._connection is not None and self._scope is not None:
            # Left in good order, so that the server is told; the deadline is for one that does not listen.
            self._connection.wake()
            self._scope.deadline = anyio.current_time() + self._pace.closing_seconds
        elif self._scope is not None:
            self._scope.cancel()

    def _become(self, state: State, error: str | None = None, tools: tuple[ToolSpec, ...] = ()) -> None:
        # Cut afterwards: half a secret would not be recognised.
        error = None if error is None else redact(error, self.spec.secrets)[:LONGEST_ERROR]
        if (state, error, tools) == (self._state, self._error, self._tools):
            return
        self._state, self._error, self._tools = state, error, tools
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        self._on_change()

    def _hear(self, line: str) -> None:
        line = redact(line, self.spec.secrets)
        self._stderr.append(line)
        logger.debug("mcp server %s: %s", self.spec.name, line)

    def _is_open(self) -> bool:
        return self._state == "connected" and self._connection is not None and not self._connection.lost

    def _reason(self, error: Exception) -> str:
        from pizzabot.tools.connection import describe

        reason = describe(error)
        if self.spec.transport == "stdio" and self._stderr:
            reason += f"; its last words: {self._stderr[-1][:300]}"
        return reason

    def _why_not(self) -> str:
        name = f'MCP server "{self.spec.name}"'
        if self._state in ("connecting", "connected"):
            return f"{name} is still connecting; the call was not sent"
        return f"{name} is {self._state}{f': {self._error}' if self._error else ''}; the call was not sent"
