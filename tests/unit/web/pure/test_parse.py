"""Is every wrong body refused with the name of its field, and every right one taken as it stands?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pizzabot.adapters.web.api import parse
from pizzabot.adapters.web.refusals import BadBody

from pizzabot.errors import Invalid
from pizzabot.messages import Verdict

FILE = {"filename": "a.txt", "media_type": "text/plain", "data": "aGk="}


def test_a_full_message() -> None:
    written = parse.message({"text": "t", "title": "T", "attachments": [FILE]}, titled=True)
    assert (written.text, written.title, written.attachments[0].data) == ("t", "T", b"hi")


def test_null_means_left_out() -> None:
    assert parse.message({"text": "t", "title": None, "attachments": None}, titled=True).title is None


def test_a_full_decision() -> None:
    said = parse.said({"decision": "edit", "args": {"a": 1}, "digest": "d"})
    assert (said.verdict, said.args, said.digest, said.reason) == (Verdict.EDIT, {"a": 1}, "d", None)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "not JSON at line 1, column 1"),
        (b"{", "not JSON"),
        (b"{'text': 'x'}", "not JSON"),
        (b'{"text": "x",}', "not JSON"),
        (b'{"text": "x"} {}', "not JSON at line 1, column 15"),
        (b'{"text": "\xff"}', "not UTF-8 at byte 10"),
        (b'\xef\xbb\xbf{"text": "x"}', "not JSON"),
        (b'{"text": "a", "text": "b"}', 'the key "text" twice'),
        (b'{"args": {"a": {"b": 1, "b": 2}}}', 'the key "b" twice'),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "1e999"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b"[" * 51 + b"]" * 51, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"text": "a\nb"}', "not JSON"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(raw: bytes, words: str) -> None:
    with pytest.raises(BadBody, match=words.replace("(", r"\(")) as refused:
        parse.decode(raw)
    assert refused.value.status == 400


def test_fifty_levels_are_taken() -> None:
    assert parse.decode(b"[" * 50 + b"]" * 50)


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x\udfff"])
@pytest.mark.parametrize("place", ["value", "key", "deep"])
def test_what_a_database_cannot_hold_is_refused(text: str, place: str) -> None:
    bodies: dict[str, Any] = {
        "value": {"text": text},
        "key": {"args": {text: 1}},
        "deep": {"args": {"a": [{"b": text}]}},
    }
    with pytest.raises(Invalid, match="NUL character or half a surrogate") as refused:
        parse.decode(json.dumps(bodies[place]).encode())
    assert refused.value.code == "invalid_text"


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
SCALARS = st.none() | st.booleans() | st.integers() | WORDS | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(WORDS, v), max_leaves=20)


@settings(deadline=None)
@given(VALUES)
def test_every_json_value_is_read_as_it_was_written(value: Any) -> None:
    assert parse.decode(json.dumps(value).encode()) == value


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    try:
        parse.decode(raw)
    except (BadBody, Invalid) as refused:
        assert str(refused)  # noqa: PT017 - both outcomes are right


@pytest.mark.parametrize(
    ("body", "path", "words"),
    [
        (None, "", "is null"),
        ([], "", "is a list"),
        ("text", "", "is a text"),
        (7, "", "is a number"),
        ({}, "/text", "is missing"),
        ({"text": 7}, "/text", "is a number; send a text"),
        ({"text": True}, "/text", "is true or false; send a text"),
        ({"text": ["x"]}, "/text", "is a list; send a text"),
        ({"text": "x", "titel": "y"}, "/titel", "is not known; known are text, attachments, title"),
        ({"text": "x", "attachments": {}}, "/attachments", "is an object; send a list"),
        ({"text": "x", "attachments": ["a"]}, "/attachments/0", "is a text"),
        ({"text": "x", "attachments": [FILE, FILE | {"data": 1}]}, "/attachments/1/data", "is a number"),
        ({"text": "x", "attachments": [FILE | {"path": "/"}]}, "/attachments/0/path", "is not known"),
        (
            {"text": "x", "attachments": [{"filename": "a", "data": ""}]},
            "/attachments/0/media_type",
            "is missing",
        ),
        *(
            ({"text": "x", "attachments": [FILE | {"data": data}]}, "/attachments/0/data", "is not base64")
            for data in ("aGk", "aGk=\n", "aG k=", "a-_=", "aGk==", "aGl=", "ü===", "data:,x", "=")
        ),
    ],
)
def test_a_wrong_message_names_the_field(body: Any, path: str, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse.message(body, titled=True)
    assert refused.value.details["errors"][0]["path"] == path
    assert words in str(refused.value)
    assert path.strip("/").replace("/", ".") in str(refused.value)


def test_a_message_to_a_thread_has_no_title() -> None:
    with pytest.raises(Invalid, match='"title" is not known'):
        parse.message({"text": "x", "title": "y"}, titled=False)


def test_too_many_files() -> None:
    with pytest.raises(Invalid, match="At most 20 files"):
        parse.message({"text": "x", "attachments": [FILE] * 21}, titled=True)


def test_a_file_that_is_too_large_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(Invalid, match="larger than 25 MiB") as refused:
        parse.message({"attachments": [FILE | {"data": "A" * 34_952_537}]}, titled=True)
    assert refused.value.code == "attachment_too_large"


@pytest.mark.parametrize(
    "body", [{}, {"unread": "yes"}, {"unread": 1}, {"title": 5}, {"owner": "Ada"}, [], None]
)
def test_a_wrong_change_of_a_thread(body: Any) -> None:
    with pytest.raises(Invalid):
        parse.thread_change(body)


@pytest.mark.parametrize("body", [{}, {"message_id": 7}, {"message": "7"}, {"message_id": None}])
def test_a_wrong_fork(body: Any) -> None:
    with pytest.raises(Invalid, match="message"):
        parse.fork(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"decision": "APPROVE"},
        {"decision": 1},
        {"decision": "edit", "args": []},
        {"decision": "edit", "args": "{}"},
    ],
)
def test_a_wrong_decision(body: Any) -> None:
    with pytest.raises(Invalid):
        parse.said(body)


def test_a_request_without_a_body_takes_an_empty_object() -> None:
    parse.nothing({})
    with pytest.raises(Invalid, match='"all" is not known'):
        parse.nothing({"all": True})
