"""Does the server say why it cannot listen, carry other channels' routes, and end promptly?"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
from pizzabot.adapters.web.channel import ApiChannel
from pizzabot.adapters.web.server import bind
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from pizzabot.errors import ConfigError
from pizzabot.events import Events
from pizzabot.people import People, Person
from pizzabot.settings import Settings
from tests.fakes.clock import FakeClock


class Tokens:
    def person_of(self, token: str) -> str | None:
        return "Ada" if token == "right" else None


class Doors:
    """As much of the doors as a server needs to begin."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self.settings = Settings.model_validate({"web": {"port": port, "host": host}})
        self.metrics = self  # what it is told of requests it forgets
        self.people, self.tokens, self.events = People([Person("Ada", "owner")]), Tokens(), Events()
        self.clock = FakeClock()

    async def forget(self, *_: Any, **__: Any) -> None: ...

    def answered(self, *_: Any) -> None: ...

    def routes(self) -> Sequence[Route]:
        async def hook(request: Request) -> PlainTextResponse:
            return PlainTextResponse((await request.body()).decode())

        async def broken(request: Request) -> PlainTextResponse:
            raise RuntimeError("swordfish")

        return [Route("/other/x", hook, methods=["POST"]), Route("/broken", broken)]


def channel(**options: Any) -> ApiChannel:
    made: ApiChannel = ApiChannel(Doors(**options))
    return made


@pytest.fixture
async def running() -> AsyncIterator[ApiChannel]:
    started = channel()
    await started.start()
    yield started
    await started.stop()


async def test_port_zero_becomes_a_real_port(running: ApiChannel) -> None:
    assert running.port > 0
    assert running.state().state == "ok"
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as http:
        assert (await http.get("/healthz")).status_code == 200


async def test_a_port_in_use_is_named_with_the_cure(running: ApiChannel) -> None:
    with pytest.raises(ConfigError, match=f"port {running.port} on 127.0.0.1 is in use") as refused:
        await channel(port=running.port).start()
    assert "\n" not in str(refused.value)
    assert "--port" in str(refused.value)
    assert refused.value.key == "web.port"


def test_an_address_that_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(host: str, *args: Any, **options: Any) -> list[Any]:
        if host == "no-such-host":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", elsewhere)
    for host in ("192.0.2.1", "no-such-host"):
        with pytest.raises(ConfigError, match=host) as refused:
            bind(host, 0)
        assert refused.value.key == "web.host"


def test_a_name_is_served_on_ipv4() -> None:
    with bind("localhost", 0) as listening:
        assert listening.family == socket.AF_INET


async def test_routes_of_other_channels_are_carried_and_guarded(running: ApiChannel) -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}") as http:
        assert (await http.post("/other/x", content=b"payload")).text == "payload"
        assert (await http.post("/other/x", headers={"Origin": "null"})).status_code == 403
        assert (await http.post("/other/x", headers={"Host": "evil"})).status_code == 421
        broken = await http.get("/broken")
    assert (broken.status_code, broken.json()["error"]["code"]) == (500, "internal")
    assert "swordfish" not in broken.text


async def test_stopping_ends_streams_and_idle_connections_at_once() -> None:
    started = channel()
    await started.start()
    headers = {"Authorization": "Bearer right"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{started.port}", headers=headers) as http:
        await http.get("/healthz")
        async with http.stream("GET", "/api/events") as response:
            assert response.status_code == 200
            reading = asyncio.create_task(response.aread())
            await asyncio.sleep(0.05)
            begun = time.monotonic()
            await started.stop()
            assert time.monotonic() - begun < 2
            assert (await asyncio.wait_for(reading, 2)).startswith(b"retry: ")
        with pytest.raises(httpx.ConnectError):
            await http.get("/healthz")
    assert started.state().state == "off"
    bind("127.0.0.1", started.port).close()


async def test_a_channel_that_never_started_can_be_stopped() -> None:
    await channel().stop()


def test_loading_the_channel_loads_no_server() -> None:
    code = (
        "import sys; from pizzabot.adapters.web.channel import ApiChannel; "
        "print([m for m in ('uvicorn', 'starlette') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
