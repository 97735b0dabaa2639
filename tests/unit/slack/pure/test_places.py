"""Does the address of a place, and the name of a copy, lead back to it?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pizzabot.adapters.slack.places import Copy, Place, copy_named, place_at

NAMES = st.text("ABCDGU0123456789.", min_size=1)
PLACES = (
    st.builds(Place, NAMES, NAMES, st.none() | NAMES)
    | st.builds(Place, st.none(), st.none(), NAMES.map("U{}".format))
    | st.builds(Place, NAMES.map("C{}".format), st.none(), st.none())
)


@given(PLACES)
def test_an_address_leads_back(place: Place) -> None:
    assert place_at(place.address) == place


@given(st.builds(Copy, NAMES, NAMES))
def test_a_copys_name_leads_back(copy: Copy) -> None:
    assert copy_named(copy.external_id) == copy


@given(PLACES, PLACES)
def test_two_places_have_two_addresses(one: Place, other: Place) -> None:
    assert (one == other) == (one.address == other.address)


@pytest.mark.parametrize(
    ("place", "address"),
    [
        (Place("C0GENERAL", "1.2", None), "C0GENERAL/1.2"),
        (Place("D0ADA", "1.2", "U0ADA"), "D0ADA/1.2/U0ADA"),
        (Place(None, None, "U0ADA"), "U0ADA"),
    ],
)
def test_an_address_stays_what_it_is_because_it_is_stored(place: Place, address: str) -> None:
    assert place.address == address
