"""What becomes of a reply to a digest? Read, judged as a whole, then decided number by number.

    words -> commands? -> each number listed and offered? -> decided one after the other -> what was done
          -> unclear, or one is not offered: nothing is done, and it is said why

Whoever decided meanwhile was first: that number says so, the others count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from pizzabot.approvals import numbered, verdicts
from pizzabot.approvals.numbered import Command
from pizzabot.approvals.verdicts import ENGLISH, Words
from pizzabot.approvals.when import parse_when
from pizzabot.clock import spoken
from pizzabot.digests.showing import offered, one_line
from pizzabot.errors import Conflict, NotFound, Refused, Unavailable
from pizzabot.messages import Action, ActionState, Decision, Digest, DigestItem, Verdict
from pizzabot.people import Person

NO_TIME = "until when number {} is put off: {}"
NOTHING_DECIDED = (
    "Nothing was decided: {}. Write each decision by its numbers and nothing else, as in "
    "“approve 1, 3; reject 2: your reason”."
)
NOT_SHOWN = "number {} was not shown with all that would run; its page shows it"
NOT_OFFERED = "{} is not possible for number {}"
CHANGED = "number {} changed since it was listed; its page shows it as it is"
_TITLE = 120
_DONE: Mapping[Verdict, str] = {
    Verdict.APPROVE: "approved",
    Verdict.REJECT: "rejected",
    Verdict.RETRY: "to be tried again",
    Verdict.DONE: "noted as done",
    Verdict.FAILED: "noted as failed",
}


class Deciding(Protocol):
    """What deciding needs of the doors."""

    async def decide(self, decision: Decision) -> Action: ...

    async def snooze(
        self, action_id: str, person: Person, when: str, via: str, key: str | None = None
    ) -> Action: ...

    async def note(self, channel: str, key: str) -> str | None: ...

    async def keep(self, channel: str, values: Mapping[str, str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Meant:
    """What a reply means. With `commands` it decides; with `why` it is unclear; else it is a message."""

    commands: tuple[Command, ...] = ()
    why: str = ""


async def first_read(doors: Deciding, via: str, key: str, now: datetime) -> datetime:
    """When the reply of that key was read first: `now`, unless it was carried out before and comes again.

    The times in it are counted from then.
    """
    known = await doors.note(via, _read_mark(key))
    return datetime.fromisoformat(known) if known is not None else now


def _read_mark(key: str) -> str:
    return f"deciding/read/{key}"


async def first_list(doors: Deciding, via: str, key: str) -> str | None:
    """The digest by which the message of that key was carried out before (`answered`): when it comes again
    after a crash, its numbers are still those."""
    return await doors.note(via, _list_mark(key))


def _list_mark(key: str) -> str:
    return f"deciding/list/{key}"


def meant(
    text: str, digest: Digest, now: datetime, words: Words = ENGLISH, names: Collection[str] = ()
) -> Meant:
    """What a reply to `digest` means that was first read at `now`; `names` are those of its author.

    What was decided since counts as offered: whoever says it again is told who was first.
    """
    items = {item.number: item for item in digest.items}
    said = numbered.read(text, items, words, names)
    for command in said.commands:
        item = items[command.number]
        if command.verdict is None:
            try:
                parse_when(command.snooze, now, ZoneInfo(digest.zone))
            except ValueError as error:
                return Meant(why=NO_TIME.format(command.number, str(error).rstrip(".")))
            continue
        if item.action.state is not ActionState.PENDING:
            continue
        if item.action.digest != item.bound_to:
            return Meant(why=CHANGED.format(command.number))
        if command.verdict not in item.action.allowed_decisions:
            return Meant(why=NOT_OFFERED.format(command.verdict, command.number))
        if command.verdict not in offered(item):
            return Meant(why=NOT_SHOWN.format(command.number))
    return Meant(said.commands, said.why)


async def answered(
    doors: Deciding,
    digest: Digest,
    text: str,
    person: Person,
    via: str,
    key: str,
    now: datetime,
    words: Words = ENGLISH,
    *,
    doubt: str = "",
) -> str | None:
    """Do all of what a message below a digest says to its numbers, or nothing; what is to be said of it.

    None when the text is any other message. With a `doubt` whether this is the list that was meant, nothing
    is done and that is said. The rest is as of `carry_out`.
    """
    read_at = await first_read(doors, via, key, now)
    said = meant(text, digest, read_at, words, (person.name,))
    # People chat in threads: a short word that decides nothing is a message.
    if not said.commands and said.why in ("", verdicts.EMPTY, verdicts.TOO_SHORT):
        return None
    if doubt or said.why:
        return NOTHING_DECIDED.format(doubt or said.why)
    await doors.keep(via, {_list_mark(key): digest.id})
    return await carry_out(doors, digest, said.commands, person, via, key, read_at)


async def carry_out(
    doors: Deciding,
    digest: Digest,
    commands: Sequence[Command],
    person: Person,
    via: str,
    key: str,
    read_at: datetime,
) -> str:
    """Do what a reply says, each number by itself; what was understood and done, a line for each.

    `key` names the reply: the same one again, after a crash, does nothing twice and says the same. `read_at`
    is when it was read first (`first_read`).

    Raises Unavailable when something could not be stored: it must be brought again.
    """
    items = {item.number: item for item in digest.items}
    if any(command.verdict is None for command in commands):
        await doors.keep(via, {_read_mark(key): read_at.isoformat()})
    lines = []
    for command in sorted(commands, key=lambda command: command.number):
        item = items[command.number]
        if command.verdict is None:
            until = parse_when(command.snooze, read_at, ZoneInfo(digest.zone))
            done = await _put_off(doors, until, item.action, person, via, key)
        else:
            done = await _done(doors, command, command.verdict, item, person, via, key)
        lines.append(f"{command.number}. {one_line(item.action.title, _TITLE)}: {done}")
    return "\n".join(lines)


async def _done(
    doors: Deciding, command: Command, verdict: Verdict, item: DigestItem, person: Person, via: str, key: str
) -> str:
    action, mark = item.action, f"deciding/{item.action.id}"
    if action.state is not ActionState.PENDING:
        return await _settled(doors, verdict, action, person, via, key)
    await doors.keep(via, {mark: key})
    try:
        decided = await doors.decide(
            Decision(
                action_id=action.id,
                person=person.name,
                via=via,
                verdict=verdict,
                reason=command.reason or None,
                digest=item.bound_to,
            )
        )
    except Unavailable:
        raise
    except Conflict as error:
        now = error.details.get("action", action)
        if error.code == "already_approved":
            return _words(verdict, now)
        return await _settled(doors, verdict, now, person, via, key)
    except NotFound:
        return "is not there any more. Nothing was changed."
    except Refused as error:
        return f"was not changed. {error}"
    return _words(verdict, decided)


async def _put_off(
    doors: Deciding, until: datetime, action: Action, person: Person, via: str, key: str
) -> str:
    try:
        await doors.snooze(action.id, person, until.isoformat(), via, key)
    except Unavailable:
        raise
    except Refused as error:
        return f"was not put off. {error}"
    return f"put off until {spoken(until, person.timezone)}."


async def _settled(
    doors: Deciding, verdict: Verdict, action: Action, person: Person, via: str, key: str
) -> str:
    """What is said of something that is decided: by this very reply, when a crash came between, or before."""
    by_this = (action.decided_by, action.decided_via, action.decision) == (person.name, via, verdict)
    if by_this and await doors.note(via, f"deciding/{action.id}") == key:
        return _words(verdict, action)
    if action.state is ActionState.PENDING:
        return "changed since it was listed, and was not decided. Look at it again."
    by = f" by {action.decided_by} ({action.decided_via})" if action.decided_by is not None else ""
    return f"was {action.state}{by} before. Your word changed nothing."


def _words(verdict: Verdict, action: Action) -> str:
    if action.state is ActionState.PENDING:  # it takes several, and this was one of them
        return f"your approval counts; {len(action.votes)} of {action.quorum} approved."
    reason = f" Reason: {action.reason}" if action.reason else ""
    return f"{_DONE[verdict]}.{reason}"
