"""How does one connection bring mail in? aiosmtpd's dialogue (RFC 5321, RFC 2033), with bounds of our own.

    greeting, EHLO, MAIL, RCPT … -> DATA -> lines until CRLF . CRLF -> committed -> 250

Whatever could be read in two ways is refused: see `wire`. Nothing is relayed, nobody logs in, no address
is confirmed, and nobody is waited for without an end.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from typing import Any, cast

from aiosmtpd.lmtp import LMTP
from aiosmtpd.proxy_protocol import ProxyData
from aiosmtpd.smtp import SMTP, TLSSetupException
from aiosmtpd.smtp import Envelope as SmtpEnvelope
from aiosmtpd.smtp import Session as SmtpSession

from ..letters import Envelope
from .doorkeeper import Doorkeeper
from .wire import END, BadLine, Lines, has_bare_line_end, plain

logger = logging.getLogger(__name__)

_NULL_SENDER = "<>"  # as the library keeps it; to it "" is a MAIL that did not happen


class TurnedAway(asyncio.Protocol):
    """Listens to nothing more, until its reply is out and the connection closed."""


class Rules:
    """Which senders, recipients and greetings a session takes: the hooks that aiosmtpd calls."""

    def __init__(self, keeper: Doorkeeper) -> None:
        self._keeper = keeper

    async def handle_EHLO(
        self, _server: SMTP, session: SmtpSession, _envelope: SmtpEnvelope, hostname: str, replies: list[str]
    ) -> list[str]:
        session.host_name = hostname
        offered = [line[4:] for line in replies if not line[4:].startswith(("AUTH", "HELP"))]
        *first, last = [*offered, "PIPELINING", f"SIZE {self._keeper.limits.mail_bytes}"]
        return [*(f"250-{line}" for line in first), f"250 {last}"]

    async def handle_MAIL(
        self,
        _server: SMTP,
        _session: SmtpSession,
        envelope: SmtpEnvelope,
        address: str,
        options: list[str],
    ) -> str:
        if not address.isprintable():
            return self._keeper.refuse("syntax", "553 5.1.7 malformed address")
        sizes = [int(option[5:]) for option in options if option.startswith("SIZE=")]
        if any(size > self._keeper.limits.mail_bytes for size in sizes):
            return self._keeper.refuse("size", too_large(self._keeper.limits.mail_bytes))
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 ok"

    async def handle_RCPT(
        self,
        _server: SMTP,
        _session: SmtpSession,
        envelope: SmtpEnvelope,
        address: str,
        _options: list[str],
    ) -> str:
        if len(envelope.rcpt_tos) >= self._keeper.limits.recipients:
            return self._keeper.refuse("recipients", "452 4.5.3 too many recipients")
        if not address.isprintable() or not self._keeper.is_ours(address):
            return self._keeper.refuse("recipient", "550 5.1.1 no such recipient here")
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_PROXY(
        self, server: SMTP, _session: SmtpSession, _envelope: SmtpEnvelope, proxied: ProxyData
    ) -> bool:
        assert isinstance(server, Session)
        return await server.comes_from(str(proxied.src_addr or ""))


def too_large(limit: int) -> str:
    return f"552 5.3.4 a mail has at most {limit} bytes"


class Session(SMTP):
    """One SMTP connection."""

    line_length_limit = 64 * 1024  # what is read at once; a line of a mail may be as long as the mail

    def __init__(
        self,
        keeper: Doorkeeper,
        loop: asyncio.AbstractEventLoop,
        *,
        hostname: str,
        certificate: ssl.SSLContext | None,
        proxied: bool,
    ) -> None:
        super().__init__(
            Rules(keeper),
            data_size_limit=None,  # ours: see smtp_DATA
            enable_SMTPUTF8=True,
            hostname=hostname,
            ident="LMTP" if isinstance(self, LMTP) else "ESMTP",
            tls_context=certificate,
            timeout=keeper.limits.command_seconds,
            proxy_protocol_timeout=keeper.limits.proxy_seconds if proxied else None,
            loop=loop,
        )
        self._lines = Lines(limit=self.line_length_limit, loop=loop)
        # Once more, as the library makes the reader itself.
        asyncio.StreamReaderProtocol.__init__(self, self._lines, self._cb_client_connected, loop=loop)
        self._keeper, self._proxied = keeper, proxied
        self._peer: str | None = None  # None when it has not entered, or has left
        self._believed = False
        self._mistakes = 0
        self._patience: asyncio.TimerHandle | None = None
        self._cut: asyncio.TimerHandle | None = None

    # -- the connection ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._original_transport is None:
            peer = transport.get_extra_info("peername")
            if not self._enters(str(peer[0]) if peer else ""):
                transport = cast(asyncio.Transport, transport)
                transport.set_protocol(TurnedAway())
                transport.write(b"421 4.7.0 too many connections; try again later\r\n")
                transport.close()
                return
            self._is_patient()
        super().connection_made(transport)

    def _is_patient(self) -> None:
        """Begin to wait for the next mail: commands alone keep nobody here."""
        self._patience = self.loop.call_later(self._keeper.limits.between_mails_seconds, self._timeout_cb)

    def _enters(self, peer: str) -> bool:
        believed = self._keeper.trusts(peer)
        if self._proxied:
            # Who it is comes with the first line, which is taken from the operator's own proxy alone.
            return believed
        if not self._keeper.enter(peer):
            return False
        self._peer, self._believed = peer, believed
        return True

    async def comes_from(self, peer: str) -> bool:
        """Let in `peer`, who is behind the proxy; "" when the proxy does not say."""
        if not self._keeper.enter(peer):
            await self.push("421 4.7.0 too many connections; try again later")
            return False
        self._peer, self._believed = peer, self._keeper.trusts(peer)
        return True

    def _leave(self) -> None:
        if self._peer is not None:
            self._keeper.leave(self._peer)
            self._peer = None

    def connection_lost(self, error: Exception | None) -> None:
        self._leave()
        for timer in (self._patience, self._cut):
            if timer is not None:
                timer.cancel()
        super().connection_lost(error)

    def hang_up(self, reply: str) -> None:
        """Say why and close, also when the other side reads nothing any more."""
        # Not isinstance: uvloop's transports are of no class that asyncio knows.
        transport = cast(asyncio.Transport | None, self.transport or self._original_transport)
        if transport is None:
            return
        if self.transport is not None and not transport.is_closing():
            transport.write(f"{reply}\r\n".encode())
        transport.close()
        if self._cut is None:
            self._cut = self.loop.call_later(self._keeper.limits.linger_seconds, self.cut_off)

    def cut_off(self) -> None:
        """Close at once, whatever has not been sent."""
        transport = cast(asyncio.Transport | None, self.transport or self._original_transport)
        if transport is not None:
            transport.abort()

    def _timeout_cb(self) -> None:
        self.hang_up(self._keeper.refuse("timeout", "421 4.4.2 waited too long"))

    async def _handle_client(self) -> None:
        with suppress(ConnectionError):
            await super()._handle_client()

    # -- replies -------------------------------------------------------------------------------------------

    async def push(self, status: Any) -> None:
        """Send a reply. Whoever makes nothing but mistakes is sent away after the last of them."""
        text = status.decode("ascii", "replace") if isinstance(status, bytes) else str(status)
        self._writer.write(text.encode("utf-8", "replace") + b"\r\n")
        await self._writer.drain()
        if text.startswith("5"):
            self._mistakes += 1
            if self._mistakes == self._keeper.limits.mistakes:
                self.hang_up(self._keeper.refuse("mistakes", "421 4.7.0 too many mistakes"))

    async def handle_exception(self, error: Exception) -> str:
        if isinstance(error, BadLine):
            return self._keeper.refuse("syntax", "500 5.5.2 a command ends with CRLF and holds no other CR")
        if isinstance(error, TLSSetupException):
            return self._keeper.refuse("tls", "454 4.7.0 TLS not available")
        logger.error("a connection that brings mail failed", exc_info=error)
        return self._keeper.refuse("fault", "451 4.3.0 this server failed; try again later")

    # -- commands ------------------------------------------------------------------------------------------

    async def smtp_AUTH(self, arg: str) -> None:  # noqa: ARG002 - the library's signature, here and below
        await self.push("502 5.5.1 nobody logs in here")

    async def smtp_VRFY(self, arg: str) -> None:  # noqa: ARG002
        await self.push("502 5.5.1 addresses are not confirmed")

    async def smtp_EXPN(self, arg: str) -> None:  # noqa: ARG002
        await self.push("502 5.5.1 addresses are not confirmed")

    async def smtp_STARTTLS(self, arg: str) -> None:
        if self._tls_protocol is not None:
            await self.push("503 5.5.1 TLS is on already")
            return
        await super().smtp_STARTTLS(arg)  # what came in the clear behind it is thrown away there

    def _getaddr(self, arg: str) -> tuple[str | None, str | None]:
        try:
            return super()._getaddr(arg)
        except (IndexError, ValueError, RecursionError, AttributeError):
            return None, None  # the standard library's parser trips over what is no address

    async def smtp_DATA(self, arg: str) -> None:
        if await self.check_helo_needed():
            return
        assert self.envelope is not None
        if not self.envelope.rcpt_tos or arg:
            await self.push("501 5.5.4 DATA takes nothing" if arg else "503 5.5.1 need RCPT first")
            return
        if not self._lines.is_empty():
            # Nobody may send on before the 354 (RFC 2920 §3.1): what it is cannot be told apart.
            reply = self._keeper.refuse("pipelining", "503 5.5.0 the mail came before it was asked for")
            await self.push(reply)
            self.hang_up("421 4.7.0 closing")
            return
        self._lines.begin_mail()
        await self.push("354 end with CRLF . CRLF")
        assert self._patience is not None
        self._patience.cancel()
        self._reset_timeout(self._keeper.limits.data_seconds)
        reply, content = await self._receive()
        if content is not None:
            reply = await self._keeper.take(content, self._envelope(self.envelope))
        replies = self._replies(reply, self.envelope)
        self.envelope = self._create_envelope()
        self._reset_timeout()
        self._is_patient()
        for each in replies:
            await self.push(each)

    async def _receive(self) -> tuple[str, bytes | None]:
        """The whole mail; or None, and the reply when it was read to its end and not kept."""
        received, refused, is_whole = bytearray(), "", False
        limits = self._keeper.limits
        try:
            while not is_whole:
                try:
                    block = await self._lines.readuntil(END)
                    is_whole = True
                except asyncio.LimitOverrunError as error:
                    block = await self._lines.read(error.consumed)
                if refused:
                    continue
                if len(received) + len(block) - len(END) > limits.mail_bytes:
                    refused = self._keeper.refuse("size", too_large(limits.mail_bytes))
                elif self._keeper.hold(len(block)):
                    received += block
                    continue
                else:
                    refused = self._keeper.refuse("memory", "451 4.3.1 too much mail at once; try later")
                self._keeper.release(len(received))
                received = bytearray()
            if refused:
                return refused, None
            content = plain(received)
        finally:
            self._keeper.release(len(received))
        if has_bare_line_end(content):
            return self._keeper.refuse("line_end", "550 5.5.2 lines end with CRLF, and CR or LF alone"), None
        return "", content

    def _envelope(self, said: SmtpEnvelope) -> Envelope:
        sender = "" if said.mail_from == _NULL_SENDER else said.mail_from
        return Envelope(sender, tuple(said.rcpt_tos), believes_results=self._believed)

    def _replies(self, reply: str, envelope: SmtpEnvelope) -> list[str]:  # noqa: ARG002 - LMTP needs it
        return [reply]


class LmtpSession(Session, LMTP):
    """One LMTP connection: LHLO instead of EHLO, and after DATA one reply for each recipient (RFC 2033)."""

    def _replies(self, reply: str, envelope: SmtpEnvelope) -> list[str]:
        code, words = reply[:9], reply[9:]
        return [f"{code} <{address}>{words}" for address in envelope.rcpt_tos]
