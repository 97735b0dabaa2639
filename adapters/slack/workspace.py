"""What does everything that answers Slack need? The doors, the Web API, who is who, room for later work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pizzabot.doors import Doors
from pizzabot.errors import DeliveryFailed, NotFound
from pizzabot.people import Person
from pizzabot.text import visible

from .blocks import context, plain_text, section
from .client import Limited, Slack
from .identity import Identity
from .modals import told
from .pacing import Pace
from .places import Copy, Place, place_at
from .text import escaped

logger = logging.getLogger(__name__)

VIA = "slack"
_NAME_SECONDS = 1.0
_REMEMBERED = 5_000
_SPARE_POSTS = 2


class Workspace:
    """One workspace, as this app sees it."""

    def __init__(self, doors: Doors, api: Slack, bot_token: str, posts: Pace) -> None:
        """`posts` is how fast messages may go to a channel."""
        self.doors, self.api, self.bot_token, self._posts = doors, api, bot_token, posts
        self.identity: Identity | None = None
        self.stopped_by: str | None = None  # who stopped everything, as long as it is
        self._direct: dict[str, str] = {}  # by user: the channel of their direct messages
        self._names: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def person(self, user: str) -> Person | None:
        """Who a Slack user is; None for everybody who is not in the settings."""
        return self.doors.people.by_slack(user)

    def stranger(self, user: str) -> str:
        """What somebody is told who is not in the settings."""
        owner = visible(self.doors.people.owner.name)
        return (
            f"I only work for people I was told about, so this has no effect. Ask {owner} to add your member "
            f"id {user} to my settings."
        )

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

    def is_line_free(self, channel: str) -> bool:
        """Whether something that nobody waits for may be posted in a channel without holding others up."""
        return self._posts.is_free(channel, _SPARE_POSTS)

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

    async def place_of(self, thread_id: str) -> Place | None:
        """Where in Slack a thread lives; None for one that lives elsewhere, or is gone."""
        try:
            thread = await self.doors.thread(thread_id, self.doors.people.owner)
        except NotFound:
            return None
        return place_at(thread.address) if thread.channel == VIA else None

    def link_to(self, place: Place) -> str | None:
        """The address of a conversation in Slack."""
        if self.identity is None or place.channel is None or place.thread_ts is None:
            return None
        named = f"p{place.thread_ts.replace('.', '')}"
        return f"{self.identity.url.rstrip('/')}/archives/{place.channel}/{named}"

    async def linked(self, threads: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Threads as reports give them, with the `link` that leads to each: in Slack where it lives here."""
        found: list[Mapping[str, Any]] = []
        for thread in threads:
            place = await self.place_of(str(thread["id"])) if thread["channel"] == VIA else None
            here = self.link_to(place) if place is not None else None
            link = here or f"{self.doors.url().rstrip('/')}/threads/{thread['id']}"
            found.append({**thread, "link": link})
        return found

    async def close(self, copy: Copy) -> None:
        """A message whose thread was deleted holds nothing to press any more."""
        said = "This was deleted."
        blocks = [context(plain_text(said))]
        await self.api.call("chat.update", channel=copy.channel, ts=copy.ts, text=said, blocks=blocks)

    # -- in the background -------------------------------------------------------------------------------

    def later(self, work: Awaitable[Any], what: str) -> None:
        """Do what nobody waits for; a failure is logged and changes nothing."""
        task = asyncio.create_task(self._attempt(work, what), name=what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, work: Awaitable[Any], what: str) -> None:
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
        """Tell one person something in a conversation; nobody else sees it, and nothing in it is markup."""
        work = self.api.call(
            "chat.postEphemeral", channel=channel, user=user, thread_ts=thread_ts, **_plainly(text)
        )
        self.later(work, "a note to somebody")

    def answer(self, payload: Mapping[str, Any], text: str) -> None:
        """Tell whoever pressed something what became of it, to them alone and where they pressed it."""
        if payload.get("response_url"):
            container = payload.get("container") or {}
            thread_ts = container.get("thread_ts") or (payload.get("message") or {}).get("thread_ts")
            self.later(self._answer(payload, text, thread_ts), "an answer to a click")
        elif payload.get("trigger_id"):
            opening = self.api.call(
                "views.open", trigger_id=str(payload["trigger_id"]), view=told("Pizza Bot", text)
            )
            self.later(opening, "an answer to a click")

    async def _answer(self, payload: Mapping[str, Any], text: str, thread_ts: str | None) -> None:
        said = _plainly(text) | ({"thread_ts": thread_ts} if thread_ts else {})
        try:
            await self.api.say(str(payload["response_url"]), **said)
        except DeliveryFailed:  # another way to the same place
            channel, user = payload["channel"]["id"], payload["user"]["id"]
            await self.api.call("chat.postEphemeral", channel=channel, user=user, **said)


def _plainly(text: str) -> dict[str, Any]:
    """A message in which nothing is read as markup."""
    return {"text": escaped(text), "blocks": [section(plain_text(text))]}
