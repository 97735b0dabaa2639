"""How are requests let in? One socket, one uvicorn, inside the process that does everything else."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from pizzabot.doors import Doors
from pizzabot.errors import ConfigError

from .app import build_app

logger = logging.getLogger(__name__)
_GRACE_SECONDS = 5


def bind(host: str, port: int) -> socket.socket:
    """A bound socket; port 0 takes a free one.

    Raises:
        ConfigError: the address cannot be had; says why and what to change.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigError(
            "pizzabot.toml", f'"{host}" is no address of this machine', key="web.host"
        ) from error
    # A name with both kinds is served on IPv4, which every client tries.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise _why(error, host, port) from error
    return listening


def _why(error: OSError, host: str, port: int) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            "pizzabot.toml",
            f"port {port} on {host} is in use by another program; stop it or serve on another --port",
            key="web.port",
        )
    if error.errno == errno.EACCES:
        problem = f"port {port} needs more rights than this user has; choose one from 1024 on"
        return ConfigError("pizzabot.toml", problem, key="web.port")
    return ConfigError("pizzabot.toml", f"{host} cannot be listened on ({error.strerror})", key="web.host")


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield  # signals belong to the command that opened the runtime


class Server:
    """A running HTTP server; made when it already listens."""

    def __init__(self, doors: Doors, listening: socket.socket) -> None:
        self.port: int = listening.getsockname()[1]
        self._closing = asyncio.Event()
        config = uvicorn.Config(
            build_app(doors, self.port, self._closing),
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        self._uvicorn = _Uvicorn(config)
        self._task = asyncio.create_task(self._uvicorn.serve([listening]), name="http")
        self._task.add_done_callback(_log_end)

    @property
    def serving(self) -> bool:
        return self._uvicorn.started and not self._task.done()

    async def started(self) -> None:
        """Return when requests are answered."""
        ready = asyncio.ensure_future(self._uvicorn.ready.wait())
        await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()

    async def stop(self) -> None:
        """End streams at once, let other requests finish for some seconds, close."""
        self._closing.set()
        self._uvicorn.should_exit = True
        await asyncio.gather(self._task, return_exceptions=True)


def _log_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the HTTP server ended", exc_info=error)
