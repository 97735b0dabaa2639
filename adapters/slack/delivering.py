"""How does something that is to be said get into Slack, once? Rendered, paced, posted, and found again.

    item -> parts -> place in the line of its channel -> chat.postMessage, its key in the message's metadata
    unknown outcome -> conversations.replies / history, looked through for the key

A message that Slack does not take as it is raises an alarm and goes out in plain text: nothing that was said
is lost because of how it looks.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pizzabot.errors import DeliveryFailed
from pizzabot.messages import Digest, OutboundItem, Receipt
from pizzabot.text import visible

from .answers import Answer, File, Part, answer
from .blocks import actions, button, plain_text, section
from .cards import card, reminder
from .clicks import RETRY, page_of
from .client import Denied, Limited, NotLetIn
from .digests import digest, fitting, noted, numbers_key, numbers_of
from .pacing import Pace
from .places import Copy, Place, answered_key, copy_named, place_at
from .progress import UPDATES, Progress
from .status import status
from .text import escaped
from .workspace import VIA, Workspace

logger = logging.getLogger(__name__)

METADATA = "pizzabot_item"
_PATIENCE_SECONDS = 0.5  # so long a delivery waits in line itself; longer waits are the outbox's
_CLOCKS_DIFFER = timedelta(minutes=5)
_PAGES = 20
_LONG_TEXT = 4_000
_INSTEAD = 1_000  # the number of what is said instead of a file
_PLAIN_TEXT = 3_500
_NOWHERE = frozenset(("channel_not_found", "is_archived", "not_in_channel", "thread_not_found"))
_NOT_AS_IT_IS = frozenset(
    (
        "invalid_arguments",
        "invalid_blocks",
        "invalid_blocks_format",
        "markdown_text_conflict",
        "msg_blocks_too_long",
        "msg_blocks_too_many",
        "msg_too_long",
        "no_text",
    )
)


class Delivering:
    """Shows items of the outbox."""

    def __init__(self, workspace: Workspace, progress: Progress, updates: Pace) -> None:
        self._workspace, self._progress, self._updates = workspace, progress, updates

    async def deliver(self, item: OutboundItem) -> Receipt:
        """Post the item, or repaint its copy; raises DeliveryFailed."""
        if item.status is None:
            return await self._deliver(item)
        async with self._progress.lock(item.status.run_id):
            receipt = await self._deliver(item)
            self._progress.shown(item.thread_id, item.status, receipt.external_id)
            return receipt

    async def _deliver(self, item: OutboundItem) -> Receipt:
        rendered = await self._made(item)
        if item.external_id is not None:
            await self._repaint(item, copy_named(item.external_id), rendered.parts[0])
            return Receipt(item.external_id)
        place = await self._place(item)
        try:
            return await self._post(item, place, rendered)
        except Denied as error:
            if error.error in _NOWHERE and item.status is None:
                return await self._post(item, await self._elsewhere(item, error), rendered)
            if error.error not in _NOT_AS_IT_IS:
                raise
            logger.error("Slack did not take %s as it is (%s); it goes out in plain text", item.key, error)
            page = page_of(self._workspace, item.action.id) if item.action is not None else None
            return await self._post(item, place, _plain(item, rendered, page))

    async def _elsewhere(self, item: OutboundItem, error: Denied) -> Place:
        """The owner's direct messages, when the conversation itself is gone or we were taken out of it."""
        doors = self._workspace.doors
        thread = await doors.thread(item.thread_id, doors.people.owner)
        owner = doors.people.by_name(thread.owner) or doors.people.owner
        if owner.slack is None:
            raise error
        logger.warning("%s cannot be told in its conversation (%s); its owner is told", item.key, error)
        return await self._open(Place(None, None, owner.slack))

    async def _made(self, item: OutboundItem) -> Answer:
        if item.kind == "digest" and item.digest is not None:
            url = self._workspace.doors.url().rstrip("/")
            return Answer((Part(*digest(item.digest, url, await self._numbers(item.digest))),))
        # Taking a long answer apart takes so long that clicks would wait for it.
        if len(item.text) > _LONG_TEXT:
            return await asyncio.to_thread(self._rendered, item)
        return self._rendered(item, link=await self._link(item))

    async def _numbers(self, listed: Digest) -> frozenset[int]:
        """The numbers that the digest's message holds; settled for good before it is sent."""
        doors, key = self._workspace.doors, numbers_key(listed.id)
        note = await doors.note(VIA, key)
        if note is None:
            note = noted(fitting(listed))
            await doors.keep(VIA, {key: note})
        return numbers_of(note)

    async def _link(self, item: OutboundItem) -> str | None:
        """Where in Slack the conversation is that a card in private belongs to, or the card of a reminder."""
        if item.action is None or place_at(item.address).thread_ts is not None:
            return None
        if item.kind == "reminder" and item.card is not None:
            there = copy_named(item.card)
            return self._workspace.link_to(Place(there.channel, there.ts, None))
        place = await self._workspace.place_of(item.thread_id)
        return self._workspace.link_to(place) if place is not None else None

    def _rendered(self, item: OutboundItem, *, link: str | None = None) -> Answer:
        if item.action is not None:
            page = page_of(self._workspace, item.action.id)
            if item.kind == "reminder":
                now = self._workspace.doors.clock.now()
                return Answer(
                    (Part(*reminder(item.action, now, title=item.thread_title, page=page, link=link)),)
                )
            return Answer((Part(*card(item.action, title=item.thread_title, page=page, link=link)),))
        if item.status is not None:
            now, live = self._workspace.doors.clock.now(), self._progress.steps(item.thread_id)
            return Answer((Part(*status(item.status, item.thread_id, now, live=live)),))
        # In a conversation of its own the title would only repeat what was asked.
        title = item.thread_title if place_at(item.address).thread_ts is None else None
        made = answer(item.text, title=title, filename=f"answer-{_mark(item.key)}.md")
        if not item.can_be_retried:
            return made
        last = made.parts[-1]
        retry = actions(f"retry {item.thread_id}", [button("Retry", RETRY, value=item.thread_id)])
        return Answer((*made.parts[:-1], Part(last.text, [*last.blocks, retry])), made.file)

    async def _place(self, item: OutboundItem) -> Place:
        """Where it is said: in the thread in which somebody answered what was told there, once they did.

        A digest always begins a thread of its own: numbers that are written below it are those of its list.
        """
        place = place_at(item.address)
        if place.thread_ts is None and item.kind != "digest":
            answered = await self._workspace.doors.note(VIA, answered_key(item.thread_id, item.address))
            if answered is not None:
                there = copy_named(answered)
                return Place(there.channel, there.ts, place.user)
        return await self._open(place)

    async def _open(self, place: Place) -> Place:
        if place.channel is not None or place.user is None:
            return place
        return Place(await self._workspace.direct_channel(place.user), None, place.user)

    # -- posting -----------------------------------------------------------------------------------------

    async def _post(self, item: OutboundItem, place: Place, rendered: Answer) -> Receipt:
        there: Mapping[str, Copy] = {}
        if len(rendered.parts) > 1 or rendered.file is not None:
            # An earlier try may have left some of it.
            there = await self._there(item, place)
        first: Copy | None = None
        for number, part in enumerate(rendered.parts):
            key = _key(item.key, number)
            copy = there.get(key) or await self._say(place, part, key)
            if first is None:
                first = copy
                # What belongs together stays together: the rest of it stands in the thread of its beginning.
                place = Place(place.channel, place.thread_ts or first.ts, place.user)
        assert first is not None
        if (
            rendered.file is not None
            and not {rendered.file.filename, _key(item.key, _INSTEAD)} & there.keys()
        ):
            await self._share_or_say(item, place, rendered.file)
        return Receipt(first.external_id)

    async def _share_or_say(self, item: OutboundItem, place: Place, file: File) -> None:
        try:
            await self._share(place, file)
        except NotLetIn as error:
            if error.needed is None:
                raise
            # What is said next in this conversation must not wait until somebody adds a scope.
            logger.warning("a long answer could not be shared as a file: %s", error)
            page = f"{self._workspace.doors.url().rstrip('/')}/threads/{item.thread_id}"
            said = f"The file could not be shared: {error}. The whole answer is at {page}"
            await self._say(place, Part(escaped(said), [section(plain_text(said))]), _key(item.key, _INSTEAD))

    async def _say(self, place: Place, part: Part, key: str) -> Copy:
        posted = await self._workspace.post(
            place.channel or "",
            key,
            patience_seconds=_PATIENCE_SECONDS,
            thread_ts=place.thread_ts,
            text=part.text,
            blocks=part.blocks or None,
            mrkdwn=None if part.blocks else False,
            metadata={"event_type": METADATA, "event_payload": {"key": key}},
        )
        return Copy(str(posted["channel"]), str(posted["ts"]))

    async def _share(self, place: Place, file: File) -> None:
        """Put a file behind the message that announces it."""
        api = self._workspace.api
        await self._workspace.in_line(place.channel or "", file.filename, _PATIENCE_SECONDS)
        given = await api.call("files.getUploadURLExternal", filename=file.filename, length=len(file.content))
        await api.upload(str(given["upload_url"]), file.content)
        await api.call(
            "files.completeUploadExternal",
            files=[{"id": given["file_id"], "title": file.filename}],
            channel_id=place.channel,
            thread_ts=place.thread_ts,
        )

    async def _repaint(self, item: OutboundItem, copy: Copy, part: Part) -> None:
        await self._updates.take(UPDATES, item.key, _PATIENCE_SECONDS)
        arguments = {"channel": copy.channel, "ts": copy.ts, "text": part.text[:_PLAIN_TEXT]}
        try:
            # Always with blocks: an update without them would take away the ones that are there.
            await self._workspace.api.call("chat.update", **arguments, blocks=part.blocks)
        except Limited as error:
            self._updates.pause(UPDATES, error.retry_after_seconds or 1.0)
            raise
        except Denied as error:
            if error.error in ("message_not_found", "cant_update_message", "is_archived"):
                logger.info("a copy is gone and cannot be repainted: %s", error)
                return
            if error.error not in _NOT_AS_IT_IS:
                raise
            logger.error("Slack did not take %s as it is (%s); it goes out in plain text", item.key, error)
            await self._workspace.api.call("chat.update", **arguments, blocks=[])

    # -- finding -----------------------------------------------------------------------------------------

    async def find(self, item: OutboundItem) -> Receipt | None:
        """The copy of an item whose outcome is unknown; all of it, or None."""
        rendered = await self._made(item)
        place = await self._place(item)
        there = await self._there(item, place)
        wanted = [_key(item.key, number) for number in range(len(rendered.parts))]
        files = {rendered.file.filename, _key(item.key, _INSTEAD)} if rendered.file is not None else set()
        if not all(name in there for name in wanted) or (files and not files & there.keys()):
            return None
        return Receipt(there[wanted[0]].external_id)

    async def _there(self, item: OutboundItem, place: Place) -> dict[str, Copy]:
        """What is in Slack of an item: its messages by key, its file by name."""
        channel, oldest = place.channel or "", (item.queued_at - _CLOCKS_DIFFER).timestamp()
        found = await self._looked_through(channel, place.thread_ts, oldest)
        if place.thread_ts is None and (first := found.get(item.key)) is not None:
            found |= await self._looked_through(channel, first.ts, oldest)
        return found

    async def _looked_through(self, channel: str, thread_ts: str | None, oldest: float) -> dict[str, Copy]:
        """Everything of ours in a conversation since then."""
        method = "conversations.history" if thread_ts is None else "conversations.replies"
        arguments: dict[str, Any] = {"channel": channel, "ts": thread_ts, "oldest": f"{oldest:.6f}"}
        found: dict[str, Copy] = {}
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._workspace.api.call(
                method, **arguments, limit=200, include_all_metadata="true", cursor=cursor
            )
            for message in page.get("messages", ()):
                found |= _ours(message, channel)
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return found
        raise DeliveryFailed("the conversation is too long to be looked through", retryable=True)


def _ours(message: Mapping[str, Any], channel: str) -> dict[str, Copy]:
    """The key of a message of ours, and the names of its files."""
    copy = Copy(channel, str(message.get("ts")))
    metadata = message.get("metadata") or {}
    names = [str(file.get("name")) for file in message.get("files") or () if message.get("bot_id")]
    if metadata.get("event_type") == METADATA:
        names.append(str((metadata.get("event_payload") or {}).get("key")))
    return dict.fromkeys(names, copy)


def _key(key: str, number: int) -> str:
    return key if number == 0 else f"{key}#{number}"


def _mark(key: str) -> str:
    """A few letters that tell the file of one item from that of another."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def _plain(item: OutboundItem, rendered: Answer, page: str | None) -> Answer:
    """An item without any blocks; a long one as a file besides, a decision with the page to make it on."""
    text = visible(item.text, body=True)
    if not text:
        said = rendered.parts[0].text
        return Answer((Part(f"{said}\n{page}" if page is not None else said, []),))
    if len(text) > _PLAIN_TEXT:
        file = rendered.file or File(f"answer-{_mark(item.key)}.md", item.text.encode())
        return Answer((Part(escaped(text[:_PLAIN_TEXT]) + "…", []),), file)
    return Answer((Part(escaped(text), []),), rendered.file)
