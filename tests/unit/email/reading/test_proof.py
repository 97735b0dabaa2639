"""Who is believed to have written a mail, and who is not, whatever the mail says of itself?"""

from __future__ import annotations

import base64

import dkim
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from pizzabot.adapters.email.letters import Envelope, LetterKind
from pizzabot.adapters.email.reading.pipeline import read

from ..mails import MARIA, OURS, PASS, SERVER, TRUSTED, letter, mail

# -- exactly one author ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("author", "address", "name"),
    [
        ("From: maria@example.com", "maria@example.com", ""),
        ("FROM: <Maria@Example.COM>", "maria@example.com", ""),
        ("From : Maria <maria@example.com>", "maria@example.com", "Maria"),
        ("From:\r\n maria@example.com (Maria Keller)", "maria@example.com", "Maria Keller"),
        ('From: "Keller, Maria" <maria@example.com>', "maria@example.com", "Keller, Maria"),
        ("From: =?utf-8?q?J=C3=B6rg?= =?utf-8?q?_Wei=C3=9F?= <j@example.com>", "j@example.com", "Jörg Weiß"),
        ("From: Jörg Weiß <j@example.com>", "j@example.com", "Jörg Weiß"),
        ("From: [Ledger] Maria K. <m@example.com>", "m@example.com", "[Ledger] Maria K."),
        ("From: maria@example.com <maria@example.com>", "maria@example.com", ""),
        ("From: =?utf-8?q?maria=40example=2Ecom?= <m@evil.example>", "m@evil.example", "maria@example.com"),
        ('From: "maria@example.com" <m@evil.example>', "m@evil.example", "maria@example.com"),
        ('From: "Maria <maria@example.com>" <m@evil.example>', "m@evil.example", "Maria <maria@example.com>"),
        ("From: (maria@example.com) m@evil.example", "m@evil.example", "maria@example.com"),
        ("From: m@evil.example (maria@example.com)", "m@evil.example", "maria@example.com"),
        ('From: "maria@example.com "@evil.example', '"maria@example.com "@evil.example', ""),
        ("From: maria@kоntor.example", "maria@xn--kntor-jye.example", ""),
    ],
)
def test_the_author_is_the_address_that_the_mail_really_names(author: str, address: str, name: str) -> None:
    read_author = letter(author=author).author
    assert read_author is not None
    assert (read_author.address, read_author.name) == (address, name)


@pytest.mark.parametrize(
    "author",
    [
        "",
        "From:",
        "From: Maria Keller",
        "From: <>",
        "From: maria@example.com, m@evil.example",
        "From: maria@example.com\r\nFrom: maria@example.com",
        "From: maria@example.com\r\nno field at all\r\nFROM: m@evil.example",
        "From: Team: maria@example.com;",
        "From: Team: maria@example.com, m@evil.example;",
        "From: maria@example.com <m@evil.example>",
        "From: <maria@example.com> <m@evil.example>",
        "From: maria@example.com>, <m@evil.example",
        "From: <@evil.example:maria@example.com>",
        "From: maria@example.com.",
        "From: maria@exa(x)mple.com",
        "From: maria@ｅxample.com",
        "From: maria@example.com\u0000@evil.example",
        "From: maria@[192.0.2.1]",
        "From: maria@@example.com",
        "From: ma ria@example.com",
        "From: \u212aeller@e\u212aample.com\x00",
        'From: "maria@example.com',
    ],
)
def test_a_mail_without_exactly_one_clear_author_is_malformed(author: str) -> None:
    found = letter(PASS, author=author)
    assert (found.kind, found.author, found.verified) == (LetterKind.MALFORMED, None, False)


def test_a_letter_that_becomes_ascii_when_lowered_does_not_name_somebody_else() -> None:
    author = letter(author="From: \u212aeller@example.com").author
    assert author is not None
    assert author.address != "keller@example.com"


def test_the_sender_field_takes_no_part() -> None:
    found = letter("Sender: m@evil.example", PASS)
    assert found.author is not None
    assert found.author.address == "maria.keller@example.com"


# -- the verdict of our own server -------------------------------------------------------------------------


def results(text: str, server: str = SERVER) -> str:
    return f"Authentication-Results: {server}; {text}"


@pytest.mark.parametrize(
    "header",
    [
        PASS,
        results("dkim=pass header.d=other.example; spf=fail; dmarc=pass header.from=Example.COM"),
        results("dmarc=pass (p=none dis=none) header.from=example.com"),
        results("dmarc=pass (a (nested) comment) action=none header.from=example.com"),
        results("dmarc=pass policy.dmarc=reject header.from=example.com; arc=pass (i=1)"),
        results("dmarc=pass header.from=example.com", f"{SERVER} 1"),
        results("dmarc=pass header.from=example.com", SERVER.upper()),
        results("dmarc=pass header.from=example.com", f"(a comment) {SERVER}"),
        f"Authentication-Results:\r\n\t{SERVER};\r\n\tdmarc=pass\r\n\theader.from=example.com",
        f"AUTHENTICATION-RESULTS: {SERVER}; DMARC=PASS header.from=example.com",
        # as Gmail, Fastmail, rspamd, OpenDMARC and Yahoo write it
        results(
            "dkim=pass header.i=@example.com header.s=1 header.b=AbC/+d1; "
            "arc=pass (i=1 spf=pass dmarc=pass fromdomain=other.example); "
            "spf=pass (mx: domain of a@example.com designates 192.0.2.1) smtp.mailfrom=a@example.com; "
            "dmarc=pass (p=NONE sp=NONE dis=NONE) header.from=example.com"
        ),
        results(
            "x-csa=none; x-ptr=pass smtp.helo=m.example.com policy.ptr=m.example.com; arc=none (none found); "
            "dmarc=pass policy.published-domain-policy=none (p=none,d=none) policy.policy-from=p "
            "header.from=example.com; iprev=pass smtp.remote-ip=192.0.2.1 (m.example.com)"
        ),
        results('dkim=pass header.b="AbC/d+e="; dmarc=pass (policy=none) header.from=example.com'),
        results("dmarc=pass (p=none, dis=none) header.from=example.com"),
        results("spf=pass smtp.mailfrom=example.com; dmarc=pass(p=REJECT) header.from=example.com;"),
    ],
)
def test_a_pass_of_our_server_for_the_domain_of_from_proves_the_author(header: str) -> None:
    found = letter(header)
    assert found.verified, found.verification
    assert SERVER in found.verification


@pytest.mark.parametrize(
    "header",
    [
        results("dmarc=pass header.from=example.com", "mx.evil.example"),
        results("dmarc=pass header.from=example.com", f"{SERVER}.evil.example"),
        results("dmarc=pass header.from=example.com", f"evil.{SERVER}"),
        results("dmarc=pass header.from=example.com", f"({SERVER}) mx.evil.example"),
        results("dmarc=pass header.from=example.com", f"mx.evil.example {SERVER}"),
        results("dmarc=pass header.from=example.com", f"{SERVER} 2"),
        f"X-Authentication-Results: {SERVER}; dmarc=pass header.from=example.com",
        f"ARC-Authentication-Results: i=1; {SERVER}; dmarc=pass header.from=example.com",
        results("dmarc=fail header.from=example.com"),
        results("dmarc=none header.from=example.com"),
        results("dmarc=temperror header.from=example.com"),
        results("dmarc=permerror header.from=example.com"),
        results("dmarc=bestguesspass header.from=example.com"),
        results("dmarc=pass"),
        results("dmarc=pass header.from=evil.example"),
        results("dmarc=pass header.from=mail.example.com"),
        results("dmarc=pass header.from=com"),
        results("dmarc=pass header.from=example.com."),
        results("dmarc=pass header.from=example.com header.from=evil.example"),
        results("dmarc=pass header.from=evil.example header.from=example.com"),
        results("dmarc=pass smtp.from=example.com"),
        results("dmarc=pass header.from=evil.example (header.from=example.com)"),
        results("dmarc=fail (dmarc=pass header.from=example.com) header.from=example.com"),
        results('dmarc=fail reason="x; dmarc=pass header.from=example.com"'),
        results("spf=pass (x; dmarc=pass header.from=example.com) smtp.mailfrom=a@evil.example"),
        results("spf=pass (é; dmarc=pass header.from=example.com"),
        results("spf=pass (\\; dmarc=pass header.from=example.com"),
        results("spf=pass (a) b); dmarc=pass header.from=example.com"),
        results('spf=pass smtp.mailfrom="a;dmarc=pass header.from=example.com"@evil.example'),
        results("dkim=pass header.d=example.com; spf=pass smtp.mailfrom=example.com"),
        results("x-dmarc=pass header.from=example.com"),
        results("dmarc=pass header.from=example.com; dmarc=fail header.from=example.com"),
        results("dmarc=fail header.from=example.com; dmarc=pass header.from=example.com"),
        results("none"),
        f"Authentication-Results: {SERVER}",
        results("dmarc=pass header.from=example.com;" + "x" * 9_000),
        results("(" * 4_000 + "dmarc=pass header.from=example.com"),
    ],
)
def test_anything_else_proves_nothing(header: str) -> None:
    found = letter(header)
    assert found.kind is LetterKind.HUMAN
    assert not found.verified
    assert found.verification


@pytest.mark.parametrize(
    "topmost",
    [
        results("dmarc=fail header.from=example.com"),
        results("dmarc=none header.from=example.com"),
        results("dkim=none; spf=pass smtp.mailfrom=evil.example"),
        results("cannot be read ((("),
        f'Authentication-Results: "{SERVER}"; dmarc=fail header.from=example.com',
    ],
)
def test_a_forged_result_below_that_of_our_server_is_never_looked_at(topmost: str) -> None:
    assert not letter(topmost, PASS).verified


def test_results_of_other_servers_above_and_below_do_not_matter() -> None:
    other = results("dmarc=fail header.from=example.com", "mx.other.example")
    assert letter(other, PASS, other).verified


def test_results_are_not_believed_where_a_stranger_can_write_them() -> None:
    assert not letter(PASS, envelope=Envelope(sender="maria.keller@example.com")).verified


def test_a_domain_in_letters_of_the_world_is_compared_in_its_ascii_form() -> None:
    header = results("dmarc=pass header.from=xn--bcher-kva.example")
    assert letter(header, author="From: a@Bücher.example").verified
    assert not letter(header, author="From: a@bucher.example").verified


@pytest.mark.parametrize("address", ["ledger@approvals.example.net", "Ledger+r-abc@Approvals.Example.net"])
def test_our_own_address_is_never_verified_and_is_known_as_ours(address: str) -> None:
    found = letter(results("dmarc=pass header.from=approvals.example.net"), author=f"From: {address}")
    assert found.is_ours
    assert not found.verified


# -- our own check of signatures ---------------------------------------------------------------------------

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SECRET = KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
PUBLIC = b"v=DKIM1; k=rsa; p=" + base64.b64encode(
    KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
)
KEYS = {b"s1._domainkey.example.com.": PUBLIC, b"s1._domainkey.evil.example.": PUBLIC}
UNTRUSTED = Envelope(sender="maria.keller@example.com")


def signed(
    raw: bytes, *, domain: bytes = b"example.com", whole: bool = True, algorithm: bytes = b"rsa-sha256"
) -> bytes:
    signature: bytes = dkim.DKIM(raw).sign(
        b"s1",
        domain,
        SECRET,
        signature_algorithm=algorithm,
        include_headers=[b"from", b"to", b"subject"],
        length=not whole,
    )
    return signature + raw


def is_verified(raw: bytes, envelope: Envelope = UNTRUSTED) -> bool:
    verified: bool = read(raw, envelope, OURS, KEYS.get).verified
    return verified


def test_a_signature_of_the_domain_of_from_proves_the_author() -> None:
    found = read(signed(mail()), UNTRUSTED, OURS, KEYS.get)
    assert found.verified
    assert "example.com" in found.verification


def test_a_signature_is_found_behind_those_of_others() -> None:
    others = signed(signed(mail()), domain=b"evil.example")
    assert is_verified(others)


def test_without_a_resolver_no_signature_is_checked() -> None:
    assert not read(signed(mail()), UNTRUSTED, OURS).verified


@pytest.mark.parametrize(
    ("why", "raw"),
    [
        ("none", mail()),
        ("another domain", signed(mail(), domain=b"evil.example")),
        ("a part of the body", signed(mail(), whole=False)),
        ("a changed body", signed(mail()) + b"Approve"),
        ("a changed header", signed(mail()).replace(b"Subject: Question", b"Subject: Approved")),
        ("a second From", b"From: m@evil.example\r\n" + signed(mail())),
        ("an old algorithm", signed(mail(), algorithm=b"rsa-sha1")),
        ("no From among the signed", signed(mail()).replace(b"h=from : to", b"h=to")),
        ("no key", signed(mail()).replace(b"s=s1", b"s=s2")),
        ("expired", signed(mail()).replace(b"; t=", b"; x=1000000000; t=")),
        (
            "two tags of one name",
            signed(mail()).replace(b"DKIM-Signature: ", b"DKIM-Signature: d=example.com; "),
        ),
        ("a line that is no field", b"no field\r\n" + signed(mail())),
        ("rubbish", b"DKIM-Signature: rubbish\r\n" + mail()),
        ("half a signature", b"DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=s1; h=from\r\n" + mail()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_signature_that_does_not_hold_proves_nothing(why: str, raw: bytes) -> None:
    assert not is_verified(raw), why


def test_blanks_that_would_take_long_to_check_are_not_signed() -> None:
    assert is_verified(signed(mail(body="a" + " \t" * 64 + "b")))
    assert not is_verified(signed(mail(body="a" + " \t" * 65 + "b")))


def test_the_parent_of_a_domain_does_not_sign_for_it() -> None:
    raw = mail(author="From: maria@mail.example.com")
    assert not is_verified(signed(raw))


def test_a_verdict_of_our_server_is_final() -> None:
    failed = results("dmarc=fail header.from=example.com").encode() + b"\r\n" + signed(mail())
    assert not is_verified(failed, TRUSTED)


@pytest.mark.parametrize("result", ["dmarc=none", "dmarc=temperror", "dkim=pass header.d=example.com"])
def test_where_our_server_has_no_verdict_a_signature_decides(result: str) -> None:
    header = results(result).encode() + b"\r\n"
    assert is_verified(header + signed(mail()), TRUSTED)
    assert not is_verified(header + mail(), TRUSTED)


def test_no_key_is_asked_for_when_the_verdict_or_the_domain_settles_it() -> None:
    def never(name: bytes) -> bytes | None:
        raise AssertionError(name)

    assert letter(PASS, resolve=never).verified
    assert not read(signed(mail(), domain=b"evil.example"), UNTRUSTED, OURS, never).verified


def test_only_the_mark_of_this_instance_makes_a_mail_ours() -> None:
    assert letter("X-Pizzabot-Loop: instance-1").is_ours
    other = letter("X-Pizzabot-Loop: instance-2")
    assert (other.is_ours, other.kind) == (False, LetterKind.AUTO)
    assert not letter(MARIA.replace("From", "X-From")).is_ours
