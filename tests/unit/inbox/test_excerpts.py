"""Are the found words marked as the index finds them, and does an excerpt show the best place?"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pizzabot.inbox.excerpts import excerpt, marked
from pizzabot.inbox.pages import search_words

LETTERS = st.text(st.sampled_from("aäáÁẪåbBßẞıIİſsςσΣéеё1²٣ǣfﬁ가각漢_- .\u0301\u0308\u0338\u00ad\U0001d41a"))
WORDS = st.lists(LETTERS, max_size=4)


@given(st.text() | LETTERS, st.lists(st.text() | LETTERS, max_size=4))
@settings(derandomize=True, deadline=None)
def test_the_pieces_together_are_the_text(text: str, words: list[str]) -> None:
    pieces = marked(text, words)
    assert "".join(piece for piece, _ in pieces) == text
    assert all(piece for piece, _ in pieces)


def _shown(text: str, *words: str) -> str:
    return "".join(f"[{piece}]" if found else piece for piece, found in marked(text, words))


@pytest.mark.parametrize(
    ("words", "text", "shown"),
    [
        ("fox", "The fox, the firefox and foxes. FOX", "The [fox], the firefox and [fox]es. [FOX]"),
        ("qui quick", "quick quit", "[quick] [qui]t"),
        ("INV-42", "INV-42, inv42, 42", "[INV]-[42], [inv]42, [42]"),
        ("total", "order_total subtotal", "order_[total] subtotal"),
        (
            "kase",
            "Käse KÄSE ka\u0308se Ka\u0308se\u0301rei",
            "[Käse] [KÄSE] [ka\u0308se] [Ka\u0308se\u0301]rei",
        ),
        ("käse", "Kase", "[Kase]"),
        ("strasse", "Straße", "Straße"),
        ("straß", "STRAẞE", "[STRAẞ]E"),
        ("σοφος", "ΣΟΦΟΣ σοφος σοφόσ", "[ΣΟΦΟΣ] [σοφος] σοφόσ"),
        ("i", "İstanbul Iris ırmak", "[İ]stanbul [I]ris ırmak"),
        ("мир", "Привет, Мир!", "Привет, [Мир]!"),
        ("請求", "請求書 を", "[請求]書 を"),
        ("가", "가나 각", "[가]나 각"),
        ("b", "a\u0308b a\u0338b", "a\u0308b a\u0338[b]"),
        ("pizza", "🍕pizza🍕", "🍕[pizza]🍕"),
        ("", "text", "text"),
        ("word", "", ""),
    ],
)
def test_a_word_is_marked_where_a_token_begins_with_it(words: str, text: str, shown: str) -> None:
    assert _shown(text, *search_words(words)) == shown


def test_no_word_is_syntax() -> None:
    assert _shown("a.c abc (b", "a.c", "(b", ".*", "") == "[a.c] abc [(b]"


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='unicode61 remove_diacritics 2')")
    yield connection
    connection.close()


@given(LETTERS, LETTERS)
@settings(derandomize=True, deadline=None, max_examples=1_000)
def test_marks_stand_where_the_index_finds(index: sqlite3.Connection, text: str, typed: str) -> None:
    words = search_words(typed)[:1]
    index.execute("DELETE FROM t")
    index.execute("INSERT INTO t VALUES (?)", (text,))
    query = f'"{words[0]}"*' if words else '""'
    found = bool(index.execute("SELECT 1 FROM t WHERE t MATCH ?", (query,)).fetchall())
    assert any(is_found for _, is_found in marked(text, words)) == found


# -- excerpts --------------------------------------------------------------------------------------------

FILLER = "lorem ipsum dolor sit amet " * 40


@given(st.text() | LETTERS, WORDS, st.integers(3, 60))
@settings(derandomize=True, deadline=None)
def test_an_excerpt_is_one_line_of_the_text(text: str, words: list[str], length: int) -> None:
    line = " ".join(text.split())
    shown = excerpt(text, words, length)
    assert len(shown) <= length
    assert shown == " ".join(shown.split())
    assert shown == line or shown.strip("…") in line


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt("  one\n\n two\tthree ", ["two"]) == "one two three"


@pytest.mark.parametrize(
    ("text", "beginning", "end"),
    [
        ("cheese " + FILLER, "cheese lorem", "…"),
        (FILLER + "cheese " + FILLER, "…", "…"),
        (FILLER + "cheese", "…", " cheese"),
    ],
)
def test_cuts_are_marked_and_stand_between_words(text: str, beginning: str, end: str) -> None:
    shown = excerpt(text, ["chee"])
    assert "cheese" in shown
    assert 140 < len(shown) <= 160
    assert shown.startswith(beginning)
    assert shown.endswith(end)
    assert set(shown.strip("…").split()) <= {*FILLER.split(), "cheese"}


def test_the_place_with_most_words_wins_then_the_closest_then_the_first() -> None:
    places = [
        "cheese one cheese cheese",
        "cheese two three four five tomato",
        "cheese six tomato",
        "tomato seven cheese",
    ]
    text = FILLER.join(["", *places, ""])
    assert "six" in excerpt(text, ["cheese", "tomato"])
    assert "one" in excerpt(text, ["cheese", "basil"])
    assert "seven" in excerpt(text, ["seven"])


def test_without_a_match_it_is_the_beginning() -> None:
    assert excerpt(FILLER, ["cheese"]).startswith("lorem ipsum")
    assert excerpt(FILLER, []) == excerpt(FILLER, ["cheese"])


@pytest.mark.parametrize("text", ["x" * 500, "x " + "x" * 500, "y" * 500 + " x", "a x" + "y" * 500])
def test_a_word_without_end_is_cut(text: str) -> None:
    shown = excerpt(text, ["x" * 500, "x"], 50)
    assert len(shown) <= 50
    assert "x" in shown


@pytest.mark.parametrize("filler", ["lorem ipsum dolor ", "lörem ípsum dolor ", "c"])
@pytest.mark.parametrize("words", [["cheese"], ["l", "i", "d"], ["nothing", "at", "all"], ["c" * 1_000]])
def test_long_texts_take_milliseconds(filler: str, words: list[str]) -> None:
    text = (filler * 200_000)[:200_000] + " cheese"
    began = time.process_time()
    marked(text, words)
    excerpt(text, words)
    assert time.process_time() - began < 1  # on an idle machine 10 to 60 milliseconds
