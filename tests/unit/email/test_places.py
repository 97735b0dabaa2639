"""Which addresses are ours, and does a place come back from its address?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pizzabot.adapters.email.places import OwnAddress, Place, Tag, new_token, place_at

OWN = OwnAddress("pizza@bot.example")


@given(st.sampled_from(["r", "b"]))
def test_a_token_comes_back_from_its_address_in_any_case(tag: Tag) -> None:
    token = new_token()
    address = OWN.tagged(tag, token)
    assert OWN.is_ours(address.upper())
    assert OWN.token_of(address.upper(), tag) == token
    other: Tag = "b" if tag == "r" else "r"
    assert OWN.token_of(address, other) is None


@pytest.mark.parametrize("address", ["pizza@bot.example", "Pizza@Bot.Example", "pizza+anything@bot.example"])
def test_our_address_is_ours_whatever_stands_behind_a_plus_sign(address: str) -> None:
    assert OWN.is_ours(address)


@pytest.mark.parametrize(
    "address",
    ["pizza@bot.example.org", "xpizza@bot.example", "pizza", "", "pizzas@bot.example", "a+pizza@bot.example"],
)
def test_other_addresses_are_not_ours(address: str) -> None:
    assert not OWN.is_ours(address)


@pytest.mark.parametrize("place", [Place("ada@example.com"), Place("ada@example.com", "<id@host>")])
def test_a_place_comes_back_from_its_address(place: Place) -> None:
    assert place_at(place.address) == place
