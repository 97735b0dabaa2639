"""Who is logged in? One-time codes that open sessions, and the sessions, as rows: both survive a restart.

    code (issued for a person) --log_in, once, within ten minutes--> session --log_out | unused | old--> gone

Of codes and of sessions only hashes are stored: who reads the database can log in as nobody.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.clock import Clock
from pizzabot.database.connection import Database, write_now
from pizzabot.database.schema import login_codes, sessions
from pizzabot.errors import Forbidden, NotFound, Refused
from pizzabot.people import People, Person, may_administer

logger = logging.getLogger(__name__)
CODE_LIFE = timedelta(minutes=10)
IDLE_LIFE = timedelta(days=14)
LONGEST_LIFE = timedelta(days=90)
# How often the use of a session is written down: not with every page.
_SEEN_STEP = timedelta(hours=1)
_BYTES = 32


class CodeNotValid(Refused):
    """A login code that was used, is too old, or never was one: the same words for all three."""

    status, code = 403, "code_not_valid"


@dataclass(frozen=True, slots=True)
class LoginCode:
    """A code that logs one person in, once; `code` is shown to nobody else."""

    person: str
    code: str
    expires_at: datetime


class Sessions:
    """The sessions of one installation."""

    def __init__(
        self, database: Database, clock: Clock, people: People, ended: Callable[[], None] = lambda: None
    ) -> None:
        self._database, self._clock, self._people, self._ended = database, clock, people, ended
        self._noting: set[asyncio.Task[Any]] = set()

    async def issue_code(self, name: str, by: Person, via: str) -> LoginCode:
        """A fresh code for that person.

        Raises:
            Forbidden: only an owner lets others in.
            NotFound: nobody has that name.
        """
        person = self._people.by_name(name)
        if not may_administer(by) and (person is None or person.name != by.name):
            raise Forbidden("Only an owner may make a login link for somebody else.", code="not_an_owner")
        if person is None:
            known = ", ".join(known.name for known in self._people)
            raise NotFound(f"Nobody is named {name[:60]!r}; known are {known}.")
        now, code = self._clock.now(), secrets.token_urlsafe(_BYTES)
        issued = LoginCode(person.name, code, now + CODE_LIFE)

        def work(connection: sa.Connection) -> None:
            _forget_old(connection, now)
            row = {"hash": _hash(code), "person": _stored(person), "expires_at": issued.expires_at}
            connection.execute(sa.insert(login_codes).values(row))
            audit.append(
                connection, now, actor=by.name, via=via, event="login.offered", subject=issued.person
            )

        await write_now(self._database, work)
        return issued

    async def log_in(self, code: str, via: str) -> str:
        """Use a code up; the secret of the new session.

        Raises CodeNotValid.
        """
        now, secret = self._clock.now(), secrets.token_urlsafe(_BYTES)

        def work(connection: sa.Connection) -> bool:
            used = sa.delete(login_codes).where(
                login_codes.c.hash == _hash(code), login_codes.c.expires_at > now
            )
            name = connection.execute(used.returning(login_codes.c.person)).scalar()
            person = self._people.by_name(name) if name is not None else None
            if person is None:
                return False
            row = {"hash": _hash(secret), "person": _stored(person), "created_at": now, "seen_at": now}
            connection.execute(sa.insert(sessions).values(row))
            audit.append(connection, now, actor=person.name, via=via, event="login", subject=person.name)
            return True

        if not await write_now(self._database, work):
            raise CodeNotValid(
                "This login code was used already, is older than ten minutes, or never was one."
            )
        return secret

    async def person_of(self, secret: str) -> Person | None:
        """Whose session it is, when it still is one and the settings still know the person."""
        now, key = self._clock.now(), _hash(secret)
        row = await self._database.read(
            lambda c: c.execute(sa.select(sessions).where(sessions.c.hash == key)).first()
        )
        if row is None or now >= min(row.seen_at + IDLE_LIFE, row.created_at + LONGEST_LIFE):
            return None
        if now - row.seen_at >= _SEEN_STEP:
            self._note_use(key, now)
        return self._people.by_name(row.person)

    def _note_use(self, key: str, now: datetime) -> None:
        """Write the use down, without letting anybody wait for it or fail with it."""
        seen = sa.update(sessions).where(sessions.c.hash == key).values(seen_at=now)
        noting = asyncio.create_task(self._database.write(lambda c: c.execute(seen)), name="session seen")
        self._noting.add(noting)
        noting.add_done_callback(self._noted)

    def _noted(self, noting: asyncio.Task[Any]) -> None:
        self._noting.discard(noting)
        if not noting.cancelled() and (error := noting.exception()) is not None:
            logger.warning("the use of a session was not written down: %s", error)

    async def person_for(self, code: str) -> Person | None:
        """Whom a code would log in; using nothing up."""
        now = self._clock.now()
        valid = sa.select(login_codes.c.person).where(
            login_codes.c.hash == _hash(code), login_codes.c.expires_at > now
        )
        name = await self._database.read(lambda c: c.execute(valid).scalar())
        return self._people.by_name(name) if name is not None else None

    async def log_out(self, secret: str, via: str) -> None:
        """End one session."""
        await self._end(sa.delete(sessions).where(sessions.c.hash == _hash(secret)), via)

    async def log_out_everywhere(self, person: Person, via: str) -> None:
        """End every session of a person, and void every link that could open one."""
        codes = sa.delete(login_codes).where(login_codes.c.person == _stored(person))
        await self._end(sa.delete(sessions).where(sessions.c.person == _stored(person)), via, codes)

    async def _end(self, which: sa.Delete, via: str, *voided: sa.Delete) -> None:
        now = self._clock.now()

        def work(connection: sa.Connection) -> None:
            for codes in voided:
                connection.execute(codes)
            for stored in connection.execute(which.returning(sessions.c.person)).scalars().all():
                name = person.name if (person := self._people.by_name(stored)) is not None else stored
                audit.append(connection, now, actor=name, via=via, event="logout", subject=name)

        await write_now(self._database, work)
        self._ended()


def _forget_old(connection: sa.Connection, now: datetime) -> None:
    connection.execute(sa.delete(login_codes).where(login_codes.c.expires_at <= now))
    unused = sessions.c.seen_at <= now - IDLE_LIFE
    connection.execute(sa.delete(sessions).where(sa.or_(unused, sessions.c.created_at <= now - LONGEST_LIFE)))


def _stored(person: Person) -> str:
    """The name as rows have it: the settings may spell it in another case one day."""
    return person.name.casefold()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
