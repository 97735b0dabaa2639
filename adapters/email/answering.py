"""What becomes of a mail that was read: a task, an addition, a decision, a question back, or nothing?

    Letter -> dealt with before? -> a bounce? -> a person's? -> verified? -> known?
           -> which question of ours, or which conversation, does it answer? may this person?
           -> decides -> stored, and what was understood is said
           -> is unclear -> kept for the agent, and asked back
           -> else -> accepted, and when it has to wait that is said

The order is the safety. Everything is keyed by the mail: doing it again after a crash changes nothing.
Raising Unavailable means: not taken, bring it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakValueDictionary

from pizzabot.approvals.verdicts import Words
from pizzabot.doors import Doors
from pizzabot.errors import NotFound
from pizzabot.messages import Action, ActionState
from pizzabot.people import Person, may_write

from . import words
from .caps import HourlyCap
from .deciding import Deciding
from .handing import Handing, Reply
from .letters import Letter, LetterKind
from .mailboxes import Mailboxes
from .places import VIA, OwnAddress, Place, hashed
from .talks import Asked, Talk, Talks, asked_of, bounce_key, mail_key, reply_key, taken_key


class Answering:
    """Deals with letters."""

    def __init__(
        self,
        doors: Doors,
        own: OwnAddress,
        talks: Talks,
        mailboxes: Mailboxes,
        accepted_words: Words,
        cap: HourlyCap,
    ) -> None:
        self._doors, self._own, self._talks, self._mailboxes = doors, own, talks, mailboxes
        self._handing = Handing(doors, own, talks, cap)
        self._deciding = Deciding(doors, self._handing, accepted_words)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def left_alone(self) -> Mapping[str, int]:
        """Why mail had no effect, and how often; for status."""
        return self._handing.left_alone

    async def take(self, letter: Letter) -> None:
        """Deal with a letter once; raises Unavailable when that could not be stored.

        A Message-ID names a mail among those of its author: in somebody else's, and in a report, which
        anybody can write, it counts for nothing. So nobody takes it away from its mail by being first.
        """
        author = letter.author.address if letter.author is not None else ""
        is_named = letter.message_id is not None and letter.kind is not LetterKind.BOUNCE
        name = f"{author} {letter.message_id}" if is_named else letter.digest
        # Some servers bring a copy for each recipient, all at once: the first one is dealt with to its end.
        async with self._turns.setdefault(name, asyncio.Lock()):
            await self._take(letter, name)

    async def _take(self, letter: Letter, name: str) -> None:
        known = await self._doors.note(VIA, taken_key(name))
        if known == letter.digest:
            return
        if known is not None:
            self._handing.leave(letter, "used the Message-ID of another mail")
            return
        await self._deal(letter, f"email/{hashed(name)}/{letter.digest}")
        if letter.verified or letter.kind is LetterKind.BOUNCE:
            await self._doors.keep(VIA, {taken_key(name): letter.digest})

    async def _deal(self, letter: Letter, key: str) -> None:
        if letter.kind is LetterKind.BOUNCE:
            await self._bounce(letter)
        elif letter.is_ours:
            self._handing.leave(letter, "came from ourselves")
        elif letter.kind not in (LetterKind.HUMAN, LetterKind.MALFORMED):
            self._handing.leave(letter, f"was written by no person: {letter.kind}")
        elif letter.author is None or not letter.verified:
            if letter.kind is LetterKind.MALFORMED:
                self._handing.leave(letter, "could not be read")
            else:
                self._handing.leave(letter, "has a sender that is not verified")
        elif (person := self._doors.people.by_email(letter.author.address)) is None:
            self._handing.leave(letter, "is of somebody who is not in [[people]]")
        else:
            await self._heard(letter, key, person, letter.author.address)

    # -- what a person wrote -----------------------------------------------------------------------------

    async def _heard(self, letter: Letter, key: str, person: Person, author: str) -> None:
        await self._mailboxes.is_alive(author)
        found = await self._answered(letter)
        if any(asked.person not in (None, person.name) for asked in found):
            self._handing.leave(letter, "answers a question that was put to somebody else")
            return
        first = found[0] if found and await self._is_part_of(found[0], person) else None
        reply = Reply(letter, key, person, author, first)
        # Before anything that a flood keeps back: what floods may be a loop of their own.
        if letter.kind is not LetterKind.MALFORMED and await self._handing.steers(reply):
            return
        if first is None:
            self._handing.check_room(person.name)
        await self._handing.remember(reply)
        action = await self._deciding.asked(reply)
        if letter.kind is LetterKind.MALFORMED:
            await self._unreadable(reply, action)
        elif reply.asked is not None and await self._handing.stops(reply, reply.asked):
            pass
        elif reply.asked is not None and reply.asked.digest_id is not None:
            await self._deciding.take_list(reply, reply.asked.digest_id, one_mail=len(found) == 1)
        elif action is None:
            await self._handing.say(reply)
        elif len(found) > 1:
            await self._deciding.ask_back(reply, action, words.SEVERAL_QUESTIONS)
        elif not self._is_meant(letter):
            await self._deciding.ask_back(reply, action, words.NOT_MEANT)
        else:
            await self._deciding.take(reply, action)

    async def _unreadable(self, reply: Reply, action: Action | None) -> None:
        """Ask for a mail that can be read; a begun conversation is needed for that."""
        if action is not None and action.state is ActionState.PENDING:
            await self._deciding.ask_back(reply, action, words.UNREADABLE)
        elif reply.asked is not None:
            await self._handing.tell(reply, reply.asked.thread_id, words.refused(words.UNREADABLE))
        elif reply.letter.is_too_large:
            await self._handing.say(reply, words.too_large(reply.letter.subject))
        else:
            self._handing.leave(reply.letter, "could not be read")

    async def _answered(self, letter: Letter) -> list[Asked]:
        """What the letter answers: by its reply addresses, and without any by the mails that it names."""
        tokens = (self._own.token_of(address, "r") for address in letter.recipients)
        keys = [reply_key(token) for token in dict.fromkeys(tokens) if token is not None]
        found = [asked for key in keys if (asked := asked_of(await self._doors.note(VIA, key))) is not None]
        if found:
            return found
        for reference in letter.references:
            asked = asked_of(await self._doors.note(VIA, mail_key(reference)))
            if asked is not None:
                return [asked]
        return []

    def _is_meant(self, letter: Letter) -> bool:
        """Whether its author addressed it to us, by the very reply address if it came by one.

        A mail to somebody else proves its author, too, when whoever has it sends it on to us.
        """
        tokens = {self._own.token_of(address, "r") for address in letter.recipients} - {None}
        meant = {self._own.token_of(address, "r") for address in letter.meant_for}
        return tokens <= meant if tokens else any(map(self._own.is_ours, letter.meant_for))

    async def _is_part_of(self, asked: Asked, person: Person) -> bool:
        """Whether the person was asked, was on the mails so far, or may write in the thread anyway."""
        try:
            thread = await self._doors.thread(asked.thread_id, self._doors.people.owner)
        except NotFound:
            return False
        if asked.person is not None or may_write(person, thread.owner):
            return True
        talk = await self._talks.get(Place(asked.mailbox, asked.root), asked.thread_id)
        return any(mailbox in person.emails for mailbox in (*talk.to, *talk.cc))

    # -- bounces -----------------------------------------------------------------------------------------

    async def _bounce(self, letter: Letter) -> None:
        """A mail of ours was not delivered for good: its mailbox is marked, and the person told elsewhere."""
        tokens = (self._own.token_of(address, "b") for address in letter.recipients)
        keys = [bounce_key(token) for token in tokens if token is not None]
        asked = asked_of(await self._doors.note(VIA, keys[0])) if keys else None
        report = letter.bounce
        if asked is None or report is None or report.action != "failed" or _is_passing(report.status):
            self._handing.leave(letter, "reports a delivery that changes nothing")
            return
        talk = await self._talks.get(Place(asked.mailbox, asked.root), asked.thread_id)
        mailbox = _not_reached(asked, talk, report.recipient)
        if mailbox is None:
            self._handing.leave(letter, "reports a delivery to somebody it was not sent to")
            return
        await self._mailboxes.bounced(replace(asked, mailbox=mailbox), report.said)


def _not_reached(asked: Asked, talk: Talk, recipient: str | None) -> str | None:
    """Whom a mail did not reach that may have gone to several: whom the report names, if it went there."""
    went_to = {asked.mailbox, *talk.to, *talk.cc} if asked.action_id is None else {asked.mailbox}
    if recipient in went_to:
        return recipient
    # The server of somebody's forwarding names an address that we do not know.
    return asked.mailbox if len(went_to) == 1 else None


def _is_passing(status: str | None) -> bool:
    """Whether a status says that it may still succeed (RFC 3463 §3.1: class 4)."""
    return status is not None and status.startswith("4")
