"""Is an answer dressed for mail clients, and is nothing in it but what it says?"""

from __future__ import annotations

import re

import pytest
from pizzabot.adapters.email.writing.body_html import dressed, lines, page

from tests.unit.email.writing.test_body_text import EVERYTHING
from tests.unit.email.written import Page
from tests.unit.test_markdown import ATTACKS


def test_every_element_of_an_answer_has_its_style_inline() -> None:
    html = dressed(EVERYTHING)
    bare = {"thead", "tbody", "tr", "br", "em", "strong", "s"}
    for tag, attributes in re.findall(r"<([a-z][a-z0-9]*)([^>]*)>", html):
        assert tag in bare or " style=" in attributes, tag


def test_code_is_one_block_and_no_box_in_a_box() -> None:
    assert dressed("```python\na < b\n```").count("background:#f1eee9") == 1
    assert "a &lt; b" in dressed("```python\na < b\n```")


def test_the_sides_of_a_table_are_inline() -> None:
    html = dressed("|a|b|c|\n|-|:-:|-:|\n|1|2|3|")
    assert re.findall(r"<td[^>]*text-align:(\w+)[^>]*>(\d)", html) == [
        ("left", "1"),
        ("center", "2"),
        ("right", "3"),
    ]
    assert 'class="right"' not in html


def test_a_link_keeps_where_it_leads_and_a_list_where_it_starts() -> None:
    assert '<a href="https://a.example" rel="noopener noreferrer nofollow" class="link"' in dressed(
        "https://a.example"
    )
    assert '<ol start="7" dir="auto"' in dressed("7. x")


def test_a_link_that_claims_another_destination_tells_the_real_one() -> None:
    assert dressed("[bank.example](https://evil.example)").endswith("</a> (https://evil.example)</p>\n")


@pytest.mark.parametrize("source", ATTACKS, ids=ascii)
def test_dressing_lets_nothing_in(source: str) -> None:
    assert Page(dressed(source)).wrong == []


def test_every_direction_and_both_themes_are_thought_of() -> None:
    html = page("answer", markdown="שלום", subject="x", page=None, note="")
    assert '<p dir="auto"' in html
    assert '<meta name="color-scheme" content="light dark">' in html
    assert "prefers-color-scheme: dark" in html


def test_a_style_sheet_is_small_enough_for_gmail() -> None:
    html = page("answer", markdown="x", subject="x", page=None, note="")
    assert sum(map(len, re.findall(r"<style>.*?</style>", html, re.DOTALL))) < 8_192


def test_every_role_of_a_colour_has_its_dark_one() -> None:
    html = dressed(EVERYTHING) + page(
        "answer", markdown=EVERYTHING, subject="x", page="https://a.example", note="n"
    )
    roles = {role for value in re.findall(r'class="([^"]+)"', html) for role in value.split()}
    assert roles == {role for role in roles if re.search(rf"^\.{role} {{", html, re.MULTILINE)}


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a\nb", "a<br>b"),
        ("  a", "&nbsp; a"),
        ("a  b", "a&nbsp; b"),
        ("a b", "a b"),
        ("<b>", "&lt;b&gt;"),
        ("a\n b", "a<br>&nbsp;b"),
    ],
)
def test_lines_and_spaces_stay(text: str, html: str) -> None:
    assert lines(text) == html
