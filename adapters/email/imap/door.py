"""How does mail come in from a mailbox? One connection that is watched, renewed, and never two.

    connect -> log in -> select -> take in what is new -> IDLE or a while -> take in what is new … -> again

`cursor` knows which mails are new, `intake` takes in each once. People may read, move and delete mails
meanwhile; nothing here depends on \\Seen or on positions.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from pizzabot.clock import Clock, SystemClock
from pizzabot.errors import ConfigError, Unavailable
from pizzabot.settings.tables import ImapTable

from ..failures import Declined, NotLetIn, Unreachable
from ..letters import Envelope, Take
from ..oauth import TokenSource, token_source
from .connection import ImapConnection
from .intake import Intake, KeyValue, NotTaken, WatchedFolder

logger = logging.getLogger(__name__)

State = Literal["ok", "connecting", "down", "unauthorized"]


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient the door is, in seconds.

    After failures it waits from `first_wait` on, doubled each time up to `longest_wait`, and at least
    `refused_wait` when it was not let in. A connection that lasted `lasting` makes it forget earlier
    failures. `silence` is how long an answer may take. IDLE is renewed after a time within `renew`: a server
    may end it after 30 minutes (RFC 2177), and routers forget a silent connection sooner.
    """

    first_wait: float = 1.0
    longest_wait: float = 300.0
    refused_wait: float = 30.0
    lasting: float = 30.0
    silence: float = 30.0
    renew: tuple[float, float] = (240.0, 540.0)


class ImapDoor:
    """Watches one folder of one mailbox for as long as it runs."""

    def __init__(
        self,
        settings: ImapTable,
        take: Take,
        state: KeyValue,
        becomes: Callable[[State, str | None], None],
        *,
        clock: Clock | None = None,
        timing: Timing | None = None,
    ) -> None:
        """`becomes` hears each change of how the door is, and what to do about it."""
        self._settings, self._take, self._becomes = settings, take, becomes
        self._clock, self._timing = clock or SystemClock(), timing or Timing()
        self._tokens = token_source(settings.oauth)
        key = f"imap/{quote(settings.username)}@{settings.host.lower()}/{quote(settings.folder)}"
        self._watched = WatchedFolder(key, state, self._clock)
        self._task: asyncio.Task[None] | None = None
        self._told: tuple[State, str | None] | None = None
        self.last_event_at: datetime | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="imap")

    async def stop(self) -> None:
        """Log out and end, within some two seconds; nothing is taken in afterwards."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        failures = 0
        self._tell("connecting")
        while True:
            began = asyncio.get_running_loop().time()
            least = 0.0
            try:
                await self._connection()
            except NotLetIn as error:
                self._tell("unauthorized", str(error))
                least = self._timing.refused_wait
            except (Unreachable, ConfigError) as error:
                was_ok = self._told is not None and self._told[0] == "ok"
                self._tell("connecting" if was_ok else "down", str(error))
            except Declined as error:
                self._tell("down", f"{self._settings.host} declined: {error}; look at folder in the settings")
            except Unavailable as error:
                self._tell("down", f"the state of the mailbox cannot be stored: {error}")
            except Exception as error:
                logger.exception("mailbox %s could not be read", self._watched.key)
                self._tell("down", f"the mailbox could not be read ({type(error).__name__}); see the log")
            lasted = asyncio.get_running_loop().time() - began
            failures = 1 if lasted >= self._timing.lasting else failures + 1
            await self._pause(failures, least)

    async def _connection(self) -> None:
        """One connection from its beginning to the error that ends it."""
        connection = await ImapConnection.open(self._settings, self._timing.silence)
        try:
            await log_in(connection, self._settings, self._tokens)
            folder = await connection.select(self._settings.folder)
            intake = await Intake.begin(
                connection, folder, self._watched, self._counted, self._settings.move_to
            )
            await self._watch(connection, intake)
        finally:
            await connection.close()

    async def _watch(self, connection: ImapConnection, intake: Intake) -> None:
        failures = 0
        while True:
            try:
                await intake.take_new()
            except (Unavailable, NotTaken) as error:
                failures += 1
                self._tell("down", f"mail waits in the mailbox: {error}")
                await self._pause(failures)
                continue
            failures = 0
            self._tell("ok", _remarks(self._watched.left, intake.waiting))
            await connection.wait(min(self._settings.poll_seconds, random.uniform(*self._timing.renew)))

    async def _counted(self, raw: bytes, envelope: Envelope) -> None:
        await self._take(raw, envelope)
        self.last_event_at = self._clock.now()

    async def _pause(self, failures: int, least: float = 0.0) -> None:
        wait = back_off_seconds(failures, self._timing.first_wait, self._timing.longest_wait)
        await asyncio.sleep(max(wait, least) * random.uniform(0.8, 1.2))

    def _tell(self, state: State, detail: str | None = None) -> None:
        if self._told == (state, detail):
            return
        self._told = (state, detail)
        if detail is not None:
            logger.warning("mailbox %s: %s", self._watched.key, detail)
        self._becomes(state, detail)


async def log_in(connection: ImapConnection, settings: ImapTable, tokens: TokenSource | None) -> None:
    """Log in with a token of `tokens`, or without those with the password; raises NotLetIn, Unreachable."""
    if tokens is None:
        password = settings.password
        await connection.login(password=password.get_secret_value() if password else "")
        return
    try:
        await connection.login(token=await tokens.token())
    except NotLetIn:  # perhaps the token was revoked before its time
        await connection.login(token=await tokens.token(fresh=True))


def back_off_seconds(failures: int, first: float, longest: float) -> float:
    """How long to wait after so many failures in a row, 1 at least: doubled each time, up to `longest`."""
    return float(min(longest, first * 2.0 ** min(failures - 1, 30)))


def _remarks(left: int, waiting: int) -> str | None:
    """What an operator reads of mails that lie in the mailbox and were not taken in."""
    said = []
    if left:
        were = "1 mail could not be read and was" if left == 1 else f"{left} mails could not be read and were"
        said.append(f"{were} left in the mailbox; see the log")
    if waiting:
        wait = "1 mail waits" if waiting == 1 else f"{waiting} mails wait"
        said.append(f"{wait} in the mailbox, as more came from one person than is taken in within an hour")
    return "; ".join(said) or None
