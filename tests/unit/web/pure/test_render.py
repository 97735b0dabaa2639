"""Is what leaves safe to read for whoever gets it?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.web import render

from pizzabot.errors import Invalid, NotFound


@pytest.mark.parametrize(
    ("untrusted", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("/etc/passwd", "passwd"),
        ("C:\\temp\\x.txt", "x.txt"),
        ("..", "file"),
        ("", "file"),
        ("  .profile ", "profile"),
        ("a\x00b\x1b[31m", "ab[31m"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("ü.txt", "ü.txt"),
        ("x" * 300 + ".pdf", "x" * 146 + ".pdf"),
        ("x" * 300, "x" * 150),
    ],
)
def test_a_file_name_is_no_path_and_hides_nothing(untrusted: str, kept: str) -> None:
    assert render.safe_filename(untrusted) == kept


@settings(deadline=None)
@given(st.text())
def test_a_file_name_never_breaks_the_header(untrusted: str) -> None:
    header = render.content_disposition(untrusted)
    assert header.isascii()
    assert header.isprintable()
    assert header.startswith('attachment; filename="')
    assert header.count('"') == 2
    assert not set("/\\") & set(render.safe_filename(untrusted))


def test_a_plain_name_needs_no_second_form() -> None:
    assert render.content_disposition("a b.txt") == 'attachment; filename="a b.txt"'


def test_a_name_with_a_percent_sign_is_not_taken_for_an_encoded_one() -> None:
    assert render.content_disposition("100%41.txt") == (
        "attachment; filename=\"100_41.txt\"; filename*=UTF-8''100%2541.txt"
    )


def test_half_a_surrogate_pair_is_escaped() -> None:
    assert json.loads(render.json_bytes({"a": "ü\ud800"})) == {"a": "ü\ud800"}


def test_an_error_has_code_message_and_places() -> None:
    assert render.error_body(NotFound("There is no such thread.")) == {
        "error": {"code": "not_found", "message": "There is no such thread."}
    }
    errors = [{"path": "/a", "message": "m"}]
    body = render.error_body(Invalid("x", details={"errors": errors}), {"id": "1"})
    assert body == {"error": {"code": "invalid", "message": "x", "errors": errors}, "action": {"id": "1"}}
