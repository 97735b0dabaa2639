"""Which tools are there now, of MCP servers and our own, and who carries a call to one of them?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pizzabot.errors import Conflict, NotFound, ToolFailed
from pizzabot.tools.config import Broken, McpConfig
from pizzabot.tools.names import model_name, model_names
from pizzabot.tools.server import McpServer, Pace
from pizzabot.tools.values import ServerState, ToolOutput, ToolSpec

__all__ = [
    "Pace",
    "ServerState",
    "ToolCatalogue",
    "ToolOutput",
    "ToolSpec",
    "model_name",
    "model_names",
]


OwnTool = Callable[[dict[str, Any]], Awaitable[ToolOutput]]


class ToolCatalogue:
    """All servers of the file. They do not wait for each other, and one that fails takes no other along."""

    def __init__(self, config: McpConfig, *, pace: Pace | None = None) -> None:
        self.broken: tuple[Broken, ...] = config.broken
        self.secrets = config.secrets
        self.on_change: list[Callable[[], None]] = []
        self._servers = {spec.name: McpServer(spec, self._server_changed, pace) for spec in config.servers}
        self._tools: dict[str, ToolSpec] = {}
        self._own: dict[str, tuple[ToolSpec, OwnTool]] = {}
        self._version = 0

    @property
    def version(self) -> int:
        """Grows whenever the set of tools is other than before."""
        return self._version

    async def start(self) -> None:
        """Begin to connect to all servers. Returns at once; `settle` waits."""
        for server in self._servers.values():
            server.start()

    async def stop(self) -> None:
        """Close all connections and end all processes."""
        await asyncio.gather(*(server.stop() for server in self._servers.values()))

    async def settle(self, seconds: float) -> None:
        """Wait until no server is connecting any more, at most so long."""
        waits = [asyncio.ensure_future(server.settled()) for server in self._servers.values()]
        if not waits:
            return
        try:
            await asyncio.wait(waits, timeout=seconds)
        finally:
            for wait in waits:
                wait.cancel()

    def tools(self) -> dict[str, ToolSpec]:
        """The tools that can be called now, by full name, in the order of the file."""
        return dict(self._tools)

    def offer(self, spec: ToolSpec, tool: OwnTool) -> None:
        """Add a tool of our own, for the root agent; `tool` raises ToolFailed when it did nothing."""
        self._own[spec.full_name] = (spec, tool)

    def own(self) -> list[ToolSpec]:
        """The tools of our own."""
        return [spec for spec, _ in self._own.values()]

    def states(self) -> tuple[ServerState, ...]:
        """All servers in the order of the file."""
        return tuple(server.state for server in self._servers.values())

    async def call(self, full_name: str, args: dict[str, Any], timeout: float | None = None) -> ToolOutput:
        """Call a tool by its full name.

        Raises:
            OutcomeUnknown: the call was sent, and its end was not seen.
            ToolFailed: the tool answered with an error, or the call was not sent.
        """
        if full_name in self._own:
            return await self._own[full_name][1](args)
        kind, _, rest = full_name.partition(":")
        name, _, tool = rest.partition(":")
        server = self._servers.get(name) if kind == "mcp" else None
        if server is None:
            raise ToolFailed(f"there is no MCP server for the tool {full_name!r}; the call was not sent")
        return await server.call(tool, args, timeout=timeout)

    async def reconnect(self, name: str) -> None:
        """Connect to a server anew, now. Returns before it has happened; `settle` waits.

        Raises:
            NotFound: there is no such server.
            Conflict: the file says that it cannot or shall not run.
        """
        server = self._servers.get(name)
        if server is None:
            raise NotFound(f'there is no MCP server "{name}"')
        if not server.is_usable:
            raise Conflict(f'MCP server "{name}" is {server.state.state}; change .mcp.json and restart')
        server.reconnect()

    def _server_changed(self) -> None:
        tools = {tool.full_name: tool for server in self._servers.values() for tool in server.state.tools}
        if tools != self._tools:
            self._tools = tools
            self._version += 1
        # Not from within: a callback that fails must not end the task of a server.
        for callback in self.on_change:
            asyncio.get_running_loop().call_soon(callback)
