"""What did somebody say in Slack? Pure: an event to one value, or to nothing that concerns us.

Messages are `message` events without a subtype, with a file, or also shown in the channel; a mention in a
channel arrives a second time as `app_mention`, under the same timestamp (docs.slack.dev/reference/events).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .identity import Identity
from .places import Place
from .text import mentioned

_SAID = (None, "file_share", "thread_broadcast", "bot_message")


@dataclass(frozen=True, slots=True)
class Shared:
    """A file that came with a message; `url` is None for one that Slack does not hold.

    Of a file in a shared channel a message tells only the `id`, and the rest is to be asked for.
    """

    filename: str
    media_type: str
    size: int
    url: str | None
    link: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One message. `user` is who wrote it, `bot` its bot id when no person did."""

    channel: str
    ts: str
    thread_ts: str | None
    user: str
    bot: str | None
    text: str
    files: tuple[Shared, ...]
    is_direct: bool
    mentions_us: bool

    @property
    def place(self) -> Place:
        """Where its conversation lives: every message outside a thread can begin one."""
        return Place(self.channel, self.thread_ts or self.ts, self.user if self.is_direct else None)

    @property
    def told_at(self) -> str:
        """The address of what the app tells here of its own accord."""
        return self.user if self.is_direct else self.channel

    def key(self, team_id: str) -> str:
        """What it is taken under, once, however often and as whatever event it arrives."""
        return f"slack/{team_id}/{self.channel}/{self.ts}"


def said(event: Mapping[str, Any], identity: Identity) -> Said | None:
    """A message of somebody else; None for edits, deletions, joins and for our own."""
    if event.get("type") not in ("message", "app_mention") or event.get("subtype") not in _SAID:
        return None
    channel, ts, user, bot = (str(event.get(key) or "") for key in ("channel", "ts", "user", "bot_id"))
    if not channel or not ts or not (user or bot) or event.get("hidden"):
        return None
    if user == identity.bot_user or bot == identity.bot_id:
        return None
    text = str(event.get("text") or "")
    thread_ts = event.get("thread_ts")
    return Said(
        channel=channel,
        ts=ts,
        thread_ts=str(thread_ts) if thread_ts else None,
        user=user or bot,
        bot=bot or None,
        text=text,
        files=tuple(map(shared, event.get("files") or ())),
        is_direct=event.get("channel_type") == "im" or channel.startswith("D"),
        mentions_us=event["type"] == "app_mention" or identity.bot_user in mentioned(text),
    )


def shared(file: Mapping[str, Any]) -> Shared:
    """A file as a message names it."""
    elsewhere = file.get("mode") in ("tombstone", "hidden_by_limit", "external") or file.get("is_external")
    url = str(file.get("url_private_download") or file.get("url_private") or "")
    return Shared(
        filename=str(file.get("name") or file.get("title") or "file"),
        media_type=str(file.get("mimetype") or "application/octet-stream"),
        size=int(file.get("size") or 0),
        url=url if url and not elsewhere else None,
        link=str(file.get("external_url") or file.get("permalink") or ""),
        id=str(file["id"]) if file.get("file_access") == "check_file_info" and file.get("id") else None,
    )
