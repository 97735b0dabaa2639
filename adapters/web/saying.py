"""What becomes of a message of a thread? Below a digest its numbers decide; anything else goes to the agent.

The same for the pages, the API and the terminal. What was done is said in a notice of the thread.
"""

from __future__ import annotations

import re

from pizzabot.approvals.verdicts import Words
from pizzabot.digests.deciding import answered, first_list
from pizzabot.digests.showing import literal, one_line
from pizzabot.doors import Doors
from pizzabot.errors import NotFound
from pizzabot.ids import new_id
from pizzabot.inbox import intake
from pizzabot.messages import Accepted, Digest, InboundMessage
from pizzabot.people import Person

_NEWER = "a newer digest came while the page was open, and its numbers are others"
_NUMBERED = re.compile(r"(\d+)\. (.*)")
_QUOTED = 300  # characters


async def say(doors: Doors, message: InboundMessage, *, seen: int | None = None) -> Accepted:
    """Take a message: carry out what it decides, or hand it to the agent; once per key.

    `seen` is the newest message that its author had before them, where that is known: a number means what
    stood beside it there, so it decides nothing when another list came since.

    Raises what `Doors.accept` does.
    """
    person = doors.people.by_name(message.person)
    if message.thread_id is None or message.attachments or person is None:
        return await doors.accept(message)
    intake.check(message)
    if message.key is not None and (taken := await doors.taken(message.key)) is not None:
        return taken
    via, key = message.channel, message.key or new_id()
    begun = await first_list(doors, via, key)
    newest = begun or await doors.digest_in(message.thread_id)
    digest = await _digest_for(doors, newest, person)
    if digest is None:
        return await doors.accept(message)
    shown = newest if begun or seen is None else await doors.digest_in(message.thread_id, seen + 1)
    said = await answered(
        doors,
        digest,
        message.text,
        person,
        via,
        key,
        doors.clock.now(),
        _words(doors),
        doubt=_NEWER if shown != newest else "",
    )
    if said is None:
        return await doors.accept(message)
    return await doors.answer(message, notice(message.text, said))


async def _digest_for(doors: Doors, digest_id: str | None, person: Person) -> Digest | None:
    """The digest when it was made for the person; by another's nobody decides."""
    try:
        return await doors.digest(digest_id, person) if digest_id is not None else None
    except NotFound:
        return None


def _words(doors: Doors) -> Words:
    words = doors.settings.approvals.words
    return Words.of(words.approve, words.reject)


def notice(text: str, said: str) -> str:
    """What was written and what became of it, in Markdown: a list that is not numbered anew."""
    lines = [
        f"- **{found[1]}** · {literal(found[2])}" if (found := _NUMBERED.fullmatch(line)) else literal(line)
        for line in said.splitlines()
    ]
    return f"You wrote “{literal(one_line(text, _QUOTED))}”.\n\n" + "\n".join(lines)
