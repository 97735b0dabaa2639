"""Who may come in, how much at once, and what is answered to a whole mail? What all connections share.

    enter -> hold, hold, … -> release -> take -> leave

Counts stand in memory and name reasons only: never an address, never a text from outside.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pizzabot.errors import Refused, Unavailable
from pizzabot.text import visible

from ..caps import TooMany
from ..letters import MAX_BYTES, Envelope, Take

logger = logging.getLogger(__name__)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LONGEST_WORDS = 300  # a reply line has at most 512 octets (RFC 5321 §4.5.3.1.5), words at most 4 each


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of the door: bytes, counts, seconds."""

    mail_bytes: int = MAX_BYTES
    receiving_bytes: int = 100 * 1024 * 1024  # of all mails that are on their way in
    recipients: int = 100
    connections: int = 100
    connections_per_peer: int = 20
    mistakes: int = 20
    command_seconds: float = 60.0
    data_seconds: float = 600.0  # from the first to the last byte of a mail, and for its commit
    between_mails_seconds: float = 600.0  # without one
    linger_seconds: float = 5.0  # for the goodbye to be read
    proxy_seconds: float = 5.0


class Doorkeeper:
    """The shared state of one door; lives in one event loop."""

    def __init__(
        self, is_ours: Callable[[str], bool], take: Take, trusted: Sequence[Network], limits: Limits
    ) -> None:
        self.is_ours, self.limits = is_ours, limits
        self.refused: Counter[str] = Counter()
        self.is_closing = False
        self._take, self._trusted = take, trusted
        self._inside: Counter[str] = Counter()
        self._held = 0
        self._taking: set[asyncio.Task[str]] = set()

    def refuse(self, reason: str, reply: str) -> str:
        """`reply`, counted under `reason`."""
        self.refused[reason] += 1
        return reply

    def enter(self, peer: str) -> bool:
        """Whether one more connection of `peer` fits; whoever entered has to leave."""
        limits = self.limits
        is_full = self._inside.total() >= limits.connections or (
            self._inside[peer] >= limits.connections_per_peer
        )
        if is_full or self.is_closing:
            self.refused["connections"] += 1
            return False
        self._inside[peer] += 1
        return True

    def leave(self, peer: str) -> None:
        self._inside[peer] -= 1
        if not self._inside[peer]:
            del self._inside[peer]

    def trusts(self, peer: str) -> bool:
        """Whether the address lies in a network of the operator's; what is no address does not."""
        try:
            address = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._trusted)

    def hold(self, size: int) -> bool:
        """Make room for `size` bytes; False, and nothing held, when there is none."""
        if self._held + size > self.limits.receiving_bytes:
            return False
        self._held += size
        return True

    def release(self, size: int) -> None:
        self._held -= size

    async def take(self, content: bytes, envelope: Envelope) -> str:
        """The reply to a whole mail. A connection that is cut meanwhile does not break the commit off."""
        if self.is_closing:
            return self.refuse("closing", "451 4.3.2 going down; try again later")
        self._held += len(content)
        task = asyncio.create_task(self._taken(content, envelope), name="take a mail")
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)
        return await asyncio.shield(task)

    async def settle(self, seconds: float) -> None:
        """Take nothing more, and wait for what is being committed, at most so long."""
        self.is_closing = True
        if self._taking:
            await asyncio.wait(self._taking, timeout=seconds)

    async def _taken(self, content: bytes, envelope: Envelope) -> str:
        try:
            await self._take(content, envelope)
        except TooMany as error:
            return self.refuse("rate", f"451 4.7.1 {_words(error)}")
        except Unavailable as error:
            return self.refuse("storage", f"451 4.3.0 {_words(error)}")
        except Refused as error:
            return self.refuse("content", f"550 5.7.1 {_words(error)}")
        except Exception:
            logger.exception("a mail could not be taken in")
            return self.refuse("fault", "451 4.3.0 this server failed; try again later")
        finally:
            self._held -= len(content)
        return "250 2.0.0 taken"


def _words(error: Exception) -> str:
    return visible(str(error))[:_LONGEST_WORDS] or "refused"
