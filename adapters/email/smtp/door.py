"""How does mail come in without a mailbox? A door for SMTP or LMTP in the process that does everything else.

It stands behind the operator's own mail server, or is named by an MX record. It takes mail for the agent's
addresses, and answers 250 when the mail is committed: what was not, the sender keeps and sends again.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import ssl
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pizzabot.errors import ConfigError
from pizzabot.settings.tables import ListenTable

from ..letters import Take
from .doorkeeper import Doorkeeper, Limits
from .session import LmtpSession, Session

logger = logging.getLogger(__name__)

State = Literal["ok", "connecting", "down", "unauthorized", "off"]

_COMMIT_SECONDS = 5.0
_GOODBYE_SECONDS = 1.0
_BACKLOG = 100
_LONGEST_WAIT = 30.0


class MailDoor:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        settings: ListenTable,
        is_ours: Callable[[str], bool],
        take: Take,
        becomes: Callable[[State, str | None], None],
        limits: Limits | None = None,
        home: Path = Path(),
    ) -> None:
        """`is_ours` says of an address as it was written whether mail for it is taken.

        `take` commits a mail, see `letters.Take`. `becomes` hears how the door is: ok, down or off; why.
        Relative files of the settings are looked for in `home`.
        """
        networks = [ipaddress.ip_network(text, strict=False) for text in settings.trusted_networks]
        self._settings, self._becomes = settings, becomes
        self._keeper = Doorkeeper(is_ours, take, networks, limits or Limits())
        self._certificate = Certificate(settings, home) if settings.certificate else None
        self._sessions: weakref.WeakSet[Session] = weakref.WeakSet()
        self._server: asyncio.Server | None = None
        self._opening: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port that it listens on; that of the settings while it does not."""
        if self._server is None or not self._server.sockets:
            return self._settings.port
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def refused(self) -> Mapping[str, int]:
        """How many times what was refused, by reason, since the start of the process."""
        return self._keeper.refused

    async def start(self) -> None:
        """Listen. While the address is taken by another program it is tried again, beside everything else.

        Raises ConfigError when the certificate or its key cannot be used.
        """
        if self._certificate is not None:
            self._certificate.context()
        self._keeper.is_closing = False
        if not await self._listens():
            self._opening = asyncio.create_task(self._keep_trying(), name="open the mail door")

    async def stop(self) -> None:
        """Let what is being committed be answered, for some seconds, and close everything."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
            self._opening = None
        if self._server is not None:
            self._server.close()
        await self._keeper.settle(_COMMIT_SECONDS)
        await asyncio.sleep(0)  # the replies to what was committed go out before the goodbye
        sessions = list(self._sessions)
        for session in sessions:
            session.hang_up("421 4.3.2 going down")
        await _ended(sessions)
        self._server = None
        self._becomes("off", None)

    async def _keep_trying(self) -> None:
        wait = 1.0
        while True:
            await asyncio.sleep(wait)
            if await self._listens():
                return
            wait = min(2 * wait, _LONGEST_WAIT)

    async def _listens(self) -> bool:
        loop, settings = asyncio.get_running_loop(), self._settings
        try:
            self._server = await loop.create_server(
                self._session, settings.host, settings.port, backlog=_BACKLOG
            )
        except OSError as error:
            why = why_closed(error, settings.host, settings.port)
            logger.error("the door for mail stays closed: %s", why)
            self._becomes("down", why)
            return False
        self._becomes("ok", None)
        return True

    def _session(self) -> Session:
        kind = LmtpSession if self._settings.protocol == "lmtp" else Session
        session = kind(
            self._keeper,
            asyncio.get_running_loop(),
            hostname=self._settings.hostname or socket.gethostname(),
            certificate=self._certificate.context() if self._certificate is not None else None,
            proxied=self._settings.proxy_protocol,
        )
        self._sessions.add(session)
        return session


class Certificate:
    """The certificate that STARTTLS shows. A renewed file is read anew, without a restart."""

    def __init__(self, settings: ListenTable, home: Path) -> None:
        names = settings.certificate, settings.key or settings.certificate
        self._files = tuple(str(home / Path(name).expanduser()) for name in names)
        self._read_at: tuple[int, ...] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """What to speak TLS with; the one before while the files do not fit together.

        Raises ConfigError when they never did.
        """
        with suppress(OSError):
            now = tuple(Path(file).stat().st_mtime_ns for file in self._files)
            if self._context is not None and now == self._read_at:
                return self._context
            self._read_at = now
        try:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:  # SSLError is an OSError, and says more
            problem = f"cannot be used ({error.strerror or type(error).__name__}); give PEM files that fit"
            if self._context is None:
                raise ConfigError("pizzabot.toml", problem, key="email.listen.certificate") from error
            logger.error("email.listen.certificate %s; the one before is kept", problem)
            return self._context
        self._context = context
        return context


async def _ended(sessions: list[Session]) -> None:
    """Wait a moment for connections to close, then cut the others."""
    tasks = [task for session in sessions if (task := session._handler_coroutine) is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=_GOODBYE_SECONDS)
    for session in sessions:
        session.cut_off()


def why_closed(error: OSError, host: str, port: int) -> str:
    """Why nobody can listen there, in words for the operator."""
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use by another program"
    if error.errno == errno.EACCES:
        return f"port {port} needs more rights than this user has; choose one from 1024 on"
    return f"{host} cannot be listened on ({error.strerror or type(error).__name__})"
