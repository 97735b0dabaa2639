"""How do mails go out? One after the other, over one connection that is kept while there is work for it.

smtplib blocks, so it has a thread of its own; whatever the server was not given whole can still be withdrawn.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pizzabot.settings.tables import SmtpTable

from .client import Connection, Refusals, TokenSource
from .replies import Away

_T = TypeVar("_T")

IDLE_SECONDS = 30.0  # an idle connection is closed: servers do so after some minutes, and not politely
_CHECKED_AFTER_SECONDS = 5.0
_OLDEST_SECONDS = 600.0
_CLOSE_SECONDS = 5.0
_NOTING_SECONDS = 15.0


class _LastWord:
    """Asks the event loop, from the sending thread, whether a mail may be ended. Made in that loop."""

    def __init__(self, about_to_end: Callable[[], Awaitable[None]] | None) -> None:
        self._about_to_end = about_to_end
        self._loop = asyncio.get_running_loop()
        self.is_withdrawn = threading.Event()

    def __call__(self) -> None:
        """Raises Away when it was withdrawn, or could not be noted."""
        if self._about_to_end is not None:
            noted = asyncio.run_coroutine_threadsafe(self._noted(self._about_to_end), self._loop)
            try:
                noted.result(_NOTING_SECONDS)
            except Exception as error:
                noted.cancel()
                raise Away(
                    f"it could not be noted that the mail goes out: {error or 'it took too long'}"
                ) from error
        if self.is_withdrawn.is_set():
            raise Away("the mail was withdrawn")

    async def _noted(self, about_to_end: Callable[[], Awaitable[None]]) -> None:
        if not self.is_withdrawn.is_set():
            await about_to_end()


class Sender:
    """Sends over `[email.smtp]`. Made in the event loop that uses it."""

    def __init__(
        self, settings: SmtpTable, token: TokenSource | None = None, *, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        """`token` gives access tokens when the settings say XOAUTH2."""
        self._settings, self._token, self._idle_seconds = settings, token, idle_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="smtp")
        self._kept: Connection | None = None  # the thread's own; others may only cut it
        self._idle: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def send(
        self,
        sender: str,
        recipient: str | Sequence[str],
        message: bytes,
        *,
        about_to_end: Callable[[], Awaitable[None]] | None = None,
    ) -> Refusals:
        """Hand one mail to the server; the recipients that it refused, when it took others.

        `sender` is the envelope's, "" for none. `message` is signed and complete. `about_to_end` is awaited
        when the server has all but the end of the mail: before that the mail cannot arrive, from then on it
        may have. It is awaited once more when a kept connection turns out to be dead. Whoever cancels before
        that knows that the mail was not sent.

        Raises:
            Away, NotLetIn, Deferred, Rejected, NoSuchRecipient, DeliveryUnknown: see `replies`.
        """
        recipients = (recipient,) if isinstance(recipient, str) else tuple(dict.fromkeys(recipient))
        last_word = _LastWord(about_to_end)
        try:
            return await self._in_thread(lambda: self._send(sender, recipients, message, last_word))
        except asyncio.CancelledError:
            last_word.is_withdrawn.set()
            raise

    async def check(self) -> None:
        """Connect, log in, and hear an answer.

        Raises Away or NotLetIn.
        """
        await self._in_thread(self._check)

    async def close(self) -> None:
        """Let what is being sent end, for some seconds, refuse what waits, and say goodbye."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._idle is not None:
            self._idle.cancel()
        dropped = asyncio.get_running_loop().run_in_executor(self._thread, self._drop)
        await asyncio.wait((dropped,), timeout=_CLOSE_SECONDS)
        if not dropped.done() and self._kept is not None:
            self._kept.cut()
        await dropped
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        self._must_be_open()
        loop = asyncio.get_running_loop()
        if self._idle is not None:
            self._idle.cancel()
        self._idle = loop.call_later(self._idle_seconds, self._thread.submit, self._drop)
        return await loop.run_in_executor(self._thread, work)

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise Away("it is not used any more")

    # -- in the thread -------------------------------------------------------------------------------------

    def _send(
        self, sender: str, recipients: Sequence[str], message: bytes, last_word: Callable[[], None]
    ) -> Refusals:
        kept = self._usable()
        if kept is not None:
            try:
                return kept.send(sender, recipients, message, last_word)
            except Away:
                # It had been closed meanwhile, as servers do: that says nothing of the server's health.
                self._drop()
        return self._connection().send(sender, recipients, message, last_word)

    def _check(self) -> None:
        if not self._connection().answers():
            raise Away("it does not answer")

    def _connection(self) -> Connection:
        found = self._usable()
        if found is None:
            found = self._kept = Connection(self._settings, self._token)
        return found

    def _usable(self) -> Connection | None:
        """The kept connection, when it is young and alive."""
        self._must_be_open()  # closed while this waited
        kept, now = self._kept, time.monotonic()
        if kept is None:
            return None
        is_young = kept.is_open and now - kept.opened_at < _OLDEST_SECONDS
        if is_young and (now - kept.used_at < _CHECKED_AFTER_SECONDS or kept.answers()):
            return kept
        self._drop()
        return None

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.quit()
            self._kept = None
