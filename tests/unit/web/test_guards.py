"""Is a request only taken under our own names, and does every answer carry what protects it?"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httpx
import pytest
from pizzabot.adapters.web.body import read_body
from pizzabot.adapters.web.guards import Guard, OwnNames, own_names
from pizzabot.adapters.web.refusals import BadBody, TooLarge, TooSlow
from starlette.datastructures import Headers

NAMES = own_names(
    8642, ["https://pizza.example.com", "http://inbox.example.com:8080", "http://plain.example.com"]
)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8642",
        "localhost:8642",
        "LOCALHOST:8642",
        "localhost.:8642",
        "[::1]:8642",
        "127.9.9.9:8642",
        "pizza.example.com",
        "pizza.example.com:443",
        "PIZZA.example.com.",
        "inbox.example.com:8080",
        "plain.example.com",
        "plain.example.com:80",
    ],
)
def test_our_own_hosts(host: str) -> None:
    assert NAMES.is_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example.com:8642",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost:9999",
        "localhost.evil.com:8642",
        "pizza.example.com:8642",
        "pizza.example.com.evil.com",
        "inbox.example.com",
        "evil@127.0.0.1:8642",
        "127.0.0.1:8642/x",
        "127.0.0.1:8642#",
        "127.0.0.1:port",
        "127.0.0.1:99999",
        "0.0.0.0:8642",
        "[::1",
        "2130706433:8642",
    ],
)
def test_foreign_hosts(host: str) -> None:
    assert not NAMES.is_host(host)


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:8642",
        "http://localhost:8642",
        "http://[::1]:8642",
        "https://pizza.example.com",
        "http://inbox.example.com:8080",
    ],
)
def test_our_own_origins(origin: str) -> None:
    assert NAMES.is_origin(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example.com",
        "http://127.0.0.1:9000",
        "https://127.0.0.1:8642",
        "http://pizza.example.com",
        "https://pizza.example.com:8443",
        "file://",
        "http://x@127.0.0.1:8642",
        "http://127.0.0.1:x",
        "chrome-extension://abc",
    ],
)
def test_foreign_origins(origin: str) -> None:
    assert not NAMES.is_origin(origin)


async def through_guard(app: Any, path: str = "/") -> httpx.Response:
    transport = httpx.ASGITransport(Guard(app, names=OwnNames(80, frozenset()), answered=lambda *_: None))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        return await http.get(path)


async def test_an_unknown_error_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("the secret is swordfish")

    with caplog.at_level(logging.ERROR):
        response = await through_guard(broken, "/api/x")
    assert response.status_code == 500
    error = response.json()["error"]
    assert error["code"] == "internal"
    log_id = error["message"].rpartition(" under ")[2].rstrip(".")
    assert log_id in caplog.text
    assert "swordfish" not in response.text
    assert "Traceback" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_headers_of_a_page_are_kept() -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-security-policy", b"default-src 'self'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"x"})

    response = await through_guard(page)
    assert response.headers.get_list("content-security-policy") == ["default-src 'self'"]
    assert response.headers["referrer-policy"] == "same-origin"
    assert response.headers["cache-control"] == "no-store"


class Sender:
    """A body that arrives in pieces."""

    def __init__(self, *pieces: bytes, then_silence: bool = False) -> None:
        self._pieces, self._silence, self.read = list(pieces), then_silence, 0

    async def __call__(self) -> dict[str, Any]:
        if not self._pieces:
            await asyncio.Event().wait()
        piece = self._pieces.pop(0)
        self.read += 1
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces) or self._silence}


async def test_a_body_in_pieces_is_put_together() -> None:
    assert await read_body(Sender(b"a", b"", b"bc"), Headers(), 3) == b"abc"


async def test_a_declared_size_is_refused_before_a_byte_is_read() -> None:
    sender = Sender(b"x")
    with pytest.raises(TooLarge, match="larger than 10 bytes"):
        await read_body(sender, Headers({"content-length": "11"}), 10)
    with pytest.raises(TooLarge):
        await read_body(sender, Headers({"content-length": "9" * 5000}), 10)
    assert sender.read == 0


async def test_a_size_that_lies_is_found_out_on_the_way() -> None:
    sender = Sender(*[b"xxxx"] * 100)
    with pytest.raises(TooLarge):
        await read_body(sender, Headers({"content-length": "4"}), 10)
    assert sender.read == 3


@pytest.mark.parametrize("length", ["x", "-1", "1.5", "²"])
async def test_a_length_that_is_no_number(length: str) -> None:
    with pytest.raises(BadBody):
        await read_body(Sender(b"x"), Headers({"content-length": length}), 10)


async def test_a_sender_that_stalls_is_given_up() -> None:
    with pytest.raises(TooSlow, match="did not arrive within 0 s"):
        await read_body(Sender(b"x", then_silence=True), Headers(), 10, patience_seconds=0.05)


async def test_a_refused_large_body_is_still_heard_out_for_a_moment() -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        raise TooLarge("too large")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    sender = Sender(b"x", b"y", b"z")
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"127.0.0.1")]}
    await Guard(refuse, names=OwnNames(80, frozenset()), answered=lambda *_: None)(scope, sender, send)
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * 2]
    assert json.loads(sent[1]["body"])["error"]["code"] == "too_large"
    assert (sent[1]["more_body"], sender.read) == (True, 3)
