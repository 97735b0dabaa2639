"""What else does a letter tell: names of mails, recipients, a digest? And can a mail make reading it fail?"""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pizzabot.adapters.email.letters import MAX_BYTES, MAX_HEADER_BYTES, Envelope, LetterKind, Mailbox
from pizzabot.adapters.email.reading.addresses import MAX_RECIPIENTS
from pizzabot.adapters.email.reading.identity import MAX_REFERENCES
from pizzabot.adapters.email.reading.pipeline import read
from pizzabot.adapters.email.reading.shape import MAX_DEPTH

from pizzabot.text import is_storable

from ..mails import MARIA, OURS, PASS, STORED, TRUSTED, letter, load, mail

# -- names of mails ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["<a@b>", "<a.b+c=d/e$f!x@[192.0.2.1]>", "<AM0PR01:x,y@eu.prod.example>"])
def test_a_well_formed_message_id_is_taken(name: str) -> None:
    assert letter(f"Message-ID: {name}").message_id == name


@pytest.mark.parametrize(
    "header",
    [
        "X: y",
        "Message-ID: a@b",
        "Message-ID: <ab>",
        "Message-ID: <a@b@c>",
        "Message-ID: <a b@c>",
        "Message-ID: <a@b> <c@d>",
        "Message-ID: <@>",
        "Message-ID: <ä@b>",
        "Message-ID: <a@b>\r\nMessage-ID: <a@b>",
        f"Message-ID: <{'a' * 999}@b>",
    ],
)
def test_what_is_not_exactly_one_message_id_is_none(header: str) -> None:
    assert letter(header).message_id is None


def test_references_name_the_nearest_mail_first_and_each_once() -> None:
    found = letter("References: <1@x>\r\n\t<2@x> rubbish <3@x>", 'In-Reply-To: <3@x> ("of Tuesday")')
    assert found.references == ("<3@x>", "<2@x>", "<1@x>")


def test_references_are_bounded() -> None:
    found = letter("References: " + "\r\n ".join(f"<{n}@x>" for n in range(3_000)))
    assert len(found.references) == MAX_REFERENCES
    assert found.references[0] == "<2999@x>"


# -- recipients --------------------------------------------------------------------------------------------


def test_recipients_are_of_the_envelope_then_of_delivery_then_as_shown() -> None:
    found = letter(
        "Delivered-To: Deliver@x.example",
        "X-Original-To: original@x.example",
        "Cc: cc@x.example, RCPT@x.example",
        "To: =?utf-8?q?J=C3=B6rg?= <to@x.example>, broken@, Team: a@x.example, b@x.example;",
        envelope=Envelope(recipients=("rcpt@x.example",)),
    )
    names = ("rcpt", "deliver", "original", "to", "a", "b", "cc")
    assert found.recipients == tuple(f"{name}@x.example" for name in names)
    assert found.to[0] == Mailbox("to@x.example", "Jörg")
    assert [mailbox.address for mailbox in found.cc] == ["cc@x.example", "rcpt@x.example"]


def test_recipients_are_bounded() -> None:
    found = letter("To: " + ", ".join(f"p{n}@x.example" for n in range(3_000)), "Delivered-To: us@x.example")
    assert len(found.recipients) == MAX_RECIPIENTS
    assert found.recipients[0] == "us@x.example"


# -- digest ------------------------------------------------------------------------------------------------

AUTHORED = ("Date: Tue, 3 Nov 2026 10:02:11 +0100", "Message-ID: <a@b>", "Subject: One")


def test_a_copy_that_came_another_way_has_the_same_digest() -> None:
    first = mail("Delivered-To: a@x", "Received: from a", PASS, *AUTHORED, body="Yes\n")
    second = mail("Return-Path: <q@x>", *AUTHORED, "Received: from b", "X-Spam: 1", body="Yes\n\n")
    digests = {read(raw, TRUSTED, OURS).digest for raw in (first, second, first.replace(b"\r\n", b"\n"))}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Maria Keller", b"Mallory"),
        (b"Subject: One", b"Subject: Two"),
        (b"10:02:11", b"10:02:12"),
        (b"<a@b>", b"<a@c>"),
        (b"Yes", b"No"),
        (b"Subject: One", b"Subject: One\r\nContent-Transfer-Encoding: base64"),
        (b"Subject: One\r\n", b""),
    ],
)
def test_another_mail_has_another_digest(old: bytes, new: bytes) -> None:
    raw = mail(*AUTHORED, body="Yes")
    changed = raw.replace(old, new)
    assert changed != raw
    assert read(changed, TRUSTED, OURS).digest != read(raw, TRUSTED, OURS).digest


# -- limits and failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (mail(PASS, body=b"x" * MAX_BYTES), "25 MiB"),
        (mail(PASS, MARIA, "X: " + "x" * MAX_HEADER_BYTES, author=""), "256 KiB"),
        (mail(PASS, body="words " * 200_000), "characters"),
        (mail(PASS, "Content-Type: multipart/mixed; boundary=-", body="-" * 200_000), "delimiter"),
    ],
    ids=["mail", "header", "text", "delimiters"],
)
def test_a_mail_over_a_limit_is_malformed_and_says_which(raw: bytes, why: str) -> None:
    found = read(raw, TRUSTED, OURS)
    assert (found.kind, found.verified) == (LetterKind.MALFORMED, False)
    assert why in found.why
    assert found.author is not None


@pytest.mark.parametrize(
    ("depth", "kind"), [(MAX_DEPTH, LetterKind.HUMAN), (MAX_DEPTH + 1, LetterKind.MALFORMED)]
)
def test_parts_may_be_nested_only_so_deep(depth: int, kind: LetterKind) -> None:
    body = "--b0\n" + "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(1, depth)
    )
    body += "\nApprove\n" + "".join(f"--b{n}--\n" for n in reversed(range(depth)))
    assert letter("Content-Type: multipart/mixed; boundary=b0", PASS, body=body).kind is kind


@pytest.mark.parametrize(
    "raw", [b"", b"\r\n", b"\r\n\r\n", b"From: maria@example.com", b"From ", b":", b"\x00"]
)
def test_a_mail_of_next_to_nothing_is_malformed(raw: bytes) -> None:
    assert read(raw, TRUSTED, OURS).kind is LetterKind.MALFORMED


def test_a_resolver_that_fails_makes_a_malformed_letter_and_no_error() -> None:
    def broken(name: bytes) -> bytes | None:
        raise RuntimeError("no such thing")

    signature = "DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=s; h=from; bh=YQ==; b=YQ=="
    assert letter(signature, resolve=broken).kind is LetterKind.MALFORMED


SLOW = {
    "quotes": 'From: "' + '\\"' * 100_000,
    "comments": "From: " + "(" * 100_000 + "a@b.c",
    "groups": "To: " + "a:" * 100_000,
    "angles": "To: " + "<" * 100_000,
    "encoded words": "Subject: " + "=?utf-8?q?" * 20_000,
    "more encoded words": "Subject: " + "=?utf-8?q?a?= " * 15_000,
    "parameters": "Content-Type: text/plain" + ';a="' * 60_000,
    "spaces": "Subject: a" + " " * 200_000 + "b",
    "ids": "References: " + "<a" * 100_000,
    "results": PASS + " (" * 4_000,
    "fields": "a:\r\n" * 60_000 + "X: y",
    "automatic": "Auto-Submitted: " + " ;" * 100_000,
}


@pytest.mark.parametrize("name", SLOW)
def test_a_header_made_to_be_slow_is_read_quickly(name: str) -> None:
    before = time.thread_time()
    letter(SLOW[name], PASS)
    assert time.thread_time() - before < 3


SLOW_BODIES: dict[str, tuple[str, str | bytes]] = {
    "flowed": ("Content-Type: text/plain; format=flowed", "a \n" * 300_000),
    "quoted": ("Content-Type: text/plain; format=flowed", ">" * 1_000_000),
    "calendar": ("Content-Type: text/calendar", "METHOD:\n" * 100_000),
    "meta": ("Content-Type: text/html", "<meta " * 100_000),
    "spaces": ("Subject: Undeliverable", " \n" * 400_000),
    "words": ("Subject: Out of office", "on " * 300_000),
    "report": ("X-Failed-Recipients: a@b.c", " -\n" * 300_000),
    "style": ("Content-Type: text/html", "<style>" * 100_000),
    "comments": ("Content-Type: text/html", "<!--" * 200_000),
    "markup": ("Content-Type: text/html", "<p " * 200_000),
    "wrong charset": ("Content-Type: text/plain", b"\xff" * 1_000_000),
    "blocks": ("Content-Type: message/delivery-status", "Action: x\n\n" * 50_000),
}


@pytest.mark.parametrize("name", SLOW_BODIES)
def test_a_body_made_to_be_slow_is_read_quickly(name: str) -> None:
    header, body = SLOW_BODIES[name]
    before = time.thread_time()
    letter(header, PASS, body=body)
    assert (
        time.thread_time() - before < 15
    )  # a tenth of it would be enough; what grows with the square takes minutes


RAWS = [load(case["file"]) for case in STORED]
SNIPPETS = st.sampled_from(
    [
        b"\r\n\r\n",
        b"\r\n",
        b"\x00",
        b"\xff",
        b"--",
        b'"',
        b"(",
        b"<",
        b">",
        b"=?utf-8?b?",
        b"?=",
        b"From: a@b\r\n",
        b"Content-Type: multipart/mixed; boundary=\r\n",
        b"Auto-Submitted: auto-replied\r\n",
        b"; charset=idna",
    ]
)


def _reads(raw: bytes) -> None:
    before = time.thread_time()
    found = read(raw, TRUSTED, OURS)
    assert time.thread_time() - before < 3
    texts = (found.subject, found.own.text, found.why, found.verification, found.message_id or "")
    assert all(map(is_storable, (*texts, *found.recipients, *(mailbox.name for mailbox in found.to))))
    assert not found.verified or found.author is not None
    assert "could not be read" not in found.why


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.binary(max_size=2_000))
def test_random_bytes_are_read_without_an_error(raw: bytes) -> None:
    _reads(raw)
    _reads(mail(PASS, body=raw))


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.data_too_large]
)
@given(st.sampled_from(RAWS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), SNIPPETS), max_size=6))
def test_a_mail_with_holes_and_additions_is_read_without_an_error(
    raw: bytes, changes: list[tuple[float, int, bytes]]
) -> None:
    for where, length, snippet in changes:
        at = int(where * len(raw))
        raw = raw[:at] + snippet + raw[at + length :]
    _reads(raw)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.sampled_from(RAWS), st.floats(0, 1))
def test_a_mail_that_is_cut_off_is_read_without_an_error(raw: bytes, where: float) -> None:
    _reads(raw[: int(where * len(raw))])
