"""How do messages travel to a server, what does it say on the side, and when has it gone?

The library's transports end silently: a process that died is noticed by the next request. Here each one is
wrapped in a stream that tells when it ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import httpx2
from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from pizzabot.tools.config import ServerSpec
from pizzabot.tools.listing import sift

if TYPE_CHECKING:
    # Only types: the library does not export them.
    from mcp.client._transport import ReadStream, TransportStreams

_CONNECT_SECONDS = 30.0
_LAST_WORDS_SECONDS = 0.2
_LONGEST_LINE = 4000


@dataclass
class Exchange:
    """What the HTTP request behind a call met with; nothing for other transports."""

    refused: bool = False
    status: int | None = None


exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@dataclass
class Watch:
    """What the stream tells the owner of a connection."""

    signal: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    changed: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def lost(self) -> bool:
        return self.ended.is_set()

    def lose(self) -> None:
        self.ended.set()
        self.signal.set()

    def change(self) -> None:
        self.changed = True
        self.signal.set()


@asynccontextmanager
async def open_streams(
    spec: ServerSpec, watch: Watch, on_stderr: Callable[[str], None]
) -> AsyncIterator[TransportStreams]:
    """The transport that the entry asks for, watched."""
    async with _transport(spec, on_stderr) as (read, write):
        yield _WatchedStream(read, watch), write


@asynccontextmanager
async def _transport(spec: ServerSpec, on_stderr: Callable[[str], None]) -> AsyncIterator[TransportStreams]:
    if spec.transport == "stdio":
        async with _stdio(spec, on_stderr) as streams:
            yield streams
    elif spec.transport == "sse":
        async with sse_client(
            spec.url, headers=dict(spec.headers), httpx_client_factory=_http_client
        ) as streams:
            yield streams
    else:
        # No limit on reading: calls and pings have deadlines, and the library gives up listening for
        # notifications for good after two idle periods.
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        async with (
            _HttpClient(headers=dict(spec.headers), timeout=timeout) as client,
            streamable_http_client(spec.url, http_client=client) as streams,
        ):
            yield streams


@asynccontextmanager
async def _stdio(spec: ServerSpec, on_stderr: Callable[[str], None]) -> AsyncIterator[TransportStreams]:
    parameters = StdioServerParameters(
        command=spec.command,
        args=list(spec.args),
        env=dict(spec.env),
        cwd=spec.cwd,
        encoding_error_handler="replace",
    )
    readable, writable = os.pipe()
    errlog = os.fdopen(writable, "w")
    lines = _Lines(on_stderr)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: lines, os.fdopen(readable, "rb", 0))
    try:
        async with stdio_client(parameters, errlog) as streams:
            errlog.close()  # the process has its own; while ours is open its end would not be seen
            yield streams
    finally:
        errlog.close()
        with anyio.move_on_after(_LAST_WORDS_SECONDS, shield=True):
            await lines.ended.wait()
        pipe.close()


class _Lines(asyncio.Protocol):
    """Cuts what a process writes into lines."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line, self._rest = on_line, b""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._tell(line)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol of asyncio
        self._tell(self._rest)
        self.ended.set()

    def _tell(self, line: bytes) -> None:
        if text := line.decode("utf-8", "replace").rstrip():
            self._on_line(text)


def _http_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> _HttpClient:
    return _HttpClient(headers=headers, timeout=timeout, auth=auth)


class _HttpClient(httpx2.AsyncClient):
    """Notes in the context of the sender how its request went: the library tells everybody the same error."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        note = exchange.get() or Exchange()
        try:
            response = await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            note.refused = True
            raise
        if request.method == "POST":
            note.status = response.status_code
        return response


class _WatchedStream:
    """The stream a transport reads from; tells of its end and sifts the listings that come through."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], watch: Watch) -> None:
        self._inner, self._watch = inner, watch

    @property
    def last_context(self) -> contextvars.Context | None:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._inner.receive()
        except BaseException:
            # The end, an error or the cancellation that closes the session: nothing comes after any of them.
            self._watch.lose()
            raise
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            result = item.message.result
            if isinstance(result.get("tools"), list):
                sifted = sift(result["tools"])
                self._watch.problems += sifted.problems
                result["tools"] = sifted.entries
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
