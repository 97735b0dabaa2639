"""Which text can be kept, and does what cannot be seen show?"""

from __future__ import annotations

import pytest

from pizzabot.text import exact, is_storable, storable, visible

UNSEEN = ["\u200b", "\u2060", "\u202e", "\u034f", "\u115f", "\u17b4", "\u180b", "\u2800", "\u3164", "\ufe05"]
UNSEEN += ["\uffa0", "\U000e0101", "\U000e0041", "\x00", "\x1b", "\x7f", "\u2028"]
JOINING = ["\u200c", "\u200d", "\ufe0e", "\ufe0f"]
ODD_SPACES = ["\xa0", "\u2003", "\u202f", "\u3000", "\u1680"]


@pytest.mark.parametrize("hidden", UNSEEN)
def test_what_cannot_be_seen_is_written_out_everywhere(hidden: str) -> None:
    for shown in (visible(f"bob{hidden}@x"), visible(f"bob{hidden}@x", body=True), exact(f"bob{hidden}@x")):
        assert hidden not in shown
        assert shown.startswith("bob\\")


@pytest.mark.parametrize("hidden", [*JOINING, *ODD_SPACES])
def test_arguments_show_also_what_passes_for_a_space_or_joins_nothing(hidden: str) -> None:
    assert hidden in visible(f"bob{hidden}@x", body=True)
    assert exact(f"bob{hidden}@x").startswith("bob\\u" if ord(hidden) > 255 else "bob\\x")


@pytest.mark.parametrize("text", ["👩‍👩‍👧‍👦", "❤️", "می‌خواهم", "क्‍ष", "naïve café", "日本語"])
def test_scripts_and_emoji_stay_whole(text: str) -> None:
    assert exact(text) == visible(text) == text


def test_lines_stay_in_a_body_and_in_an_argument_and_nowhere_else() -> None:
    assert (visible("a\nb\t"), visible("a\nb\t", body=True), exact("a\nb\t")) == (
        "a\\nb\\t",
        "a\nb\t",
        "a\nb\t",
    )


def test_only_what_databases_hold_is_stored() -> None:
    assert is_storable("é\u202e😀")
    assert not is_storable("a\x00")
    assert storable("a\x00\ud800b") == "a\ufffd\ufffdb"
