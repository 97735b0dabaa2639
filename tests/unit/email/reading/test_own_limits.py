"""Own text under hostile input: quick, and never an error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.email.letters import BEGIN_VALUES, END_VALUES, REPLY_ABOVE, Ours
from pizzabot.adapters.email.reading.own import MOST, own_text

from .replies_of_programs import LANGUAGES, OURS

_SECONDS = 10.0  # of this thread's own work, on a machine however slow; what is quadratic takes minutes
_HOSTILE_TEXT = {
    "newlines": "Approve" + "\n" * 20_000 + "x",
    "spaced newlines": "Approve" + " \n" * 20_000 + "x",
    "attributions without an end": "On Tue, Nov 3, 2026 at 9:14 AM Ledger Agent\n" * 20_000,
    "attributions": "On Tue, Nov 3, 2026 at 9:14 AM Ledger Agent wrote:\n" * 20_000,
    "one long line": "On Tue, Nov 3, 2026 " * 12_000,
    "quote marks": "> " * 100_000,
    "quote marks on lines": ("> " * 50 + "\n") * 2_000,
    "rules": "_" * 200_000,
    "dashes": ("-" * 60 + "\n") * 4_000,
    "labels": "From: a@b.c\n" * 20_000,
    "half a header": "From: a\n\n\n" * 20_000,
    "begin markers": (BEGIN_VALUES + "\n") * 10_000,
    "blocks": f"{BEGIN_VALUES}\na: 1\n{END_VALUES}\n" * 5_000,
    "our markers": (REPLY_ABOVE + "\n") * 5_000,
    "signatures": "-- \n" * 60_000,
    "brackets": "[" * 200_000,
    "links": "<https://" * 25_000,
    "footers": "Sent from my iPhone\n" * 12_000,
    "armour": "-----BEGIN PGP SIGNED MESSAGE-----\n" * 7_000,
    "colons": ":" * 250_000,
    "words of law": "confidential\n" * 20_000,
    "our address": "ledger@approvals.example.net\n" * 8_000,
    "very long": "lorem ipsum\n" * 2_000_000,
}
_HOSTILE_HTML = {
    "nested": "<div>" * 20_000 + "Approve",
    "nested quotes": "<blockquote>" * 20_000 + "Approve",
    "nested gmail quotes": "<div class='gmail_quote'>" * 20_000 + "Approve",
    "nested tables": "<table><tr><td>" * 5_000 + "Approve",
    "unclosed": "<a href='" * 20_000,
    "line breaks": "<br>" * 100_000,
    "spans": "<span style='color:#fff;font-size:0'>x</span>" * 15_000,
    "headers": "<div style='border-top:solid 1px'><b>From:</b> a@b.c</div>" * 10_000,
    "styles": "<style>" + ".a{" * 200_000 + "</style>Approve",
    "attributes": "<p " + "style='" * 50_000 + ">",
    "very long": "<p>lorem ipsum</p>" * 500_000,
}


@pytest.mark.parametrize("name", _HOSTILE_TEXT)
def test_no_text_takes_long(name: str) -> None:
    began = time.thread_time()
    own_text([_HOSTILE_TEXT[name]], [], OURS)
    assert time.thread_time() - began < _SECONDS


@pytest.mark.parametrize("name", _HOSTILE_TEXT)
def test_no_comparison_takes_long(name: str) -> None:
    began = time.thread_time()
    own_text([_HOSTILE_TEXT[name]], ["<p>Approve</p>"], OURS)
    assert time.thread_time() - began < _SECONDS


@pytest.mark.parametrize("name", _HOSTILE_HTML)
def test_no_html_takes_long(name: str) -> None:
    began = time.thread_time()
    own_text([], [_HOSTILE_HTML[name]], OURS)
    assert time.thread_time() - began < _SECONDS


@pytest.mark.parametrize("html", ["<div>" * 3_000 + "but only if it is cheaper", "<p>x</p>" * 200_000])
def test_html_that_was_not_read_to_its_end_never_agrees(html: str) -> None:
    assert not own_text([], [f"<p>Approve</p>{html}"], OURS).agrees


def test_text_that_was_not_read_to_its_end_never_agrees() -> None:
    assert not own_text(["Approve\n" + "> x\n" * MOST + "not"], [], OURS).agrees


_PIECES = st.sampled_from(
    [
        *(a for language in LANGUAGES[:6] for a in language.attributions[:2]),
        *(
            "\n",
            "\n\n",
            "> ",
            ">",
            "Approve",
            " ",
            "-- \n",
            "_" * 32,
            REPLY_ABOVE,
            BEGIN_VALUES,
            END_VALUES,
            "amount: 1",
        ),
        *(
            "From: x@y.z\n",
            "To: y\n",
            "Subject: z\n",
            "\x00",
            "\ud800",
            "\u202e",
            "\ue0001",
            "\ue000",
            "\u2028",
            "\x1f",
        ),
        *(
            "<p>",
            "</p>",
            "<blockquote>",
            "<div class=gmail_quote>",
            "<br>",
            "<s>",
            "<td>",
            "<style>",
            "<!--",
            "&#0;",
        ),
        *(
            "<div id=divRplyFwdMsg>",
            "<div style='display:none'>",
            "<?xml version='1.0'?>",
            "<![CDATA[",
            "</html>",
        ),
    ]
)
_ANY = st.lists(_PIECES | st.text(max_size=8), max_size=20).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(_ANY, max_size=2), st.lists(_ANY, max_size=2))
def test_nothing_raises(texts: list[str], html: list[str]) -> None:
    own_text(texts, html, OURS)
    own_text(texts, html, Ours((), ""))


@settings(max_examples=150, deadline=None)
@given(_ANY, st.sampled_from(["> ", ">", "> > "]))
def test_what_is_prefixed_is_never_own_text(text: str, prefix: str) -> None:
    lines = text.replace("\r", "\n").replace("\u2028", "\n").split("\n")
    assert own_text(["\n".join(prefix + line for line in lines)], [], OURS).text == ""
