"""What does an address or the name of a copy look like in Slack? Pure.

CHANNEL/THREAD_TS        a thread of a channel          D0CHANNEL/THREAD_TS/U0ADA   one of a direct message
U0ADA                    the person's direct messages   CHANNEL/TS                  a copy: one message
C0CHANNEL                the channel, in no thread yet
"""

from __future__ import annotations

from dataclasses import dataclass

_CHANNELS = ("C", "G")  # ids of people begin with U or W


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message goes. `channel` is None as long as only the person is known, `thread_ts` while it
    begins a thread."""

    channel: str | None
    thread_ts: str | None
    user: str | None

    @property
    def address(self) -> str:
        parts = (self.channel, self.thread_ts, self.user)
        return "/".join(part for part in parts if part is not None)


def place_at(address: str) -> Place:
    """The place that an address names."""
    parts = address.split("/")
    if len(parts) == 1:
        is_channel = address[:1] in _CHANNELS
        return Place(parts[0], None, None) if is_channel else Place(None, None, parts[0])
    return Place(parts[0], parts[1], parts[2] if len(parts) > 2 else None)


@dataclass(frozen=True, slots=True)
class Copy:
    """One message of ours."""

    channel: str
    ts: str

    @property
    def external_id(self) -> str:
        return f"{self.channel}/{self.ts}"


def copy_named(external_id: str) -> Copy:
    """The message that a copy's name stands for."""
    channel, _, ts = external_id.partition("/")
    return Copy(channel, ts)


def answered_key(thread_id: str, address: str) -> str:
    """Where it is kept in which thread of Slack somebody answered what was told at an address."""
    return f"answered/{thread_id}/{address}"
