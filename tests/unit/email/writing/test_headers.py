"""Do our headers say exactly what they should, whatever stands in a name or a subject?"""

from __future__ import annotations

import re
from email import message_from_bytes
from email.header import decode_header, make_header
from email.utils import getaddresses, parsedate_to_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.email.letters import Mailbox
from pizzabot.adapters.email.writing.headers import header_lines, one_line, reply_subject, request_subject

from pizzabot.messages import ActionKind
from tests.unit.email.written import ANY_TEXT, NOW, action, heads, read


def _read(**changed: object) -> dict[str, str]:
    mail = read(header_lines(heads(**changed)) + b"\r\n")
    return {name: str(value) for name, value in mail.items()}


def test_every_header_stands_as_it_is_written_in_the_contract() -> None:
    written = header_lines(
        heads(
            cc=(Mailbox("bob@example.org"),),
            references=("<a@x.example>", "<b@x.example>"),
            automatic="auto-replied",
        )
    )
    assert written.decode() == (
        "From: Pizza Bot <pizza@example.com>\r\n"
        "To: Ada Lovelace <ada@example.com>\r\n"
        "Cc: bob@example.org\r\n"
        "Reply-To: pizza+r-00112233445566778899aabbccddeeff@example.com\r\n"
        "Subject: Re: Paper\r\n"
        "Date: Mon, 30 Nov 2026 09:14:00 +0100\r\n"
        "Message-ID: <m1@example.com>\r\n"
        "In-Reply-To: <b@x.example>\r\n"
        "References: <a@x.example> <b@x.example>\r\n"
        "Auto-Submitted: auto-replied\r\n"
        "X-Auto-Response-Suppress: All\r\n"
        "X-Pizzabot-Loop: house-1\r\n"
    )


def test_the_first_mail_of_a_conversation_answers_none() -> None:
    assert not {"In-Reply-To", "References", "Cc"} & set(_read())


def test_the_date_keeps_moment_and_zone() -> None:
    assert parsedate_to_datetime(_read()["Date"]) == NOW
    assert parsedate_to_datetime(_read()["Date"]).utcoffset() == NOW.utcoffset()


# -- references ------------------------------------------------------------------------------------------


def test_references_are_folded_between_ids() -> None:
    ids = tuple(f"<{n:060}@x.example>" for n in range(5))
    written = header_lines(heads(references=ids)).decode()
    assert f"References: {ids[0]}\r\n {ids[1]}\r\n" in written
    assert _read(references=ids)["References"].split() == list(ids)


def test_of_many_references_the_first_and_the_newest_stay() -> None:
    ids = tuple(f"<{n}@x.example>" for n in range(100))
    assert _read(references=ids)["References"].split() == [ids[0], *ids[-20:]]
    assert _read(references=ids)["In-Reply-To"] == ids[-1]


@pytest.mark.parametrize("longest", [70, 78, 120, 250])
def test_a_long_id_is_never_encoded(longest: int) -> None:
    long = f"<{'a' * (longest - 12)}@x.example>"
    written = header_lines(heads(references=(long,), message_id=long)).decode()
    assert f"Message-ID: {long}\r\n" in written
    assert f"In-Reply-To: {long}\r\n" in written


@pytest.mark.parametrize(
    "broken",
    [
        "a@x.example",
        "<a b@x.example>",
        "<a@x.example>\r\nBcc: x@y.example",
        "<é@x>",
        f"<{'a' * 300}@x>",
        "",
        "<a>b>",
    ],
)
def test_what_is_no_id_is_left_out_of_the_references(broken: str) -> None:
    assert _read(references=("<a@x.example>", broken))["References"] == "<a@x.example>"


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ada",
        "ada@",
        "@x.example",
        "a b@x.example",
        "ada@x.example\r\nBcc: eve@y.example",
        "ada@x.example, eve@y.example",
        "ada@x.example>",
        "ада@x.example",
        "ada@x..example",
        "a@b@x.example",
        "ada@x.example\n",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    for changed in ({"to": (Mailbox(address),)}, {"sender": Mailbox(address)}, {"reply_to": address}):
        with pytest.raises(ValueError, match="cannot"):
            header_lines(heads(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"message_id": "<a b@x>"},
        {"message_id": "a@x"},
        {"loop_mark": "a\r\nb"},
        {"loop_mark": ""},
        {"to": ()},
    ],
)
def test_broken_values_of_our_own_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"cannot|needs"):
        header_lines(heads(**changed))


def test_a_domain_of_other_letters_goes_as_its_ascii_form() -> None:
    assert _read(to=(Mailbox("ada@münchen.example"),))["To"] == "ada@xn--mnchen-3ya.example"


# -- names and subjects ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Ada", "Ada <ada@example.com>"),
        ("Lovelace, Ada", '"Lovelace, Ada" <ada@example.com>'),
        ('Ada "The" \\', '"Ada \\"The\\" \\\\" <ada@example.com>'),
        ("ceo@bank.example", '"ceo@bank.example" <ada@example.com>'),
        ("Ada\r\nBcc: eve@x.example", '"Ada Bcc: eve@x.example" <ada@example.com>'),
        ("Zoë", "=?utf-8?q?Zo=C3=AB?= <ada@example.com>"),
        ("=?utf-8?q?x?=", "=?utf-8?b?PT91dGYtOD9xP3g/PQ==?= <ada@example.com>"),
        ("\u202e", '"\\\\u202e" <ada@example.com>'),
        ("", "ada@example.com"),
    ],
)
def test_names_are_quoted_or_encoded(name: str, written: str) -> None:
    assert f"To: {written}\r\n" in header_lines(heads(to=(Mailbox("ada@example.com", name),))).decode()


def _decoded(name: str) -> str:
    # The newer reader of the library puts a space between encoded words of a name.
    return str(make_header(decode_header(name)))


@given(st.lists(ANY_TEXT, min_size=1, max_size=4), ANY_TEXT, ANY_TEXT)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_no_text_breaks_a_header(names: list[str], subject: str, reference: str) -> None:
    boxes = tuple(Mailbox(f"a{n}@example.com", name) for n, name in enumerate(names))
    changed = {"to": boxes, "subject": subject, "references": (reference, "<a@x.example>")}
    written = header_lines(heads(**changed))
    for line in written.decode("ascii").split("\r\n")[:-1]:
        assert re.fullmatch(r"(?:[A-Z][A-Za-z-]+:| +[!-~])[ -~]*", line)
    read_again = _read(**changed)
    assert list(read_again) == [
        "From", "To", "Reply-To", "Subject", "Date", "Message-ID", "In-Reply-To", "References",
        "Auto-Submitted", "X-Auto-Response-Suppress", "X-Pizzabot-Loop",
    ]  # fmt: skip
    assert read_again["Subject"] == one_line(subject, 200)
    found = getaddresses([message_from_bytes(written)["To"]])
    assert [address for _, address in found] == [box.address for box in boxes]
    assert [_decoded(name) for name, _ in found] == [one_line(name, 100) for name in names]


def test_no_line_is_longer_than_78_columns() -> None:
    boxes = tuple(Mailbox(f"person.{n}@example.com", f"Ünal Nr. {n}, " + "ß" * 60) for n in range(8))
    written = header_lines(heads(to=boxes, cc=boxes, subject="Größe " * 30))
    assert max(map(len, written.decode().split("\r\n"))) <= 78


def test_a_long_subject_ends_visibly() -> None:
    subject = _read(subject="word " * 100)["Subject"]
    assert len(subject) == 200
    assert subject.endswith("…")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("Paper", "Re: Paper"),
        ("Re: Paper", "Re: Paper"),
        ("RE: re: Re:Paper", "Re: Paper"),
        ("AW: Papier", "Re: Papier"),
        ("SV: VS: Antw: Papper", "Re: Papper"),
        ("Re[2]: Paper", "Re: Paper"),
        ("RE : Papier", "Re: Papier"),
        ("回复：纸", "Re: 纸"),
        ("Re: Fwd: Paper", "Re: Fwd: Paper"),
        ("Results: good", "Re: Results: good"),
        ("Retry: later", "Re: Retry: later"),
        ("", "Re: (no subject)"),
        ("Re:", "Re: (no subject)"),
    ],
)
def test_an_answer_says_re_once(subject: str, expected: str) -> None:
    assert reply_subject(subject) == expected


@pytest.mark.parametrize(
    ("limit", "args", "words"),
    [
        ("tool_calls", {}, "Tool calls of a run"),
        ("usd", {}, "Budget of a run"),
        ("day_usd", {}, "Budget of the day"),
        ("person_day_usd", {"person": "Ada"}, "Budget of Ada for the day"),
        ("failures", {"trigger": "Morning"}, "Paused trigger"),
    ],
)
def test_a_request_about_a_limit_names_it_in_words(limit: str, args: dict[str, str], words: str) -> None:
    asked = action(tool=f"limit:{limit}", kind=ActionKind.LIMIT, args=args)
    assert request_subject(asked, "Morning") == f"[Action] {words}: Morning"


def test_a_request_says_tool_and_conversation() -> None:
    assert request_subject(action(), "Paper") == "[Action] pay_invoice: Paper"
