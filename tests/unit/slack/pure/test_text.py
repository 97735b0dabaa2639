"""Is what people say in Slack readable, and can nobody else's text mention somebody or lie about a link?"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pizzabot.adapters.slack.text import escaped, harmless, mentioned, no_marks, readable

NAMES = {"U0ADA": "Ada", "U0BEN": "Ben"}
MARK = re.compile(r"<(?:[@#][A-Z0-9]{3,}|!(?:here|channel|everyone|subteam|date)\b)")
OTHER_NAME = re.compile(r"<[a-zA-Z][a-zA-Z0-9+.-]*:[^<>\n]*\|")


def _read(text: str, *, without: str | None = None) -> str:
    read: str = readable(text, lambda user: NAMES.get(user, user), without=without)
    return read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("hello <@U0ADA>", "hello @Ada"),
        ("<@U0ADA|ada.l> and <@U0XYZ>", "@ada.l and @U0XYZ"),
        ("in <#C0GENERAL|general> or <#C0SECRET>", "in #general or #C0SECRET"),
        ("<!here> <!channel> <!everyone|everyone>", "@here @channel @everyone"),
        ("<!subteam^S0OPS|@ops> <!subteam^S0OPS>", "@ops @subteam"),
        ("<!date^1392734382^{date}|18 February>", "18 February"),
        ("<!date^1392734382^{date}>", "!date^1392734382^{date}"),
        ("<https://a.b/c>", "https://a.b/c"),
        ("<https://a.b/c|https://a.b/c>", "https://a.b/c"),
        ("<https://a.b/c|the plan>", "the plan (https://a.b/c)"),
        ("<mailto:ada@a.b|ada@a.b>", "ada@a.b"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
        ("<https://a.b/?x=1&amp;copy=2>", "https://a.b/?x=1&copy=2"),
        ("a &copy b &#65;", "a &copy b &#65;"),
        ("&lt;@U0ADA&gt;", "<@U0ADA>"),
        ("<@U0ADA", "<@U0ADA"),
        ("<<@U0ADA>>", "<@Ada>"),
        ("<@U0ADA\n>", "<@U0ADA\n>"),
        ("<>", "<>"),
    ],
)
def test_marks_are_read_as_slack_shows_them(text: str, read: str) -> None:
    assert _read(text) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<@U0BOT> pay it", "pay it"),
        ("  <@U0BOT|bot>: pay it", "pay it"),
        ("<@U0BOT>", ""),
        ("ask <@U0BOT> to pay", "ask @U0BOT to pay"),
        ("<@U0BOT><@U0ADA> pay", "@Ada pay"),
        ("<@U0BOTX> pay", "@U0BOTX pay"),
    ],
)
def test_only_the_mention_of_us_in_front_is_left_out(text: str, read: str) -> None:
    assert _read(text, without="U0BOT") == read


def test_everybody_who_is_mentioned_is_known() -> None:
    assert mentioned("<@U0ADA> <@W0BEN|ben> &lt;@U0NO&gt; <@u0no> <#C0NO>") == {"U0ADA", "W0BEN"}


@given(st.text())
@example("x" * 40_000)
def test_typed_text_arrives_as_it_was_typed(text: str) -> None:
    assert _read(escaped(text)) == text


@given(st.text())
def test_nothing_of_any_text_is_cut(text: str) -> None:
    for word in re.findall(r"\w+", re.sub(r"<[^<>\n]*>|&\w*;?", " ", text)):
        assert word in _read(text)


@given(st.text())
def test_escaped_text_holds_no_mark(text: str) -> None:
    assert not set("<>") & set(escaped(text))
    assert re.fullmatch("(?:[^&]|&(?:amp|lt|gt);)*", escaped(text), re.DOTALL)


SCRAPS = st.sampled_from(
    [
        *(
            "<@U0ADA>",
            "<@U0ADA|x>",
            "<#C0GENERAL>",
            "<!here>",
            "<!channel>",
            "<!everyone|x>",
            "<!subteam^S0X>",
        ),
        *(
            "<!date^1^{date}^https://evil.example|x>",
            "<https://evil.example|bank.example>",
            "<",
            ">",
            "|",
            "\n",
        ),
        *(
            "HTTPS://evil.example|bank.example>",
            "[",
            "]",
            "(",
            ")",
            "![",
            "](",
            "bank.example",
            "evil.example",
        ),
        *("(https://evil.example)", "[bank.example](https://evil.example)", "[x]", ": https://evil.example"),
        *(
            "\n\n[x]: https://evil.example\n",
            "> ",
            "- ",
            "*",
            "**",
            "`",
            "\\",
            '"',
            " ",
            "www.",
            "&#46;",
            "#",
        ),
        *(
            "[bank",
            ".example]",
            "@",
            "!",
            "    ",
            "```\n",
            "\n\n",
            "<a href='https://evil.example'>",
            "\u200d",
        ),
    ]
)
HOSTILE = st.lists(SCRAPS | st.text(max_size=3), max_size=14).map("".join)


@settings(deadline=None, max_examples=400)
@given(HOSTILE)
@example("<<@U0ADA>")
@example("<<!here>!here>")
@example("<HTTPS://evil.example|bank.example>")
def test_no_answer_mentions_anybody_or_hides_an_address_in_slacks_way(text: str) -> None:
    for made in (harmless(text), no_marks(text), escaped(text)):
        assert not MARK.search(made)
        assert not OTHER_NAME.search(made)


def _links(text: str) -> list[tuple[str, str]]:
    """What a reader of Markdown sees as links: the host of each, and its label."""
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        label, target = "", ""
        for child in token.children or ():
            match child.type:
                case "link_open":
                    label, target = "", str(child.attrGet("href"))
                case "link_close":
                    found.append((urlsplit(target).hostname or "", label))
                case "image":
                    found.append((urlsplit(str(child.attrGet("src"))).hostname or "", child.content))
                case _:
                    label += child.content
    return found


@settings(deadline=None, max_examples=400)
@given(HOSTILE)
@example("[evil.example bank.example](https://evil.example)")
@example("[**bank**.example](https://evil.example)")
@example("[bank&#46;example](https://evil.example)")
@example("[bank\\.example](https://evil.example)")
@example("[bank\u200d.example](https://evil.example)")
@example("[bank.example\nx](https://evil.example)")
@example("[a [b] bank.example](https://evil.example)")
@example("> [x]: https://evil.example\n\n[bank.example][x]")
@example("- [bank.example]: https://evil.example\n\n[bank.example]")
@example("[x\ny]: https://evil.example\n\n[bank.example][x y]")
@example("\\\\[**bank**.example](https://evil.example)")
def test_no_link_of_an_answer_names_another_host(text: str) -> None:
    for host, label in _links(harmless(text)):
        shown = label.replace("\u200d", "")
        assert host == "bank.example" or "bank.example" not in re.findall(r"[\w-]+(?:\.[\w-]+)+", shown)


@pytest.mark.parametrize(
    "text",
    [
        "[the plan](https://a.example/plan)",
        "[a.example](https://www.a.example/x_(y))",
        '[A.Example/plan](https://a.example/plan "the plan")',
        "[ada@a.example](mailto:ada@a.example)",
        "[bänk.example](https://xn--bnk-qla.example)",
        "![a graph](https://a.example/b.png)",
        "https://a.example and <https://a.example>",
        "a[1](2) list[int] {x: [1]}",
        "1 < 2, <b>bold</b>, <@nobody>, a <- b",
    ],
)
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("[bank.example](https://evil.example)", "bank.example (https://evil.example)"),
        ("![bank.example](https://evil.example/x)", "bank.example (https://evil.example/x)"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)"),
        (
            "[bank.example](https://bank.example.evil.example)",
            "bank.example (https://bank.example.evil.example)",
        ),
        ("[ada@bank.example](mailto:ada@evil.example)", "ada@bank.example (mailto:ada@evil.example)"),
        ("[x]: https://evil.example", "\\[x]: https://evil.example"),
        ("<@U0ADA>", "<\u2060@U0ADA>"),
    ],
)
def test_what_would_lie_is_spelt_out(text: str, made: str) -> None:
    assert harmless(text) == made


@settings(deadline=None)
@given(HOSTILE)
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert harmless(harmless(text)) == harmless(text)
