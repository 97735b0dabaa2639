"""Who is told, and where? Pure: from a thread and the people to places.

The thread's own place always; besides, each person's `notify` places, at most one copy per place. A thread
that nobody wrote has no place of its own: its results go where its trigger says, else to its owner.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pizzabot.people import People, Person

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

    @property
    def repaints_silently(self) -> bool:
        """Whether a repaint changes a copy without a word; otherwise it is another message to the person."""
        ...

    def address_of(self, person: Person) -> str | None:
        """The private place where this channel reaches the person; None when it cannot."""
        ...

    def is_with(self, person: Person, address: str) -> bool:
        """Whether a conversation at `address` is the person's own."""
        ...


Channels = Mapping[str, Reaches]


def for_action(own: Sequence[Place], approvers: Iterable[Person], channels: Channels) -> list[Place]:
    """The thread's own places and each approver's places for actions, one card per person and channel."""
    found = list(own)
    for person in approvers:
        found += _besides(own, person, person.notify.action, channels)
    return _distinct(found)


def for_reminder(own: Sequence[Place], person: Person, channels: Channels) -> list[Place]:
    """Where a person is told again of an action: where they were asked, but not before everybody else's eyes.

    Of the thread's own places only those that are theirs, or when they are reached nowhere else.
    """
    besides = _besides(own, person, person.notify.action, channels)
    theirs = [
        place
        for place in own
        if place.channel in channels and channels[place.channel].is_with(person, place.address)
    ]
    return _distinct([*theirs, *besides] or list(own))


def for_answer(own: Place, owner: Person | None, channels: Channels) -> list[Place]:
    """The thread's own place, and where its owner is told of unread results.

    Without a word in `notify`, an answer that lives where the owner is told anyway is told once.
    """
    if owner is None or (owner.notify.unread is None and own.channel in _PREFERENCE):
        return [own]
    return _distinct([own, *_besides([own], owner, owner.notify.unread, channels)])


def of_unattended(
    tells: Collection[str] | None, owner: Person | None, people: People, channels: Channels
) -> list[Place]:
    """Where the results of a thread go that nobody wrote. `tells` holds names of channels (the owner there),
    `slack:` with a channel's id (a conversation of its own), and names of people. Where it reaches nobody
    (they left, or the channel is off), the owner is told as ever; only an empty one tells nobody.
    """
    found = _named(tells, owner, people, channels) if tells is not None else []
    if found or owner is None or (tells is not None and not tells):
        return found
    return places_of(owner, owner.notify.unread, channels)


def _named(tells: Collection[str], owner: Person | None, people: People, channels: Channels) -> list[Place]:
    found: list[Place] = []
    for wanted in tells:
        channel, _, address = wanted.partition(":")
        if address:
            found += [Place(channel, address, None)] if channel in channels else []
        elif wanted in channels:
            found += places_of(owner, (wanted,), channels) if owner is not None else []
        elif (person := people.by_name(wanted)) is not None:
            found += places_of(person, person.notify.unread, channels)
    return _distinct(found)


def where_written(
    told: Sequence[Place], authors: Iterable[tuple[Person, str]], channels: Channels
) -> list[Place]:
    """The places of a thread that nobody began, when people went on with it: each is told in the channel in
    which they wrote, and besides only where their `notify.unread` says so.

    A conversation of the thread's own in that channel is where they wrote. Where a channel does not reach
    them, they are told as ever.
    """
    conversations = {place.channel for place in told if place.person is None}
    reached = [
        (person, Place(channel, address, person.name))
        for person, channel in authors
        if channel in channels
        and channel not in conversations
        and (address := channels[channel].address_of(person)) is not None
    ]
    moved = {person.name for person, _ in reached if person.notify.unread is None}
    found = [place for place in told if place.person not in moved] + [place for _, place in reached]
    return _distinct(found)


def for_people(own: Sequence[Place], people: Iterable[Person], channels: Channels) -> list[Place]:
    """Where these people are told of news of a thread that is not theirs."""
    return _distinct([p for person in people for p in _besides(own, person, person.notify.unread, channels)])


def _besides(
    own: Sequence[Place], person: Person, wanted: tuple[str, ...] | None, channels: Channels
) -> list[Place]:
    """The person's places, without those of the channels in which they have the thread before them."""
    places = places_of(person, wanted, channels)
    before_them = {
        place.channel
        for place in own
        if place.channel in channels and channels[place.channel].is_with(person, place.address)
    }
    if not before_them:
        return places
    return [place for place in places if wanted is not None and place.channel not in before_them]


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
