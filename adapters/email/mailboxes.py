"""Which mailboxes of people cannot be reached? Marked by a hard bounce, cleared by a mail from there."""

from __future__ import annotations

import json
import logging

from pizzabot.doors import Doors

from .places import VIA, hashed
from .talks import Asked

logger = logging.getLogger(__name__)


class Mailboxes:
    """The marked ones, in memory and in the channel's notes."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self.unreachable: dict[str, str] = {}  # and what their server said

    async def recover(self) -> None:
        """Learn again which are marked."""
        kept = map(json.loads, (await self._doors.notes(VIA, "bounced/")).values())
        self.unreachable = {mark["mailbox"]: mark["said"] for mark in kept}

    async def bounced(self, asked: Asked, said: str) -> None:
        """A mail did not arrive and never will: its person is told on another channel."""
        self.unreachable[asked.mailbox] = said
        value = json.dumps({"mailbox": asked.mailbox, "said": said})
        await self._doors.keep(VIA, {f"bounced/{hashed(asked.mailbox)}": value})
        logger.warning("mail to %s cannot be delivered: %s", asked.mailbox, said)
        person = self._doors.people.by_email(asked.mailbox)
        if person is not None:
            await self._doors.tell_elsewhere(VIA, asked.thread_id, asked.action_id, person)

    async def is_alive(self, mailbox: str) -> None:
        """Somebody wrote from there, so mail reaches it again, or may."""
        if self.unreachable.pop(mailbox, None) is not None:
            await self._doors.forget(VIA, f"bounced/{hashed(mailbox)}")
