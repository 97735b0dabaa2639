"""Is the HTTP door open for Slack alone? The door itself, with bolt behind it."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from pizzabot.adapters.slack.door import PATH, Door
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.signature import SignatureVerifier
from starlette.applications import Starlette

SECRET = "a secret of sixteen letters"


class Doorstep:
    """A client in front of a door, and what came through it."""

    def __init__(self) -> None:
        self.door, self.heard = Door(SECRET), list[str]()
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(Starlette(routes=self.door.routes())), base_url="http://here"
        )

    def open(self) -> None:
        async def authorize(**_: Any) -> AuthorizeResult:
            return AuthorizeResult(enterprise_id=None, team_id="T1")

        app = AsyncApp(authorize=authorize, process_before_response=True, request_verification_enabled=False)

        @app.event("message")
        async def hear(event: dict[str, Any]) -> None:
            self.heard.append(event["text"])

        self.door.app = app

    async def send(
        self,
        body: bytes,
        *,
        secret: str = SECRET,
        late_seconds: float = 0,
        signature: str | None = None,
        content_type: str = "application/json",
    ) -> httpx.Response:
        timestamp = str(int(time.time() - late_seconds))
        if signature is None:
            verifier = SignatureVerifier(secret)
            signature = str(verifier.generate_signature(timestamp=timestamp, body=body))
        headers = {
            "content-type": content_type,
            "x-slack-request-timestamp": timestamp,
            "x-slack-signature": signature,
        }
        return await self.http.post(PATH, content=body, headers=headers)


def message(text: str) -> bytes:
    event = {"type": "message", "text": text, "user": "U1", "channel": "C1", "ts": "1.1"}
    return json.dumps({"type": "event_callback", "team_id": "T1", "event": event}).encode()


@pytest.fixture
async def doorstep() -> AsyncIterator[Doorstep]:
    made = Doorstep()
    made.open()
    yield made
    await made.http.aclose()


async def test_a_signed_event_comes_in(doorstep: Doorstep) -> None:
    assert (await doorstep.send(message("hello"))).status_code == 200
    assert doorstep.heard == ["hello"]


async def test_the_address_is_verified(doorstep: Doorstep) -> None:
    answer = await doorstep.send(json.dumps({"type": "url_verification", "challenge": "abc"}).encode())
    assert answer.status_code == 200
    assert "abc" in answer.text


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": "another secret"},
        {"late_seconds": 301},
        {"late_seconds": -400},
        {"late_seconds": 1e9},
        {"signature": ""},
        {"signature": "v0=00"},
        {"signature": "v1=%C3%A4"},
    ],
)
async def test_what_is_not_signed_rightly_and_freshly_is_refused_and_counted(
    doorstep: Doorstep, changes: dict[str, Any]
) -> None:
    assert (await doorstep.send(message("no"), **changes)).status_code == 401
    assert (doorstep.heard, doorstep.door.refused) == ([], 1)


async def test_a_request_that_is_sent_again_by_somebody_else_is_refused(doorstep: Doorstep) -> None:
    sent = (await doorstep.send(message("once"))).request
    again = await doorstep.http.send(sent)
    assert again.status_code == 401
    assert (doorstep.heard, doorstep.door.refused) == (["once"], 1)


async def test_a_body_that_was_changed_is_refused(doorstep: Doorstep) -> None:
    timestamp = str(int(time.time()))
    signed = SignatureVerifier(SECRET).generate_signature(timestamp=timestamp, body=message("pay 1"))
    headers = {"x-slack-request-timestamp": timestamp, "x-slack-signature": str(signed)}
    answer = await doorstep.http.post(PATH, content=message("pay 1000"), headers=headers)
    assert answer.status_code == 401
    assert doorstep.heard == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"text"'])
async def test_what_cannot_be_read_does_nothing(doorstep: Doorstep, body: bytes) -> None:
    answer = await doorstep.send(body)
    assert answer.status_code in (400, 401)
    assert doorstep.heard == []


async def test_a_body_that_is_no_text_is_refused(doorstep: Doorstep) -> None:
    assert (await doorstep.send(b"\xff\xfe", signature="v0=00")).status_code == 401


async def test_what_is_larger_than_anything_of_slack_is_refused_unread(doorstep: Doorstep) -> None:
    assert (await doorstep.send(b"x" * (1024 * 1024 + 1))).status_code == 413


async def test_before_the_connection_stands_slack_is_asked_to_come_again() -> None:
    made = Doorstep()
    assert (await made.send(message("early"))).status_code == 503
    await made.http.aclose()


@pytest.mark.parametrize("form", [{"payload": "[]"}, {"payload": "{"}, {"other": "1"}, {}])
async def test_a_form_that_holds_no_interaction_does_nothing(
    doorstep: Doorstep, form: dict[str, str]
) -> None:
    sent = urlencode(form).encode()
    answer = await doorstep.send(sent, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 400
