"""Text from outside can neither rewrite the terminal nor hide anything, and stays readable."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pizzabot.cli.text import (
    ago,
    at,
    parsed_time,
    short,
    shortened,
    shown_args,
    shown_question,
    shown_value,
    took,
)
from pizzabot.text import visible

ANYTHING = st.text(st.characters(exclude_categories=[]), max_size=60)
AMSTERDAM = ZoneInfo("Europe/Amsterdam")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Zoë 你好 🍕", "Zoë 你好 🍕"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb", r"a\rb"),
        ("a\nb\tc", r"a\nb\tc"),
        ("a\u202eb\u2066c\u200ed", r"a\u202eb\u2066c\u200ed"),
        ("a\u2028b", r"a\u2028b"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("half\ud83c", r"half\ud83c"),
        ("\x7f\x00", r"\x7f\x00"),
        ("👨‍👩‍👧 نامه‌ای", "👨‍👩‍👧 نامه‌ای"),
    ],
)
def test_what_is_not_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_body_keeps_its_lines_and_tabs_and_nothing_else() -> None:
    assert visible("a\r\nb\tc\x1b[1m\rd", body=True) == "a\nb\tc\\x1b[1m\\rd"


@given(ANYTHING, st.booleans())
def test_nothing_that_moves_the_cursor_is_left(text: str, body: bool) -> None:
    allowed = "\n\t" if body else ""
    for character in visible(text, body=body):
        category = unicodedata.category(character)
        assert character in allowed or category not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
        )


@given(ANYTHING)
def test_made_visible_twice_is_the_same(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(ANYTHING, st.integers(2, 30))
def test_a_cut_line_is_no_longer_than_asked(text: str, length: int) -> None:
    line = shortened(text, length)
    assert len(line) <= length
    assert "\n" not in line


def test_a_cut_is_seen() -> None:
    assert shortened("one two three", 8) == "one two…"
    assert shortened("one  two\n", 8) == "one two"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("taxi to the airport", "taxi to the airport"),
        ("42", '"42"'),
        (42, "42"),
        (42.5, "42.5"),
        ("true", '"true"'),
        (True, "true"),
        (None, "null"),
        ("null", '"null"'),
        ("", '""'),
        (" x", '" x"'),
        ("[a", '"[a"'),
        ("two\nlines", r'"two\nlines"'),
        (["a", "é"], '["a", "é"]'),
        ({"k": "\x1b"}, r'{"k": "\u001b"}'),
        ("\u202egnp", r"\u202egnp"),
    ],
)
def test_text_and_other_types_look_different(value: object, shown: str) -> None:
    assert shown_value(value) == shown


def test_no_text_can_fake_another_argument() -> None:
    lines = shown_args({"note": "tea\n  amount  1000", "amount": 3})
    assert lines == ["  note    │ tea", "          │   amount  1000", "  amount  3"]
    assert [line for line in lines if line.startswith("  amount")] == ["  amount  3"]


def test_the_name_of_an_argument_is_made_visible_too() -> None:
    assert shown_args({"a\x1b": 1}) == [r"  a\x1b  1"]


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=-5), "now"),
        (timedelta(seconds=59), "now"),
        (timedelta(minutes=2), "2 min ago"),
        (timedelta(hours=23), "23 h ago"),
        (timedelta(days=6), "6 d ago"),
        (timedelta(days=8), "2026-03-02"),
    ],
)
def test_times_in_lists_are_relative_while_near(passed: timedelta, shown: str) -> None:
    now = datetime(2026, 3, 9, 23, 30, tzinfo=UTC)
    assert ago(now - passed, now, AMSTERDAM) == shown


def test_a_time_in_full_is_in_the_persons_zone() -> None:
    assert at(parsed_time("2026-07-01T22:30:00+00:00"), AMSTERDAM) == "2026-07-02 00:30"
    assert at(parsed_time(None), AMSTERDAM) == at(parsed_time("nonsense"), AMSTERDAM) == ""


@pytest.mark.parametrize(
    ("milliseconds", "shown"), [(340, "340 ms"), (2100, "2.1 s"), (200_000, "3 min 20 s"), (None, "")]
)
def test_durations_are_short(milliseconds: float | None, shown: str) -> None:
    assert took(milliseconds) == shown


def test_the_end_of_an_id_names_it() -> None:
    assert short("01a2296b-2e2c-73e2-969e-e062b63bb230") == "3bb230"


def test_a_limit_is_shown_by_its_own_sentence_and_a_tool_by_its_arguments() -> None:
    row: dict[str, Any] = {
        "kind": "limit",
        "why": "Approve allows $0.05 more.\nReject ends it.",
        "args": {"allowance": 0.05},
    }
    assert shown_question(row) == ["  Approve allows $0.05 more. Reject ends it."]
    assert shown_question(row | {"kind": "tool"}) == shown_args(row["args"]) == ["  allowance  0.05"]
