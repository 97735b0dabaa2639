"""A client that speaks SMTP byte by byte, and a door with everything that it took."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pizzabot.adapters.email.letters import Envelope
from pizzabot.adapters.email.smtp.door import MailDoor
from pizzabot.adapters.email.smtp.doorkeeper import Limits

from pizzabot.settings.tables import ListenTable

OURS = "pizza@example.com"
HELLO = "Subject: hello\r\n\r\nHi.\r\n"
ANSWER_SECONDS = 5.0


def is_ours(address: str) -> bool:
    local, _, domain = address.lower().rpartition("@")
    return domain == "example.com" and local.partition("+")[0] == "pizza"


@dataclass
class Taken:
    """What the door took; `before` runs first and may raise."""

    mails: list[tuple[bytes, Envelope]] = field(default_factory=list)
    states: list[tuple[str, str | None]] = field(default_factory=list)
    before: Callable[[], Awaitable[None]] | None = None

    async def take(self, content: bytes, envelope: Envelope) -> None:
        if self.before is not None:
            await self.before()
        self.mails.append((content, envelope))

    def becomes(self, state: str, detail: str | None) -> None:
        self.states.append((state, detail))


@asynccontextmanager
async def open_door(limits: Limits | None = None, **settings: Any) -> AsyncIterator[tuple[MailDoor, Taken]]:
    taken = Taken()
    table = ListenTable(**({"port": 0, "hostname": "mx.example.com"} | settings))
    door = MailDoor(table, is_ours, taken.take, taken.becomes, limits)
    await door.start()
    try:
        yield door, taken
    finally:
        await door.stop()


class Wire:
    """One connection to a server of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, text: str | bytes) -> None:
        """Exactly these bytes."""
        self._writer.write(text if isinstance(text, bytes) else text.encode())

    async def flushed(self) -> None:
        await self._writer.drain()

    async def reply(self) -> str:
        """One reply, of one or several lines, without line ends; "" when the connection is closed."""
        lines = []
        async with asyncio.timeout(ANSWER_SECONDS):
            while True:
                line = (await self._reader.readline()).decode()
                lines.append(line.rstrip("\r\n"))
                if line[3:4] != "-":
                    return "\n".join(lines)

    async def say(self, command: str) -> str:
        """The reply to a command."""
        self.send(command + "\r\n")
        return await self.reply()

    async def begin(self, *recipients: str, sender: str = "ada@example.org", hello: str = "EHLO") -> str:
        """Everything up to DATA; the reply to that."""
        assert (await self.say(f"{hello} client.example")).startswith("250")
        return await self.again(*recipients, sender=sender)

    async def again(self, *recipients: str, sender: str = "ada@example.org") -> str:
        assert (await self.say(f"MAIL FROM:<{sender}>")).startswith("250")
        for recipient in recipients or (OURS,):
            assert (await self.say(f"RCPT TO:<{recipient}>")).startswith("250")
        return await self.say("DATA")

    async def mail(self, content: str | bytes) -> str:
        """The reply to a mail, after `begin`; the final dot is added."""
        self.send(content)
        await self.flushed()
        return await self.say(".")

    async def is_closed(self) -> bool:
        async with asyncio.timeout(ANSWER_SECONDS):
            try:
                return await self._reader.read(1) == b""
            except ConnectionError:
                return True

    async def ends(self) -> bool:
        """Whether the other side closes the connection, whatever it still says."""
        async with asyncio.timeout(ANSWER_SECONDS):
            with suppress(ConnectionError):
                await self._reader.read()
            return True

    async def start_tls(self, context: ssl.SSLContext) -> None:
        await self._writer.start_tls(context, server_hostname="127.0.0.1")

    async def close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            pass

    def cut(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def connected(port: int, *, greeted: bool = True) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    wire = Wire(reader, writer)
    try:
        if greeted:
            assert (await wire.reply()).startswith("220 ")
        yield wire
    finally:
        await wire.close()
