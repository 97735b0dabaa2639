"""Values in a mail: the lines between our markers come back whole, whatever a program does to them."""

from __future__ import annotations

import pytest
from pizzabot.adapters.email.letters import BEGIN_VALUES, END_VALUES
from pizzabot.adapters.email.reading.own import own_text

from .replies_of_programs import LANGUAGES, OURS, REQUEST, VALUES, as_html, headers, quoted

_CHANGED = ("vendor: Northwind Paper", "amount: 95", "currency: EUR", "note: Invoice 2291")
_BLOCK = "\n".join((BEGIN_VALUES, *_CHANGED, END_VALUES))
_ATTR = LANGUAGES[0].attributions[0]


@pytest.mark.parametrize("before", ["", "Please change\n\n"])
@pytest.mark.parametrize("after", ["", "\n\nThanks", "\n\n-- \nMaria", "\n\nSent from my iPhone"])
def test_values_among_the_own_words_are_taken_out(before: str, after: str) -> None:
    found = own_text([f"{before}{_BLOCK}{after}\n\n{_ATTR}\n{quoted()}"], [], OURS)
    assert found.values == "\n".join(_CHANGED)
    assert not found.in_quote
    own = (before + after.partition("--")[0].replace("Sent from my iPhone", "")).split()
    assert found.text.split() == own
    assert found.full.split() == [*before.split(), *_BLOCK.split(), *own[len(before.split()) :]]


@pytest.mark.parametrize("quote", [quoted(), quoted(prefix=">"), quoted(prefix="> > "), quoted(prefix=" >")])
def test_values_of_a_prefixed_quote_are_those_of_the_quote(quote: str) -> None:
    found = own_text([f"Approve\n\n{_ATTR}\n\n{quote}"], [], OURS)
    assert (found.text, found.values, found.in_quote) == ("Approve", "\n".join(VALUES), True)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda x: x.name)
def test_values_of_an_unprefixed_original_are_those_of_the_quote(language: object) -> None:
    original = "\n".join(REQUEST).replace("120", "95")
    found = own_text([f"See below\n\n{headers(language)}\n\n{original}"], [], OURS)  # type: ignore[arg-type]
    assert (found.text, found.values, found.in_quote) == ("See below", "\n".join(_CHANGED), True)


@pytest.mark.parametrize(
    "html",
    [
        f"<div>{as_html(_BLOCK)}</div>",
        "".join(f"<p class='MsoNormal'>{line}<o:p></o:p></p>" for line in _BLOCK.split("\n")),
        f"<pre>{_BLOCK}</pre>",
        f"<div>{BEGIN_VALUES}</div><ul>{''.join(f'<li>{x}</li>' for x in _CHANGED)}</ul><div>"
        f"{END_VALUES}</div>",
        f"<p>{BEGIN_VALUES}</p><table>{''.join(f'<tr><td>{x}</td></tr>' for x in _CHANGED)}</table><p>"
        f"{END_VALUES}</p>",
        f"<p>{BEGIN_VALUES}</p><table>"
        + "".join("<tr><td><p>{}:</p></td><td><p>{}</p></td></tr>".format(*x.split(": ")) for x in _CHANGED)
        + f"</table><p>{END_VALUES}</p>",
        f"<div>{as_html(_BLOCK).replace('[[ begin', '[[&nbsp;Begin').replace(' ]]', '&nbsp;]]')}</div>",
    ],
)
def test_values_in_html_are_read_line_by_line(html: str) -> None:
    found = own_text(
        [],
        [f"<html><body>{html}<blockquote>{as_html(chr(10).join(REQUEST))}</blockquote></body></html>"],
        OURS,
    )
    assert found.values == "\n".join(_CHANGED)
    assert not found.in_quote


def test_doubled_line_breaks_are_read_as_single_ones() -> None:
    assert own_text([_BLOCK.replace("\n", "\n\n")], [], OURS).values == "\n".join(_CHANGED)


def test_the_html_part_keeps_what_the_text_part_wraps() -> None:
    long = _BLOCK.replace(
        "2291", "2291, delivered on the second of October to the warehouse in Potsdam and checked"
    )
    found = own_text([long.replace("in Potsdam", "in\nPotsdam")], [f"<div>{as_html(long)}</div>"], OURS)
    assert found.agrees
    assert "in Potsdam" in (found.values or "")


def test_two_blocks_of_own_values_are_both_kept() -> None:
    found = own_text([f"{_BLOCK}\n\n{_BLOCK.replace('95', '950')}"], [], OURS)
    assert (found.values or "").count("amount") == 2


def test_the_nearest_quoted_values_count() -> None:
    older = quoted(prefix="> > ").replace("120", "1")
    found = own_text([f"Approve\n\n{_ATTR}\n{quoted()}\n>\n> {_ATTR}\n{older}"], [], OURS)
    assert found.values == "\n".join(VALUES)


def test_a_block_that_is_not_closed_ends_with_the_own_words() -> None:
    found = own_text([f"{_BLOCK.replace(END_VALUES, '')}\n{_ATTR}\n{quoted()}"], [], OURS)
    assert not found.in_quote
    assert found.values is not None
    assert found.values.startswith("\n".join(_CHANGED))


def test_header_like_names_of_values_begin_no_quote() -> None:
    block = (
        f"{BEGIN_VALUES}\nFrom: a@example.com\nTo: b@example.com\nSubject: x\nDate: 2026-11-03\n{END_VALUES}"
    )
    found = own_text([f"Change\n{block}\nThanks"], [], OURS)
    assert found.values == "From: a@example.com\nTo: b@example.com\nSubject: x\nDate: 2026-11-03"
    assert found.text.split() == ["Change", "Thanks"]
