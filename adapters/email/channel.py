"""Email as a channel: what brings mail in, what reads it, what answers it, and what sends it."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pizzabot.approvals.verdicts import Words
from pizzabot.doors import Doors
from pizzabot.errors import DeliveryFailed, Unavailable
from pizzabot.messages import ChannelState, OutboundItem, Receipt
from pizzabot.people import Person

from .letters import Envelope, Ours
from .mailboxes import Mailboxes
from .places import VIA, OwnAddress, place_at
from .talks import KEPT, Talks

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from .answering import Answering
    from .delivering import Delivering
    from .imap.door import ImapDoor
    from .reading.reader import Reader
    from .smtp.door import MailDoor
    from .smtp.sending import Sender

logger = logging.getLogger(__name__)

State = Literal["ok", "connecting", "down", "unauthorized", "off"]
_WORST_FIRST: tuple[State, ...] = ("unauthorized", "down", "connecting", "ok", "off")
_REMEMBERED = timedelta(days=400)  # so long a mail that comes again is known, and a reply address understood
_PROBE_SECONDS, _LONGEST_PROBE_SECONDS = 1.0, 60.0


def email_channel(doors: Doors) -> EmailChannel | None:
    """The channel, when `[email]` is on."""
    return EmailChannel(doors) if doors.settings.email.enabled else None


class EmailChannel:
    """A `pizzabot.channel.Channel` over one mail address."""

    name = VIA
    repaints_silently = False  # a mail stays as it was sent: how a question ended is another one

    def __init__(self, doors: Doors) -> None:
        self._doors, self._settings = doors, doors.settings.email
        assert self._settings.address is not None  # the settings' checks see to it
        self._own = OwnAddress(self._settings.address.lower())
        self.mailboxes = Mailboxes(doors)
        self._states: dict[str, tuple[State, str | None]] = {}
        self._heard_at: datetime | None = None
        self._parts: _Parts | None = None
        self._probe: asyncio.Task[None] | None = None

    @property
    def port(self) -> int | None:
        """The port of the door; None when there is none."""
        return self._parts.port if self._parts is not None else None

    # -- what the core asks ------------------------------------------------------------------------------

    def routes(self) -> Sequence[BaseRoute]:
        return ()

    def address_of(self, person: Person) -> str | None:
        reached = (mailbox for mailbox in person.emails if mailbox not in self.mailboxes.unreachable)
        return next(reached, None)

    def is_with(self, person: Person, address: str) -> bool:
        return place_at(address).mailbox in person.emails

    def state(self) -> ChannelState:
        states = {state for state, _ in self._states.values()}
        worst: State = next((state for state in _WORST_FIRST if state in states), "off")
        problems = [said for state, said in self._states.values() if said and state == worst]
        return ChannelState(worst, "; ".join([*problems, *self._remarks()]) or None, self._heard_at)

    def _remarks(self) -> list[str]:
        """What is worth knowing while everything works."""
        said = [
            f"mail to {box} cannot be delivered: {why}" for box, why in self.mailboxes.unreachable.items()
        ]
        if self._parts is not None:
            left_alone, refused = self._parts.answering.left_alone, self._parts.refused
            said += [f"mail that {why}: {count}" for why, count in sorted(left_alone.items())]
            said += [f"refused at the door for its {why}: {count}" for why, count in sorted(refused.items())]
            said += [f"as many mails an hour as allowed: {box}" for box in self._parts.cap.reached()]
            many = self._parts.accepting.reached()
            said += [f"as many mails in an hour as are taken in: from {name}; more wait" for name in many]
        return said

    async def start(self) -> None:
        # Not at the top: commands load this module, and must not pay for the libraries of mail.
        await asyncio.to_thread(_import_libraries)
        await self.mailboxes.recover()
        before = self._doors.clock.now() - _REMEMBERED
        for kept in KEPT:
            await self._doors.forget(VIA, kept, before=before)
        self._parts = _Parts(self, self._doors, self._own, await self._identity())
        await self._parts.start()

    async def stop(self) -> None:
        if self._probe is not None:
            self._probe.cancel()
            await asyncio.gather(self._probe, return_exceptions=True)
        if self._parts is not None:
            await self._parts.stop()
        self._parts = None
        self._states = {}

    async def _identity(self) -> tuple[str, str]:
        """This installation's name in loop marks, and the secret of its Message-IDs; made once."""
        kept = await self._doors.note(VIA, "identity")
        if kept is None:
            kept = json.dumps([secrets.token_hex(8), secrets.token_hex(32)])
            await self._doors.keep(VIA, {"identity": kept})
        name, seed = json.loads(kept)
        return name, seed

    async def deliver(self, item: OutboundItem) -> Receipt:
        delivering = self._ready().delivering
        # A mail cannot be changed: here a repaint is one more mail, and can have gone out already, too.
        if item.external_id is not None and await delivering.find(item) is not None:
            return Receipt(item.external_id)
        return await self._attempt(delivering.deliver(item))

    async def find(self, item: OutboundItem) -> Receipt | None:
        return await self._ready().delivering.find(item)

    async def _attempt(self, delivery: Coroutine[Any, Any, Receipt]) -> Receipt:
        try:
            return await delivery
        except DeliveryFailed as error:
            self._failed(error)
            raise

    def _ready(self) -> _Parts:
        if self._parts is None:
            raise DeliveryFailed("email is not started yet", retryable=True)
        return self._parts

    # -- how it is ---------------------------------------------------------------------------------------

    def becomes(self, part: str, state: State, said: str | None) -> None:
        """A part of the channel is otherwise now."""
        if self._states.get(part) != (state, said) and state in ("down", "unauthorized"):
            logger.warning("%s: %s", part, said)
        self._states[part] = (state, said)

    async def take(self, raw: bytes, envelope: Envelope) -> None:
        """Read a mail and deal with it; raises Unavailable when that could not be stored."""
        parts = self._ready_to_read()
        letter = await parts.reader.read(raw, envelope, parts.ours)
        await parts.answering.take(letter)
        self._heard_at = self._doors.clock.now()

    def _ready_to_read(self) -> _Parts:
        if self._parts is None:
            raise Unavailable("Mail is not read right now; send it again later.")
        return self._parts

    def _failed(self, error: DeliveryFailed) -> None:
        """The server for outgoing mail is away: ask until it is back, then let the outbox know."""
        from .smtp.replies import Away, NotLetIn

        if not isinstance(error, Away | NotLetIn):
            return
        self.becomes("smtp", "unauthorized" if isinstance(error, NotLetIn) else "down", str(error))
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._until_back(), name="smtp probe")

    async def _until_back(self) -> None:
        parts, wait = self._parts, _PROBE_SECONDS
        while parts is not None:
            await asyncio.sleep(wait)
            try:
                await parts.sender.check()
                break
            except DeliveryFailed as error:
                wait = min(2 * wait, _LONGEST_PROBE_SECONDS)
                logger.debug("outgoing mail: %s", error)
        self.becomes("smtp", "ok", None)
        await self._doors.is_back(VIA)


class _Parts:
    """Everything that lives as long as the channel runs."""

    def __init__(
        self, channel: EmailChannel, doors: Doors, own: OwnAddress, identity: tuple[str, str]
    ) -> None:
        from .answering import Answering
        from .caps import HourlyCap
        from .delivering import Delivering
        from .imap.door import ImapDoor
        from .oauth import blocking, token_source
        from .reading.reader import Reader
        from .smtp.door import MailDoor
        from .smtp.sending import Sender
        from .writing.signing import load_key

        settings, words, mailboxes = doors.settings.email, doors.settings.approvals.words, channel.mailboxes
        assert settings.smtp is not None  # the settings' checks see to it
        instance, seed = identity
        talks = Talks(doors)
        self.ours = Ours((own.address,), instance, settings.trusted_authserv_ids)
        self.reader: Reader = Reader()
        accepted = Words.of(words.approve, words.reject)
        self.accepting = HourlyCap(
            settings.caps.accepted_per_person_hour, lambda: doors.clock.now().timestamp()
        )
        self.answering: Answering = Answering(doors, own, talks, mailboxes, accepted, self.accepting)
        tokens = blocking(token_source(settings.smtp.oauth)) if settings.smtp.oauth is not None else None
        self.sender: Sender = Sender(settings.smtp, tokens)
        self.cap = HourlyCap(settings.caps.per_verified_person_hour, asyncio.get_running_loop().time)
        key = load_key(settings.dkim, own.address, doors.folder) if settings.dkim is not None else None
        self.delivering: Delivering = Delivering(
            doors, own, talks, mailboxes, self.sender, self.cap, key, instance=instance, seed=seed
        )
        self._imap: ImapDoor | None = None
        self._door: MailDoor | None = None
        if settings.imap is not None:
            becomes = partial(channel.becomes, "imap")
            self._imap = ImapDoor(settings.imap, channel.take, _Cursors(doors), becomes, clock=doors.clock)
        if settings.listen is not None:
            becomes = partial(channel.becomes, "door")
            self._door = MailDoor(settings.listen, own.is_ours, channel.take, becomes, home=doors.folder)

    @property
    def refused(self) -> Mapping[str, int]:
        """What the door refused, by reason."""
        return self._door.refused if self._door is not None else {}

    @property
    def port(self) -> int | None:
        """The port of the door; None when there is none."""
        return self._door.port if self._door is not None else None

    async def start(self) -> None:
        if self._imap is not None:
            self._imap.start()
        if self._door is not None:
            await self._door.start()

    async def stop(self) -> None:
        """Take nothing more, let what is being read end, then close the way out."""
        if self._imap is not None:
            await self._imap.stop()
        if self._door is not None:
            await self._door.stop()
        await self.reader.stop()
        await self.sender.close()


class _Cursors:
    """Where the mailbox's door keeps how far it has read."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def get(self, key: str) -> str | None:
        return await self._doors.note(VIA, key)

    async def put(self, key: str, value: str) -> None:
        await self._doors.keep(VIA, {key: value})


def _import_libraries() -> None:
    from importlib import import_module

    for name in ("answering", "delivering", "imap.door", "reading.reader", "smtp.door", "smtp.sending"):
        import_module(f".{name}", __package__)
