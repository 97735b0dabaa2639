"""Real servers for the tests of this folder: processes on stdio, and an MCP server behind uvicorn."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from pizzabot.tools.catalogue import Pace, ToolCatalogue
from pizzabot.tools.config import parse_servers

LEDGER_SERVER = Path(__file__).parents[2] / "fakes" / "ledger_server.py"
QUICK = Pace(first_delay_seconds=0.05, stable_after_seconds=60, ping_timeout_seconds=1, closing_seconds=2)


class Ledger:
    """The file in which the fake server counts its calls."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, event: str) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        rows = [json.loads(line) for line in self.path.read_text().splitlines()]
        return [row for row in rows if row["event"] == event]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl")


@pytest.fixture
def stdio(ledger: Ledger) -> Callable[..., dict[str, Any]]:
    """An entry of the file for the fake stdio server; keyword arguments become its environment."""

    def entry(**env: str) -> dict[str, Any]:
        return {
            "command": sys.executable,
            "args": [str(LEDGER_SERVER)],
            "env": {"LEDGER": str(ledger.path), **env},
        }

    return entry


@asynccontextmanager
async def running(
    servers: dict[str, Any], *, environ: dict[str, str] | None = None, pace: Pace = QUICK, settle: float = 10
) -> AsyncIterator[ToolCatalogue]:
    """A started catalogue of these servers."""
    config = parse_servers(json.dumps({"mcpServers": servers}), ".mcp.json", environ or {})
    catalogue = ToolCatalogue(config, pace=pace)
    await catalogue.start()
    try:
        await catalogue.settle(settle)
        yield catalogue
    finally:
        await catalogue.stop()


async def until(condition: Callable[[], bool], seconds: float = 15) -> None:
    """Wait for something that happens by itself."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in files and processes too
            await asyncio.sleep(0.01)


def state_of(catalogue: ToolCatalogue, name: str) -> str:
    return next(state.state for state in catalogue.states() if state.name == name)


def error_of(catalogue: ToolCatalogue, name: str) -> str:
    return next(state.error for state in catalogue.states() if state.name == name) or ""


class WebServer:
    """An MCP server behind a port of the loopback, in a thread with a loop of its own."""

    def __init__(self, transport: str) -> None:
        server = MCPServer("web")
        self.cancelled = threading.Event()
        self._describe(server)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SSE is deprecated in the library, and still in use elsewhere
            app = server.sse_app() if transport == "sse" else server.streamable_http_app()
        self._path = "/sse" if transport == "sse" else "/mcp"
        config = uvicorn.Config(
            app, host="127.0.0.1", port=0, log_level="critical", timeout_graceful_shutdown=0
        )
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._uvicorn.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 10
        while not self._uvicorn.started:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.01)
        self.port: int = self._uvicorn.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}{self._path}"

    def stop(self) -> None:
        self._uvicorn.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _describe(self, server: MCPServer) -> None:
        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        @server.tool()
        async def slow(seconds: float) -> str:
            """Take some seconds."""
            try:
                await asyncio.sleep(seconds)
            except BaseException:
                self.cancelled.set()
                raise
            return "waited"

        @server.tool()
        def picture() -> Image:
            """A picture."""
            return Image(data=b"\x89PNG", format="png")

        @server.tool()
        def fail() -> str:
            """Fail."""
            raise ToolError("the oven is cold")

        @server.tool()
        async def learn(name: str, context: Context[Any]) -> str:
            """Add a tool and announce it."""
            server.add_tool(lambda: "new", name=name, description="Learned.")
            await context.notify_tools_changed()
            return "learned"


class Wire:
    """A stretch of network in front of a server that can be cut, and be whole again at the same port."""

    def __init__(self, server: WebServer) -> None:
        self._server = server
        self._port = 0
        self._listener: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    @property
    def url(self) -> str:
        return self._server.url.replace(str(self._server.port), str(self._port))

    async def join(self) -> None:
        self._listener = await asyncio.start_server(self._carry, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._listener is not None
        self._listener.close()
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_connection("127.0.0.1", self._server.port)
        self._writers += [writer, away]
        await asyncio.gather(self._pump(reader, away), self._pump(there, writer), return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


StartWeb = Callable[..., Awaitable[WebServer]]


@pytest.fixture
def web() -> Iterator[StartWeb]:
    """Start a server: `await web("http")` or `await web("sse")`."""
    started: list[WebServer] = []

    async def start(transport: str) -> WebServer:
        server = await asyncio.to_thread(WebServer, transport)
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()
