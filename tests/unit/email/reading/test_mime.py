"""Which texts and files are found in the mails of the world's programs?"""

from __future__ import annotations

import base64
import quopri

import pytest
from pizzabot.adapters.email.letters import LetterKind
from pizzabot.adapters.email.reading.charsets import text_of
from pizzabot.adapters.email.reading.flowed import unflowed
from pizzabot.adapters.email.reading.headers import decoded, parameters
from pizzabot.adapters.email.reading.mime import MAX_FILENAME, MAX_FILES, Content, content
from pizzabot.adapters.email.reading.shape import MAX_PARTS, OverLimit, tree

from pizzabot.inbox import intake

from ..mails import PASS, letter, mail


def held(*headers: str, body: str | bytes) -> Content:
    found: Content = content(tree(mail(*headers, body=body)))
    return found


def parts(*written: str, kind: str = "mixed") -> Content:
    """A multipart whose parts are written with their headers."""
    body = "".join(f"--b\n{part}\n" for part in written) + "--b--\n"
    return held(f"Content-Type: multipart/{kind}; boundary=b", body=body)


# -- texts -------------------------------------------------------------------------------------------------


def test_a_mail_without_a_content_type_is_plain_text() -> None:
    assert held(body="Approve") == Content(("Approve",), (), (), 0)


@pytest.mark.parametrize("nonsense", ["text", "Text/Plain", "/", "no type at all", "a/b/c"])
def test_nonsense_as_a_type_is_plain_text(nonsense: str) -> None:
    assert held(f"Content-Type: {nonsense}", body="Approve").texts == ("Approve",)


def test_every_text_of_the_body_is_kept_in_its_order() -> None:
    found = parts(
        "\nYes",
        "Content-Type: image/png\nContent-Disposition: inline\n\npixels",
        "Content-Type: text/plain\n\nBut no",
        "Content-Type: text/html\n\n<p>footer</p>",
    )
    assert (found.texts, found.html) == (("Yes", "But no"), ("<p>footer</p>",))
    assert [(file.media_type, file.data) for file in found.files] == [("image/png", b"pixels")]


def test_of_alternatives_only_the_two_that_are_read_are_kept() -> None:
    found = parts(
        "\nplain",
        "Content-Type: text/x-amp-html\n\n<html amp>",
        "Content-Type: text/html\n\n<p>rich</p>",
        kind="alternative",
    )
    assert found == Content(("plain",), ("<p>rich</p>",), (), 0)


def test_an_invitation_is_kept_as_a_file() -> None:
    found = parts(
        "\nCome!", "Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR", kind="alternative"
    )
    assert [file.filename for file in found.files] == ["attachment-1.ics"]


def test_the_texts_of_nested_parts_are_found() -> None:
    inner = (
        "Content-Type: multipart/alternative; boundary=c\n\n"
        "--c\n\nplain\n--c\nContent-Type: text/html\n\nrich\n--c--"
    )
    signature = "Content-Type: application/pgp-signature\n\nsignature"
    assert parts(inner, signature, kind="signed") == Content(("plain",), ("rich",), (), 0)


def test_an_attached_mail_is_a_file_and_never_a_text() -> None:
    inner = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nContent-Type: text/plain\n\nApprove"
    found = parts("\nWhat is this?", f"Content-Type: message/rfc822\n\n{inner}")
    assert found.texts == ("What is this?",)
    assert [file.filename for file in found.files] == ["Grüße.eml"]
    assert found.files[0].data.endswith(b"Approve")


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_line_ends_of_both_kinds_separate_headers_and_parts(line_end: bytes) -> None:
    raw = mail("Content-Type: multipart/mixed; boundary=b", body="preamble\n--b\n\nYes\n--b--\nepilogue")
    found = content(tree(raw.replace(b"\r\n", line_end)))
    assert found.texts == ("Yes",)


def test_a_delimiter_with_more_behind_it_is_text() -> None:
    assert parts("\n--bc\n --b\nx--b\n--b x").texts == ("--bc\n --b\nx--b\n--b x",)


def test_a_multipart_that_is_cut_off_is_malformed_and_still_names_its_author() -> None:
    cut = "--b\n\nApp"
    found = letter("Content-Type: multipart/mixed; boundary=b", PASS, body=cut)
    assert (found.kind, found.verified, found.own.text) == (LetterKind.MALFORMED, True, "")


@pytest.mark.parametrize(
    "encoding", ["quoted-printable", "Quoted-Printable", "base64", "8bit", "7bit", "x-odd"]
)
def test_a_transfer_encoding_is_taken_off(encoding: str) -> None:
    body = "Grün ist = gut\n" * 9
    data = body.encode()
    if encoding.lower() == "quoted-printable":
        data = quopri.encodestring(data)
    if encoding == "base64":
        data = b"!" + base64.encodebytes(data).rstrip(b"=\n") + b" \x00\n"  # foreign signs, no padding
    headers = "Content-Type: text/plain; charset=utf-8", f"Content-Transfer-Encoding: {encoding}"
    assert held(*headers, body=data).texts == (body,)


# -- charsets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("utf-8", "utf-8", "Grün ☂"),
        ("UTF8", "utf-8-sig", "Grün"),
        ("us-ascii", "utf-8", "Grün"),
        ("iso-8859-1", "utf-8", "Grün"),
        (None, "utf-8", "Grün"),
        (None, "cp1252", "Grün „gut“"),
        ("x-unknown", "cp1252", "Grün"),
        ("utf-8", "cp1252", "Grün und schön für Jörg"),
        ("iso-8859-1", "cp1252", "„gut“ €"),
        ("windows-1251", "cp1251", "Согласен"),
        ("koi8-r", "koi8-r", "Согласен"),
        ("iso-8859-2", "iso-8859-2", "zażółć"),
        ("iso-8859-9", "cp1254", "“ışık”"),
        ("iso-2022-jp", "iso-2022-jp", "承認します"),
        ("shift_jis", "cp932", "承認①"),
        ("x-sjis", "cp932", "承認"),
        ("euc-jp", "euc-jp", "承認"),
        ("gb2312", "gb18030", "同意镕"),
        ("gbk", "gbk", "同意"),
        ("gb2312", "gbk", "联通"),
        ("shift_jis", "utf-8", "承認します。"),
        ("big5", "big5", "同意"),
        ("ks_c_5601-1987", "cp949", "승인"),
        ("euc-kr", "cp949", "승인 똠"),
        ("iso-8859-8-i", "iso-8859-8", "אישור"),
        ("windows-1256", "cp1256", "موافق"),
        ("tis-620", "cp874", "อนุมัติ"),
        ("utf-16", "utf-16", "Grün"),
        ("utf-7", "utf-7", "Grün"),
    ],
)
def test_text_in_a_charset_of_the_world_is_read(label: str | None, codec: str, text: str) -> None:
    assert text_of(text.encode(codec), label) == text


@pytest.mark.parametrize(
    "label",
    ["base64", "rot13", "zlib", "idna", "punycode", "unicode_escape", "undefined", "", "\x00", "x" * 99, "é"],
)
def test_what_is_no_charset_of_mail_is_no_trouble(label: str) -> None:
    assert text_of(b"Approve \\u0041", label) == "Approve \\u0041"


def test_one_broken_character_does_not_spoil_the_others() -> None:
    assert text_of("承認します".encode() + b"\xff", "utf-8") == "承認します\ufffd"


def test_no_text_holds_what_a_database_refuses() -> None:
    assert text_of(b"App\x00rove", "utf-8") == "App\ufffdrove"
    assert text_of(b"+2AA-", "utf-7") == "\ufffd"


def test_html_says_its_charset_itself() -> None:
    body = '<html><meta charset="windows-1251"><p>Согласен'.encode("cp1251")
    assert "Согласен" in held("Content-Type: text/html", body=body).html[0]


# -- format=flowed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "delsp", "expected"),
    [
        ("one \ntwo\nthree", False, "one two\nthree"),
        ("wo \nrd", True, "word"),
        (" From here\n >no quote", False, "From here\n>no quote"),
        ("> a \n> b\nc \n> d", False, "> a b\nc \n> d"),
        (">> deep \n>> deeper\n> less", False, ">> deep deeper\n> less"),
        ("end\n-- \nname", False, "end\n-- \nname"),
        ("flows \n-- \nname", False, "flows \n-- \nname"),
        ("a\r\n\r\nb", False, "a\n\nb"),
    ],
)
def test_flowed_lines_are_joined_within_one_quote_depth(text: str, delsp: bool, expected: str) -> None:
    assert unflowed(text, delsp=delsp) == expected


def test_flowed_text_is_joined_only_where_the_mail_says_so() -> None:
    flowed = 'Content-Type: text/plain; Format="Flowed"; DelSp=yes'
    assert held(flowed, body="ap \nprove").texts == ("approve",)
    assert held("Content-Type: text/plain", body="ap \nprove").texts == ("ap \nprove",)


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('Content-Disposition: attachment; filename="invoice 1.pdf"', "invoice 1.pdf"),
        ("Content-Disposition: attachment; filename=invoice.pdf", "invoice.pdf"),
        ("Content-Disposition: attachment; filename*=utf-8''Rechnung%20%E2%82%AC.pdf", "Rechnung €.pdf"),
        (
            "Content-Disposition: attachment; filename*0*=utf-8''%E2%82; filename*1*=%AC; filename*2=.pdf",
            "€.pdf",
        ),
        ("Content-Disposition: attachment; filename=a.pdf; filename*=utf-8''b.pdf", "b.pdf"),
        ('Content-Disposition: attachment; filename="=?utf-8?B?4oKsLnBkZg==?="', "€.pdf"),
        ('Content-Disposition: attachment; filename="a;b\\"c.pdf"', 'a;b"c.pdf'),
        ('Content-Disposition: inline; filename="photo.jpg"', "photo.jpg"),
        ('Content-Disposition: attachment; filename="../../etc/passwd"', "passwd"),
        ('Content-Disposition: attachment; filename="C:\\\\temp\\\\x.txt"', "x.txt"),
        ('Content-Disposition: attachment; filename=".bashrc"', "bashrc"),
        ('Content-Disposition: attachment; filename="..."', "attachment-1.bin"),
        ("Content-Disposition: attachment; filename*=utf-8''%E2%80%AEfdp.exe", "\\u202efdp.exe"),
        ("Content-Disposition: attachment; filename*=utf-8''a%00%0Ab.txt", "a\ufffd\\nb.txt"),
        ("Content-Disposition: attachment", "attachment-1.bin"),
        (
            "Content-Disposition: attachment; filename=" + "n" * 400 + ".pdf",
            "n" * (MAX_FILENAME - 4) + ".pdf",
        ),
    ],
)
def test_a_file_has_a_name_that_shows_everything_and_leads_nowhere(header: str, name: str) -> None:
    found = parts("\nSee this.", f"{header}\nContent-Type: application/octet-stream\n\ndata")
    assert [(file.filename, file.data) for file in found.files] == [(name, b"data")]


@pytest.mark.parametrize(
    "header",
    [
        "Content-Type: text/plain; name=notes.txt",
        "Content-Type: text/html\nContent-Disposition: attachment",
        "Content-Type: text/plain\nContent-Disposition: ATTACHMENT; filename=notes.txt",
    ],
)
def test_a_text_that_is_attached_is_no_text_of_the_mail(header: str) -> None:
    found = parts("\nYes", f"{header}\n\nApprove")
    assert (found.texts, found.html, len(found.files)) == (("Yes",), (), 1)


def test_winmail_and_an_encrypted_mail_come_as_files() -> None:
    found = parts("\nYes", "Content-Type: application/ms-tnef; name=winmail.dat\n\nx")
    assert [file.filename for file in found.files] == ["winmail.dat"]
    found = parts(
        "Content-Type: application/pgp-encrypted\n\nVersion: 1", "\n-----BEGIN PGP", kind="encrypted"
    )
    assert found.files[0].media_type == "application/pgp-encrypted"


def test_files_beyond_the_limit_are_counted() -> None:
    file = "Content-Type: image/png\n\nx"
    found = parts("\nSee these.", *[file] * (MAX_FILES + 3))
    assert (len(found.files), found.left_out) == (MAX_FILES, 3)


def test_what_is_read_of_files_is_what_the_inbox_takes() -> None:
    assert MAX_FILES == intake.MAX_ATTACHMENTS
    odd = 'Content-Disposition: attachment; filename="\u200b\u202e\x01 .\u3164"\nContent-Type: x/y;z\n\n'
    for file in parts("\nx", odd, "Content-Type: IMAGE/PNG\n\n", "Content-Type: a b/c\n\n").files:
        intake._check_attachment(file)


# -- parts and headers -------------------------------------------------------------------------------------


def test_more_parts_or_a_deeper_nesting_than_the_limit_are_refused() -> None:
    parts(*["\nx"] * (MAX_PARTS - 1))
    with pytest.raises(OverLimit, match="parts"):
        parts(*["\nx"] * MAX_PARTS)


def test_headers_are_read_until_the_empty_line_whatever_stands_between() -> None:
    found = letter("Subject: One\r\nnot a field\r\n\tnor this\r\n: nor that", "Message-ID: <a@b>", PASS)
    assert (found.subject, found.message_id, found.verified) == ("One", "<a@b>", True)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("plain", "plain"),
        ("=?utf-8?q?Gr=C3=BC=C3?= =?utf-8?q?=9Fe?= an alle", "Grüße an alle"),
        ("=?utf-8?B?5L2Q?=\t=?utf-8?B?6Jek?=", "佐藤"),
        ("=?iso-2022-jp?B?GyRCPjVHJxsoQg==?=", "承認"),
        ("=?utf-8*en?Q?a_b?=", "a b"),
        ("=?utf-8?Q?a b?=", "a b"),
        ("=?nonsense?Q?a?= =?utf-8?x?b?= =?utf-8?B?!!?=", "a =?utf-8?x?b?="),
        ("[x]=?utf-8?q?a?=[y]", "[x]a[y]"),
        ("a  b\tc", "a b c"),
        ("=?utf-8?q?a=00b=0Ac?=", "a\ufffdb c"),
    ],
)
def test_encoded_words_are_read(written: str, read: str) -> None:
    assert decoded(written) == read


def test_raw_eight_bit_subjects_are_read() -> None:
    assert letter("Subject: Grüße").subject == "Grüße"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", ("", {})),
        ("Text/HTML", ("text/html", {})),
        ('text/plain ; Charset = "utf-8" ;; x', ("text/plain", {"charset": "utf-8"})),
        ("a/b; x=1; X=2", ("a/b", {"x": "1"})),
        ('a/b; x="open', ("a/b", {"x": "open"})),
    ],
)
def test_parameters_are_read_tolerantly(written: str, expected: tuple[str, dict[str, str]]) -> None:
    assert parameters(written) == expected
