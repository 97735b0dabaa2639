"""Is what people say taken, once, and nothing else?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pizzabot.adapters.slack.identity import Identity
from pizzabot.adapters.slack.parse import Shared, said, shared
from pizzabot.adapters.slack.places import Place

US = Identity("T0TEAM", "U0BOT", "B0BOT", "A0APP", "Team", "https://t.slack.com/", frozenset())


def _event(**parts: Any) -> dict[str, Any]:
    made = {"type": "message", "channel": "C0GENERAL", "user": "U0ADA", "ts": "1.000100", "text": "hello"}
    return {key: value for key, value in (made | parts).items() if value is not None}


@pytest.mark.parametrize("subtype", [None, "file_share", "thread_broadcast", "bot_message"])
def test_messages_are_taken(subtype: str | None) -> None:
    found = said(_event(subtype=subtype), US)
    assert found is not None
    assert (found.channel, found.ts, found.user, found.bot, found.text) == (
        "C0GENERAL",
        "1.000100",
        "U0ADA",
        None,
        "hello",
    )


@pytest.mark.parametrize(
    "parts",
    [
        *(
            {"subtype": s}
            for s in ("message_changed", "message_deleted", "channel_join", "channel_topic", "x")
        ),
        {"type": "reaction_added"},
        {"type": None},
        {"channel": None},
        {"ts": None},
        {"user": None},
        {"hidden": True},
        {"user": "U0BOT"},
        {"user": None, "bot_id": "B0BOT"},
        {"user": "U0OTHER", "bot_id": "B0BOT"},
        {"type": "app_mention", "user": "U0BOT"},
        {"subtype": "bot_message", "user": None, "bot_id": "B0BOT"},
    ],
    ids=str,
)
def test_edits_joins_and_what_we_said_ourselves_are_nothing(parts: dict[str, Any]) -> None:
    assert said(_event(**parts), US) is None


def test_what_another_bot_says_is_known_as_a_bots() -> None:
    with_user = said(_event(user="U0OTHER", bot_id="B0OTHER"), US)
    without = said(_event(user=None, bot_id="B0OTHER", subtype="bot_message"), US)
    assert with_user is not None
    assert without is not None
    assert (with_user.user, with_user.bot) == ("U0OTHER", "B0OTHER")
    assert (without.user, without.bot) == ("B0OTHER", "B0OTHER")


@given(st.sampled_from(["C0GENERAL", "D0ADA", "G0GROUP"]), st.text("0123456789.", min_size=1), st.text())
def test_a_mention_that_comes_twice_has_one_key(channel: str, ts: str, text: str) -> None:
    first = said(_event(channel=channel, ts=ts, text=text), US)
    second = said(_event(channel=channel, ts=ts, text=text, type="app_mention", thread_ts="1.0"), US)
    assert first is not None
    assert second is not None
    assert first.key("T0TEAM") == second.key("T0TEAM")
    assert first.key("T0TEAM") != first.key("T1TEAM")


@pytest.mark.parametrize(
    ("parts", "is_direct", "place"),
    [
        ({}, False, Place("C0GENERAL", "1.000100", None)),
        ({"thread_ts": "0.9"}, False, Place("C0GENERAL", "0.9", None)),
        ({"channel": "D0ADA"}, True, Place("D0ADA", "1.000100", "U0ADA")),
        (
            {"channel": "D0ADA", "channel_type": "im", "thread_ts": "0.9"},
            True,
            Place("D0ADA", "0.9", "U0ADA"),
        ),
        ({"channel": "G0GROUP", "channel_type": "mpim"}, False, Place("G0GROUP", "1.000100", None)),
        ({"channel": "C0NEW", "channel_type": "im"}, True, Place("C0NEW", "1.000100", "U0ADA")),
    ],
    ids=str,
)
def test_where_a_conversation_lives(parts: dict[str, Any], is_direct: bool, place: Place) -> None:
    found = said(_event(**parts), US)
    assert found is not None
    assert found.is_direct == is_direct
    assert found.place == place


@pytest.mark.parametrize(
    ("parts", "mentions_us"),
    [
        ({}, False),
        ({"type": "app_mention"}, True),
        ({"text": "hi <@U0BOT>"}, True),
        ({"text": "hi <@U0BOT|bot>"}, True),
        ({"text": "hi &lt;@U0BOT&gt;"}, False),
        ({"text": "hi <@U0BOTX>"}, False),
        ({"text": None}, False),
    ],
    ids=str,
)
def test_who_is_meant(parts: dict[str, Any], mentions_us: bool) -> None:
    found = said(_event(**parts), US)
    assert found is not None
    assert found.mentions_us == mentions_us


def test_no_text_is_cut() -> None:
    found = said(_event(text="x" * 40_000), US)
    assert found is not None
    assert found.text == "x" * 40_000


@pytest.mark.parametrize(
    ("file", "read"),
    [
        (
            {"name": "a.pdf", "mimetype": "application/pdf", "size": 5, "url_private": "u", "permalink": "p"},
            Shared("a.pdf", "application/pdf", 5, "u", "p"),
        ),
        (
            {"title": "T", "url_private": "u", "url_private_download": "d"},
            Shared("T", "application/octet-stream", 0, "d", ""),
        ),
        ({"mode": "tombstone", "url_private": "u"}, Shared("file", "application/octet-stream", 0, None, "")),
        ({"mode": "hidden_by_limit"}, Shared("file", "application/octet-stream", 0, None, "")),
        (
            {"mode": "external", "name": "doc", "external_url": "https://d.example", "url_private": "u"},
            Shared("doc", "application/octet-stream", 0, None, "https://d.example"),
        ),
        (
            {"name": None, "size": None, "mimetype": None},
            Shared("file", "application/octet-stream", 0, None, ""),
        ),
    ],
)
def test_a_file_is_read_as_it_is_named(file: dict[str, Any], read: Shared) -> None:
    assert shared(file) == read
    found = said(_event(subtype="file_share", text="", files=[file, file]), US)
    assert found is not None
    assert found.files == (read, read)
