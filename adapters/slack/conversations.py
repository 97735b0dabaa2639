"""How does a message become work? Committed, then acknowledged; what takes longer is staged first.

    event -> said to us? -> by somebody known? -> which conversation? -> accepted -> acknowledged -> a note
                                               with files: -> staged -> acknowledged -> fetched -> accepted

Raising means: not acknowledged, so that Slack delivers it again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pizzabot.errors import DeliveryFailed, Refused, Unavailable
from pizzabot.inbox.intake import MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS
from pizzabot.messages import Accepted, Attachment, InboundMessage, Staged, ThreadState
from pizzabot.people import Person, may_write
from pizzabot.text import storable, visible

from .blocks import shortened
from .client import Away, Denied
from .identity import Identity
from .parse import Said, Shared, said, shared
from .places import Copy, answered_key, place_at
from .spoken import Spoken
from .text import escaped, mentioned, readable
from .workspace import VIA, Workspace

logger = logging.getLogger(__name__)

BOT_MESSAGES_IN_A_ROW = 10
_DOWNLOAD_TRIES = 10  # some minutes in all
_FETCHED_AT_ONCE = 3  # they are held in memory, up to 20 files of 25 MB each
_REMEMBERED = 10_000
_MEDIA_TYPE = re.compile(r"[a-zA-Z0-9!#$&^_.+-]{1,64}/[a-zA-Z0-9!#$&^_.+-]{1,64}")
_REFUSAL = "pizzabot_refusal"
_OVERHEARD, _OVERHEARD_SECONDS = 500, 600.0
_ACTIVE = (ThreadState.QUEUED, ThreadState.RUNNING, ThreadState.WAITING)


class Conversations:
    """Takes in what people write."""

    def __init__(self, workspace: Workspace, allow_bots: tuple[str, ...]) -> None:
        self._workspace, self._allow_bots = workspace, frozenset(allow_bots)
        self._spoken = Spoken(workspace)
        self._refused: OrderedDict[str, None] = OrderedDict()
        self._fetching = asyncio.Semaphore(_FETCHED_AT_ONCE)
        self._overheard: OrderedDict[str, list[tuple[float, Mapping[str, Any]]]] = OrderedDict()  # by address

    # -- messages ----------------------------------------------------------------------------------------

    async def hear(self, event: Mapping[str, Any], identity: Identity) -> None:
        """An event of a message; raises Unavailable when it could not be stored."""
        heard = said(event, identity)
        if heard is None or (heard.bot is not None and not self._is_allowed(heard)):
            return
        person = self._workspace.person(heard.user)
        if person is None:
            if heard.bot is None and (heard.is_direct or heard.mentions_us):
                self._refuse(heard)
            return
        doors, address = self._workspace.doors, heard.place.address
        here = await doors.thread_at(VIA, address) if heard.thread_ts is not None else None
        told = await self._told(heard) if here is None else None
        if here is None and told is None and not (heard.is_direct or heard.mentions_us):
            self._overhear(address, event)
            return  # people talk with each other
        if heard.bot is not None and await self._talks_in_circles(here):
            logger.warning("bots wrote %d times in a row; the thread is left alone", BOT_MESSAGES_IN_A_ROW)
            return
        if here is not None and _is_stop(heard.text) and await self._stops(here, person, heard):
            return
        if here is not None and not heard.files and await self._decides(here, person, heard, identity):
            return
        if here is None and not heard.files and await self._decides_listed(person, heard, identity):
            return
        message = InboundMessage(
            channel=VIA,
            person=person.name,
            text=await self._text(heard.text, identity),
            address=address,
            thread_id=told,
            key=heard.key(identity.team_id),
            is_guest=told is not None and not heard.is_direct,
        )
        if told is not None and heard.thread_ts is not None:
            # What follows is said where it was answered, and not as news each time.
            where = answered_key(told, heard.told_at)
            await doors.keep(VIA, {where: f"{heard.channel}/{heard.thread_ts}"})
        if heard.files:
            await self._stage(message, heard.files, heard.user)
        else:
            await self._accept(message, heard.user)

    def _is_allowed(self, heard: Said) -> bool:
        return bool(self._allow_bots & {heard.user, heard.bot or ""})

    async def _text(self, text: str, identity: Identity) -> str:
        names = await self._workspace.names(mentioned(text) - {identity.bot_user})
        return storable(readable(text, lambda user: names.get(user, "Pizza Bot"), without=identity.bot_user))

    def _overhear(self, address: str, event: Mapping[str, Any]) -> None:
        """What is said in a thread that is none of ours, or not yet: events can overtake the mention."""
        if event.get("thread_ts"):
            self._overheard.setdefault(address, []).append((time.monotonic(), event))
            self._overheard.move_to_end(address)
        while self._overheard and (
            len(self._overheard) > _OVERHEARD
            or next(iter(self._overheard.values()))[0][0] < time.monotonic() - _OVERHEARD_SECONDS
        ):
            self._overheard.popitem(last=False)

    async def _hear_again(self, address: str) -> None:
        """The thread is ours now: so is what was overheard there. Raises Unavailable, and keeps the rest."""
        identity = self._workspace.identity
        waiting = self._overheard.pop(address, [])
        while waiting and identity is not None:
            try:
                await self.hear(waiting[0][1], identity)
            except Unavailable:
                self._overheard[address] = waiting
                raise
            waiting.pop(0)

    async def _told(self, heard: Said) -> str | None:
        """The thread that lives elsewhere, when this answers something of it that was told here."""
        if heard.thread_ts is None:
            return None
        copy = Copy(heard.channel, heard.thread_ts).external_id
        return await self._workspace.doors.thread_of_copy(VIA, heard.told_at, copy)

    async def _talks_in_circles(self, thread_id: str | None) -> bool:
        """Whether only bots wrote to us in the thread lately."""
        if thread_id is None:
            return False
        doors = self._workspace.doors
        thread = await doors.reports.thread(doors.people.owner, thread_id, limit=BOT_MESSAGES_IN_A_ROW * 3)
        asked = [m["author"] for m in thread["messages"] if m["role"] == "user"] if thread else []
        bots = {person.name for person in doors.people if person.slack in self._allow_bots}
        return len(asked) >= BOT_MESSAGES_IN_A_ROW and set(asked[-BOT_MESSAGES_IN_A_ROW:]) <= bots

    async def _stops(self, thread_id: str, person: Person, heard: Said) -> bool:
        """Whether the word stop is refused here: somebody else's work is not theirs to stop."""
        doors = self._workspace.doors
        thread = await doors.thread(thread_id, doors.people.owner)
        if thread.state not in _ACTIVE or may_write(person, thread.owner):
            return False
        self._note(heard.place.address, heard.user, f"Only {thread.owner} or an owner may stop this.")
        return True

    async def _decides(self, thread_id: str, person: Person, heard: Said, identity: Identity) -> bool:
        """Whether the words decide what waits here; then they are no message."""
        key, text = heard.key(identity.team_id), await self._text(heard.text, identity)
        said = await self._spoken.decides(thread_id, person, key, text)
        if said:
            self._note(heard.place.address, heard.user, said)
        return said is not None

    async def _decides_listed(self, person: Person, heard: Said, identity: Identity) -> bool:
        """Whether it is written below a digest and decides, or is asked back; then it is no message."""
        if heard.thread_ts is None or not heard.is_direct:
            return False
        told = Copy(heard.channel, heard.thread_ts).external_id
        listed = await self._workspace.doors.digest_of_copy(VIA, heard.user, told)
        if listed is None:
            return False
        key, text = heard.key(identity.team_id), await self._text(heard.text, identity)
        said = await self._spoken.decides_listed(listed, person, key, text)
        if said is not None:
            self._note(heard.place.address, heard.user, said)
        return said is not None

    async def _accept(self, message: InboundMessage, user: str) -> None:
        try:
            accepted = await self._workspace.doors.accept(message)
        except Unavailable:
            raise
        except Refused as error:
            self._note(message.address or "", user, str(error))
            return
        if not accepted.duplicate:
            self._workspace.later(self._follow_up(message, accepted, user), "what follows a message")
        await self._hear_again(message.address or "")

    async def _follow_up(self, message: InboundMessage, accepted: Accepted, user: str) -> None:
        doors, address = self._workspace.doors, message.address or ""
        person = doors.people.by_name(message.person)
        if person is None:
            return
        if self._workspace.stopped_by is not None:
            by = self._workspace.stopped_by
            self._note(
                address, user, f"Everything is stopped by {by}. This is kept, and starts after resume."
            )
            return
        if not accepted.held:
            return
        thread = await doors.thread(accepted.thread_id, doors.people.owner)
        if _is_stop(message.text) and thread.state in _ACTIVE:
            try:
                await doors.stop_thread(accepted.thread_id, person, VIA)
            except Refused as error:
                self._note(address, user, str(error))
        elif thread.state is ThreadState.WAITING:
            note = "Kept for when the decision above is made. To decide, press one of its buttons."
            self._note(address, user, note)
        elif thread.state in _ACTIVE:
            self._note(address, user, "Kept. I take it up as soon as I am done with what I am doing.")

    def _note(self, address: str, user: str, text: str) -> None:
        place = place_at(address)
        if place.channel is not None:
            self._workspace.whisper(place.channel, user, text, place.thread_ts)

    # -- strangers ---------------------------------------------------------------------------------------

    def _refuse(self, heard: Said) -> None:
        """Say once, politely, that this is not for everybody."""
        told = f"{heard.user} {heard.is_direct}"
        if told in self._refused:
            return
        self._refused[told] = None
        if len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)
        text = self._workspace.stranger(heard.user)
        logger.info("the Slack user %s is nobody of [[people]] and was told so", heard.user)
        if heard.is_direct:
            self._workspace.later(self._refuse_in_direct(heard, text), "a refusal")
        else:
            self._workspace.whisper(heard.channel, heard.user, text, heard.thread_ts)

    async def _refuse_in_direct(self, heard: Said, text: str) -> None:
        """Slack itself remembers whether it was said before: also after a restart once is once."""
        api = self._workspace.api
        history = await api.call(
            "conversations.history", channel=heard.channel, limit=50, include_all_metadata=True
        )
        told = (message.get("metadata") or {} for message in history["messages"])
        if any(metadata.get("event_type") == _REFUSAL for metadata in told):
            return
        metadata = {"event_type": _REFUSAL, "event_payload": {"user": heard.user}}
        await self._workspace.post(
            heard.channel, "refusal", patience_seconds=10, text=escaped(text), metadata=metadata
        )

    # -- files -------------------------------------------------------------------------------------------

    async def _stage(self, message: InboundMessage, files: tuple[Shared, ...], user: str) -> None:
        await self.stage(message, [_file_row(file) for file in files], user)

    async def stage(self, message: InboundMessage, files: list[dict[str, Any]], user: str) -> None:
        """Keep a message until its files are here; raises Unavailable when it could not be stored."""
        assert message.key is not None
        body = {
            "person": message.person,
            "text": message.text,
            "address": message.address,
            "thread_id": message.thread_id,
            "is_guest": message.is_guest,
            "files": files,
            "user": user,
        }
        item = Staged(message.key, json.dumps(body))
        if await self._workspace.doors.stage(VIA, item):
            self._workspace.later(self._complete(item), "a message with files")

    async def recover(self) -> None:
        """Take up what was staged before a crash, in the order in which it came."""
        await self._spoken.forget()
        for item in await self._workspace.doors.staged(VIA):
            try:
                await self._complete(item)
            except Exception:  # its row stays; the others must not wait for it
                logger.exception("a message with files could not be taken up")

    async def _complete(self, item: Staged) -> None:
        async with self._fetching:
            await self._fetch_and_accept(item)

    async def _fetch_and_accept(self, item: Staged) -> None:
        held = json.loads(item.body)
        fetched, missing = [], []
        for row in held["files"][:MAX_ATTACHMENTS]:
            file = shared(row)
            try:
                fetched.append(await self._fetched(file))
            except DeliveryFailed as error:
                missing.append(_missing(file, error))
        if len(held["files"]) > MAX_ATTACHMENTS:
            missing.append(f"only the first {MAX_ATTACHMENTS} files were taken")
        notes = "".join(f"\n\n[{note}]" for note in missing)
        message = InboundMessage(
            channel=VIA,
            person=held["person"],
            text=(held["text"] + notes).strip(),
            address=held["address"],
            thread_id=held["thread_id"],
            key=item.key,
            attachments=fetched,
            is_guest=held.get("is_guest", False),
        )
        if missing:
            self._note(
                held["address"], held["user"], f"Not everything came with your message: {'; '.join(missing)}."
            )
        while True:
            try:
                await self._accept(message, held["user"])
                break
            except Unavailable:
                await asyncio.sleep(5)
        await self._workspace.doors.unstage(VIA, item.key)

    async def _fetched(self, file: Shared) -> Attachment:
        if file.id is not None:  # of a shared channel: the message names it and no more
            file = shared((await self._workspace.api.call("files.info", file=file.id))["file"])
        if file.url is None:
            raise Denied("file", "not_in_slack")
        if file.size > MAX_ATTACHMENT_BYTES:
            raise Denied("file", "too_large")
        for tried in range(1, _DOWNLOAD_TRIES + 1):
            try:
                content = await self._workspace.api.download(
                    file.url, self._workspace.bot_token, MAX_ATTACHMENT_BYTES
                )
                break
            except Away:
                if tried == _DOWNLOAD_TRIES:
                    raise
                await asyncio.sleep(min(30.0, 0.5 * 2**tried))
        media_type = file.media_type if _MEDIA_TYPE.fullmatch(file.media_type) else "application/octet-stream"
        return Attachment(_filename(file), media_type, content)


def _file_row(file: Shared) -> dict[str, Any]:
    return {
        "name": file.filename,
        "mimetype": file.media_type,
        "size": file.size,
        "url_private": file.url,
        "permalink": file.link,
        "id": file.id,
        "file_access": "check_file_info" if file.id is not None else "visible",
    }


def _filename(file: Shared) -> str:
    return shortened(storable(visible(file.filename)).strip(), 200) or "file"


def _missing(file: Shared, error: DeliveryFailed) -> str:
    if isinstance(error, Denied) and error.error == "too_large":
        return (
            f"the file {_filename(file)} is larger than {MAX_ATTACHMENT_BYTES // 2**20} MB and was not taken"
        )
    if isinstance(error, Denied) and error.error == "not_in_slack":
        return f"the file {_filename(file)} is not kept in Slack and was not taken: {file.link}".rstrip(": ")
    return f"the file {_filename(file)} could not be fetched: {error}"


def _is_stop(text: str) -> bool:
    return text.strip().rstrip(".!").casefold() == "stop"
