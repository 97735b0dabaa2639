"""A channel that pushes copies over real HTTP to a service whose faults are scripted.

The service keeps copies under names of its own and can look one up by the key it was sent with.

    POST /copies {"key", "text", "state"} -> 201 {"id"}      PUT /copies/ID -> 200
    GET /copies?key=KEY -> 200 {"id"} | 404
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx

from pizzabot.errors import DeliveryFailed, DeliveryUnknown
from pizzabot.messages import ChannelState, OutboundItem, Receipt
from pizzabot.people import Person

if TYPE_CHECKING:
    from starlette.routing import BaseRoute


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request to write.

    `status` is answered instead of doing it; `cut` does it and closes the connection without an answer.
    """

    status: int = 0
    retry_after: str | None = None
    cut: bool = False


@dataclass(slots=True)
class PushService:
    """The other side. `faults` are used up one by one, those of an address before the common ones."""

    copies: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: list[tuple[str, str]] = field(default_factory=list)  # address and text, in order of arrival
    faults: list[Fault] = field(default_factory=list)
    faults_at: dict[str, list[Fault]] = field(default_factory=dict)
    gate: asyncio.Event = field(default_factory=asyncio.Event)  # closed: writes wait, like a slow network
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    blind: int = 0  # so many questions for a copy fail
    url: str = ""
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        self.gate.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split(" ", 2)
            length = next(
                (int(h[15:]) for h in head.split("\r\n") if h.lower().startswith("content-length:")), 0
            )
            body = json.loads(await reader.readexactly(length) or b"{}")
            answer = await self._answer(method, target, body)
            if answer is not None:
                writer.write(answer)
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, method: str, target: str, body: dict[str, Any]) -> bytes | None:
        if method == "GET":
            if self.blind:
                self.blind -= 1
                return _response(503, {})
            (key,) = parse_qs(urlsplit(target).query)["key"]
            found = next((name for name, copy in self.copies.items() if copy["key"] == key), None)
            return _response(404, {}) if found is None else _response(200, {"id": found})
        self.waiting.set()
        await self.gate.wait()
        fault = self._fault(body["address"])
        if fault.status:
            return _response(fault.status, {}, retry_after=fault.retry_after)
        self.written.append((body["address"], body["text"]))
        name = target.removeprefix("/copies/") if method == "PUT" else f"copy-{len(self.copies) + 1}"
        self.copies[name] = self.copies.get(name, {}) | (
            body if method == "POST" else body | {"key": self.copies[name]["key"]}
        )
        return None if fault.cut else _response(201, {"id": name})

    def _fault(self, address: str) -> Fault:
        for scripted in (self.faults_at.get(address, []), self.faults):
            if scripted:
                return scripted.pop(0)
        return Fault()


def _response(status: int, body: dict[str, Any], *, retry_after: str | None = None) -> bytes:
    content = json.dumps(body).encode()
    extra = f"Retry-After: {retry_after}\r\n" if retry_after else ""
    head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n{extra}\r\n"
    return head.encode() + content


class PushChannel:
    """A `pizzabot.channel.Channel` over a `PushService`."""

    name = "push"
    repaints_silently = True

    def __init__(self, service: PushService) -> None:
        self._service = service
        self._http: httpx.AsyncClient | None = None

    def routes(self) -> Sequence[BaseRoute]:
        return ()

    def address_of(self, person: Person) -> str | None:
        return f"inbox-of-{person.name}"

    def is_with(self, person: Person, address: str) -> bool:
        return address == self.address_of(person)

    async def start(self) -> None:
        self._http = httpx.AsyncClient(base_url=self._service.url, timeout=5, trust_env=False)

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def deliver(self, item: OutboundItem) -> Receipt:
        body = {
            "key": item.key,
            "address": item.address,
            "text": item.text,
            "state": str(item.action.state) if item.action else None,
        }
        if item.external_id is not None:
            await self._request("PUT", f"/copies/{item.external_id}", body)
            return Receipt(item.external_id)
        response = await self._request("POST", "/copies", body)
        return Receipt(response.json()["id"])

    async def find(self, item: OutboundItem) -> Receipt | None:
        assert self._http is not None
        try:
            response = await self._http.get("/copies", params={"key": item.key})
        except httpx.HTTPError as error:
            raise DeliveryFailed("push cannot be asked", retryable=True) from error
        if response.status_code >= 500:
            raise DeliveryFailed("push cannot be asked", retryable=True)
        return Receipt(response.json()["id"]) if response.status_code == 200 else None

    async def _request(self, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
        if self._http is None:
            raise DeliveryFailed("push is not connected", retryable=True)
        try:
            response = await self._http.request(method, path, json=body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise DeliveryFailed("push cannot be reached", retryable=True) from error
        except httpx.HTTPError as error:
            raise DeliveryUnknown("push was cut off") from error
        if response.status_code >= 400:
            retryable = response.status_code == 429 or response.status_code >= 500
            asked = response.headers.get("retry-after")
            message = f"push answered {response.status_code}"
            raise DeliveryFailed(message, retryable=retryable, retry_after=float(asked) if asked else None)
        return response

    def state(self) -> ChannelState:
        return ChannelState("ok" if self._http is not None else "off")
