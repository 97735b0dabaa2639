"""Was this sent by somebody who knows the secret? Pure.

    secret   X-Trigger-Secret, or Authorization: Bearer      compared with a hash, in constant time
    hmac     X-Signature: sha256=hex of HMAC-SHA256(secret, X-Timestamp + "." + body), five minutes around now
             X-Hub-Signature-256: the same over the body alone, as GitHub signs; it counts once, for ever

A secret is kept as its SHA-256: it is long and random, so a slow hash would only serve a flood. A key for
signatures must be known to check them: it is kept sealed with a key of the home (libsodium's secretbox), so
that the database alone does not give it away.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

from pizzabot.errors import ConfigError, Invalid
from pizzabot.home import write_private

WINDOW_SECONDS = 300
_PREFIX = "sha256="
_SHORTEST_SECRET, _LONGEST_SECRET = 16, 500
# What is signed with a time begins so. Were it also taken without, one who caught such a delivery could hold
# it back and send it whenever they like, as a body of the other kind.
_TIMED = re.compile(rb"[0-9]{1,11}\.")


@dataclass(frozen=True, slots=True)
class Proof:
    """A delivery that was proven; `signature` must count only once, None where the secret itself was sent.

    `is_timed`: a while later it is no proof any more.
    """

    signature: str | None
    is_timed: bool = False


def check_secret(secret: Any) -> None:
    """Refuse what no header carries as it is, or what is soon guessed. Raises Invalid, `invalid_trigger`."""
    if (
        isinstance(secret, str)
        and _SHORTEST_SECRET <= len(secret) <= _LONGEST_SECRET
        and secret.isascii()
        and secret.isprintable()
        and " " not in secret
    ):
        return
    raise Invalid(
        f"secret: has {_SHORTEST_SECRET} to {_LONGEST_SECRET} ASCII characters without spaces; leave it out "
        "to have one made.",
        code="invalid_trigger",
    )


def hashed(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def proof_by_secret(kept: str, headers: Mapping[str, str]) -> Proof | None:
    """The proof by a secret in the headers; None when it is not the one whose hash is `kept`."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    sent = headers.get("x-trigger-secret") or (token.strip() if scheme.lower() == "bearer" else "")
    return Proof(None) if hmac.compare_digest(hashed(sent), kept) else None


def proof_by_signature(key: bytes, headers: Mapping[str, str], body: bytes, now: datetime) -> Proof | None:
    """The proof by a signature over the raw body; None when it is wrong, or out of its time."""
    if "x-signature" in headers:
        stamp, sent = headers.get("x-timestamp", ""), headers["x-signature"]
        if not _is_recent(stamp, now):
            return None
        signed = stamp.encode("ascii") + b"." + body
    elif _TIMED.match(body):
        return None
    else:
        sent, signed = headers.get("x-hub-signature-256", ""), body
    right = _PREFIX + hmac.new(key, signed, hashlib.sha256).hexdigest()
    sent = sent.strip().lower()
    if not sent.isascii() or not hmac.compare_digest(sent, right):
        return None
    return Proof(sent.removeprefix(_PREFIX), is_timed="x-signature" in headers)


def _is_recent(stamp: str, now: datetime) -> bool:
    """Whether a Unix time in seconds is within the window; one written in another way is not."""
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 11):
        return False
    return abs(int(stamp) - now.timestamp()) <= WINDOW_SECONDS


class Seal:
    """Seals keys with one of the home's own, which is made when it is first needed."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._turn = Lock()

    def sealed(self, secret: str) -> str:
        """`secret` as the database keeps it."""
        return b64encode(SecretBox(self._key()).encrypt(secret.encode())).decode("ascii")

    def opened(self, kept: str) -> bytes:
        """The inverse.

        Raises ConfigError when it was sealed with another key.
        """
        try:
            return SecretBox(self._key()).decrypt(b64decode(kept))
        except (CryptoError, ValueError) as error:
            raise ConfigError(
                str(self._key_file),
                "is not the key that sealed this trigger's secret; give the trigger a new secret",
            ) from error

    def _key(self) -> bytes:
        with self._turn:  # two that find none at once must not make two
            return self._read_or_made()

    def _read_or_made(self) -> bytes:
        try:
            key = b64decode(self._key_file.read_text("ascii").strip(), validate=True)
        except FileNotFoundError:
            key = random(SecretBox.KEY_SIZE)
            write_private(self._key_file, b64encode(key) + b"\n")
        except ValueError:
            key = b""
        if len(key) != SecretBox.KEY_SIZE:
            raise ConfigError(
                str(self._key_file),
                "is no key; put back a copy of it, or remove it and give its triggers new secrets",
            )
        return key
