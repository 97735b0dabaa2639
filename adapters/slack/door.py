"""How does Slack reach us over HTTP? One address for events, interactivity and commands, each request signed.

    body within its limit -> signature and time right? -> not the same request again? -> bolt -> answer

A request that is not right changes nothing and is counted. A retry of Slack's is signed anew, so a signature
that comes twice was overheard.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp
    from slack_sdk.signature import SignatureVerifier

logger = logging.getLogger(__name__)

PATH = "/slack/events"
_LARGEST_BODY = 1024 * 1024
_BODY_SECONDS = 10.0
_REMEMBERED_SECONDS = 600.0  # a signature is good for five minutes either way


class Door:
    """The address that Slack sends requests to; open once there is an app behind it."""

    def __init__(self, signing_secret: str) -> None:
        self._signing_secret = signing_secret
        self._verifier: SignatureVerifier | None = None
        self._seen: OrderedDict[str, float] = OrderedDict()
        self.app: AsyncApp | None = None
        self.refused = 0

    def routes(self) -> list[Route]:
        return [Route(PATH, self._serve, methods=["POST"])]

    async def _serve(self, request: Request) -> Response:
        from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response

        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await _body(request)
        except TimeoutError:
            return PlainTextResponse("The request did not end in time.", 408)
        if body is None:
            return PlainTextResponse("The request is too large.", 413)
        signature = request.headers.get("x-slack-signature", "")
        if not self._is_right(request, body) or not self._is_new(signature):
            self.refused += 1
            if self.refused.bit_count() == 1:  # the first, the second, the fourth…: nobody fills the log
                logger.warning("requests that are not signed by Slack were refused: %d", self.refused)
            return PlainTextResponse("The signature is not right.", 401)
        if not _is_readable(body.decode(), request.headers.get("content-type", "")):
            return PlainTextResponse("That is nothing that Slack sends.", 400)
        if self.app is None:
            return PlainTextResponse("Not connected to Slack yet; send it again.", 503)
        self._seen[signature] = time.monotonic()
        answer = await self.app.async_dispatch(to_async_bolt_request(request, body))
        if answer.status >= 500:  # Slack sends it again, perhaps within the second and signed the same
            self._seen.pop(signature, None)
        return to_starlette_response(answer)

    def _is_right(self, request: Request, body: bytes) -> bool:
        from slack_sdk.signature import SignatureVerifier

        self._verifier = self._verifier or SignatureVerifier(self._signing_secret)
        signature = request.headers.get("x-slack-signature", "")
        timestamp = request.headers.get("x-slack-request-timestamp", "")
        try:
            text = body.decode()
            right = self._verifier.is_valid(text, timestamp, signature)
        except (UnicodeDecodeError, ValueError):
            return False
        return right

    def _is_new(self, signature: str) -> bool:
        now = time.monotonic()
        while self._seen and next(iter(self._seen.values())) < now - _REMEMBERED_SECONDS:
            self._seen.popitem(last=False)
        return signature not in self._seen


async def _body(request: Request) -> bytes | None:
    """The body, or None when it is larger than anything that Slack sends."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > _LARGEST_BODY:
            return None
    return bytes(received)


def _is_readable(body: str, content_type: str) -> bool:
    """Whether it is an event as JSON, or a form with an interaction as JSON or a command."""
    if not content_type.startswith("application/x-www-form-urlencoded"):
        return _is_object(body)
    form = parse_qs(body)
    return all(map(_is_object, form["payload"])) if "payload" in form else "command" in form


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
