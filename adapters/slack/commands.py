"""What do `/pizza …` and "Send to Pizza Bot" do? Answered to whoever used them, within three seconds.

Work that begins outside of a conversation gets one: a message to the person says what was asked, and its
thread is where everything about it is told. It is posted before the work is accepted, so what cannot be told
anywhere is not begun.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Mapping
from typing import Any

from pizzabot.errors import DeliveryFailed, Refused
from pizzabot.inbox.pages import View
from pizzabot.messages import InboundMessage
from pizzabot.people import Person, may_administer
from pizzabot.rendering import render_text
from pizzabot.text import storable, visible

from .blocks import context, header, plain_text, section, shortened
from .conversations import Conversations
from .identity import team_of
from .places import Place
from .rows import row
from .text import escaped, mentioned, readable
from .workspace import VIA, Workspace

logger = logging.getLogger(__name__)

SHORTCUT = "pizza_send"
_LISTED = 10
_POST_SECONDS = 1.7  # asking for names may take a second, and three are all there is
_QUOTED = 2_800
_VIEWS: Mapping[str, View] = {"inbox": "all", "unread": "unread", "action": "action"}
_WORDS = (*_VIEWS, "help", "stop", "stop all", "resume")


class Commands:
    """Answers slash commands and shortcuts."""

    def __init__(self, workspace: Workspace, conversations: Conversations) -> None:
        self._workspace, self._conversations = workspace, conversations

    async def run(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer to `/pizza WORDS`, for whoever typed it: `text`, and `blocks` for a list."""
        user, text = str(command.get("user_id") or ""), str(command.get("text") or "").strip()
        person = self._workspace.person(user)
        if person is None:
            return {"text": escaped(self._workspace.stranger(user))}
        word = " ".join(text.casefold().split())
        try:
            if word in _VIEWS:
                return await self._list(person, word)
            return {"text": await self._told(person, user, text, word, command)}
        except Refused as error:
            return {"text": escaped(str(error))}
        except (DeliveryFailed, TimeoutError) as error:
            logger.info("a command was not carried out: %s", error)
            return {"text": "That did not work: Slack did not let me open a conversation. Try again."}

    async def _told(self, person: Person, user: str, text: str, word: str, command: Mapping[str, Any]) -> str:
        doors = self._workspace.doors
        match word:
            case "" | "help":
                name, is_owner = escaped(visible(person.name)), may_administer(person)
                return render_text("slack/help.md.j2", name=name, is_owner=is_owner)
            case "stop":
                stopped = await doors.stop_own(person, VIA)
                return f"Stopped {stopped}." if stopped else "You have nothing under way."
            case "stop all":
                await doors.stop_everything(person, VIA)
                return "Everything is stopped. What arrives is kept; `/pizza resume` lets it go on."
            case "resume":
                resumed = await doors.resume_everything(person, VIA)
                return "Going on." if resumed else "Nothing was stopped."
        if near := difflib.get_close_matches(word, _WORDS, n=1, cutoff=0.8):
            return f"Did you mean `/pizza {near[0]}`? To hand over work, write what should be done."
        names = await self._workspace.names(mentioned(text))
        asked = storable(readable(text, lambda u: names.get(u, u)))
        key = f"slack/{team_of(command)}/command/{command.get('trigger_id')}"
        await self._begin(person, user, asked, asked, key)
        return "I am on it; the answer comes in our direct messages."

    async def _list(self, person: Person, word: str) -> Mapping[str, Any]:
        found = await self._workspace.doors.reports.inbox(
            person, _VIEWS[word], limit=_LISTED, cursor=None, words=""
        )
        counts = found["counts"]
        heading = f"{word.capitalize()}: {counts['action']} waiting for a decision, {counts['unread']} unread"
        threads = await self._workspace.linked(found["threads"])
        rows = [row(thread, person=person.name) for thread in threads]
        nothing = context(plain_text("Nothing here."))
        return {"text": heading, "blocks": [header(heading), *(rows or [nothing])]}

    async def shortcut(self, payload: Mapping[str, Any]) -> None:
        """A message that somebody sends to us from its menu."""
        user = str((payload.get("user") or {}).get("id") or "")
        person = self._workspace.person(user)
        if person is None:
            self._workspace.answer(payload, self._workspace.stranger(user))
            return
        message = payload.get("message") or {}
        author = str(message.get("user") or message.get("bot_id") or "somebody")
        names = await self._workspace.names(mentioned(str(message.get("text") or "")) | {author})
        text = storable(readable(str(message.get("text") or ""), lambda u: names.get(u, u)))
        channel = (payload.get("channel") or {}).get("name") or "a conversation"
        where = "a direct message" if channel == "directmessage" else f"#{channel}"
        asked = render_text(
            "slack/sent.md.j2", author=visible(names[author]), where=visible(where), text=text
        )
        key = f"slack/{team_of(payload)}/shortcut/{payload.get('trigger_id')}"
        try:
            await self._begin(person, user, asked, text or "a message", key, files=message.get("files") or ())
        except (Refused, DeliveryFailed, TimeoutError) as error:
            logger.info("a shortcut was not carried out: %s", error)
            self._workspace.answer(payload, "That did not work just now. Try again.")

    async def _begin(
        self, person: Person, user: str, asked: str, shown: str, key: str, *, files: Any = ()
    ) -> None:
        """Open a conversation about `asked` and take it in.

        Raises Refused, DeliveryFailed or TimeoutError; then nothing was begun.
        """
        place = await self._root(user, shown, key)
        message = InboundMessage(channel=VIA, person=person.name, text=asked, address=place.address, key=key)
        if files:
            await self._conversations.stage(message, list(files), user)
        else:
            await self._workspace.doors.accept(message)

    async def _root(self, user: str, shown: str, key: str) -> Place:
        quoted = shortened(visible(shown, body=True).strip(), _QUOTED)
        blocks = [context(plain_text("You asked:")), section(plain_text(quoted))]
        async with asyncio.timeout(_POST_SECONDS):
            channel = await self._workspace.direct_channel(user)
            posted = await self._workspace.post(
                channel,
                key,
                patience_seconds=_POST_SECONDS,
                text=escaped(f"You asked: {shortened(quoted, 200)}"),
                blocks=blocks,
            )
        return Place(channel, str(posted["ts"]), user)
