"""Does an answer of any kind fit into what Slack takes, in order, whole, and without hurting anybody?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pizzabot.adapters.slack import answers
from pizzabot.adapters.slack.answers import Answer, answer

from pizzabot.text import visible
from tests.fakes.slack.blocks import check_blocks

JSON_CHARACTERS = 13_200  # Slack refuses more as msg_blocks_too_long
UNSEEN = re.compile("[\u2060\\\\]")


def _checked(made: Answer) -> Answer:
    assert 1 <= len(made.parts) <= 4
    for part in made.parts:
        check_blocks(part.blocks)
        assert part.blocks
        assert part.text.strip()
        assert len(part.text) <= 3_000
        assert len(json.dumps(part.blocks, ensure_ascii=False)) <= JSON_CHARACTERS
        tables = [block for block in part.blocks if block["type"] == "table"]
        assert len(tables) <= 1
        for table in tables:
            assert 1 <= len(table["rows"]) <= 100
            assert all(1 <= len(row) <= 20 and all(cell["text"] for cell in row) for row in table["rows"])
        for text in _markdown(part.blocks):
            assert text.strip()
            assert _fences_are_closed(text), text[-200:]
    return made


def _markdown(blocks: list[dict[str, Any]]) -> Iterator[str]:
    yield from (block["text"] for block in blocks if block["type"] == "markdown")


def _fences_are_closed(text: str) -> bool:
    lines = text.split("\n")
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "fence" and token.level == 0 and token.map is not None:
            last = lines[token.map[1] - 1].strip(" >\t")
            if token.map[1] - token.map[0] < 2 or not last.startswith(token.markup):
                return False
    return True


def _said(made: Answer) -> str:
    """All that can be read in the messages, in order."""
    said: list[str] = []
    for part in made.parts:
        for block in part.blocks:
            if block["type"] == "markdown":
                said.append(block["text"])
            elif block["type"] == "table":
                said += [" ".join(cell["text"] for cell in row) for row in block["rows"]]
    return UNSEEN.sub("", "\n".join(said))


def _words(text: str) -> list[str]:
    return re.findall(r"w\d+", text)


def _nothing_is_lost(text: str, made: Answer) -> None:
    if made.file is not None:
        assert made.file.content.decode() == visible(text, body=True).strip()
        return
    assert _words(_said(made)) == _words(text)


class _Numbers:
    """Words that differ, so that order and loss can be seen."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, text: str) -> str:
        def number(_: re.Match[str]) -> str:
            self.count += 1
            return f"w{self.count}"

        return re.sub("§", number, text)


def _table(rows: int, columns: int, cell: str = "§") -> str:
    lines = ["|" + f" {cell} |" * columns for _ in range(rows + 1)]
    return "\n".join([lines[0], "|" + "-|" * columns, *lines[1:]])


KINDS = st.one_of(
    st.integers(1, 300).map(lambda n: "§ " * n),
    st.integers(1, 60).map(lambda n: "§\n" * n),
    st.integers(1, 9).map(lambda n: "#" * n + " § §"),
    st.tuples(st.sampled_from(["```", "~~~", "````", "```py", "~~~ a`b", "  ```"]), st.integers(0, 900)).map(
        lambda of: f"{of[0]}\n" + "§ <b>\n" * of[1] + re.sub(r"[^`~]", "", of[0].split(" a")[0])
    ),
    st.integers(1, 400).map(lambda n: "".join("  " * (k % 5) + "- §\n" for k in range(n))),
    st.integers(1, 700).map(lambda n: "1. §\n   ```\n" + "   § code\n" * n + "   ```\n2. §"),
    st.integers(1, 300).map(lambda n: "> ```\n" + "> §\n" * n + "> ```\n> §"),
    st.tuples(st.integers(0, 130), st.integers(1, 24)).map(lambda of: _table(*of)),
    st.integers(1, 200).map(lambda n: _table(2, 2, "x" * n + " §")),
    st.sampled_from(
        [
            *(
                "[§]: https://a.example/§ 'a'",
                "[§][§]",
                "[§](https://a.example)",
                "![§](https://a.example/§.png)",
            ),
            *("<div>\n<p>§</p>\n</div>", "<@U0ADA> § <!here>", "    § indented\n    § code", "***", "§\n==="),
            *(
                "|a|b|\n|-|-|\n|§|§|§|§|",
                "- [ ] §",
                "§  \n§",
                "```\n§ never closed",
                '"§" \\ \t §',
                "\x1b[31m§\u202e",
            ),
        ]
    ),
    st.integers(1, 15_000).map(lambda n: "§" + "x" * n),
    st.integers(1, 15_000).map(lambda n: '"' * n + " §"),
    st.integers(1, 9_000).map(lambda n: "- §\n" + "\n" * n + "  §"),
)
DOCUMENTS = st.tuples(st.lists(KINDS, min_size=1, max_size=8), st.sampled_from(["\n\n", "\n"])).map(
    lambda of: _Numbers()(of[1].join(of[0]))
)


@settings(deadline=None, max_examples=150)
@given(DOCUMENTS)
def test_a_document_arrives_whole_and_in_order(text: str) -> None:
    _nothing_is_lost(text, _checked(answer(text)))


@settings(deadline=None, max_examples=300)
@given(st.text() | st.text(st.sampled_from("`~-#|*_>[]()<! \n\tab1.:\\"), max_size=400))
@example("")
@example(" \n ")
@example("\x00\ud800")
@example("|a|\n|-|")
@example("```")
def test_any_text_is_taken(text: str) -> None:
    _checked(answer(text, title=text))


HUGE: dict[str, str] = {
    "a line without spaces": "x" * 30_000,
    "quotes": '"' * 20_000,
    "backslashes": "\\" * 20_000,
    "line breaks in a list": "- a\n" + "\n" * 25_000 + "  b",
    "blank lines in a list": "- a\n" + "   \n" * 8_000 + "  b",
    "backticks in code": "~~~\n" + "`" * 15_000 + "\n~~~",
    "backticks in a list": "- ```\n  " + "a\n  " * 6_000 + "\n  " + "`" * 9_000,
    "long fences in a list": "- " + "`" * 5_000 + "\n  " + "a\n  " * 6_000,
    "a fence with a long first line": "```" + "a " * 8_000 + "\nx\n```",
    "mentions": "<@U0ADA>" * 1_450,
    "mentions in code": "```\n" + "<@U0ADA>" * 1_370 + "\n```",
    "definitions": "[a]: b\n" * 1_500,
    "links that lie": "[bank.example](https://evil.example) " * 300,
    "links that lie in disguise": "[**bank**.example](https://evil.example) " * 260,
    "a table of many cells": _table(99, 20, "a"),
    "a table of long cells": _table(20, 3, "a" * 400),
    "a table of one wide cell": "|a|b|\n|-|-|\n|" + "x" * 9_000 + "|y|\n" + "|1|2|\n" * 400,
    "a table of many columns": "|" + "a|" * 300 + "\n|" + "-|" * 300 + "\n" + "|x|\n" * 300,
    "many tables": (_table(1, 2, "a") + "\n\n") * 400,
    "tables at the beginning of what is long": "|a|\n|-|\n\n" * 9_000,
    "a wide table at the beginning of what is long": "|"
    + "a|" * 280
    + "\n|"
    + "-|" * 280
    + "\n"
    + "|x|\n" * 20_000,
    "paragraphs": "a\n\n" * 20_000,
    "headings": "# a\n" * 15_000,
    "brackets": "[" * 40_000,
    "quotation": ">" * 40_000,
    "emoji": "🍕" * 20_000,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_huge_text_is_taken(text: str) -> None:
    made = _checked(answer(text, title="T" * 500))
    if made.file is not None:
        assert made.file.content.decode() == text.strip()


def test_a_short_answer_is_one_message_as_it_was_written() -> None:
    made = answer("# Done\n\nIt is *paid*.\n\n- a\n- b")
    assert [part.blocks for part in made.parts] == [
        [{"type": "markdown", "text": "# Done\n\nIt is *paid*.\n\n- a\n- b"}]
    ]
    assert made.parts[0].text == "# Done It is *paid*. - a - b"
    assert made.file is None


def test_a_title_stands_above_the_first_message_only() -> None:
    made = answer("word " * 5_000, title="Invoices\u202e")
    heads = [part.blocks[0]["type"] for part in made.parts]
    assert heads == ["context", *["markdown"] * (len(made.parts) - 1)]
    assert made.parts[0].blocks[0]["elements"][0]["text"] == "Invoices\\u202e"


def test_the_first_table_is_a_table_and_the_next_is_monospaced() -> None:
    (part,) = answer(f"Before\n\n{_table(1, 2, 'a')}\n\nBetween\n\n{_table(1, 2, 'b')}\n\nAfter").parts
    assert [block["type"] for block in part.blocks] == ["markdown", "table", "markdown"]
    assert part.blocks[2]["text"] == "Between\n\n```\nb | b\n--+--\nb | b\n```\n\nAfter"


def test_a_cell_says_where_its_links_and_images_lead() -> None:
    text = "|a|b|\n|-|-|\n|[plan](https://a.example)|![x](https://b.example/c.png)|"
    (part,) = answer(text).parts
    assert [cell["text"] for cell in part.blocks[0]["rows"][1]] == [
        "plan (https://a.example)",
        "x (https://b.example/c.png)",
    ]


def test_cells_beside_a_table_are_shown_too() -> None:
    (part,) = answer("|a|\n|-|\n|b|lost|").parts
    assert "lost" in part.blocks[0]["text"]


def test_four_messages_are_messages_and_more_are_a_file() -> None:
    few, many = answer("word " * 8_000), answer("word " * 12_000, filename="Report.md")
    assert (len(few.parts), few.file) == (4, None)
    assert len(many.parts) == 1
    assert many.file is not None
    assert many.file.filename == "Report.md"
    assert many.file.content.decode() == ("word " * 12_000).strip()
    assert "59,999 characters and is in Report.md" in str(many.parts[0].blocks[-1])


@pytest.mark.parametrize("fence", ["```py", "~~~~"])
def test_code_that_is_cut_goes_on_as_code(fence: str) -> None:
    made = _checked(answer(f"{fence}\n" + "print(1)\n" * 3_000 + fence.rstrip("py")))
    assert len(made.parts) > 1
    language = fence.strip("`~")
    for part in made.parts:
        for block in part.blocks:
            assert block["text"].startswith(f"```{language}\nprint(1)\n")
            assert block["text"].endswith("print(1)\n```")
    assert _said(made).count("print(1)") == 3_000


@pytest.mark.parametrize(
    ("before", "line", "fence"),
    [
        ("1. a\n", "   ", "```py"),
        ("- a\n  - b\n", "    ", "~~~"),
        ("> a\n", "> ", "```"),
        ("> - a\n", ">   ", "````"),
    ],
)
def test_code_in_lists_and_quotes_is_code_in_every_message(before: str, line: str, fence: str) -> None:
    end = fence.removesuffix("py")
    made = _checked(
        answer(f"{before}{line}{fence}\n{line}<b> x\n" + f"{line}<b> x\n" * 2_000 + f"{line}{end}\n\nz")
    )
    assert len(made.parts) > 1
    codes = []
    for part in made.parts:
        for text in _markdown(part.blocks):
            tokens = MarkdownIt("commonmark").parse(text)
            codes += [token.content for token in tokens if token.type == "fence"]
            assert not any("<b>" in token.content for token in tokens if token.type != "fence")
    assert "".join(codes).count("<b> x") == 2_001
    assert _said(made).endswith("z")


def test_blank_lines_of_code_survive_a_cut() -> None:
    made = _checked(answer("```\n" + "a\n\n\n" * 4_000 + "```"))
    assert _said(made).replace("```", "").count("a\n\n\n") >= 4_000 - len(made.parts)


def test_what_an_answer_wears_on_its_sleeve_mentions_nobody() -> None:
    made = answer("<!channel> <@U0ADA> [bank.example](https://evil.example)")
    assert made.parts[0].text.startswith("&lt;!channel&gt; &lt;@U0ADA&gt;")
    assert _said(made) == "<!channel> <@U0ADA> bank.example (https://evil.example)"
    assert "<!channel>" not in str(made.parts[0].blocks)


@pytest.mark.parametrize(
    "text", ["a\n\n", "- a\n", "# a\n\n", "|a|\n|-|\n|b|\n\n", "```\na\n```\n", "[a]: b\n"]
)
def test_twice_the_text_is_twice_the_work(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work = 0
    dumps = json.dumps

    def counted(value: Any, **options: Any) -> str:
        nonlocal work
        made = dumps(value, **options)
        work += len(made)
        return made

    monkeypatch.setattr(json, "dumps", counted)

    def of(characters: int) -> int:
        nonlocal work
        work = 0
        answers.answer(text * (characters // len(text)))
        return work

    assert of(20_000) < 2.5 * of(10_000)
    assert of(40_000) < 20 * 40_000
