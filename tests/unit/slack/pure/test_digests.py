"""Does a digest in Slack show all of what it offers, within the limits of a message? Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pizzabot.adapters.slack.blocks import MESSAGE_BLOCKS, size_of
from pizzabot.adapters.slack.cards import WEIGHT, pressed
from pizzabot.adapters.slack.digests import digest as painted
from pizzabot.adapters.slack.digests import fitting

from pizzabot.messages import ActionState, Digest, DigestItem, UnreadThread, Verdict
from tests.unit.digests.listed import NOW, URL, item
from tests.unit.digests.listed import digest as listed
from tests.unit.email.written import ANY_ARGS, ANY_TEXT


def digest(whole: Digest, url: str) -> tuple[str, list[dict[str, Any]]]:
    """A digest as it is sent first."""
    made: tuple[str, list[dict[str, Any]]] = painted(whole, url, fitting(whole))
    return made


def buttons(blocks: list[dict[str, Any]]) -> list[list[str]]:
    """The labels of each row of buttons."""
    return [
        [element["text"]["text"] for element in block["elements"]]
        for block in blocks
        if block["type"] == "actions"
    ]


def test_each_item_has_the_buttons_of_what_it_shows_whole() -> None:
    long = {"args": {"body": "x" * 999}, "args_schema": {}}
    text, blocks = digest(listed(item(1), item(2, **long), item(3, digest="another"), put_off=1), URL)
    assert text == "Digest: 3 to decide, 1 failed, 1 unread"
    assert buttons(blocks) == [["Approve", "Reject", "Review"], ["Reject", "Review"], ["Review"]]
    whole = json.dumps(blocks)
    for part in ("1. Pay invoice 1", "pay_invoice of ledger", "Northwind", "12.5", "About 1", "Morning"):
        assert part in whole
    assert "1 put off until later." in whole


def test_a_button_means_the_arguments_that_were_listed() -> None:
    _, blocks = digest(listed(item(1)), URL)
    approve = next(block for block in blocks if block["type"] == "actions")["elements"][0]
    said = pressed(approve["action_id"], approve["value"])
    assert said is not None
    assert (said.verdict, said.action_id, said.digest) == (Verdict.APPROVE, "a1", "d1")


def test_what_is_decided_says_by_whom_and_has_no_buttons() -> None:
    decided = item(1, state=ActionState.APPROVED, decided_by="Bob", decided_via="web")
    _, blocks = digest(listed(decided), URL)
    assert buttons(blocks) == []
    assert "Approved by Bob in web" in json.dumps(blocks)


@pytest.mark.parametrize("size", [10, 350])
def test_a_long_list_is_cut_where_a_message_ends_and_says_how_many_more(size: int) -> None:
    items = [item(n, args={"body": "x" * size}, args_schema={}) for n in range(1, 21)]
    unread = tuple(UnreadThread(f"u{n}", "News " * 20, "said " * 50, NOW) for n in range(10))
    whole = listed(*items, unread=unread, more_items=2)
    _, blocks = digest(whole, URL)
    assert len(blocks) <= MESSAGE_BLOCKS
    assert size_of(blocks) <= WEIGHT
    held = len(buttons(blocks))
    assert sorted(fitting(whole)) == list(range(1, held + 1))
    assert f"And {22 - held} more to decide" in json.dumps(blocks)
    assert "22 to decide" in blocks[0]["text"]["text"]


def test_it_holds_the_same_items_also_when_some_are_decided() -> None:
    items = [item(n, args={"body": "x" * 350}, args_schema={}) for n in range(1, 21)]
    before = fitting(listed(*items))
    done = [replace(one, action=replace(one.action, state=ActionState.REJECTED)) for one in items[:5]]
    assert fitting(listed(*done, *items[5:])) == before


_LONG = {"vendor": "N" * 180, "amount": 1, "items": ["A" * 60]}


@pytest.mark.parametrize("edited", [(), (item(1, args=_LONG, digest="another"),)], ids=["deleted", "edited"])
def test_what_becomes_shorter_after_it_was_sent_makes_room_for_no_other_number(
    edited: tuple[DigestItem, ...],
) -> None:
    items = [item(n, args=_LONG) for n in range(1, 21)]
    held = fitting(listed(*items))
    later = listed(*edited, *items[1:])
    assert fitting(later) - held  # there would be room
    _, blocks = painted(later, URL, held)
    after = [row for row in buttons(blocks) if "Approve" in row]
    assert len(after) == len(held) - 1


@given(ANY_TEXT, ANY_ARGS, st.integers(1, 20))
def test_whatever_stands_in_it_a_message_takes_it(text: str, args: dict[str, Any], count: int) -> None:
    items = [item(n, title=text, args=args, args_schema={}, requested_by=text) for n in range(1, count + 1)]
    unread = (UnreadThread("u1", text, text, NOW),)
    said, blocks = digest(listed(*items, unread=unread), URL)
    assert len(blocks) <= MESSAGE_BLOCKS
    assert size_of(blocks) <= WEIGHT
    assert said
    assert all(_has_text(leaf) for leaf in _leaves(blocks))
    names = [element["action_id"] for b in blocks if b["type"] == "actions" for element in b["elements"]]
    assert len(names) == len(set(names))


def _leaves(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [leaf for one in value for leaf in _leaves(one)]
    if not isinstance(value, dict):
        return []
    own = [value] if isinstance(value.get("text"), str) else []
    return own + [leaf for one in value.values() for leaf in _leaves(one)]


def _has_text(leaf: dict[str, Any]) -> bool:
    return bool(leaf["text"])
