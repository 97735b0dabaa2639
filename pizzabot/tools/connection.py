"""How is one connection to an MCP server opened, watched, used and closed?

This module, `transports` and `content` know the `mcp` library, and no other does. It takes seconds to
import, so nobody imports them before a server is to be started. A connection is entered and left by one
task; any task may `call`.

What an ended request means:

    an answer, also an error answer          it is known: `ToolOutput` or `ToolFailed`
    the address could not be reached         it was not sent: `ToolFailed`
    time is up, or the connection broke      it may have happened: `OutcomeUnknown`
    an answer that nobody can read, HTTP 5xx it may have happened: `OutcomeUnknown`
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    Implementation,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pizzabot.errors import OutcomeUnknown, ToolFailed
from pizzabot.tools.config import ServerSpec
from pizzabot.tools.content import output_of, spec_of
from pizzabot.tools.transports import Exchange, Watch, exchange, open_streams
from pizzabot.tools.values import ToolOutput, ToolSpec

_MOST_PAGES = 100
_NOTICE_SECONDS = 0.5
_SUBSCRIBE_SECONDS = 5.0


class ConnectionLost(Exception):
    """The server ended the connection."""


class Connection:
    """An open connection. `wait` is for the owner, `call` for everybody."""

    def __init__(self, spec: ServerSpec, client: Client, watch: Watch) -> None:
        self._spec, self._client, self._watch = spec, client, watch

    @property
    def lost(self) -> bool:
        """Whether the stream of the server has ended."""
        return self._watch.lost

    @property
    def is_modern(self) -> bool:
        """Whether the protocol is one without a handshake, a ping and unasked notifications."""
        return self._client.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def ending(self) -> str:
        """What has happened when it is lost."""
        return _ending(self._spec)

    def wake(self) -> None:
        """Let `wait` return."""
        self._watch.signal.set()

    async def wait(self, seconds: float) -> bool:
        """Wait until something happened, at most so long. False when nothing did."""
        with anyio.move_on_after(seconds):
            await self._watch.signal.wait()
        happened = self._watch.signal.is_set()
        self._watch.signal.clear()
        return happened

    def take_change(self) -> bool:
        """Whether the server announced other tools since the last time."""
        changed, self._watch.changed = self._watch.changed, False
        return changed

    def put_off_change(self) -> None:
        """Let `take_change` tell again what it told, without waking anybody."""
        self._watch.changed = True

    async def ping(self, seconds: float) -> None:
        """Return when the server answers, whatever it says."""
        with anyio.fail_after(seconds), self._lasting():
            try:
                await self._client.session.send_ping()
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise

    async def tools(self, seconds: float) -> tuple[tuple[ToolSpec, ...], tuple[str, ...]]:
        """The tools that can be offered, and why others cannot."""
        self._watch.problems.clear()
        tools: dict[str, ToolSpec] = {}
        doubled: list[str] = []
        with anyio.fail_after(seconds), self._lasting():
            cursor = None
            for _ in range(_MOST_PAGES):
                try:
                    page = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
                except MCPError as error:
                    if error.code != METHOD_NOT_FOUND:
                        raise
                    return (), ("it offers no tools",)
                for tool in page.tools:
                    if tool.name in tools:
                        doubled.append(f'tool "{tool.name}" is listed twice; the first is used')
                    tools.setdefault(tool.name, spec_of(self._spec.name, tool))
                cursor = page.next_cursor
                if not cursor:
                    break
        return tuple(tools.values()), tuple(dict.fromkeys([*self._watch.problems, *doubled]))

    async def call(self, tool: str, args: dict[str, Any], seconds: float) -> ToolOutput:
        """Call a tool. The module says what the errors mean; cancelling tells the server to stop."""
        place = f'tool "{tool}" of MCP server "{self._spec.name}"'
        request = Exchange()
        token = exchange.set(request)
        try:
            with anyio.fail_after(seconds):
                result = await self._client.call_tool(tool, args)
        except TimeoutError as error:
            raise OutcomeUnknown(f"{place} gave no answer within {seconds:g} s; it may have run") from error
        except MCPError as error:
            raise await self._judged(place, error, request) from error
        except (ValueError, RuntimeError) as error:
            raise OutcomeUnknown(f"{place} gave an answer that cannot be read: {one_line(error)}") from error
        finally:
            exchange.reset(token)
        output = output_of(result)
        if result.is_error:
            raise ToolFailed(output.text or f"{place} reported an error without a message")
        return output

    @contextmanager
    def _lasting(self) -> Iterator[None]:
        try:
            yield
        except MCPError as error:
            if self.lost:
                raise ConnectionLost(self.ending) from error
            raise

    async def _judged(self, place: str, error: MCPError, request: Exchange) -> ToolFailed:
        if request.refused:
            return ToolFailed(f"{place} cannot be reached; the call was not sent")
        if request.status is not None and request.status >= 500:
            return OutcomeUnknown(f"{place} answered with HTTP {request.status}; it may have run")
        if request.status == 404:
            # The server forgot the session: nothing but a new connection helps.
            self._watch.lose()
        if error.code == CONNECTION_CLOSED and await self._is_really_closed():
            return OutcomeUnknown(f"the connection to {place} ended before it answered; it may have run")
        status = f" (HTTP {request.status})" if request.status is not None and request.status >= 400 else ""
        return ToolFailed(f"{place}: {error.message}{status}")

    async def _is_really_closed(self) -> bool:
        # Servers use the same number for errors of their own; over HTTP the two cannot be told apart.
        if self._spec.transport == "http":
            return True
        with anyio.move_on_after(_NOTICE_SECONDS):
            await self._watch.ended.wait()
        return self.lost


@asynccontextmanager
async def connect(spec: ServerSpec, on_stderr: Callable[[str], None]) -> AsyncIterator[Connection]:
    """Open a connection and keep it until the block is left. Enter and leave it in one task."""
    watch = Watch()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            watch.change()

    request = Exchange()
    exchange.set(request)
    client = Client(
        open_streams(spec, watch, on_stderr), message_handler=hear, client_info=_client_info(), cache=None
    )
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(client)
        except (MCPError, ExceptionGroup) as error:
            if request.status is not None and request.status >= 400:
                raise ConnectionLost(f"the server answered with HTTP {request.status}") from error
            if watch.lost and isinstance(_first(error), MCPError):
                raise ConnectionLost(_ending(spec)) from error
            raise
        connection = Connection(spec, client, watch)
        tools = client.server_capabilities.tools
        if connection.is_modern and tools is not None and tools.list_changed:
            group = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(group.cancel_scope.cancel)
            listening = anyio.Event()
            group.start_soon(_listen, client, watch, listening)
            # What is announced between a first look and the subscription would never be seen.
            with anyio.move_on_after(_SUBSCRIBE_SECONDS):
                await listening.wait()
        yield connection


async def _listen(client: Client, watch: Watch, listening: anyio.Event) -> None:
    try:
        async with client.listen(tools_list_changed=True) as subscription:
            listening.set()
            async for _ in subscription:
                watch.change()
    except (MCPError, SubscriptionLost, TimeoutError):
        pass
    # What ended may be the server: listing the tools again finds out.
    listening.set()
    watch.change()


def describe(error: BaseException) -> str:
    """The reason in one line: the first error in a group, in the words of the one who raised it."""
    error = _first(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, httpx2.HTTPStatusError):
        return f"the server answered with HTTP {error.response.status_code}"
    if isinstance(error, httpx2.TransportError):
        return f"it cannot be reached: {one_line(error) or type(error).__name__}"
    return one_line(error) or type(error).__name__


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _ending(spec: ServerSpec) -> str:
    return "the process ended" if spec.transport == "stdio" else "the server ended the connection"


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks."""
    return " ".join(str(error).split())


def _client_info() -> Implementation:
    from pizzabot import __version__

    return Implementation(name="pizzabot", version=__version__)
