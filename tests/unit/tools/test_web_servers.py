"""The same promises over streamable HTTP and over SSE."""

from __future__ import annotations

import asyncio
import base64
import socket

import pytest

from pizzabot.errors import OutcomeUnknown, ToolFailed
from pizzabot.tools.catalogue import Pace
from tests.unit.tools.conftest import StartWeb, Wire, error_of, running, state_of, until

TRANSPORTS = ["http", "sse"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_web_server_answers_with_text_data_pictures_and_errors(web: StartWeb, transport: str) -> None:
    server = await web(transport)
    async with running({"web": {"type": transport, "url": server.url}}) as catalogue:
        assert catalogue.states()[0].transport == transport
        assert catalogue.tools()["mcp:web:add"].read_only
        assert catalogue.tools()["mcp:web:slow"].destructive
        output = await catalogue.call("mcp:web:add", {"a": 2, "b": 3})
        assert (output.text, output.structured) == ("5", {"result": 5})
        picture = await catalogue.call("mcp:web:picture", {})
        data = base64.b64encode(b"\x89PNG").decode()
        assert picture.content == [{"type": "image", "base64": data, "mime_type": "image/png"}]
        with pytest.raises(ToolFailed, match="the oven is cold") as caught:
            await catalogue.call("mcp:web:fail", {})
        assert not isinstance(caught.value, OutcomeUnknown)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_cancelling_a_call_reaches_the_web_server(web: StartWeb, transport: str) -> None:
    server = await web(transport)
    async with running({"web": {"type": transport, "url": server.url}}) as catalogue:
        call = asyncio.create_task(catalogue.call("mcp:web:slow", {"seconds": 30}))
        await asyncio.sleep(0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(server.cancelled.is_set)
        assert (await catalogue.call("mcp:web:add", {"a": 1, "b": 1})).text == "2"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_web_server_that_goes_away_in_a_call_is_found_again(web: StartWeb, transport: str) -> None:
    wire = Wire(await web(transport))
    await wire.join()
    pace = Pace(first_delay_seconds=0.05, ping_every_seconds=0.2, ping_timeout_seconds=1)
    async with running({"web": {"type": transport, "url": wire.url}}, pace=pace) as catalogue:
        call = asyncio.create_task(catalogue.call("mcp:web:slow", {"seconds": 30}))
        await asyncio.sleep(0.3)
        await wire.cut()
        with pytest.raises(OutcomeUnknown):
            await call
        await until(lambda: state_of(catalogue, "web") == "down")
        assert catalogue.tools() == {}

        await wire.join()
        await until(lambda: state_of(catalogue, "web") == "connected")
        assert (await catalogue.call("mcp:web:add", {"a": 1, "b": 1})).text == "2"
    await wire.cut()


async def test_tools_announced_later_by_a_web_server_appear(web: StartWeb) -> None:
    server = await web("http")
    async with running({"web": {"type": "http", "url": server.url}}) as catalogue:
        await catalogue.call("mcp:web:learn", {"name": "bake"})
        await until(lambda: "mcp:web:bake" in catalogue.tools())


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_address_where_nobody_listens_is_down_for_that_reason(transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    entry = {"type": transport, "url": f"http://127.0.0.1:{port}/mcp"}
    async with running({"nobody": entry}, pace=Pace(first_delay_seconds=60)) as catalogue:
        assert state_of(catalogue, "nobody") == "down"
        assert error_of(catalogue, "nobody").startswith("it cannot be reached")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_refused_token_is_reported_without_showing_it(transport: str) -> None:
    seen: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    door = await asyncio.start_server(refuse, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{door.sockets[0].getsockname()[1]}/mcp?key=${{TOKEN}}"
    entry = {"type": transport, "url": url, "headers": {"Authorization": "Bearer ${TOKEN}"}}
    async with (
        door,
        running(
            {"web": entry}, environ={"TOKEN": "tok-4711"}, pace=Pace(first_delay_seconds=60)
        ) as catalogue,
    ):
        assert "Bearer tok-4711" in seen[0]
        assert error_of(catalogue, "web") == "the server answered with HTTP 401"


async def test_a_call_that_never_left_is_not_of_unknown_outcome(web: StartWeb) -> None:
    wire = Wire(await web("http"))
    await wire.join()
    pace = Pace(first_delay_seconds=60, ping_every_seconds=60, call_patience_seconds=0.1)
    async with running({"web": {"type": "http", "url": wire.url}}, pace=pace) as catalogue:
        await wire.cut()
        with pytest.raises(ToolFailed, match="the call was not sent") as caught:
            await catalogue.call("mcp:web:add", {"a": 1, "b": 1})
        assert not isinstance(caught.value, OutcomeUnknown)
