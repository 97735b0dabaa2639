"""Does Markdown read well as plain text, and is nothing of it lost?"""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.email.writing.body_text import columns, readable, wrapped

from tests.unit.email.written import ANY_TEXT

EVERYTHING = """\
# Title

Some *soft* and **loud** text with `code` and ~~old~~.
A line of its own.

## Part

1. one
2. two
   - in
   - side

     more
3. three

> said
> twice
>
> > deeper

```python
if x:
    go()
```

| a | count |
|---|------:|
| x | 1 |
| 漢字 | 12 |

---

![cat](https://a.example/cat.png)
"""
READ = """\
Title
=====

Some _soft_ and *loud* text with `code` and ~old~.
A line of its own.

Part
----

1. one
2. two
   - in

   - side

     more
3. three

> said
> twice
>
> > deeper

    if x:
        go()

a     count
----  -----
x         1
漢字     12

* * *

image: cat (https://a.example/cat.png)"""


def test_everything_that_markdown_has_reads_as_text() -> None:
    assert readable(EVERYTHING) == READ


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("[here](https://a.example/b)", "here (https://a.example/b)"),
        ("[bank.example](https://evil.example)", "bank.example (https://evil.example)"),
        ("https://a.example/b", "https://a.example/b"),
        ("<https://a.example/b>", "https://a.example/b"),
        ("<ada@a.example>", "ada@a.example"),
        ("[](https://a.example)", "https://a.example"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("<b>bold</b> &lt;i&gt;", "<b>bold</b> <i>"),
        ("[![a](https://b.example)](https://a.example)", "image: a (https://b.example) (https://a.example)"),
        ("a &#x202e; b\u202ec", "a \\u202e b\\u202ec"),
        ("5. five\n6. six", "5. five\n6. six"),
        ("- a\n\n- b", "- a\n\n- b"),
        ("- ", "-"),
        ("Hi\n--", "Hi\n---"),
        ("|a|b|\n|-|-|", "a  b\n-  -"),
        ("", ""),
    ],
)
def test_one_thing(markdown: str, text: str) -> None:
    assert readable(markdown) == text


def test_prose_is_wrapped_with_what_it_hangs_from() -> None:
    read = readable("- " + "word " * 40 + "\n\n> " + "said " * 40)
    lines = read.split("\n")
    assert max(map(len, lines)) <= 76
    assert [line[:2] for line in lines] == ["- ", "  ", "  ", "", "> ", "> ", "> "]


def test_code_links_and_long_words_are_never_broken() -> None:
    code, link, word = "x = 1  # " + "long " * 40 + "end", "https://a.example/" + "b" * 120, "w" * 120
    read = readable(f"```\n{code}\n```\n\nsee {link} and {word}").split("\n")
    assert read == ["    " + code, "", "see", link, "and", word]


def test_a_table_that_is_too_wide_is_told_row_by_row() -> None:
    long = "very " * 20
    read = readable(f"| Name | Note |\n|---|---|\n| Ada | {long} |\n| Bob | |\n| Cy | short |")
    assert read.startswith("Name: Ada\nNote: very very")
    assert read.endswith("\n\nName: Bob\n\nName: Cy\nNote: short")
    assert max(map(len, read.split("\n"))) <= 76


def test_scripts_without_spaces_are_wrapped_and_never_begin_with_what_closes() -> None:
    lines = wrapped("漢字、" * 60).split("\n")
    assert all(columns(line) <= 77 for line in lines)
    assert "".join(lines) == "漢字、" * 60
    assert not any(line.startswith("、") for line in lines)


@pytest.mark.parametrize(("text", "taken"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("👍🏽", 4), ("", 0)])
def test_columns(text: str, taken: int) -> None:
    assert columns(text) == taken


@given(st.text(alphabet="ab \n漢。\t", max_size=300), st.integers(20, 80))
@settings(derandomize=True, deadline=None)
def test_wrapping_loses_nothing_but_spaces(text: str, width: int) -> None:
    assert re.sub(r"\s", "", wrapped(text, width)) == re.sub(r"\s", "", text)


@given(st.text(alphabet="abcde fgh", max_size=300), st.integers(20, 80))
@settings(derandomize=True, deadline=None)
def test_only_a_long_word_makes_a_long_line(text: str, width: int) -> None:
    assert all(len(line) <= width or " " not in line.strip() for line in wrapped(text, width).split("\n"))


@given(ANY_TEXT)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_no_text_hides_anything(text: str) -> None:
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", readable(text)
    )


@pytest.mark.parametrize(
    "piece", ["> ", "- ", "|a", "[a](b", "*a _b ", "word ", "漢", "x" * 50 + " ", "a\n", "`a"]
)
def test_no_text_takes_long(piece: str) -> None:
    source = (piece * 100_000)[:100_000]
    began = time.process_time()
    readable(source)
    assert time.process_time() - began < 3  # on an idle machine half a second


def test_what_is_unwieldy_stays_as_it_is() -> None:
    source = ">" * 10_000 + "deep"
    assert readable(source) == source
