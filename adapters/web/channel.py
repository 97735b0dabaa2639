"""The HTTP API and the web view as channels, and the server that carries every channel's routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pizzabot.doors import Doors
from pizzabot.messages import ChannelState

from ..live import LiveChannel

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from .server import Server


class ApiChannel(LiveChannel):
    """Conversations that began with a request to the API; also runs the HTTP server."""

    name = "api"

    def __init__(self, doors: Doors) -> None:
        super().__init__(doors)
        self._server: Server | None = None

    @property
    def port(self) -> int:
        """The port that is listened on: the configured one, or what port 0 became."""
        return self._server.port if self._server is not None else self._doors.settings.web.port

    @property
    def url(self) -> str:
        """Where people reach the server."""
        from .app import public_url

        return public_url(self._doors.settings.web, self.port)

    async def start(self) -> None:
        """Listen; when this returns, requests are answered.

        Raises:
            ConfigError: the address is taken or not ours.
        """
        # Not at the top: commands load this module, and must not pay for a server.
        from .server import Server, bind

        web = self._doors.settings.web
        self._server = Server(self._doors, bind(web.host, web.port))
        await self._server.started()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        if self._server is not None:
            await self._server.stop()

    def state(self) -> ChannelState:
        if not self._running or self._server is None:
            return ChannelState("off")
        return ChannelState("ok") if self._server.serving else ChannelState("down", "the HTTP server ended")


class WebChannel(LiveChannel):
    """Conversations that began in the browser; its pages show every other one, too."""

    name = "web"

    def routes(self) -> Sequence[BaseRoute]:
        from .pages.routes import routes

        return routes(self._doors)
