"""When does a message in a thread decide, without a button? When it is a clear word and one thing waits.

Stricter than an answer by mail, because people chat in threads: the word itself must name the decision,
"approve" or "reject: too dear"; a "yes" decides nothing. What else is written meanwhile is kept. Below a
digest the numbers of its list decide, "approve 1, 3".
"""

from __future__ import annotations

import re
from datetime import timedelta

from pizzabot.approvals import verdicts
from pizzabot.approvals.verdicts import Words
from pizzabot.digests.deciding import answered
from pizzabot.errors import NotFound, Refused, Unavailable
from pizzabot.messages import Action, ActionState, Decision, Verdict
from pizzabot.people import Person

from .cards import shows_all
from .digests import numbers_key, numbers_of, only
from .workspace import VIA, Workspace

_REMEMBERED = timedelta(days=30)
_SPOKEN = (Verdict.APPROVE, Verdict.REJECT, Verdict.RESPOND)
_NAMES_IT = re.compile(r"\s*(?:approved?|reject(?:ed)?|respond)\b", re.IGNORECASE)


class Spoken:
    """Decisions in words."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        words = workspace.doors.settings.approvals.words
        self._words = Words.of(words.approve, words.reject)
        self._own = frozenset(word.casefold() for word in (*words.approve, *words.reject))

    async def decides(self, thread_id: str, person: Person, key: str, text: str) -> str | None:
        """Decide what waits in the thread, once per `key`, when the text says so.

        Returns what is to be said to the person, "" for nothing; None when the text is any other message.
        """
        reading = verdicts.read(text, self._words, (person.name,))
        if reading.verdict not in _SPOKEN or reading.rest or not self._names_it(text):
            return None
        doors = self._workspace.doors
        begun = await doors.note(VIA, f"spoken/{key}")
        if begun is not None:
            # Delivered again: it decided, or the process died before it could.
            action = await self._still_waiting(begun, person)
            if action is None:
                return ""
        else:
            action = await self._waiting(thread_id, person)
        if action is None or (reading.verdict is Verdict.APPROVE and not shows_all(action)):
            return None
        if reading.verdict is Verdict.APPROVE and action.asked_args is not None:
            return None  # edited: which of the two was meant is not said
        await doors.keep(VIA, {f"spoken/{key}": action.id})
        try:
            await doors.decide(
                Decision(
                    action_id=action.id,
                    person=person.name,
                    via=VIA,
                    verdict=reading.verdict,
                    reason=reading.reason or None,
                    response=reading.response or None,
                    digest=action.digest,
                )
            )
        except Unavailable:
            await doors.forget(VIA, f"spoken/{key}")
            raise
        except Refused as error:
            return str(error)
        return ""

    async def decides_listed(self, digest_id: str, person: Person, key: str, text: str) -> str | None:
        """Decide what a digest lists, by its numbers: all of what the text says, or nothing.

        Returns what is to be said to the person; None when the text is any other message.

        Raises Unavailable when something could not be stored.
        """
        doors = self._workspace.doors
        try:
            listed = await doors.digest(digest_id, person)
        except NotFound:
            return None
        listed = only(listed, numbers_of(await doors.note(VIA, numbers_key(digest_id))))
        return await answered(doors, listed, text, person, VIA, key, doors.clock.now(), self._words)

    async def forget(self) -> None:
        """Slack delivers nothing again after so long."""
        doors = self._workspace.doors
        for kept in ("spoken/", "deciding/"):
            await doors.forget(VIA, kept, before=doors.clock.now() - _REMEMBERED)

    def _names_it(self, text: str) -> bool:
        return _NAMES_IT.match(text) is not None or text.strip(" \n.!").casefold() in self._own

    async def _waiting(self, thread_id: str, person: Person) -> Action | None:
        """The one action that waits in the thread; None when there are none or several."""
        doors = self._workspace.doors
        thread = await doors.reports.thread(doors.people.owner, thread_id, limit=1)
        waiting = [row["id"] for row in thread["actions"] if row["state"] == "pending"] if thread else []
        return await self._still_waiting(waiting[0], person) if len(waiting) == 1 else None

    async def _still_waiting(self, action_id: str, person: Person) -> Action | None:
        try:
            action = await self._workspace.doors.asked(action_id, person)
        except NotFound:
            return None
        return action if action.state is ActionState.PENDING else None
