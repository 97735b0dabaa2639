"""Who is told where? A table."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pizzabot.outbox.recipients import Place, for_action, for_answer, places_of, where_written
from pizzabot.people import Notify, Person


@dataclass(frozen=True)
class Reaches:
    """A channel that reaches the named people."""

    people: tuple[str, ...]
    repaints_silently = True

    def address_of(self, person: Person) -> str | None:
        return f"@{person.name}" if person.name in self.people else None

    def is_with(self, person: Person, address: str) -> bool:
        return address == f"with {person.name}"


CHANNELS = {
    "slack": Reaches(("Ada", "Bob")),
    "email": Reaches(("Ada", "Cay")),
    "web": Reaches(("Ada", "Bob", "Cay")),
}
OWN = Place("web", "T1", None)


def _person(
    name: str, action: tuple[str, ...] | None = None, unread: tuple[str, ...] | None = None
) -> Person:
    return Person(name, "owner", notify=Notify(action, unread))


@pytest.mark.parametrize(
    ("person", "wanted", "channels"),
    [
        ("Ada", None, ["slack"]),
        ("Cay", None, ["email"]),
        ("Dan", None, []),
        ("Ada", (), []),
        ("Ada", ("web", "email"), ["web", "email"]),
        ("Bob", ("email", "web"), ["web"]),
        ("Ada", ("pigeon",), []),
    ],
)
def test_where_a_person_is_told(person: str, wanted: tuple[str, ...] | None, channels: list[str]) -> None:
    found = places_of(_person(person), wanted, CHANNELS)
    assert found == [Place(name, f"@{person}", person) for name in channels]


def test_an_action_goes_to_its_thread_and_to_each_approver() -> None:
    found = for_action([OWN], [_person("Ada"), _person("Cay", action=("email", "web"))], CHANNELS)
    assert found == [
        OWN,
        Place("slack", "@Ada", "Ada"),
        Place("email", "@Cay", "Cay"),
        Place("web", "@Cay", "Cay"),
    ]


def test_no_place_gets_two_copies() -> None:
    own = Place("slack", "@Ada", None)
    assert for_action([own], [_person("Ada"), _person("Ada")], CHANNELS) == [own]


def test_a_persons_channel_that_is_off_is_left_out_and_the_threads_own_place_never_is() -> None:
    assert for_action([Place("fax", "1", None)], [_person("Ada")], {"web": CHANNELS["web"]}) == [
        Place("fax", "1", None),
        Place("web", "@Ada", "Ada"),
    ]


@pytest.mark.parametrize(
    ("owner", "extra"),
    [
        (None, []),
        (_person("Ada"), []),
        (_person("Ada", unread=()), []),
        (_person("Ada", unread=("email",)), [Place("email", "@Ada", "Ada")]),
        (_person("Ada", action=("email",)), []),
    ],
)
def test_an_answer_goes_to_its_thread_and_where_its_owner_asked(
    owner: Person | None, extra: list[Place]
) -> None:
    assert for_answer(OWN, owner, CHANNELS) == [OWN, *extra]


@pytest.mark.parametrize(
    ("wanted", "besides"),
    [(None, []), (("slack",), []), (("slack", "email"), ["email"]), ((), [])],
)
def test_who_has_the_thread_before_them_gets_no_second_card_there(
    wanted: tuple[str, ...] | None, besides: list[str]
) -> None:
    own = Place("slack", "with Ada", None)
    found = for_action([own], [_person("Ada", action=wanted)], CHANNELS)
    assert [place.channel for place in found] == ["slack", *besides]


def test_an_approver_who_is_not_part_of_the_conversation_gets_a_card_of_their_own() -> None:
    own = Place("slack", "with Ada", None)
    found = for_action([own], [_person("Ada"), _person("Bob")], CHANNELS)
    assert found == [own, Place("slack", "@Bob", "Bob")]


def test_an_answer_is_told_once_to_its_owner_who_has_the_thread_before_them() -> None:
    own = Place("slack", "with Ada", None)
    found = for_answer(own, _person("Ada", unread=("slack", "email")), CHANNELS)
    assert [place.channel for place in found] == ["slack", "email"]


@pytest.mark.parametrize(
    ("told", "unread", "wrote_in", "expected"),
    [
        (["slack"], None, ["email"], ["email"]),
        (["slack"], None, ["slack"], ["slack"]),
        (["slack"], None, ["email", "slack"], ["email", "slack"]),
        (["slack"], ("slack",), ["email"], ["slack", "email"]),
        (["slack"], None, ["pigeon"], ["slack"]),
        (["slack"], None, [], ["slack"]),
        ([], (), ["email"], ["email"]),
    ],
)
def test_whoever_goes_on_with_a_thread_that_nobody_began_is_told_where_they_wrote(
    told: list[str], unread: tuple[str, ...] | None, wrote_in: list[str], expected: list[str]
) -> None:
    ada = _person("Ada", unread=unread)
    places = [Place(name, "@Ada", "Ada") for name in told]
    found = where_written(places, [(ada, channel) for channel in wrote_in], CHANNELS)
    assert found == [Place(name, "@Ada", "Ada") for name in expected]


def test_a_conversation_that_is_told_is_where_they_wrote_and_others_are_told_as_ever() -> None:
    conversation, bobs = Place("slack", "C1", None), Place("web", "@Bob", "Bob")
    assert where_written([conversation, bobs], [(_person("Ada"), "slack")], CHANNELS) == [conversation, bobs]
    assert where_written([conversation, bobs], [(_person("Ada"), "email")], CHANNELS) == [
        conversation,
        bobs,
        Place("email", "@Ada", "Ada"),
    ]
