"""How is one IMAP connection used? Each command in one thread of its own, within a time, with errors of ours.

The commands of imapclient block; here each is awaited. A command that does not end in its time ends the
connection: a server that is silent, also in IDLE (RFC 2177), is taken for dead. Nothing sets \\Seen.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientError, IMAPClientReadOnlyError

from pizzabot import __version__
from pizzabot.settings.tables import ImapTable

from ..failures import Declined, Unreachable, failed, login_failed
from ..letters import MAX_HEADER_BYTES
from ..tls import verified_context
from .cursor import Found
from .thread import BlockingThread

logger = logging.getLogger(__name__)
T = TypeVar("T")

TAKEN = "$PizzabotTaken"
_CONNECT_SECONDS = 15.0
_GOODBYE_SECONDS = 1.0
_BODY_SECONDS = 600.0  # 25 MB through a slow line


@dataclass(frozen=True, slots=True)
class Folder:
    """What a folder says of itself when it is selected (RFC 3501 §6.3.1)."""

    uidvalidity: int
    uidnext: int
    takes_keywords: bool


class ImapConnection:
    """One logged-in connection; made by `open`, and of no use after any `Unreachable`."""

    def __init__(self, settings: ImapTable, silence_seconds: float) -> None:
        self._settings, self._silence_seconds = settings, silence_seconds
        self._thread = BlockingThread(f"imap {settings.host}")
        self._client: IMAPClient | None = None
        self._wake, self._woken = socket.socketpair()

    @classmethod
    async def open(cls, settings: ImapTable, silence_seconds: float = 30.0) -> ImapConnection:
        """Connect, encrypted as the settings say; nobody is logged in yet.

        `silence_seconds` is how long the server may say nothing while an answer is waited for.

        Raises Unreachable, and ConfigError for a ca_file that cannot be read.
        """
        tls = None if settings.security == "none" else verified_context(settings.ca_file)
        connection = cls(settings, silence_seconds)
        try:
            await connection._call(lambda: connection._connect(tls), 2 * _CONNECT_SECONDS)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def login(self, *, password: str = "", token: str = "") -> None:
        """Log in with a password or an access token, and say who we are; raises NotLetIn or Unreachable."""
        await self._call(lambda: self._login(password, token))

    async def select(self, folder: str) -> Folder:
        """Watch `folder`; raises Declined when there is none."""
        return await self._call(lambda: self._select(folder))

    async def capabilities(self) -> frozenset[str]:
        """What the server can do, upper case; of a logged-in connection (RFC 3501 §6.1.1)."""
        return await self._call(
            lambda: frozenset(name.decode("ascii", "replace").upper() for name in self._open.capabilities())
        )

    async def search(self, criteria: Sequence[str | date]) -> list[int]:
        """The UIDs that `criteria` find."""
        return await self._call(lambda: list(self._open.search(list(criteria))))

    async def sizes(self, uids: Sequence[int]) -> list[Found]:
        """Size and time of delivery of those that are still there, in the order of `uids`."""
        return await self._call(lambda: self._sizes(uids))

    async def fetch(self, uid: int) -> bytes | None:
        """The whole mail; None when it is gone."""
        return await self._call(lambda: self._part(uid, "BODY.PEEK[]"), _BODY_SECONDS)

    async def fetch_header(self, uid: int) -> bytes | None:
        """The header, up to 256 KB of it; None when the mail is gone."""
        return await self._call(lambda: self._part(uid, f"BODY.PEEK[HEADER]<0.{MAX_HEADER_BYTES}>"))

    async def mark(self, uids: Sequence[int]) -> None:
        """Set the keyword $PizzabotTaken; mails that are gone are no error. Raises Declined."""
        await self._call(lambda: self._open.add_flags(uids, [TAKEN], silent=True))

    async def move(self, uids: Sequence[int], folder: str) -> None:
        """Move into `folder`, which is made when it is missing; raises Declined when that is not possible."""
        await self._call(lambda: self._move(uids, folder))

    async def wait(self, seconds: float) -> None:
        """Until something may have changed in the folder, at most so long; by IDLE when the server has it."""
        if await self._call(lambda: self._open.has_capability("IDLE")):
            await self._call(lambda: self._idle(seconds), seconds + 2 * self._silence_seconds)
        else:
            await asyncio.sleep(seconds)
            await self._call(lambda: self._open.noop())

    async def close(self) -> None:
        """Log out, within a second or without; an IDLE ends at once."""
        with suppress(OSError):
            self._wake.send(b"!")
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_SECONDS):
                    await self._thread.call(self._log_out)
        finally:
            if self._client is not None:
                with suppress(OSError):  # whatever still waits for the server ends now
                    self._client.socket().shutdown(socket.SHUT_RDWR)
            self._thread.end(self._release)

    async def _call(self, function: Callable[[], T], seconds: float = 0.0) -> T:
        """Run in the thread. `seconds` bounds the whole; the time of silence bounds each part of it."""
        place = (self._settings.host, self._settings.port)
        try:
            async with asyncio.timeout(max(seconds, 4 * self._silence_seconds)):
                return await self._thread.call(function)
        except (OSError, IMAPClientError) as error:
            raise failed(error, *place) from error

    # -- in the thread -----------------------------------------------------------------------------------

    @property
    def _open(self) -> IMAPClient:
        if self._client is None:
            raise ConnectionError("not connected")
        return self._client

    def _connect(self, tls: ssl.SSLContext | None) -> None:
        settings = self._settings
        client = IMAPClient(
            settings.host,
            settings.port,
            ssl=settings.security == "tls",
            ssl_context=tls,
            timeout=SocketTimeout(_CONNECT_SECONDS, self._silence_seconds),
        )
        self._client = client
        client.normalise_times = False
        if settings.security == "starttls":
            if not client.has_capability("STARTTLS"):
                raise Unreachable(
                    f'{settings.host} does not offer STARTTLS on this port; try security = "tls" and its port'
                )
            client.starttls(tls)

    def _login(self, password: str, token: str) -> None:
        client, settings = self._open, self._settings
        user = settings.username
        try:
            if token:
                client.sasl_login("XOAUTH2", _xoauth2(user, token))
            elif (user + password).isascii():
                client.login(user, password)
            else:
                client.plain_login(user, password)
        except IMAPClientError as error:
            cause = error.__context__ if isinstance(error.__context__, IMAPClientError) else error
            raise login_failed(cause, settings.host, settings.port, user) from error
        if client.has_capability("ID"):  # RFC 2971; some providers let nobody in who does not say it
            client.id_({"name": "Pizza Bot", "version": __version__})

    def _select(self, name: str) -> Folder:
        client = self._open
        try:
            said = client.select_folder(name)
        except IMAPClientReadOnlyError:
            said = client.select_folder(name, readonly=True)
        if b"UIDVALIDITY" not in said:
            raise Declined(f"the folder {name} has no lasting UIDs, so its mails cannot be told apart")
        permanent = {flag.lower() for flag in said.get(b"PERMANENTFLAGS", ())}
        return Folder(
            uidvalidity=said[b"UIDVALIDITY"],
            uidnext=said.get(b"UIDNEXT") or max(client.search(["UID", "*"]), default=0) + 1,
            takes_keywords=bool(permanent & {b"\\*", TAKEN.lower().encode()}),
        )

    def _sizes(self, uids: Sequence[int]) -> list[Found]:
        said = self._open.fetch(uids, ["RFC822.SIZE", "INTERNALDATE"])
        return [
            Found(uid, said[uid][b"RFC822.SIZE"], said[uid].get(b"INTERNALDATE"))
            for uid in uids
            if b"RFC822.SIZE" in said.get(uid, ())
        ]

    def _part(self, uid: int, part: str) -> bytes | None:
        said: dict[bytes, Any] = self._open.fetch([uid], [part]).get(uid, {})
        return next((bytes(v) for key, v in said.items() if key.startswith(b"BODY[") and v is not None), None)

    def _move(self, uids: Sequence[int], folder: str) -> None:
        client = self._open
        if not client.folder_exists(folder):
            client.create_folder(folder)
        if client.has_capability("MOVE"):  # RFC 6851
            client.move(uids, folder)
        elif client.has_capability("UIDPLUS"):  # without it, EXPUNGE would take what others marked, too
            client.copy(uids, folder)
            client.add_flags(uids, [b"\\Deleted"], silent=True)
            client.uid_expunge(uids)
        else:
            raise Declined("it can neither MOVE nor UIDPLUS")

    def _idle(self, seconds: float) -> None:
        client = self._open
        client.idle()
        if not _has_buffered(client):
            poller = select.poll()
            poller.register(client.socket(), select.POLLIN)
            poller.register(self._woken, select.POLLIN)
            poller.poll(seconds * 1000)
        client.idle_done()  # raises when the socket could be read because it was closed

    def _log_out(self) -> None:
        if self._client is not None:
            with suppress(OSError, IMAPClientError):
                self._client.logout()

    def _release(self) -> None:
        if self._client is not None:
            with suppress(OSError, IMAPClientError):
                self._client.shutdown()
        self._wake.close()
        self._woken.close()


def _has_buffered(client: IMAPClient) -> bool:
    """Whether more than its "+" came from the server in one packet: a poll of the socket would not tell."""
    sock = client.socket()
    patience = sock.gettimeout()
    sock.settimeout(0)
    try:
        return bool(client._imap.file.peek(1))
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    finally:
        sock.settimeout(patience)


def _xoauth2(user: str, token: str) -> Callable[[bytes], bytes]:
    """The client's side of XOAUTH2: the token first, then nothing, as an error is answered with."""
    answers = iter([f"user={user}\x01auth=Bearer {token}\x01\x01".encode()])
    return lambda _challenge: next(answers, b"")
