"""The HTTP API as a channel, and the server that carries every channel's routes."""

from __future__ import annotations

from ..live import LiveChannel


class ApiChannel(LiveChannel):
    """Conversations that began with a request to the API; also runs the HTTP server."""

    name = "api"
