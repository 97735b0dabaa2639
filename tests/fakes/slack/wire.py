"""How the app hears of things: over its sockets, or by signed requests."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from tests.fakes.slack.workspace import Delivery, Json, Workspace

_FORM = "application/x-www-form-urlencoded"


@dataclass(slots=True, eq=False)
class _Link:
    socket: web.WebSocketResponse
    request: web.Request
    leaving: bool = False


@dataclass(slots=True)
class _Awaited:
    link: _Link
    settle: Callable[[Any], None]
    future: asyncio.Future[None]


class Wire:
    """Sends a delivery once and waits for its acknowledgement."""

    def __init__(self, workspace: Workspace, mode: str, ack_seconds: float) -> None:
        self.mode = mode
        self.ack_seconds = ack_seconds
        self.request_url = ""
        self.most_links = 0
        self.links: list[_Link] = []
        self._slack = workspace
        self._tickets: set[str] = set()
        self._awaited: dict[str, _Awaited] = {}
        self._turn = 0
        self._client: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        self.drop()
        if self._client is not None:
            await self._client.close()

    async def send(self, delivery: Delivery, on_ack: Callable[[Json], None]) -> None:
        """`on_ack` is called the moment the answer is here, before anything the app does after it."""

        def settle(answered: Any) -> None:
            delivery.acked = True
            delivery.payload = _payload(answered)
            on_ack(delivery.payload)

        began = time.monotonic()
        delivery.envelope_id = str(uuid.uuid4())
        try:
            if not self._slack.away:
                send = self._send_to_socket if self.mode == "socket" else self._send_to_url
                await asyncio.wait_for(send(delivery, settle), self.ack_seconds)
        except (TimeoutError, OSError, aiohttp.ClientError):
            pass  # the delivery says that nobody acknowledged it
        delivery.seconds = time.monotonic() - began

    # Sockets.

    def new_link(self) -> str:
        ticket = str(uuid.uuid4())
        self._tickets.add(ticket)
        return (
            f"{self._slack.base.replace('http', 'ws', 1)}/link/?ticket={ticket}&app_id={self._slack.app_id}"
        )

    async def serve(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if self._slack.away and request.transport is not None:
            request.transport.abort()
        if self._slack.away or ticket not in self._tickets:
            return web.Response(status=401)
        self._tickets.remove(ticket)
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        link = _Link(socket, request)
        self.links.append(link)
        self.most_links = max(self.most_links, len(self.links))
        try:
            about = {"app_id": self._slack.app_id}
            await socket.send_json(
                {"type": "hello", "num_connections": len(self.links), "connection_info": about}
            )
            async for frame in socket:
                if frame.type == aiohttp.WSMsgType.TEXT:
                    self._heard(json.loads(frame.data))
        finally:
            self._forget(link)
        return socket

    def drop(self) -> None:
        """Cut all sockets, with no word of goodbye."""
        for link in list(self.links):
            self._forget(link)
            if link.request.transport is not None:
                link.request.transport.abort()

    async def ask_refresh(self, grace_seconds: float) -> None:
        links = list(self.links)
        for reason in ("warning", "refresh_requested"):
            for link in links:
                link.leaving = reason == "refresh_requested"
                await link.socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {}})
        await asyncio.sleep(grace_seconds)
        for link in links:
            self._forget(link)
            await link.socket.close()

    def _forget(self, link: _Link) -> None:
        if link in self.links:
            self.links.remove(link)
        for awaited in self._awaited.values():
            if awaited.link is link and not awaited.future.done():
                awaited.future.set_exception(ConnectionResetError())

    def _heard(self, said: Json) -> None:
        awaited = self._awaited.get(said.get("envelope_id", ""))
        if awaited is not None and not awaited.future.done():
            awaited.settle(said.get("payload"))
            awaited.future.set_result(None)

    async def _send_to_socket(self, delivery: Delivery, settle: Callable[[Any], None]) -> None:
        ready = [link for link in self.links if not link.leaving] or self.links
        if not ready:
            return
        self._turn += 1
        link = ready[self._turn % len(ready)]
        envelope: Json = {
            "envelope_id": delivery.envelope_id,
            "type": delivery.kind,
            "payload": delivery.body,
        }
        envelope["accepts_response_payload"] = delivery.kind != "events_api"
        if delivery.kind == "events_api":
            reason = "timeout" if delivery.attempt else ""
            envelope |= {"retry_attempt": delivery.attempt, "retry_reason": reason}
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited[delivery.envelope_id] = _Awaited(link, settle, future)
        try:
            await link.socket.send_json(envelope)
            await future
        finally:
            del self._awaited[delivery.envelope_id]

    # Signed requests.

    async def _send_to_url(self, delivery: Delivery, settle: Callable[[Any], None]) -> None:
        headers = {}
        if delivery.attempt:
            headers = {"X-Slack-Retry-Num": str(delivery.attempt), "X-Slack-Retry-Reason": "http_timeout"}
        if delivery.kind == "events_api":
            body, content_type = json.dumps(delivery.body), "application/json"
        elif delivery.kind == "interactive":
            body, content_type = urlencode({"payload": json.dumps(delivery.body)}), _FORM
        else:
            body, content_type = urlencode(delivery.body), _FORM
        delivery.status, text = await self.post(body, content_type, headers=headers)
        if 200 <= delivery.status < 300:
            settle(json.loads(text) if text.startswith("{") else text)

    async def post(
        self,
        body: str,
        content_type: str,
        *,
        timestamp: int | None = None,
        secret: str | None = None,
        signed: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        if self._client is None:
            self._client = aiohttp.ClientSession()
        sent_at = str(int(time.time()) if timestamp is None else timestamp)
        sent = {"Content-Type": content_type, **(headers or {})}
        if signed:
            key = self._slack.signing_secret if secret is None else secret
            digest = hmac.new(key.encode(), f"v0:{sent_at}:{body}".encode(), hashlib.sha256).hexdigest()
            sent |= {"X-Slack-Request-Timestamp": sent_at, "X-Slack-Signature": f"v0={digest}"}
        async with self._client.post(self.request_url, data=body.encode(), headers=sent) as response:
            return response.status, await response.text()


def _payload(answered: Any) -> Json:
    if isinstance(answered, str) and answered:
        return {"text": answered}
    return answered if isinstance(answered, dict) else {}
