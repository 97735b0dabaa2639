"""An outgoing mail server whose faults are scripted; what it took stands in `mails`.

It is aiosmtpd in a thread of its own, so that synchronous and asynchronous tests use it alike.

    with SmtpSink() as sink:
        sink.faults.append(Fault("RCPT", "451 4.2.0 later"))
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.fakes.mail.certificate import Certificate

Step = Literal["greeting", "EHLO", "AUTH", "MAIL", "RCPT", "DATA", "content"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong once at a step; `content` is when the whole mail is there.

    `reply` is said instead of doing it. `seconds` passes first. `cut` closes the connection without a reply;
    at DATA it does so in the middle of the mail, at `content` after the mail was taken.
    """

    step: Step
    reply: str = ""
    cut: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail that was taken, with its envelope as the client said it."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes
    options: tuple[str, ...]
    is_encrypted: bool
    user: str | None


@dataclass
class SmtpSink:
    """A server on `port` of this machine, from `up` to `down` and up again on the same one.

    `users` are names with passwords, or with access tokens for XOAUTH2; with any, a client has to log in.
    `certificate` turns on STARTTLS, and TLS from the first byte with `tls`. `faults` are used up
    one by one, in order, each when its step is reached. `refusals` say what RCPT of an address is answered
    with for as long as it stands there. `deliver` is handed each mail, before it is
    acknowledged. `commands` are the verbs as they came, each with its connection's number.
    """

    users: dict[str, str] = field(default_factory=dict)
    certificate: Certificate | None = None
    tls: bool = False
    smtputf8: bool = True
    size: int = 2**25
    mechanisms: str = "LOGIN PLAIN XOAUTH2"
    faults: list[Fault] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    mails: list[Mail] = field(default_factory=list)
    commands: list[tuple[int, str]] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    deliver: Callable[[Mail], None] = lambda mail: None
    _server: asyncio.Server | None = None
    _open: set[_Dialogue] = field(default_factory=set)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="smtp sink", daemon=True)
        self._thread.start()
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def up(self) -> None:
        """Listen, on the same port as before."""
        self._in_loop(self._listen())

    def down(self) -> None:
        """Refuse connections and cut those that are open."""
        self._in_loop(self._cut_all(listening=False))

    def cut_connections(self) -> None:
        """Cut what is open, as a server does with whoever idles too long."""
        self._in_loop(self._cut_all(listening=True))

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def until(self, holds: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait until something is so; for what happens in the server's thread alone."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.005)

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        context = None
        if self.certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.certificate.chain, self.certificate.key)
        self._server = await self._loop.create_server(
            lambda: _Dialogue(self, None if self.tls else context),
            "127.0.0.1",
            self.port,
            ssl=context if self.tls else None,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _cut_all(self, *, listening: bool) -> None:
        if self._server is not None and not listening:
            # What was accepted a moment ago is on its way into a dialogue: closed meanwhile, it would leak.
            for socket in self._server.sockets:
                self._loop.remove_reader(socket.fileno())
            for _ in range(3):
                await asyncio.sleep(0)
            self._server.close()
            self._server = None
        tasks = []
        for dialogue in list(self._open):
            tasks.append(dialogue.cut())
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)

    def take_fault(self, step: Step) -> Fault | None:
        if self.faults and self.faults[0].step == step:
            return self.faults.pop(0)
        return None


class _Dialogue(SMTP):
    """One connection, with the faults at its steps."""

    line_length_limit = 2**20
    command_size_limit = 16_384  # access tokens are long (RFC 4954 §4)

    def __init__(self, sink: SmtpSink, starttls: ssl.SSLContext | None) -> None:
        super().__init__(
            _Hooks(sink),
            data_size_limit=sink.size,
            enable_SMTPUTF8=sink.smtputf8,
            hostname="sink.example",
            tls_context=starttls,
            authenticator=lambda *arguments: _authenticated(sink, arguments[4]),
            auth_require_tls=starttls is not None,
            loop=asyncio.get_running_loop(),
        )
        self.command_size_limits.update(dict.fromkeys(("AUTH", "MAIL", "RCPT"), 16_384))
        self._auth_required = bool(sink.users)  # the argument warns of passwords in the clear
        self._sink = sink
        self._number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self not in self._sink._open:
            self._sink._open.add(self)
            self._sink.connections += 1
            self._number = self._sink.connections
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._sink._open.discard(self)
        super().connection_lost(error)

    def cut(self) -> asyncio.Task[None] | None:
        """Close without a word; the task that ends by it."""
        transport = self._original_transport or self.transport
        if isinstance(transport, asyncio.Transport):
            transport.abort()
        return self._handler_coroutine

    async def push(self, status: Any) -> None:
        reply = status
        if str(status).startswith("220 sink.example"):
            reply = await self.fault("greeting") or status
        self._writer.write(reply if isinstance(reply, bytes) else reply.encode())
        self._writer.write(b"\r\n")
        await self._writer.drain()
        if str(reply).startswith("421"):
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.close()

    async def fault(self, step: Step) -> str | None:
        """The reply of the fault that is due here, None when all goes well."""
        if step not in ("greeting", "content"):
            self._sink.commands.append((self._number, step))
        found = self._sink.take_fault(step)
        if found is None:
            return None
        await asyncio.sleep(found.seconds)
        if found.cut:
            if step == "DATA":
                await super().push("354 go on")
                await self._reader.read(1000)
            self.cut()
            await asyncio.sleep(3600)  # cancelled as soon as the connection is lost
        return found.reply or None

    async def smtp_EHLO(self, hostname: str) -> None:
        reply = await self.fault("EHLO")
        await (self.push(reply) if reply else super().smtp_EHLO(hostname))

    async def smtp_AUTH(self, arg: str) -> None:
        reply = await self.fault("AUTH")
        await (self.push(reply) if reply else super().smtp_AUTH(arg))

    async def smtp_MAIL(self, arg: str | None) -> None:
        reply = await self.fault("MAIL")
        await (self.push(reply) if reply else super().smtp_MAIL(arg))

    async def smtp_RCPT(self, arg: str | None) -> None:
        address = (arg or "").partition("<")[2].partition(">")[0]
        reply = await self.fault("RCPT") or self._sink.refusals.get(address)
        await (self.push(reply) if reply else super().smtp_RCPT(arg))

    async def smtp_DATA(self, arg: str) -> None:
        reply = await self.fault("DATA")
        await (self.push(reply) if reply else super().smtp_DATA(arg))

    async def smtp_NOOP(self, arg: str) -> None:
        self._sink.commands.append((self._number, "NOOP"))
        await super().smtp_NOOP(arg)


class _Hooks:
    def __init__(self, sink: SmtpSink) -> None:
        self._sink = sink

    async def handle_EHLO(
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, replies: list[str]
    ) -> list[str]:
        session.host_name = hostname
        offered = f"250-AUTH {self._sink.mechanisms}".strip()
        return [offered if "AUTH" in line else line for line in replies]

    async def auth_XOAUTH2(self, server: SMTP, args: list[str]) -> AuthResult:
        user, _, rest = b64decode(args[1]).decode().partition("\x01")
        name, token = user.removeprefix("user="), rest.removeprefix("auth=Bearer ").rstrip("\x01")
        if self._sink.users.get(name) == token:
            return AuthResult(success=True, auth_data=LoginPassword(name.encode(), token.encode()))
        # The error stands in a challenge, which the client answers with nothing.
        await server.push("334 eyJzdGF0dXMiOiI0MDEifQ==")
        await server._reader.readuntil(b"\r\n")
        return AuthResult(success=False, handled=False)

    async def handle_DATA(self, server: _Dialogue, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        found = self._sink.faults[0] if self._sink.faults else None
        if found is None or found.step != "content" or found.cut or not found.reply:
            data = session.auth_data
            mail = Mail(
                envelope.mail_from or "",
                tuple(envelope.rcpt_tos),
                content,
                tuple(envelope.mail_options),
                session.ssl is not None or self._sink.tls,
                data.login.decode() if data is not None else None,
            )
            self._sink.mails.append(mail)
            self._sink.deliver(mail)
        return await server.fault("content") or "250 2.0.0 queued"


def _authenticated(sink: SmtpSink, said: Any) -> AuthResult:
    good = isinstance(said, LoginPassword) and sink.users.get(said.login.decode()) == said.password.decode()
    return AuthResult(success=good, handled=False, auth_data=said if good else None)
