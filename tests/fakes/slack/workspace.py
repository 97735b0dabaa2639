"""What a workspace holds: people, conversations, messages, files, views, and what is to go wrong."""

from __future__ import annotations

import copy
import itertools
import mimetypes
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

Json = dict[str, Any]

_WITH_ACTION_ID = ("elements", "accessory", "element")


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one call.

    `cut` does the call and closes the connection without an answer, `garbage` does it and answers that text.
    Otherwise nothing is done: `status` is answered (a 429 with `retry_after` or 1 second), or status 200 with
    `error`.
    """

    status: int = 0
    error: str = ""
    retry_after: str | int | None = None
    cut: bool = False
    garbage: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it arrived, the token left out; `at` is read from `time.monotonic`."""

    method: str
    args: Json
    at: float


@dataclass(slots=True)
class Delivery:
    """What was sent to the app and how that was acknowledged; `payload` is what the app answered with."""

    kind: str  # events_api, interactive or slash_commands
    body: Json
    attempt: int = 0
    envelope_id: str = ""
    acked: bool = False
    seconds: float = 0.0
    payload: Json = field(default_factory=dict)
    status: int = 0  # of the answer over HTTP


@dataclass(frozen=True, slots=True)
class File:
    id: str
    name: str
    content: bytes
    user: str
    url: str
    title: str = ""

    def as_json(self) -> Json:
        mimetype = mimetypes.guess_type(self.name)[0] or "application/octet-stream"
        return {
            "id": self.id,
            "name": self.name,
            "title": self.title or self.name,
            "mimetype": mimetype,
            "filetype": self.name.rpartition(".")[2] or "binary",
            "user": self.user,
            "size": len(self.content),
            "mode": "hosted",
            "is_external": False,
            "file_access": "visible",
            "url_private": self.url,
            "url_private_download": self.url,
        }


@dataclass(slots=True, eq=False)
class Message:
    """A message as it stands now: later edits show in the same object."""

    channel: str
    ts: str
    user: str
    text: str = ""
    blocks: list[Json] = field(default_factory=list)
    thread_ts: str | None = None  # None at the root of a thread
    metadata: Json | None = None
    files: list[Json] = field(default_factory=list)
    ephemeral_to: str | None = None
    deleted: bool = False
    edits: int = 0
    extra: Json = field(default_factory=dict)  # other fields of the event
    values: dict[str, Json] = field(default_factory=dict)  # what people chose in its menus

    @property
    def root_ts(self) -> str:
        return self.thread_ts or self.ts


@dataclass(slots=True)
class Channel:
    id: str
    kind: str  # channel or im
    name: str
    user: str = ""  # the person of a DM
    has_app: bool = True
    messages: dict[str, Message] = field(default_factory=dict)  # by ts, in order
    threads: dict[str, list[Message]] = field(
        default_factory=lambda: defaultdict(list)
    )  # by the ts of the root

    def find(self, ts: str | None) -> Message | None:
        message = self.messages.get(ts or "")
        return None if message is None or message.deleted else message


@dataclass(slots=True)
class View:
    """A view; `values` hold what was entered so far, by block and action."""

    data: Json
    user: str
    values: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True)
class Pointer:
    """What a trigger id or a response URL stands for."""

    user: str
    at: float
    channel: str = ""
    message: Message | None = None
    uses: int = 0


class Workspace:
    """One team with one app. Ids count up, so that two runs give the same ones."""

    def __init__(self, people: Mapping[str, str], channels: Iterable[str]) -> None:
        self.url = ""  # of the API, ends in /api/
        self.team_id, self.app_id = "T0TEAM", "A0PIZZA"
        self.bot_id, self.bot_user = "B0PIZZA", "U0PIZZA"
        self.bot_token, self.app_token = "xoxb-fake", "xapp-fake"
        self.signing_secret = "fake-signing-secret"
        self.scopes = ["chat:write", "im:history", "im:write", "files:read", "files:write", "users:read"]
        self.users: dict[str, Json] = {}
        for user, name in {**people, self.bot_user: "pizza"}.items():
            self.add_person(user, name, is_bot=user == self.bot_user)
        self.channels: dict[str, Channel] = {}
        for channel in channels:
            self.add_channel(channel)
        self.files: dict[str, File] = {}
        self.uploads: dict[str, Json] = {}
        self.homes: dict[str, View] = {}
        self.modals: dict[str, list[View]] = defaultdict(list)  # the one in sight last
        self.triggers: dict[str, Pointer] = {}
        self.response_urls: dict[str, Pointer] = {}
        self.statuses: dict[tuple[str, str], list[str]] = defaultdict(list)  # by channel and thread, in order
        self.titles: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[Json]] = {}

        self.calls: list[Call] = []  # in order of arrival, also those that failed
        self.refused: list[str] = []
        self.faults: list[Fault] = []  # used up one by one, those of a method before the common ones
        self.faults_on: dict[str, list[Fault]] = {}
        self.latency_seconds = 0.0
        self.trigger_seconds = 3.0
        self.away = False
        self._count = itertools.count(1)
        self._last_ts = 0

    @property
    def base(self) -> str:
        return self.url.removesuffix("/api/")

    def add_person(self, user: str, name: str, **fields: Any) -> None:
        """Add a person, or change one; `fields` are those of a user object."""
        self.users[user] = {
            "id": user,
            "team_id": self.team_id,
            "name": name,
            "real_name": name.title(),
            "deleted": False,
            "is_bot": False,
            "is_restricted": False,
            "is_ultra_restricted": False,
            "tz": "UTC",
            "profile": {"display_name": name, "real_name": name.title(), "email": f"{name}@example.com"},
        } | fields

    def add_channel(self, channel: str, *, name: str = "", has_app: bool = True) -> None:
        self.channels[channel] = Channel(channel, "channel", name or channel.lower(), has_app=has_app)

    def dm(self, user: str) -> str:
        """The id of the conversation of a person and the app."""
        if user not in self.users:
            raise KeyError(user)
        channel = "D" + user[1:]
        if channel not in self.channels:
            self.channels[channel] = Channel(channel, "im", "directmessage", user)
        return channel

    def new_id(self, prefix: str) -> str:
        return f"{prefix}{next(self._count):08d}"

    def new_ts(self) -> str:
        self._last_ts = max(int(time.time() * 1_000_000), self._last_ts + 1)
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def post(
        self, channel: str, user: str, text: str = "", blocks: Iterable[Json] = (), **more: Any
    ) -> Message:
        message = Message(channel, self.new_ts(), user, text, self.named(blocks), **more)
        self.channels[channel].messages[message.ts] = message
        self.channels[channel].threads[message.root_ts].append(message)
        return message

    def named(self, blocks: Iterable[Json]) -> list[Json]:
        """A copy in which everything has the ids that Slack gives to what an app left unnamed."""
        copied = copy.deepcopy(list(blocks))
        for block in copied:
            block.setdefault("block_id", self.new_id("b"))
            for key in _WITH_ACTION_ID if block["type"] != "rich_text" else ():
                found = block.get(key, [])
                for element in found if isinstance(found, list) else [found]:
                    if element.get("type") not in ("image", "mrkdwn", "plain_text"):
                        element.setdefault("action_id", self.new_id("a"))
        return copied

    def as_json(self, message: Message, *, metadata: bool = True) -> Json:
        """A message the way Slack shows it to an app."""
        shown: Json = {"type": "message", "user": message.user, "ts": message.ts, "text": message.text}
        shown |= {"team": self.team_id} | message.extra
        if message.user == self.bot_user:
            shown |= {"bot_id": self.bot_id, "app_id": self.app_id}
        if message.blocks:
            shown["blocks"] = message.blocks
        if message.files:
            shown["files"] = message.files
        if message.edits:
            shown["edited"] = {"user": message.user, "ts": message.ts}
        if message.metadata is not None and metadata:
            shown["metadata"] = message.metadata
        if message.thread_ts is not None:
            shown["thread_ts"] = message.thread_ts
        elif replies := self.replies(message)[1:]:
            shown |= {"thread_ts": message.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts}
        return copy.deepcopy(shown)

    def replies(self, root: Message) -> list[Message]:
        """A thread as everybody sees it, the root first."""
        thread = self.channels[root.channel].threads[root.ts]
        return [m for m in thread if not m.deleted and m.ephemeral_to is None]

    def keep_file(self, file_id: str, name: str, content: bytes, user: str, title: str = "") -> File:
        url = f"{self.base}/files/{file_id}/{quote(name)}"
        self.files[file_id] = File(file_id, name, content, user, url, title)
        return self.files[file_id]

    def new_view(self, raw: Json, user: str) -> View:
        view = View({"id": self.new_id("V")}, user)
        self.change_view(view, raw)
        return view

    def change_view(self, view: View, raw: Json) -> None:
        """Put new content into a view; what was entered stays in the blocks that keep their name."""
        asked = {"private_metadata": "", "callback_id": "", "external_id": ""} | copy.deepcopy(raw)
        view.data = asked | {
            "blocks": self.named(raw["blocks"]),
            "id": view.data["id"],
            "team_id": self.team_id,
            "app_id": self.app_id,
            "bot_id": self.bot_id,
            "hash": self.new_id("h"),
        }

    def view(self, view_id: object) -> View | None:
        """An open view by its id."""
        modals = itertools.chain.from_iterable(self.modals.values())
        return next((v for v in (*modals, *self.homes.values()) if v.data["id"] == view_id), None)

    def new_trigger(self, user: str) -> str:
        trigger = f"{self.new_id('')}.{user}"
        self.triggers[trigger] = Pointer(user, time.monotonic())
        return trigger

    def new_response_url(self, user: str, channel: str, message: Message | None) -> str:
        key = self.new_id("r")
        self.response_urls[key] = Pointer(user, time.monotonic(), channel, message)
        return f"{self.base}/response/{key}"
