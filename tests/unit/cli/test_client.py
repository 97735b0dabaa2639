"""What the API refuses is told in its own words, and which server is asked is never a guess."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pizzabot.cli.client import Api, Refusal, httpx, refusal_lines
from pizzabot.cli.failures import Failed, NotRunning
from pizzabot.cli.place import address_file, is_running, server_of, url_of, write_address
from pizzabot.home import Home
from tests.unit.cli.conftest import Answers

Serving = Callable[[Answers], Api]


def test_a_refusal_of_several_fields_is_a_line_for_each() -> None:
    fields = [{"path": "/name", "message": "is missing."}, {"path": "/cron", "message": "is none."}]
    lines = ["name: is missing.", "cron: is none."]
    assert refusal_lines(422, " ".join(lines), fields) == lines


def test_a_refusal_is_its_message_and_the_fields() -> None:
    fields = [
        {"path": "/amount", "message": "'x' is not of type 'number'"},
        {"path": "/n\x1b", "message": "no"},
    ]
    assert refusal_lines(422, "These arguments do not fit.\n", fields) == [
        "These arguments do not fit.",
        "/amount: 'x' is not of type 'number'",
        r"/n\x1b: no",
    ]


def test_a_field_that_the_message_names_is_not_told_twice() -> None:
    field = {"path": "/amount", "message": "is missing"}
    assert refusal_lines(422, "It does not fit: /amount: is missing", [field]) == [
        "It does not fit: /amount: is missing"
    ]


def test_a_refusal_without_words_names_the_status() -> None:
    assert refusal_lines(500, "", []) == ["the server answered with status 500"]


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b'{"error": "text"}', b'{"error": {"message": null}}', b"\xff", b""]
)
def test_any_body_of_a_refusal_is_understood(serving: Serving, content: bytes) -> None:
    api = serving(lambda _: httpx.Response(503, content=content))
    with pytest.raises(Refusal) as refused:
        api.get("/api/me")
    assert refused.value.status == 503


def test_an_answer_that_is_no_json_is_told(serving: Serving) -> None:
    with pytest.raises(Failed, match="not JSON"):
        serving(lambda _: httpx.Response(200, content=b"<html>")).get("/api/me")


def test_no_content_is_an_answer(serving: Serving) -> None:
    assert serving(lambda _: httpx.Response(204)).send("DELETE", "/api/threads/x") == {}


def test_nobody_there_is_not_running(serving: Serving) -> None:
    def refuse(request: httpx.Request) -> Any:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(NotRunning):
        serving(refuse).get("/api/me")


def test_words_that_are_no_text_are_sent_as_something(serving: Serving) -> None:
    api = serving(lambda request: {"q": request.url.params["q"], "body": request.content.decode()})
    assert api.get("/x", q="a\udcff")["q"] == "a?"
    assert api.send("POST", "/x", query={"q": ""}, body={"t": "\udcff"})["body"] == '{"t": "\\udcff"}'


def test_an_unknown_zone_is_utc(serving: Serving) -> None:
    assert serving(lambda _: {"timezone": "Mars/Base"}).zone.key == "UTC"
    assert serving(lambda _: {"timezone": "Europe/Amsterdam"}).zone.key == "Europe/Amsterdam"


def prepared(path: Path) -> Home:
    home = Home(path / "home")
    home.prepare()
    home.token_file.write_text("pzb_owner\n")
    return home


def test_a_running_server_is_found_by_what_it_wrote(tmp_path: Path) -> None:
    home = prepared(tmp_path)
    with home.lock():
        write_address(home, "0.0.0.0", 4711)
        server = server_of(home, {})
        assert (server.url, server.token) == ("http://127.0.0.1:4711", "pzb_owner")
        assert server_of(home, {"PIZZABOT_TOKEN": "pzb_mine"}).token == "pzb_mine"
        assert os.stat(address_file(home)).st_mode & 0o777 == 0o600
    with pytest.raises(NotRunning):
        server_of(home, {})


@pytest.mark.parametrize("content", ["", "nonsense", "host port"])
def test_without_an_address_nobody_gets_the_token(tmp_path: Path, content: str) -> None:
    home = prepared(tmp_path)
    home.toml.write_text("[web]\nport = 9001\n")
    if content:
        address_file(home).write_text(content)
    with home.lock(), pytest.raises(NotRunning, match="still starting"):
        server_of(home, {})


def test_after_a_crash_nobody_gets_the_token(tmp_path: Path) -> None:
    home = prepared(tmp_path)
    write_address(home, "127.0.0.1", 4711)
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    for content in (ended.stdout, b"", b"x", b"99999999999999999999", b"\xff\xfe"):
        home.lock_file.write_bytes(content)
        assert not is_running(home)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("::1", "http://[::1]:1"),
        ("::", "http://[::1]:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("a", "http://a:1"),
    ],
)
def test_a_host_becomes_a_url(host: str, url: str) -> None:
    assert url_of(host, 1) == url
