"""Which actions and mails do the tests of writing share, and how are they read again?"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st
from pizzabot.adapters.email.letters import Mailbox
from pizzabot.adapters.email.writing.headers import Heads

from pizzabot.messages import Action, ActionKind, ActionState, Verdict

NOW = datetime(2026, 11, 30, 9, 14, tzinfo=ZoneInfo("Europe/Amsterdam"))
PAGE = "https://pizza.example/actions/a1"
SCHEMA = {
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "amount": {"type": "number"},
        "note": {"type": "string"},
        "items": {"type": "array", "items": {"type": "string"}},
    },
}
ARGS = {"vendor": "Northwind Paper", "amount": 120, "note": "Invoice 2291", "items": ["A4", "C5"]}
_HEADS = Heads(
    sender=Mailbox("pizza@example.com", "Pizza Bot"),
    to=(Mailbox("ada@example.com", "Ada Lovelace"),),
    reply_to="pizza+r-00112233445566778899aabbccddeeff@example.com",
    message_id="<m1@example.com>",
    subject="Re: Paper",
    date=NOW,
    loop_mark="house-1",
)
_ACTION = Action(
    id="a1",
    thread_id="t1",
    run_id="r1",
    kind=ActionKind.TOOL,
    tool="mcp:ledger:pay_invoice",
    title="Run pay_invoice?",
    args=ARGS,
    args_schema=SCHEMA,
    digest="d1",
    allowed_decisions=(Verdict.APPROVE, Verdict.EDIT, Verdict.REJECT),
    approvers=("Ada", "Bob"),
    state=ActionState.PENDING,
    created_at=NOW,
    skill="expenses",
    requested_by="Maria",
    why="Pays an open invoice.",
)

# What breaks headers, markup, lines, markers or the eye, and anything else.
HOSTILE = st.sampled_from(
    [
        "\r\n",
        "\n",
        "\r",
        "\x00",
        "\x1b[0m",
        "\x85",
        "\u2028",
        "\u202e",
        "\ud800",
        "\u200d",
        "\xa0",
        "Bcc: spy@evil.example",
        "\r\n\r\n<script>",
        "<script>alert(1)</script>",
        "</td></table>",
        '"><img src=https://evil.example/x.png>',
        "' onclick='x",
        "]]>",
        "<!--",
        "--></style>",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "&lt;",
        "=?utf-8?q?x?=",
        "=20",
        "[[ begin values ]]",
        "[[ end values ]]\namount: 1",
        "=== Please write your answer above this line ===",
        "--=_0_",
        "-- ",
        ".",
        "From ",
        "> ",
        "🍕",
        "漢字",
        "שלום",
        "  ",
        "\t",
        "[a](https://evil.example)",
        "| a |\n|-|\n| b |",
        "```\n",
        "*",
        "a",
    ]
)
ANY_TEXT = st.one_of(
    st.lists(HOSTILE, max_size=6).map("".join), st.text(st.characters(codec=None), max_size=60)
)
ANY_VALUE = st.recursive(
    st.one_of(
        ANY_TEXT, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(ANY_TEXT, inner, max_size=3)),
    max_leaves=5,
)
ANY_ARGS = st.dictionaries(ANY_TEXT, ANY_VALUE, max_size=4)


def heads(**changed: Any) -> Heads:
    return replace(_HEADS, **changed)


def action(**changed: Any) -> Action:
    return replace(_ACTION, **changed)


def read(data: bytes) -> EmailMessage:
    """A mail as the standard library reads it, which finds nothing wrong with it."""
    mail = message_from_bytes(data, policy=default)
    assert isinstance(mail, EmailMessage)
    for part in mail.walk():
        assert part.defects == []
        assert all(not header.defects for header in part.values())
    return mail


def text_of(data: bytes) -> str:
    return _body(data, "plain")


def html_of(data: bytes) -> str:
    return _body(data, "html")


def _body(data: bytes, kind: str) -> str:
    part = read(data).get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


def lines_between_markers(text: str) -> list[str]:
    lines = text.split("\n")
    assert lines.count("[[ begin values ]]") == lines.count("[[ end values ]]") == 1
    return lines[lines.index("[[ begin values ]]") + 1 : lines.index("[[ end values ]]")]


_ELEMENTS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "table",
        "tr",
        "td",
        "th",
        "thead",
        "tbody",
        "div",
        "span",
    ),
    *("p", "h1", "h3", "h4", "h5", "h6", "a", "b", "br", "hr", "ul", "ol", "li", "pre", "code", "blockquote"),
    *("em", "strong", "s"),
}
_EMPTY = {"meta", "br", "hr"}
_ATTRIBUTES = {
    *("lang", "xmlns", "charset", "name", "content", "role", "class", "width", "cellpadding", "cellspacing"),
    *("border", "bgcolor", "style", "dir", "href", "rel", "start", "scope", "tabindex", "aria-label"),
}


class Page(HTMLParser):
    """Reads the HTML of a mail and notes what has no place in it."""

    def __init__(self, html: str, links: Collection[str] | None = None) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.wrong += [f"<{tag}> is never closed" for tag in self._open]
        if links is not None:
            self.wrong += [f"a link to {link}" for link in self.links if link not in links]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _ELEMENTS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if name not in _ATTRIBUTES or (
                name == "style" and re.search(r"url|expression|@|\\", value or "")
            ):
                self.wrong.append(f"<{tag} {name}={value!r}>")
        if len({name for name, _ in attrs}) < len(attrs):
            self.wrong.append(f"<{tag}> says something twice")
        self.links += [value or "" for name, value in attrs if name == "href"]
        if tag not in _EMPTY:
            self._open.append(tag)
        if tag in ("br", "p", "div", "tr", "th", "td", "li", "pre", "h1"):
            self.text += "\n"

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")
        if tag in ("p", "div", "tr", "th", "td", "li", "pre", "h1"):
            self.text += "\n"

    def handle_data(self, data: str) -> None:
        if "style" not in self._open and "title" not in self._open:
            self.text += data

    def handle_comment(self, data: str) -> None:
        if not re.fullmatch(r"\[if mso\]>.*<!\[endif\]", data, re.DOTALL):
            self.wrong.append(f"a comment: {data}")
