"""Which mail addresses are ours, and where in email does a thread live?

pizza@example.com              our own address
pizza+r-<token>@example.com    where a mail of ours is answered; the token says which
pizza+b-<token>@example.com    where its delivery reports go (VERP)

ada@example.com                a person, in private
ada@example.com <id@host>      the conversation that began with that mail
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Literal

VIA = "email"
Tag = Literal["r", "b"]
_TOKEN_LENGTH = 25
_TOKEN_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"  # mail servers may change the case


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread lives: one person's address, and the Message-ID that a conversation began with."""

    mailbox: str
    root: str | None = None

    @property
    def address(self) -> str:
        """The place as the core knows it."""
        return self.mailbox if self.root is None else f"{self.mailbox} {self.root}"


def place_at(address: str) -> Place:
    """The inverse of `Place.address`."""
    mailbox, _, root = address.partition(" ")
    return Place(mailbox, root or None)


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """The address that the agent is written to, lower case."""

    address: str

    def tagged(self, tag: Tag, token: str) -> str:
        """The address with a token, subaddressed as RFC 5233 has it."""
        local, _, domain = self.address.rpartition("@")
        return f"{local}+{tag}-{token}@{domain}"

    def token_of(self, address: str, tag: Tag) -> str | None:
        """The token in an address of ours; None in any other."""
        local, _, domain = self.address.rpartition("@")
        pattern = rf"{re.escape(local)}\+{tag}-([a-z0-9]{{20,64}})@{re.escape(domain)}"
        found = re.fullmatch(pattern, address, re.IGNORECASE | re.ASCII)
        return found[1].lower() if found is not None else None

    def is_ours(self, address: str) -> bool:
        """Whether mail to `address` is for us, whatever stands behind a plus sign."""
        local, _, domain = address.lower().rpartition("@")
        own_local, _, own_domain = self.address.rpartition("@")
        return domain == own_domain and (local == own_local or local.startswith(f"{own_local}+"))


def new_token() -> str:
    """A token that nobody guesses: 129 bits."""
    return "".join(secrets.choice(_TOKEN_LETTERS) for _ in range(_TOKEN_LENGTH))


def hashed(text: str) -> str:
    """How a token, a Message-ID or a mailbox stands in a key: short, ASCII, of no use to whoever reads it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
