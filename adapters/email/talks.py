"""How does a conversation by mail go on? Who gets the next mail of ours, and what it answers.

    a mail of a person --heard--> Talk --next mail of ours--> said --> Talk

And what did a mail of ours ask, so that its answer is understood (`Asked`)? Both are kept as JSON in the
channel's notes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from pizzabot.doors import Doors

from .places import VIA, Place, hashed

_LONGEST = 40  # references: the first and the newest, RFC 5322 §3.6.4 sets no number


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation as the next mail of ours continues it.

    `to` and `cc` are mailboxes of known people, `left_out` those on the newest mail who are not known and get
    nothing. `references` are Message-IDs, oldest first. `unanswered` counts our mails since a person wrote.
    """

    subject: str = ""
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    unanswered: int = 0

    def heard(
        self,
        subject: str,
        author: str,
        others: Sequence[str],
        left_out: Sequence[str],
        message_id: str | None,
        references: Sequence[str],
    ) -> Talk:
        """After a person's mail: its author is answered, and everybody known who was on it."""
        known = self.references or tuple(references)
        return Talk(
            subject=self.subject or subject,
            to=(author,),
            cc=tuple(others),
            left_out=tuple(left_out),
            references=_joined(known, message_id),
        )

    def begun(self, message_id: str, subject: str) -> Talk:
        """After a mail of ours that begins the conversation anew, and waits for no answer."""
        return replace(self, subject=subject, references=(message_id,))

    def said(self, message_id: str) -> Talk:
        """After a mail of ours."""
        return replace(self, references=_joined(self.references, message_id), unanswered=self.unanswered + 1)


def _joined(references: tuple[str, ...], message_id: str | None) -> tuple[str, ...]:
    if message_id is None or message_id in references:
        return references
    joined = (*references, message_id)
    return joined if len(joined) <= _LONGEST else (joined[0], *joined[-_LONGEST + 1 :])


@dataclass(frozen=True, slots=True)
class Asked:
    """What a mail of ours was about. Only `person` may answer it; None is everybody in the conversation.

    `digest` names the arguments that were shown, `offered` what may be decided by answering: nothing when
    they were too long to be shown. A mail with a list has `digest_id` in place of an action.
    """

    thread_id: str
    mailbox: str
    person: str | None = None
    action_id: str | None = None
    digest: str | None = None
    offered: tuple[str, ...] = ()
    root: str | None = None
    digest_id: str | None = None


class Talks:
    """The conversations in the channel's notes; changes of one follow each other."""

    def __init__(self, doors: Doors) -> None:
        self._doors, self._lock = doors, asyncio.Lock()

    async def get(self, place: Place, thread_id: str) -> Talk:
        """The conversation at a place; a new one when there was none."""
        return talk_of(await self._doors.note(VIA, talk_key(place, thread_id)))

    async def change(self, place: Place, thread_id: str, change: Callable[[Talk], Talk]) -> None:
        """Keep the conversation as `change` makes it."""
        async with self._lock:
            talk = change(await self.get(place, thread_id))
            await self._doors.keep(VIA, {talk_key(place, thread_id): written(talk)})


# What every kept thing's key begins with: all of it is forgotten one day.
KEPT = ("talk/", "reply/", "sent/", "mail/", "given/", "told/", "taken/", "deciding/", "questions/")


def talk_key(place: Place, thread_id: str) -> str:
    """Where a conversation is kept: by its first mail, or by person and thread when it began elsewhere."""
    return f"talk/{hashed(place.root or f'{place.mailbox} {thread_id}')}"


def reply_key(token: str) -> str:
    """Where it is kept what a reply address stands for."""
    return f"reply/{hashed(token)}"


def bounce_key(token: str) -> str:
    """Where it is kept whose mail a delivery report is about."""
    return f"sent/{hashed(token)}"


def mail_key(message_id: str) -> str:
    """Where it is kept what a mail of ours asked."""
    return f"mail/{hashed(message_id)}"


def given_key(message_id: str) -> str:
    """Where it is kept how often a mail of ours may have been taken by its server."""
    return f"given/{hashed(message_id)}"


def told_key(message_id: str) -> str:
    """Where it is kept which state of its action the reader of a mail was told last."""
    return f"told/{hashed(message_id)}"


def taken_key(key: str) -> str:
    """Where it is kept that a mail was dealt with."""
    return f"taken/{hashed(key)}"


def written(value: Talk | Asked) -> str:
    """A value as it is kept."""
    return json.dumps(asdict(value), ensure_ascii=False)


def talk_of(text: str | None) -> Talk:
    """The inverse of `written`; a new one when nothing is kept."""
    if text is None:
        return Talk()
    kept = json.loads(text)
    lists = ("to", "cc", "left_out", "references")
    return Talk(**(kept | {name: tuple(kept[name]) for name in lists}))


def asked_of(text: str | None) -> Asked | None:
    """The inverse of `written`; None when nothing is kept."""
    if text is None:
        return None
    kept = json.loads(text)
    return Asked(**(kept | {"offered": tuple(kept["offered"])}))
