"""How is one mail after the other taken in from a folder, so that none is lost and none holds up the rest?

    search after the cursor -> size -> body -> take (commits) -> cursor (commits) -> mark or move

A mail is settled when the cursor behind it is stored. Whoever is killed before that takes it again, and
`take` knows it. Marking comes last, for people's eyes; what death left unmarked is marked at the next start.
A mail of somebody who has sent too many waits where it is; those behind it come first, then it comes again.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from typing import Protocol

from pizzabot.clock import Clock
from pizzabot.errors import PizzaBotError, Unavailable

from ..caps import TooMany
from ..failures import Declined, Unreachable
from ..letters import MAX_BYTES, Envelope, Take
from .connection import Folder, ImapConnection
from .cursor import Cursor, Found, batches, criteria, from_text, is_wanted, new_uids, opened, to_text

logger = logging.getLogger(__name__)

_BATCH = 100
_TRIES = 3
_CUTS = 10  # an outage looks the same as a mail that the server cannot bring out
_RETURN_PATH = re.compile(rb"^Return-Path:[ \t]*(?:\r?\n[ \t]+)?<?([^<>\s]*)>?[ \t]*\r?$", re.I | re.M)
_END_OF_HEADER = re.compile(rb"^\r?\n", re.M)


class KeyValue(Protocol):
    """Where the cursor is kept: durable when `put` returns. Both may raise Unavailable."""

    async def get(self, key: str) -> str | None: ...

    async def put(self, key: str, value: str) -> None: ...


class NotTaken(PizzaBotError):
    """One mail could not be taken in; it is to be tried again."""

    code = "not_taken"


class WatchedFolder:
    """One folder of one account over all connections: its cursor on disk, its mails that make trouble."""

    def __init__(self, key: str, state: KeyValue, clock: Clock) -> None:
        self.key, self.clock = key, clock
        self.left = 0  # mails that were given up
        self.senders: dict[tuple[int, int], str] = {}  # of mails that wait, by UIDVALIDITY and UID
        self._state = state
        self._failures: Counter[tuple[str, int, int]] = Counter()

    async def load(self) -> Cursor | None:
        text = await self._state.get(self.key)
        return None if text is None else from_text(text)

    async def store(self, cursor: Cursor) -> None:
        await self._state.put(self.key, to_text(cursor))

    def is_last_try(self, sort: str, cursor: Cursor, found: Found, limit: int) -> bool:
        """Count one more failure of this sort with this mail."""
        mail = (sort, cursor.uidvalidity, found.uid)
        self._failures[mail] += 1
        return self._failures[mail] >= limit


class Intake:
    """Takes in the mails of one selected folder over one connection."""

    def __init__(
        self,
        connection: ImapConnection,
        folder: Folder,
        cursor: Cursor,
        watched: WatchedFolder,
        take: Take,
        move_to: str,
    ) -> None:
        self._connection, self._folder, self._watched = connection, folder, watched
        self._cursor = self._stored = cursor
        self._take, self._move_to = take, move_to

    @classmethod
    async def begin(
        cls, connection: ImapConnection, folder: Folder, watched: WatchedFolder, take: Take, move_to: str
    ) -> Intake:
        """Go on where the last connection ended; raises Unavailable and Unreachable."""
        stored = await watched.load()
        cursor = opened(stored, folder.uidvalidity, folder.uidnext, watched.clock.now())
        if stored is None:
            logger.info("mailbox %s: watched from now on; mails that lie there are not taken in", watched.key)
        elif cursor.look_back is not None and cursor != stored:
            logger.warning(
                "mailbox %s was made anew; looking at all mails since %s again",
                watched.key,
                cursor.look_back.since,
            )
        intake = cls(connection, folder, cursor, watched, take, move_to)
        if cursor != stored:
            await intake._store(cursor)
        await intake._mark()
        return intake

    @property
    def waiting(self) -> int:
        """How many mails were put off."""
        return len(self._cursor.waiting)

    async def take_new(self) -> None:
        """Take in what was put off, as far as it may come now, then everything that is new, in order.

        Raises:
            Unavailable: it cannot be stored now; nothing is lost, call again.
            NotTaken: a mail could not be taken in; call again, it is given up after some tries.
            Unreachable, Declined: the connection is of no more use.
        """
        await self._take_waiting()
        asked_at = self._watched.clock.now()
        uids = new_uids(self._cursor, await self._connection.search(criteria(self._cursor)))
        for batch in batches(uids, _BATCH):
            for found in await self._connection.sizes(batch):
                if is_wanted(self._cursor, found):
                    await self._one(found)
            self._cursor = self._cursor.passed(batch[-1])
            await self._mark()
        self._cursor = self._cursor.caught_up(asked_at)
        if self._cursor.is_worth_storing(self._stored):
            await self._store(self._cursor)

    async def _take_waiting(self) -> None:
        """Try again what was put off. Whoever still has too many is asked about once, not for each mail."""
        many: set[str] = set()
        senders, uidvalidity = self._watched.senders, self._cursor.uidvalidity
        for uid in self._cursor.waiting:
            if senders.get((uidvalidity, uid)) in many:
                continue
            senders.pop((uidvalidity, uid), None)
            for found in await self._connection.sizes([uid]):
                await self._one(found)
            sender = senders.get((uidvalidity, uid))
            if sender is not None:
                many.add(sender)
            else:
                self._cursor = self._cursor.dropped(uid)  # taken in, or gone
        await self._mark()

    async def _one(self, found: Found) -> None:
        cursor = self._cursor
        try:
            taken = await self._hand_over(found)
        except TooMany as error:
            self._watched.senders[cursor.uidvalidity, found.uid] = error.person
            self._cursor = cursor.put_off(found.uid)
            return
        except Unavailable:
            raise
        except Unreachable:
            if self._watched.is_last_try("cut", cursor, found, _CUTS):
                await self._give_up(found)
            raise
        except Exception as error:
            logger.exception(
                "mailbox %s: the mail with UID %d could not be read", self._watched.key, found.uid
            )
            if not self._watched.is_last_try("error", cursor, found, _TRIES):
                raise NotTaken("a mail could not be read; it is tried again") from error
            await self._give_up(found)
            return
        if taken:
            await self._store(cursor.taken(found.uid))

    async def _hand_over(self, found: Found) -> bool:
        """Whether the mail was still there. Of one that is too large, only the header is fetched."""
        is_whole = found.size <= MAX_BYTES
        fetch = self._connection.fetch if is_whole else self._connection.fetch_header
        raw = await fetch(found.uid)
        if raw is None:
            return False
        await self._take(raw, envelope_of(raw, header_only=not is_whole))
        return True

    async def _give_up(self, found: Found) -> None:
        await self._store(self._cursor.dropped(found.uid))
        self._watched.left += 1
        logger.error(
            "mailbox %s: the mail with UID %d was given up and left where it is", self._watched.key, found.uid
        )

    async def _store(self, cursor: Cursor) -> None:
        await self._watched.store(cursor)
        self._cursor = self._stored = cursor

    async def _mark(self) -> None:
        """Show people what was taken in. A mailbox that does not allow it is read all the same."""
        uids = self._cursor.unmarked
        try:
            if uids and self._move_to:
                await self._connection.move(uids, self._move_to)
            elif uids and self._folder.takes_keywords:
                await self._connection.mark(uids)
        except Declined as error:
            logger.warning(
                "mailbox %s: mails that were taken in stay unmarked (%s)", self._watched.key, error
            )
        self._cursor = self._cursor.marked()


def envelope_of(raw: bytes, *, header_only: bool = False) -> Envelope:
    """What a mail in a mailbox tells of its envelope: the last server wrote Return-Path (RFC 5321 §4.4).

    Authentication-Results in it are believed as far as its server is configured as an authority.
    """
    end = _END_OF_HEADER.search(raw)
    found = _RETURN_PATH.search(raw, 0, end.start() if end else len(raw))
    sender = found[1].decode("utf-8", "replace") if found else None
    return Envelope(sender, believes_results=True, header_only=header_only)
