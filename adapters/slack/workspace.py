"""What does everything that answers Slack need? The doors, the Web API, who is who, room for later work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from pizzabot.doors import Doors
from pizzabot.errors import DeliveryFailed
from pizzabot.people import Person

from .client import Limited, Slack
from .identity import Identity
from .modals import View, told
from .pacing import Pace

logger = logging.getLogger(__name__)

VIA = "slack"
_NAME_SECONDS = 1.0
_REMEMBERED = 5_000


class Workspace:
    """One workspace, as this app sees it."""

    def __init__(self, doors: Doors, api: Slack, bot_token: str, posts: Pace) -> None:
        """`posts` is how fast messages may go to a channel."""
        self.doors, self.api, self.bot_token, self._posts = doors, api, bot_token, posts
        self.identity: Identity | None = None
        self._direct: dict[str, str] = {}  # by user: the channel of their direct messages
        self._names: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def person(self, user: str) -> Person | None:
        """Who a Slack user is; None for everybody who is not in the settings."""
        return self.doors.people.by_slack(user)

    async def direct_channel(self, user: str) -> str:
        """The channel of the direct messages with a user; raises DeliveryFailed."""
        if user not in self._direct:
            opened = await self.api.call("conversations.open", users=user)
            self._direct[user] = str(opened["channel"]["id"])
        return self._direct[user]

    async def post(
        self, channel: str, key: str, *, patience_seconds: float, **message: Any
    ) -> Mapping[str, Any]:
        """Post a message when it is its turn, or raise Limited when that would take too long.

        `key` names the message: under it a place in the line is kept for when it comes again.
        """
        await self.in_line(channel, key, patience_seconds)
        try:
            return await self.api.call(
                "chat.postMessage", channel=channel, unfurl_links=False, unfurl_media=False, **message
            )
        except Limited as error:
            self._posts.pause(channel, error.retry_after_seconds or 1.0)
            raise

    async def in_line(self, channel: str, key: str, patience_seconds: float) -> None:
        """Wait until something may be posted in a channel; raises Limited when that takes longer."""
        await self._posts.take(channel, key, patience_seconds)

    async def names(self, users: set[str]) -> Mapping[str, str]:
        """What to call these users; their ids for those whose names are not to be had at once."""
        unknown = users - self._names.keys()
        for user in unknown:
            if (person := self.person(user)) is not None:
                self._names[user] = person.name
        with suppress(TimeoutError):
            async with asyncio.timeout(_NAME_SECONDS):
                await asyncio.gather(*(self._ask_name(user) for user in unknown - self._names.keys()))
        found = {user: self._names.get(user, user) for user in users}
        if len(self._names) > _REMEMBERED:
            self._names.clear()
        return found

    async def _ask_name(self, user: str) -> None:
        with suppress(DeliveryFailed):
            found = (await self.api.call("users.info", user=user))["user"]
            profile = found.get("profile") or {}
            name = profile.get("display_name") or found.get("real_name") or found.get("name")
            self._names[user] = str(name or user)

    # -- in the background -------------------------------------------------------------------------------

    def later(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Do what nobody waits for; a failure is logged and changes nothing."""
        task = asyncio.create_task(self._attempt(work, what), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, work: Coroutine[Any, Any, None], what: str) -> None:
        try:
            await work
        except DeliveryFailed as error:
            logger.info("%s: %s", what, error)
        except Exception:
            logger.exception("%s failed", what)

    async def stop(self) -> None:
        """Let what is under way end, for some seconds."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=3)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # -- words for one person ----------------------------------------------------------------------------

    def whisper(self, channel: str, user: str, text: str, thread_ts: str | None = None) -> None:
        """Tell one person something in a conversation; nobody else sees it."""
        work = self.api.call("chat.postEphemeral", channel=channel, user=user, text=text, thread_ts=thread_ts)
        self.later(only(work), "a note to somebody")

    def answer(self, payload: Mapping[str, Any], text: str) -> None:
        """Tell whoever pressed something why it had no effect, where they pressed it."""
        if payload.get("response_url"):
            container = payload.get("container") or {}
            thread_ts = container.get("thread_ts") or (payload.get("message") or {}).get("thread_ts")
            more = {"thread_ts": thread_ts} if thread_ts else {}
            self.later(self.api.say(str(payload["response_url"]), text, **more), "an answer to a click")
        elif payload.get("trigger_id"):
            self.open(str(payload["trigger_id"]), told("Pizza Bot", text))

    def open(self, trigger_id: str, view: View) -> None:
        """Open a modal for whoever pressed something."""
        self.later(only(self.api.call("views.open", trigger_id=trigger_id, view=view)), "a modal")


async def only(work: Awaitable[Any]) -> None:
    """Do it and forget what it gave."""
    await work
