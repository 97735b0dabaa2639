"""Is the Home tab the whole inbox, for whoever looks at it, and never more than Slack takes?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.slack.home import Inbox, home

from pizzabot.messages import Verdict
from pizzabot.text import storable
from tests.fakes.slack.blocks import check_view, controls, label, words
from tests.unit.slack.pure.actions import ANY_TEXT, action

HOSTILE = ANY_TEXT | st.sampled_from(["🍕" * 4_000, '"' * 4_000, "<!channel>" * 400, "\x1b" * 1_000])


def _thread(number: int, **parts: Any) -> dict[str, Any]:
    return {
        "id": f"t{number}",
        "title": "Invoices",
        "state": "idle",
        "owner": "Ada",
        "last_message": "Paid.",
        "link": f"https://pizza.example/threads/t{number}",
    } | parts


def _inbox(**parts: Any) -> Inbox:
    made: dict[str, Any] = {"person": "Ada", "is_owner": True, "url": "https://pizza.example"}
    return Inbox(**made | parts)


def _checked(inbox: Inbox) -> list[dict[str, Any]]:
    view = home(inbox)
    blocks: list[dict[str, Any]] = check_view(view, "home")["blocks"]
    assert len(json.dumps(view)) <= 250_000
    assert [text.split(" (")[0] for text in _headers(blocks)] == ["Action", "Unread", "All"]
    return blocks


def _headers(blocks: list[dict[str, Any]]) -> list[str]:
    return [block["text"]["text"] for block in blocks if block["type"] == "header"]


def _buttons(blocks: list[dict[str, Any]]) -> list[str]:
    return [label(element) for _, element in controls(blocks) if element["type"] == "button"]


def test_an_empty_inbox_says_so() -> None:
    blocks = _checked(_inbox())
    read = words(blocks, {})
    for said in ("Nothing waits for you.", "You have seen everything.", "Write me a message to begin."):
        assert said in read
    assert "Nothing was used today." in read


@settings(deadline=None, max_examples=60)
@given(st.data(), st.integers(0, 30), st.integers(0, 60), st.integers(0, 60))
def test_any_inbox_fits(data: st.DataObject, asked: int, unread: int, threads: int) -> None:
    text = data.draw(HOSTILE)
    rows = [
        _thread(n, title=text, last_message=text, owner=text, state="running", hit={"excerpt": text})
        for n in range(max(unread, threads))
    ]
    actions = [
        (action(id=f"a{n}", title=text, why=text, args={"x": text}, allowed_decisions=tuple(Verdict)), text)
        for n in range(asked)
    ]
    inbox = _inbox(
        is_owner=data.draw(st.booleans()),
        actions=actions,
        unread=rows[:unread],
        threads=rows[:threads],
        counts={"action": asked, "unread": unread, "all": threads},
        usage_today="Used today: 5 tokens.",
        stopped=data.draw(st.sampled_from([None, {"person": text}])),
        words=data.draw(st.sampled_from(["", storable(text)])),
    )
    _checked(inbox)


def test_a_full_inbox_counts_everything_and_says_how_much_is_not_shown() -> None:
    blocks = _checked(
        _inbox(
            actions=[(action(id=f"a{n}"), "T") for n in range(8)],
            unread=[_thread(n) for n in range(12)],
            threads=[_thread(n) for n in range(20)],
            counts={"action": 9, "unread": 30, "all": 500},
        )
    )
    assert _headers(blocks) == ["Action (9)", "Unread (30)", "All"]
    read = words(blocks, {})
    for rest in (3, 20, 485):
        assert f"{rest} more in the web view (https://pizza.example/)." in read
    assert _buttons(blocks).count("Approve") == 6
    assert _buttons(blocks).count("Mark read") == 10


def test_cards_that_are_long_leave_room_for_the_rest() -> None:
    long = {"x": "\U0001f355" * 3_900}
    blocks = _checked(
        _inbox(
            actions=[(action(id=f"a{n}", args=long), "T") for n in range(6)],
            unread=[_thread(1)],
            threads=[_thread(1)],
        )
    )
    assert 0 < _buttons(blocks).count("Approve") <= 6
    assert "Mark read" in _buttons(blocks)


@pytest.mark.parametrize(
    ("is_owner", "is_stopped", "buttons"),
    [
        (True, False, ["Stop everything"]),
        (True, True, ["Resume"]),
        (False, False, []),
        (False, True, []),
    ],
)
def test_only_owners_stop_and_resume_everything(is_owner: bool, is_stopped: bool, buttons: list[str]) -> None:
    stopped = {"person": "Ada <!here>"} if is_stopped else None
    blocks = _checked(_inbox(is_owner=is_owner, stopped=stopped))
    assert _buttons(blocks) == buttons
    assert ("Everything is stopped* by Ada <!here>" in words(blocks, {})) == is_stopped
    assert "<!here>" not in json.dumps(blocks)


def test_stopping_everything_asks_first() -> None:
    (_, button) = next(controls(_checked(_inbox())))
    assert button["confirm"]["title"]["text"] == "Stop everything?"


def test_a_search_shows_what_was_found_and_a_way_back() -> None:
    blocks = _checked(_inbox(words="INV-7", threads=[_thread(1, hit={"excerpt": "Pay INV-7"})]))
    read = words(blocks, {})
    assert "Threads with INV-7:" in read
    assert "Pay INV-7" in read
    assert "Show all" in _buttons(blocks)
    assert "No thread has these words." in words(_checked(_inbox(words="INV-8")), {})


def test_a_row_leads_to_its_thread_and_says_whose_and_how_it_is() -> None:
    (row,) = [
        block
        for block in _checked(_inbox(threads=[_thread(1, owner="Bob", state="running", title="")]))
        if block["type"] == "rich_text"
    ]
    link, told = row["elements"][0]["elements"]
    assert (link["url"], link["text"]) == ("https://pizza.example/threads/t1", "(no title)")
    assert told["text"] == " · running · Bob\nPaid."
