"""Who is told, and where? Pure: from a thread and the people to places.

The thread's own place always; besides, each person's `notify` places, at most one copy per place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pizzabot.people import Person

# Without `notify`, a person is told in the first of these that reaches them.
_PREFERENCE = ("slack", "email", "web")


@dataclass(frozen=True, slots=True)
class Place:
    """An address of a channel; `person` is None for a conversation's own place."""

    channel: str
    address: str
    person: str | None


class Reaches(Protocol):
    """What a channel knows about people."""

    def address_of(self, person: Person) -> str | None:
        """The private place where this channel reaches the person; None when it cannot."""
        ...

    def is_with(self, person: Person, address: str) -> bool:
        """Whether a conversation at `address` is the person's own."""
        ...


Channels = Mapping[str, Reaches]


def for_action(own: Place, approvers: Iterable[Person], channels: Channels) -> list[Place]:
    """The thread's own place and each approver's places for actions, one card per person and channel."""
    found = [own]
    for person in approvers:
        found += _besides(own, person, person.notify.action, channels)
    return _distinct(found)


def for_answer(own: Place, owner: Person | None, channels: Channels) -> list[Place]:
    """The thread's own place, and where its owner is told of unread results.

    Without a word in `notify`, an answer that lives where the owner is told anyway is told once.
    """
    if owner is None or (owner.notify.unread is None and own.channel in _PREFERENCE):
        return [own]
    return _distinct([own, *_besides(own, owner, owner.notify.unread, channels)])


def _besides(own: Place, person: Person, wanted: tuple[str, ...] | None, channels: Channels) -> list[Place]:
    """The person's places, without those of the channel in which they have the thread before them."""
    places = places_of(person, wanted, channels)
    if own.channel not in channels or not channels[own.channel].is_with(person, own.address):
        return places
    return [place for place in places if wanted is not None and place.channel != own.channel]


def places_of(person: Person, wanted: tuple[str, ...] | None, channels: Channels) -> list[Place]:
    """Where a person is told: the wanted channels, or the first preferred one that reaches them."""
    names = _PREFERENCE if wanted is None else wanted
    reached = [
        Place(name, address, person.name)
        for name in names
        if name in channels and (address := channels[name].address_of(person)) is not None
    ]
    return reached[:1] if wanted is None else reached


def _distinct(places: list[Place]) -> list[Place]:
    # The thread's own place stays in also while its channel is switched off: it is told when it is back.
    seen: dict[tuple[str, str], Place] = {}
    for place in places:
        seen.setdefault((place.channel, place.address), place)
    return list(seen.values())
