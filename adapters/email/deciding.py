"""What does an answer to a question of ours decide? Only what is clear; the rest is kept and asked back.

Reply + Action -> judged -> clear and offered -> stored, and what was understood is said
                         -> unclear           -> kept for the agent, and asked back, within bounds
Reply + Digest -> meant -> each number decided, or nothing and asked back; else a message
"""

from __future__ import annotations

from datetime import timedelta

from pizzabot.approvals.replies import DISAGREE, Judged, judge
from pizzabot.approvals.verdicts import EMPTY, Words
from pizzabot.digests.deciding import carry_out, first_read, meant
from pizzabot.doors import Doors
from pizzabot.errors import Conflict, NotFound, Refused, Unavailable
from pizzabot.messages import Action, ActionState, Decision

from . import words
from .handing import Handing, Reply
from .places import VIA

_QUESTIONS_APART = timedelta(hours=1)


class Deciding:
    """Takes decisions from replies."""

    def __init__(self, doors: Doors, handing: Handing, accepted_words: Words) -> None:
        self._doors, self._handing, self._words = doors, handing, accepted_words

    async def asked(self, reply: Reply) -> Action | None:
        """The action that the letter answers; None when it answers none that the person may see."""
        if reply.asked is None or reply.asked.action_id is None:
            return None
        try:
            return await self._doors.asked(reply.asked.action_id, reply.person)
        except NotFound:
            return None

    async def take(self, reply: Reply, action: Action) -> None:
        assert reply.asked is not None
        own = reply.letter.own
        # The values that came back are those of before an edit by somebody else: no change of this person's.
        is_old = reply.asked.digest not in (None, action.digest)
        judged = judge(
            own.text,
            own.agrees,
            own.values if not is_old else None,
            action,
            self._words,
            in_quote=own.in_quote,
            names=_names(reply),
        )
        if action.state is not ActionState.PENDING:
            if judged.verdict is None and (own.text.strip() or reply.letter.attachments):
                await self._handing.say(reply)
            elif await self._was_this(reply, action):
                await self._decided(reply, action, judged)
            else:
                await self._handing.tell(reply, action.thread_id, words.too_late(action))
            return
        if is_old and (judged.verdict is not None or (own.values is not None and not own.in_quote)):
            if await self._was_this(reply, action):
                await self._decided(reply, action, judged)
            else:
                await self._handing.tell(reply, action.thread_id, words.too_late(action))
        elif judged.verdict is not None and judged.verdict not in reply.asked.offered:
            await self._not_by_mail(reply, action)
        elif judged.verdict is not None:
            await self._decide(reply, action, judged)
        else:
            await self.ask_back(reply, action, judged.why or words.NO_DECISION)

    async def take_list(self, reply: Reply, digest_id: str, *, one_mail: bool) -> None:
        """An answer to a digest: what it says to its numbers, all of it or nothing, else a message."""
        assert reply.asked is not None
        try:
            digest = await self._doors.digest(digest_id, reply.person)
        except NotFound:
            await self._handing.say(reply)
            return
        own, thread_id = reply.letter.own, reply.asked.thread_id
        read_at = await first_read(self._doors, VIA, reply.key, self._doors.clock.now())
        said = meant(own.text, digest, read_at, self._words, _names(reply))
        if not (said.commands or said.why) or (said.why == EMPTY and reply.letter.attachments):
            await self._handing.say(reply)
            return
        why = said.why or ("" if own.agrees else DISAGREE) or ("" if one_mail else words.SEVERAL_QUESTIONS)
        if why:
            page = f"{self._url}/?view=action"
            await self._handing.ask(
                reply, digest.id, lambda is_last: words.list_question(why, page, is_last=is_last)
            )
            return
        done = await carry_out(self._doors, digest, said.commands, reply.person, VIA, reply.key, read_at)
        await self._handing.tell(reply, thread_id, words.list_done(done))

    async def _not_by_mail(self, reply: Reply, action: Action) -> None:
        """A verdict that the mail did not offer: the person may not decide, or did not see everything."""
        people = self._doors.people
        thread = await self._doors.thread(action.thread_id, people.owner)
        if people.decides_action(reply.person, action, thread.owner):
            await self.ask_back(reply, action, words.NOT_BY_MAIL)
        else:
            waits_for = " or ".join(action.approvers) or f"{thread.owner} or an owner"
            await self._handing.tell(reply, action.thread_id, words.refused(words.not_yours(waits_for)))

    async def _was_this(self, reply: Reply, action: Action) -> bool:
        """Whether this very mail decided, and the process died before it was answered."""
        by_this_person = action.decided_via == VIA and action.decided_by == reply.person.name
        edited = action.asked_args is not None and action.edited_by == reply.person.name
        return (by_this_person or edited) and await self._doors.note(
            VIA, f"deciding/{action.id}"
        ) == reply.key

    async def _decide(self, reply: Reply, action: Action, judged: Judged) -> None:
        assert reply.asked is not None
        assert judged.verdict is not None
        decision = Decision(
            action_id=action.id,
            person=reply.person.name,
            via=VIA,
            verdict=judged.verdict,
            args=judged.args,
            reason=judged.reason or None,
            response=judged.response or None,
            digest=reply.asked.digest,
        )
        await self._doors.keep(VIA, {f"deciding/{action.id}": reply.key})
        try:
            decided = await self._doors.decide(decision)
        except Unavailable:
            raise
        except Conflict as error:
            now = error.details.get("action", action)
            if error.code == "already_approved":
                # Counted once already, perhaps by this very mail before the process died.
                await self._handing.tell(reply, action.thread_id, words.decided(now), action_id=action.id)
            else:
                await self._handing.tell(reply, action.thread_id, words.too_late(now))
        except Refused as error:
            await self.ask_back(reply, action, str(error))
        else:
            await self._decided(reply, decided, judged)

    async def _decided(self, reply: Reply, action: Action, judged: Judged) -> None:
        """Say what was understood; what else was written goes to the agent."""
        await self._handing.tell(reply, action.thread_id, words.decided(action), action_id=action.id)
        if judged.message.strip():
            await self._handing.say(reply, judged.message, quietly=True)

    async def ask_back(self, reply: Reply, action: Action, why: str) -> None:
        """Nothing is decided: what was written is kept, and the person is asked, within bounds."""
        kept = bool(reply.letter.own.text.strip() or reply.letter.attachments)
        if kept:
            await self._handing.say(reply, quietly=True, aside_to=action.id)
        page = f"{self._url}/actions/{action.id}"
        await self._handing.ask(
            reply,
            action.id,
            lambda is_last: words.question(action, why, page, kept=kept, is_last=is_last),
            apart=_QUESTIONS_APART,
        )

    @property
    def _url(self) -> str:
        return self._doors.url().rstrip("/")


def _names(reply: Reply) -> list[str]:
    return [name for name in (reply.person.name, _name(reply)) if name]


def _name(reply: Reply) -> str:
    return reply.letter.author.name if reply.letter.author is not None else ""
