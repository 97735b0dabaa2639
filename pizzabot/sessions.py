"""Who is logged in? One-time codes that open sessions, and the sessions, as rows: both survive a restart.

    code (issued for a person) --log_in, once, within ten minutes--> session --log_out | unused | old--> gone

Of codes and of sessions only hashes are stored: who reads the database can log in as nobody.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from pizzabot import audit
from pizzabot.clock import Clock
from pizzabot.database.connection import Database
from pizzabot.database.schema import login_codes, sessions
from pizzabot.errors import Forbidden, NotFound, Refused
from pizzabot.people import People, Person, may_administer

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

    def __init__(self, database: Database, clock: Clock, people: People) -> None:
        self._database, self._clock, self._people = database, clock, people

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
            row = {"hash": _hash(code), "person": issued.person, "expires_at": issued.expires_at}
            connection.execute(sa.insert(login_codes).values(row))
            audit.append(
                connection, now, actor=by.name, via=via, event="login.offered", subject=issued.person
            )

        await self._database.write(work)
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
            row = {"hash": _hash(secret), "person": person.name, "created_at": now, "seen_at": now}
            connection.execute(sa.insert(sessions).values(row))
            audit.append(connection, now, actor=person.name, via=via, event="login", subject=person.name)
            return True

        if not await self._database.write(work):
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
            seen = sa.update(sessions).where(sessions.c.hash == key).values(seen_at=now)
            await self._database.write(lambda c: c.execute(seen))
        return self._people.by_name(row.person)

    async def log_out(self, secret: str, via: str) -> None:
        """End one session."""
        await self._end(sessions.c.hash == _hash(secret), via)

    async def log_out_everywhere(self, person: Person, via: str) -> None:
        """End every session of a person."""
        await self._end(sessions.c.person == person.name, via)

    async def _end(self, which: sa.ColumnElement[bool], via: str) -> None:
        now = self._clock.now()

        def work(connection: sa.Connection) -> None:
            ended = connection.execute(
                sa.delete(sessions).where(which).returning(sessions.c.person)
            ).scalars()
            for name in ended.all():
                audit.append(connection, now, actor=name, via=via, event="logout", subject=name)

        await self._database.write(work)


def _forget_old(connection: sa.Connection, now: datetime) -> None:
    connection.execute(sa.delete(login_codes).where(login_codes.c.expires_at <= now))
    unused = sessions.c.seen_at <= now - IDLE_LIFE
    connection.execute(sa.delete(sessions).where(sa.or_(unused, sessions.c.created_at <= now - LONGEST_LIFE)))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
