"""An IMAP server that says exactly what a test wants, for what no well-behaved server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pizzabot.settings.tables import ImapTable

CAPABILITIES = "IMAP4rev1 IDLE ID AUTH=XOAUTH2"


@dataclass
class ScriptedServer:
    """One mailbox with the mails `subjects` by UID. `answers` come before the usual ones.

    A function of `answers` gets the command without its tag, `UID SEARCH UID 3:*`, and returns the lines of
    the answer, `{tag}` standing for the tag; None for the usual answer, an empty text for silence.
    """

    subjects: dict[int, str] = field(default_factory=dict)
    answers: list[Callable[[str], str | None]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # by the client, without tags
    greets: bool = True
    connections: int = 0
    port: int = 0
    _idling: set[asyncio.StreamWriter] = field(default_factory=set)
    _idle_tag: str = ""
    _known: int = 0  # mails that the client has heard of

    def settings(self, **changed: object) -> ImapTable:
        fields = {"host": "127.0.0.1", "port": self.port, "security": "none", "username": "pizza"}
        return ImapTable.model_validate({**fields, "password": "x", **changed})

    def notify(self) -> None:
        """Tell those who idle how many mails there are."""
        for writer in self._idling:
            writer.write(f"* {len(self.subjects)} EXISTS\r\n".encode())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.greets:
                writer.write(f"* OK [CAPABILITY {CAPABILITIES}] ready\r\n".encode())
            while line := (await reader.readline()).decode().strip():
                tag, _, command = line.partition(" ")
                if line == "DONE":
                    tag, command = self._idle_tag, "DONE"
                    self._idling.discard(writer)
                self.said.append(command)
                if command == "IDLE":
                    self._idle_tag = tag
                    self._idling.add(writer)
                writer.write(self._answer(command).format(tag=tag).replace("\n", "\r\n").encode())
                if command.startswith("AUTHENTICATE") or command == "LOGOUT":
                    await self._special(command, tag, reader, writer)
        except ConnectionError:
            pass
        finally:
            self._idling.discard(writer)
            writer.close()

    def _answer(self, command: str) -> str:
        for answer in self.answers:
            if (said := answer(command)) is not None:
                return said
        return self._usual(command)

    def _usual(self, command: str) -> str:
        done = "{tag} OK done\n"
        match command.split():
            case ["CAPABILITY"]:
                return f"* CAPABILITY {CAPABILITIES}\n{done}"
            case ["SELECT", *_]:
                following = max(self.subjects, default=0) + 1
                return (
                    f"* {len(self.subjects)} EXISTS\n* OK [UIDVALIDITY 7] x\n* OK [UIDNEXT {following}] x\n"
                    f"* OK [PERMANENTFLAGS (\\Seen)] x\n{done}"
                )
            case ["UID", "SEARCH", *rest]:
                self._known = len(self.subjects)
                first = int(rest[1].partition(":")[0])
                newest = [max(self.subjects)] if self.subjects else []  # `n:*` always names the last
                found = sorted({uid for uid in self.subjects if uid >= first} | set(newest))
                return f"* SEARCH {' '.join(map(str, found))}\n{done}"
            case ["UID", "FETCH", uids, "(RFC822.SIZE", *_]:
                lines = "".join(
                    f'* 1 FETCH (UID {uid} RFC822.SIZE 30 INTERNALDATE "01-Mar-2026 09:00:00 +0000")\n'
                    for uid in map(int, uids.split(","))
                )
                return lines + done
            case ["UID", "FETCH", uid, "(BODY.PEEK[])"]:
                mail = f"Subject: {self.subjects[int(uid)]}\n\nHello\n"
                size = len(mail.replace("\n", "\r\n"))
                return f"* 1 FETCH (UID {uid} BODY[] {{{{{size}}}}}\n{mail})\n{done}"
            case ["IDLE"]:
                news = "" if len(self.subjects) == self._known else f"* {len(self.subjects)} EXISTS\n"
                return f"+ idling\n{news}"  # one packet
            case ["AUTHENTICATE", *_]:
                return "+ \n"
            case ["ID", *_]:
                return f"* ID NIL\n{done}"
            case ["LOGOUT"]:
                return f"* BYE bye\n{done}"
        return done

    async def _special(
        self, command: str, tag: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if command == "LOGOUT":
            raise ConnectionError
        token = (await reader.readline()).decode().strip()
        self.said.append(token)
        answer = self._answer(f"TOKEN {token}")
        if answer.startswith("+"):  # an error of XOAUTH2 is told as a challenge, answered with nothing
            writer.write(answer.replace("\n", "\r\n").encode())
            self.said.append((await reader.readline()).decode().strip())
            answer = "{tag} NO [AUTHENTICATIONFAILED] Invalid credentials\n"
        writer.write(answer.format(tag=tag).replace("\n", "\r\n").encode())


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer()
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    scripted.port = server.sockets[0].getsockname()[1]
    try:
        yield scripted
    finally:
        server.close()
        await server.wait_closed()
