"""Whose token is this? One API token a person, kept as a hash; the owner's also in the open for commands."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pizzabot.errors import ConfigError, NotFound
from pizzabot.home import PRIVATE_FILE, Home, write_private
from pizzabot.people import People

_PREFIX = "pzb_"
_LARGEST_BYTES = 1_000_000
_LONGEST_TOKEN = 200
_HASH = re.compile(r"[0-9a-f]{64}")

_Stamp = tuple[int, int, int]


class Tokens:
    """The tokens of one home. Re-read when the file changes: a token issued elsewhere counts at once."""

    def __init__(self, home: Home, people: People) -> None:
        self._home, self._people = home, people
        self._read: tuple[_Stamp, dict[str, str]] | None = None

    def ensure_owner(self) -> None:
        """At the first start give the owner a token, and again when its file is gone or does not fit.

        Raises:
            ConfigError: `tokens.json` is there and broken; it is never overwritten.
        """
        hashes = self._hashes() if self._home.tokens_json.exists() else {}
        kept = _first_line(self._home.token_file)
        if kept is None or not _fits(kept, hashes.get(self._people.owner.name, "")):
            self.issue(self._people.owner.name)

    def issue(self, name: str) -> str:
        """A new token for that person; the one before is void. For the owner the token file follows.

        Raises:
            NotFound: nobody has that name.
            ConfigError: `tokens.json` is broken.
        """
        person = self._people.by_name(name)
        if person is None:
            known = ", ".join(known.name for known in self._people)
            raise NotFound(f"nobody is named {name!r}; known are {known}")
        token = _PREFIX + secrets.token_urlsafe(32)
        with self._writing():
            hashes = self._hashes() if self._home.tokens_json.exists() else {}
            hashes = {**hashes, person.name: _hash(token)}
            write_private(self._home.tokens_json, (json.dumps(hashes, indent=2) + "\n").encode())
            if person is self._people.owner:
                write_private(self._home.token_file, f"{token}\n".encode())
        return token

    def person_of(self, token: str) -> str | None:
        """The name of the person with that token, as long as the settings know the person.

        Raises:
            ConfigError: `tokens.json` is missing, broken or unreadable.
        """
        offered = _hash(token[:_LONGEST_TOKEN])
        found = None
        for name, kept in self._hashes().items():  # to the end: the time says nothing about the place
            if hmac.compare_digest(offered, kept):
                found = name
        person = self._people.by_name(found) if found is not None else None
        return person.name if person is not None else None

    def owner_token(self) -> str:
        """The owner's token, for the commands of this machine.

        Raises:
            ConfigError: the token file is missing, empty or unreadable.
        """
        token = _first_line(self._home.token_file)
        if not token:
            raise ConfigError(
                str(self._home.token_file), 'is missing or empty; start "pizzabot serve" once, it makes one'
            )
        return token

    def _hashes(self) -> dict[str, str]:
        path = self._home.tokens_json
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
                if self._read is not None and self._read[0] == stamp:
                    return self._read[1]
                raw = file.read(_LARGEST_BYTES + 1)
        except FileNotFoundError as error:
            raise ConfigError(str(path), 'is missing; start "pizzabot serve" once, it makes one') from error
        except OSError as error:
            raise ConfigError(str(path), f"cannot be read ({error.strerror})") from error
        hashes = _parse(path, raw)
        self._read = (stamp, hashes)
        return hashes

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One writer at a time, across processes: a command issues tokens while the server runs."""
        path = self._home.tokens_json.with_suffix(".lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _parse(path: Path, raw: bytes) -> dict[str, str]:
    try:
        content = json.loads(raw.decode("utf-8")) if len(raw) <= _LARGEST_BYTES else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not all(
        isinstance(kept, str) and _HASH.fullmatch(kept) for kept in content.values()
    ):
        raise ConfigError(
            str(path),
            'is broken; restore it from a backup, or delete it and issue tokens with "pizzabot token"',
        )
    return content


def _first_line(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_TOKEN).split(b"\n")[0].decode("ascii", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read ({error.strerror})") from error


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _fits(token: str, kept: str) -> bool:
    return hmac.compare_digest(_hash(token), kept)
