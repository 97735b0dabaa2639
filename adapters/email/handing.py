"""How is what a person wrote handed to the agent, and the person answered?

Reply -> who is on the conversation is remembered -> message accepted -> what has to wait is said
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pizzabot.doors import Doors
from pizzabot.errors import Refused, Unavailable
from pizzabot.inbox.intake import MAX_ATTACHMENTS, MAX_TEXT, MAX_TITLE
from pizzabot.messages import Accepted, Attachment, InboundMessage, ThreadState, Told
from pizzabot.people import Person, may_administer
from pizzabot.text import storable

from . import words
from .caps import HourlyCap, TooMany
from .letters import Letter, LetterKind
from .places import VIA, OwnAddress, Place
from .talks import Asked, Talks, mail_key, written

logger = logging.getLogger(__name__)

_ACTIVE = (ThreadState.QUEUED, ThreadState.RUNNING, ThreadState.WAITING)
_STOP_EVERYTHING = ("stop everything", "stop all")
_RESUME = ("resume", "resume everything", "resume all")


@dataclass(frozen=True, slots=True)
class Reply:
    """A letter of a known and verified person, and what it answers; None when it begins something new."""

    letter: Letter
    key: str
    person: Person
    author: str
    asked: Asked | None

    @property
    def place(self) -> Place:
        """Where the person is answered."""
        if self.asked is not None:
            return Place(self.author, self.asked.root)
        return Place(self.author, self.letter.message_id or f"<{self.letter.digest}>")


class Handing:
    """Hands replies on, and answers them."""

    def __init__(self, doors: Doors, own: OwnAddress, talks: Talks, cap: HourlyCap) -> None:
        """`cap` bounds what each person hands over; what is beyond it is put off."""
        self._doors, self._own, self._talks, self._cap = doors, own, talks, cap
        self.left_alone: Counter[str] = Counter()  # why mail had no effect, for status

    def leave(self, letter: Letter, why: str) -> None:
        """Nothing follows. It is said in the log and in status, never to whoever sent it."""
        self.left_alone[why] += 1
        author = letter.author.address if letter.author is not None else "nobody"
        is_unproven = letter.kind is LetterKind.HUMAN and not letter.verified
        details = letter.verification if is_unproven else letter.why
        logger.info("a mail of %s was left alone: it %s (%s)", author, why, details)

    def check_room(self, person: str) -> None:
        """Raises TooMany when a new mail of the person has to come later; nothing is stored for it then."""
        if not self._cap.has_room(person):
            raise TooMany(person)

    async def remember(self, reply: Reply) -> None:
        """Who is on the conversation and what the next mail of ours answers."""
        letter = reply.letter
        others = [
            mailbox.address
            for mailbox in (*letter.to, *letter.cc)
            if not self._own.is_ours(mailbox.address) and mailbox.address != reply.author
        ]
        known = [other for other in dict.fromkeys(others) if self._doors.people.by_email(other) is not None]
        thread_id = reply.asked.thread_id if reply.asked is not None else ""
        await self._talks.change(
            reply.place,
            thread_id,
            lambda talk: talk.heard(
                subject=storable(letter.subject),
                author=reply.author,
                others=known,
                left_out=[other for other in dict.fromkeys(others) if other not in known],
                message_id=letter.message_id,
                references=tuple(reversed(letter.references)),
            ),
        )

    async def say(
        self,
        reply: Reply,
        text: str | None = None,
        *,
        quietly: bool = False,
        aside_to: str | None = None,
        counts: bool = True,
    ) -> Accepted | None:
        """Hand what was written to the agent; `aside_to` names the action that it was to decide and did not.

        None when it was refused, and its sender told so.

        Raises:
            TooMany: so much came from the person that this has to come later; never when it does not count.
            Unavailable: it could not be stored.
        """
        letter, asked = reply.letter, reply.asked
        said, files = _said(text if text is not None else _text(letter, is_new=asked is None), letter)
        message = InboundMessage(
            channel=VIA,
            person=reply.person.name,
            text=said,
            address=reply.place.address if asked is None else None,
            thread_id=asked.thread_id if asked is not None else None,
            title=storable(letter.subject).strip()[:MAX_TITLE] or None if asked is None else None,
            key=reply.key,
            attachments=files,
            is_guest=True,
            # Files go with a message of their own: what is told of a call is text.
            aside_to=aside_to if not files else None,
        )
        try:
            accepted = await (self._accepted(message) if counts else self._doors.accept(message))
        except Unavailable:
            raise
        except Refused as error:
            self.leave(letter, "was refused")
            if asked is not None:
                await self.tell(reply, asked.thread_id, words.refused(str(error)))
            return None
        if letter.message_id is not None:
            here = Asked(accepted.thread_id, reply.author, root=reply.place.root)
            key = mail_key(letter.message_id)
            if await self._doors.note(VIA, key) is None:  # nobody takes over the name of another mail
                await self._doors.keep(VIA, {key: written(here)})
        if not quietly:
            await self._say_when(reply, accepted.thread_id, held=accepted.held)
        return accepted

    async def _accepted(self, message: InboundMessage) -> Accepted:
        """Accepted within the cap, of which only what is new takes anything."""
        if not self._cap.takes(message.person):
            raise TooMany(message.person)
        is_new = False
        try:
            accepted = await self._doors.accept(message)
            is_new = not accepted.duplicate
        finally:
            if not is_new:
                self._cap.give_back(message.person)
        return accepted

    async def _say_when(self, reply: Reply, thread_id: str, *, held: bool) -> None:
        """Say that it has to wait, when it has to."""
        stopped = await self._doors.reports.stopped()
        if stopped is not None:
            await self.tell(reply, thread_id, words.everything_stopped(stopped["person"]))
        elif held:
            thread = await self._doors.thread(thread_id, self._doors.people.owner)
            await self.tell(reply, thread_id, words.kept(waits=thread.state is ThreadState.WAITING))

    async def steers(self, reply: Reply) -> bool:
        """Whether it was an owner's word that everything stops, or goes on; it comes through any flood."""
        if not may_administer(reply.person):
            return False
        word = _only_word(reply.letter)
        if word in _STOP_EVERYTHING or (word == "stop" and reply.asked is None):
            await self._stops_everything(reply)
            return True
        if word in _RESUME and reply.asked is not None and await self._doors.reports.stopped() is not None:
            await self.remember(reply)
            await self._doors.resume_everything(reply.person, VIA)
            await self.tell(reply, reply.asked.thread_id, words.RESUMED)
            return True
        return False

    async def _stops_everything(self, reply: Reply) -> None:
        """Stop everything, whatever else fails; the word itself is no task, neither now nor after resume.

        Once, however often the mail comes: what went on since does so because somebody said so.
        """
        key, accepted = f"deciding/stop/{reply.key}", None
        if await self._doors.note(VIA, key) is not None:
            return
        try:
            await self.remember(reply)
            # A new mail becomes a conversation to answer in, which is told like every other that was at work.
            if reply.asked is None:
                accepted = await self.say(reply, quietly=True, counts=False)
        finally:
            await self._doors.stop_everything(reply.person, VIA)
        if reply.asked is not None:
            await self.tell(reply, reply.asked.thread_id, words.STOPPED)
        elif accepted is not None:
            thread = await self._doors.thread(accepted.thread_id, reply.person)
            if thread.state is ThreadState.QUEUED:  # nobody was free to begin it, and what is queued stays so
                await self._doors.stop_thread(thread.id, reply.person, VIA)
        await self._doors.keep(VIA, {key: ""})

    async def stops(self, reply: Reply, asked: Asked) -> bool:
        """Whether it was the word stop, and something was at work in the thread."""
        if _only_word(reply.letter) != "stop":
            return False
        key = f"deciding/stop/{reply.key}"
        begun = await self._doors.note(VIA, key) is not None
        thread = await self._doors.thread(asked.thread_id, self._doors.people.owner)
        if thread.state not in _ACTIVE:
            return begun  # this very mail stopped it, and comes again after a crash
        await self._doors.keep(VIA, {key: ""})
        try:
            await self._doors.stop_thread(asked.thread_id, reply.person, VIA)
        except Unavailable:
            raise
        except Refused as error:
            await self.tell(reply, asked.thread_id, words.refused(str(error)))
        return True

    async def ask(
        self, reply: Reply, about: str, question: Callable[[bool], str], *, apart: timedelta = timedelta(0)
    ) -> None:
        """Ask back about something, at most so often and so far `apart`.

        `question` makes the text; it is told whether this is the last one.
        """
        assert reply.asked is not None
        key, now = f"questions/{about}", self._doors.clock.now()
        asked = json.loads(await self._doors.note(VIA, key) or "[]")
        most = self._doors.settings.email.caps.questions_per_action
        if len(asked) >= most or (asked and now - datetime.fromisoformat(asked[-1]) < apart):
            self.left_alone["was unclear again, and was asked about often enough"] += 1
            return
        await self.tell(reply, reply.asked.thread_id, question(len(asked) + 1 == most))
        await self._doors.keep(VIA, {key: json.dumps([*asked, now.isoformat()])})

    async def tell(self, reply: Reply, thread_id: str, text: str, *, action_id: str | None = None) -> None:
        """Answer this mail, once; `action_id` names the action on which its word was taken."""
        told = Told(
            f"told/{reply.key}",
            thread_id,
            VIA,
            reply.place.address,
            reply.person.name,
            text,
            digest_id=reply.asked.digest_id if reply.asked is not None else None,
            action_id=action_id,
        )
        await self._doors.tell(told)


def _only_word(letter: Letter) -> str:
    """What was written, when it is all there is and the parts of the mail agree on it."""
    return letter.own.text.strip().rstrip(".!").casefold() if letter.own.agrees else ""


def _said(text: str, letter: Letter) -> tuple[str, list[Attachment]]:
    """What the agent is handed, within the bounds of a message; what is left out is said."""
    text, files = storable(text).strip(), list(letter.attachments[:MAX_ATTACHMENTS])
    left_out = letter.left_out + len(letter.attachments) - len(files)
    if len(text) > MAX_TEXT // 2:
        del files[MAX_ATTACHMENTS - 1 :]
        files.append(Attachment("mail.txt", "text/plain", text.encode()))
        text = f"{text[: MAX_TEXT // 2]}\n\n[The mail is longer; all of it is in mail.txt.]"
    if left_out:
        text += f"\n\n[{left_out} more files came with the mail and were not taken.]"
    return text or ("" if files else "(a mail without text)"), files


def _text(letter: Letter, *, is_new: bool) -> str:
    """What the agent reads: of an answer what is new in it, of a new mail also what was forwarded."""
    return letter.text if is_new else letter.own.full or letter.own.text
