"""How does something that is to be said become a mail, once?

    item -> to whom? what does it answer? -> composed -> what its answer means is kept -> sent
    unknown outcome -> sent again once, under the same Message-ID; then it is left unknown

The Message-ID follows from the item's key, so every try of an item is the same mail.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from pizzabot.digests.showing import summary
from pizzabot.doors import Doors
from pizzabot.errors import DeliveryFailed, DeliveryUnknown
from pizzabot.messages import Action, ActionState, OutboundItem, Receipt, Verdict

from . import words
from .caps import HourlyCap
from .letters import Mailbox
from .mailboxes import Mailboxes
from .places import VIA, OwnAddress, Place, new_token, place_at
from .smtp.replies import NoSuchRecipient
from .smtp.sending import Sender
from .talks import Asked, Talk, Talks, bounce_key, given_key, mail_key, reply_key, told_key, written
from .writing import compose
from .writing.headers import Heads, reply_subject, request_subject
from .writing.signing import SigningKey, sign

logger = logging.getLogger(__name__)

_RETRY_AT_CAP_SECONDS = 300.0
_TRIES_OF_UNKNOWN = 2


class Delivering:
    """Sends items of the outbox. `instance` names this installation in loop marks, `seed` is its secret."""

    def __init__(
        self,
        doors: Doors,
        own: OwnAddress,
        talks: Talks,
        mailboxes: Mailboxes,
        sender: Sender,
        cap: HourlyCap,
        key: SigningKey | None,
        *,
        instance: str,
        seed: str,
    ) -> None:
        self._doors, self._own, self._talks = doors, own, talks
        self._mailboxes, self._sender = mailboxes, sender
        self._cap, self._key, self._instance, self._seed = cap, key, instance, seed

    async def find(self, item: OutboundItem) -> Receipt | None:
        """A mail that its server has taken is noted in its conversation; others cannot be looked up.

        Those are sent again, once: a second unknown outcome stays one. A try that ended before the server had
        the whole mail does not count.

        Raises DeliveryFailed when its server was given it twice.
        """
        message_id = self._message_id(item)
        talk = await self._talks.get(place_at(item.address), item.thread_id)
        if message_id in talk.references:
            return Receipt(message_id)
        if await self._given(message_id) >= _TRIES_OF_UNKNOWN:
            raise DeliveryFailed("was sent twice without an answer; it has probably arrived", retryable=False)
        return None

    async def deliver(self, item: OutboundItem) -> Receipt:
        """Send the mail of an item, or a note that what a mail asked was decided.

        Raises:
            DeliveryFailed, DeliveryUnknown: as `Sender.send` does.
        """
        if item.kind == "reminder" and _is_said_otherwise(item):
            return Receipt(item.external_id or self._message_id(item))
        is_list = item.kind == "digest"
        if item.external_id is not None and (is_list or not await self._is_news(item)):
            return Receipt(item.external_id)  # a mail stays as it was sent
        place = place_at(item.address)
        talk = await self._talks.get(place, item.thread_id)
        to, cc = self._recipients(item, talk, place)
        self._check_caps(talk, place, item)
        token, message_id = new_token(), self._message_id(item)
        heads = Heads(
            sender=Mailbox(self._own.address, self._doors.settings.email.name),
            to=tuple(map(self._named, to)),
            cc=tuple(map(self._named, cc)),
            reply_to=self._own_with("r", token),
            message_id=message_id,
            subject=self._subject(item, talk),
            references=() if is_list else talk.references,
            date=self._local(place.mailbox),
            loop_mark=self._instance,
            automatic="auto-replied" if talk.references and not is_list else "auto-generated",
        )
        data, offered = await self._composed(item, heads, talk)
        asked = self._asked(item, place, offered)
        bounce = new_token()
        meant = {reply_key(token): asked, mail_key(message_id): asked, bounce_key(bounce): asked}
        kept = {name: written(value) for name, value in meant.items()}
        if (card := _card_of(item)) is not None:
            kept[told_key(item.external_id or message_id)] = json.dumps([card.state, item.key, card.digest])
        await self._doors.keep(VIA, kept)
        await self._send(asked, message_id, self._own_with("b", bounce), [*to, *cc], data)
        await self._talks.change(
            place,
            item.thread_id,
            lambda talk: talk.begun(message_id, heads.subject) if is_list else talk.said(message_id),
        )
        return Receipt(item.external_id or message_id)

    async def _send(
        self, asked: Asked, message_id: str, sender: str, recipients: Sequence[str], data: bytes
    ) -> None:
        given = await self._given(message_id)

        async def count() -> None:
            await self._doors.keep(VIA, {given_key(message_id): str(given + 1)})

        try:
            signed = sign(data, self._key) if self._key is not None else data
            refused = await self._sender.send(sender, recipients, signed, about_to_end=count)
        except DeliveryUnknown:
            raise
        except DeliveryFailed as error:
            if await self._given(message_id) > given:  # but not taken, which is certain
                await self._doors.keep(VIA, {given_key(message_id): str(given)})
            self._cap.give_back(asked.mailbox)
            if isinstance(error, NoSuchRecipient):
                await self._mailboxes.bounced(asked, str(error))
            raise
        for mailbox, why in refused.items():
            logger.warning("%s did not get a mail that others got: %s", mailbox, why)
            if isinstance(why, NoSuchRecipient):
                await self._mailboxes.bounced(replace(asked, mailbox=mailbox), str(why))

    async def _given(self, message_id: str) -> int:
        """How often a server was given that mail and may have taken it."""
        return int(await self._doors.note(VIA, given_key(message_id)) or 0)

    async def _is_news(self, item: OutboundItem) -> bool:
        """How a question ended is told to whom it was asked of, once, unless they decided it by mail.

        A question that had expired and is open again is asked again, and one whose arguments were edited.
        """
        action = item.action
        assert action is not None  # nothing else is repainted in mail
        assert item.external_id is not None
        note = json.loads(await self._doors.note(VIA, told_key(item.external_id)) or "[null, null]")
        state, key, digest = (*note, None)[:3]
        person = self._doors.people.by_email(place_at(item.address).mailbox)
        if state == action.state and key != item.key:
            # Others' approvals change nothing for a reader; other arguments do, but not for who wrote them.
            if action.state is not ActionState.PENDING or digest in (None, action.digest):
                return False
            return person is None or action.edited_by != person.name
        return action.decided_via != VIA or person is None or action.decided_by != person.name

    def _check_caps(self, talk: Talk, place: Place, item: OutboundItem) -> None:
        caps = self._doors.settings.email.caps
        # What nobody reads must not use up what an answer needs later.
        most = caps.automatic_per_thread // 2 if item.kind == "reminder" else caps.automatic_per_thread
        # A digest comes when the person said, and asks for no answer.
        if talk.unanswered >= most and item.kind != "digest":
            raise DeliveryFailed(
                f"{talk.unanswered} mails went out in this conversation without an answer "
                "(email.caps.automatic_per_thread); it is in the inbox",
                retryable=False,
            )
        if not self._cap.takes(place.mailbox):
            raise DeliveryFailed(
                f"too many mails to {place.mailbox} in an hour (email.caps.per_verified_person_hour)",
                retryable=True,
                retry_after=_RETRY_AT_CAP_SECONDS,
            )

    # -- what stands in it -------------------------------------------------------------------------------

    def _recipients(self, item: OutboundItem, talk: Talk, place: Place) -> tuple[list[str], list[str]]:
        """An answer goes to everybody known in its conversation, anything else to one person."""
        to: tuple[str, ...] = (place.mailbox,)
        cc: tuple[str, ...] = ()
        if item.kind == "answer" and place.root is not None and talk.to:
            to, cc = talk.to, talk.cc
        reached = [
            [box for box in boxes if self._doors.people.by_email(box) is not None] for boxes in (to, cc)
        ]
        if not reached[0]:
            raise DeliveryFailed(f"{', '.join(to)} is nobody of [[people]] any more", retryable=False)
        return reached[0], reached[1]

    def _message_id(self, item: OutboundItem) -> str:
        """The same for every try of an item, and not to be guessed."""
        name = hmac.new(self._seed.encode(), item.key.encode(), hashlib.sha256).hexdigest()[:32]
        return f"<{name}@{self._own.address.rpartition('@')[2]}>"

    def _own_with(self, word: Literal["r", "b"], token: str) -> str:
        """Our address with a token in it, where its server takes subaddresses."""
        subaddressed = self._doors.settings.email.plus_addressing
        return self._own.tagged(word, token) if subaddressed else self._own.address

    def _named(self, mailbox: str) -> Mailbox:
        person = self._doors.people.by_email(mailbox)
        return Mailbox(mailbox, person.name if person is not None else "")

    def _local(self, mailbox: str) -> datetime:
        person = self._doors.people.by_email(mailbox)
        return self._doors.clock.now().astimezone(ZoneInfo(person.timezone if person is not None else "UTC"))

    def _subject(self, item: OutboundItem, talk: Talk) -> str:
        if (card := _card_of(item)) is not None and card.state is ActionState.PENDING:
            return request_subject(card, item.thread_title)
        if item.kind == "digest" and item.digest is not None:
            return f"Digest: {summary(item.digest)}"
        return reply_subject(talk.subject) if talk.subject else item.thread_title

    def _asked(self, item: OutboundItem, place: Place, offered: tuple[Verdict, ...]) -> Asked:
        card = _card_of(item)
        action = card if card is not None and card.state is ActionState.PENDING else None
        listed = item.digest if offered or item.kind != "digest" else None
        return Asked(
            thread_id=item.thread_id,
            mailbox=place.mailbox,
            person=self._person(place) if action is not None or listed is not None else None,
            action_id=action.id if action is not None else None,
            digest=action.digest if action is not None else None,
            offered=offered,
            root=place.root,
            digest_id=listed.id if listed is not None else None,
        )

    def _person(self, place: Place) -> str | None:
        person = self._doors.people.by_email(place.mailbox)
        return person.name if person is not None else None

    async def _composed(
        self, item: OutboundItem, heads: Heads, talk: Talk
    ) -> tuple[bytes, tuple[Verdict, ...]]:
        """The mail, and what may be decided by answering it."""
        page = f"{self._doors.url()}/threads/{item.thread_id}"
        match item.kind:
            case "answer":
                said = item.text + _left_out(talk)
                return await asyncio.to_thread(compose.answer, heads, said, page=page), ()
            case "action" | "reminder":
                assert item.action is not None
                return await self._about(item, item.action, heads)
            case "digest":
                assert item.digest is not None
                listed = compose.digest(heads, item.digest, url=self._doors.url().rstrip("/"))
                return listed.data, listed.offered
        headline, rest = words.headline_and_rest(item.text)
        if item.action is not None:
            page = f"{self._doors.url()}/actions/{item.action.id}"
            title = item.thread_title
            return compose.confirmation(heads, item.action, title=title, page=page, headline=headline), ()
        return compose.notice(heads, headline, rest, page=page), ()

    async def _about(
        self, item: OutboundItem, action: Action, heads: Heads
    ) -> tuple[bytes, tuple[Verdict, ...]]:
        page = f"{self._doors.url()}/actions/{action.id}"
        if action.state is not ActionState.PENDING:
            return compose.confirmation(heads, action, title=item.thread_title, page=page), ()
        people = self._doors.people
        thread = await self._doors.thread(item.thread_id, people.owner)
        person = people.by_email(place_at(item.address).mailbox)
        may_decide = person is not None and people.decides_action(person, action, thread.owner)
        began = await self._doors.began_with(action, person) if person is not None else None
        if person is not None and began is not None and all(by == person.name for by, _ in began.words):
            began = replace(began, words=())  # nobody needs to read their own words again
        asking = await asyncio.to_thread(
            compose.request,
            heads,
            action,
            title=item.thread_title,
            may_decide=may_decide,
            page=page,
            thread_page=f"{self._doors.url()}/threads/{item.thread_id}",
            began=began,
            deadline=action.expires_at,
            since=action.waiting_since or action.created_at if item.kind == "reminder" else None,
        )
        return asking.data, asking.offered


def _card_of(item: OutboundItem) -> Action | None:
    """The action that the mail shows as it stands; a notice only answers whoever decided it."""
    return item.action if item.kind != "notice" else None


def _is_said_otherwise(item: OutboundItem) -> bool:
    """Whether a mail about the end of a wait is sent anyway: by the repaint of the question's own mail.

    Whoever was not asked has no such mail, and yet their work may stand still.
    """
    if item.external_id is not None or item.action is None:
        return True
    return item.action.state is not ActionState.PENDING and item.card is not None


def _left_out(talk: Talk) -> str:
    """Who was on the mail and gets no answer: never dropped silently, never added either."""
    if not talk.left_out:
        return ""
    listed = ", ".join(f"`{mailbox.replace('`', '')}`" for mailbox in talk.left_out[:20])
    return f"\n\n---\n\nNot sent to {listed}: only people of this installation get answers."
