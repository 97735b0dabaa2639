"""How is one mail handed to the outgoing server? One connection, blocking; `replies` says how it fails.

The steps are taken one by one, not by `smtplib.SMTP.sendmail`, which cannot tell the first from the last.
Encryption is verified and never "if possible": STARTTLS that is not offered is an error, and what came in the
clear before the handshake is forgotten by smtplib (RFC 3207 §4.2), its read buffer with it.
"""

from __future__ import annotations

import re
import smtplib
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from pizzabot.errors import ConfigError, DeliveryFailed, DeliveryUnknown, PizzaBotError
from pizzabot.settings.tables import SmtpTable
from pizzabot.text import visible

from ..failures import Unreachable
from ..tls import verified_context
from .replies import Away, Deferred, NotLetIn, Rejected, failure, failure_of_recipient, reply, unreached, why

# The outbox allows 60 s for a delivery: these stay below together, unless a server dawdles at each step.
COMMAND_SECONDS = 15.0
CONTENT_SECONDS = 40.0  # RFC 5321 §4.5.3.2.6 allows ten minutes to answer the final dot
_GOODBYE_SECONDS = 2.0

_ADDRESS = re.compile(r"[^\s<>\x00-\x1f\x7f]+@[^\s<>@\x00-\x1f\x7f]+")
_LINE_END = re.compile(rb"\r\n|\r|\n")


class TokenSource(Protocol):
    """Where access tokens for XOAUTH2 come from."""

    def token(self, *, fresh: bool = False) -> str:
        """A token, another one when the last was refused; may ask another server, and block.

        Raises a PizzaBotError or a TimeoutError.
        """
        ...


Refusals = Mapping[str, DeliveryFailed]


class Connection:
    """A connection that is encrypted and logged in, for one mail after the other, in one thread at a time."""

    def __init__(self, settings: SmtpTable, token: TokenSource | None = None) -> None:
        """Connect and log in.

        Raises Away or NotLetIn.
        """
        self.opened_at = self.used_at = time.monotonic()
        try:
            self._client = _connected(settings)
        except ConfigError as error:
            raise Away(str(error)) from error
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise Away(unreached(error, settings.host, settings.port)) from error
        try:
            self._log_in(settings, token)
        except BaseException:
            self._client.close()
            raise

    # -- logging in ----------------------------------------------------------------------------------------

    def _log_in(self, settings: SmtpTable, token: TokenSource | None) -> None:
        if not settings.username:
            return
        offered = self._client.esmtp_features.get("auth", "").upper().split()
        if settings.oauth is not None:
            if token is None:
                raise NotLetIn("no source of access tokens")
            code, said = self._xoauth2(settings.username, _token(token), offered)
            if code == 535:  # perhaps the token was revoked before its time
                code, said = self._xoauth2(settings.username, _token(token, fresh=True), offered)
        else:
            password = settings.password.get_secret_value() if settings.password is not None else ""
            code, said = self._password(settings.username, password, offered)
        if code == 235:
            return
        self.close()
        words = reply(code, said)
        raise Away(words) if code in (421, 454, 451) else NotLetIn(words)

    def _xoauth2(self, user: str, token: str, offered: Sequence[str]) -> tuple[int, bytes]:
        if "XOAUTH2" not in offered:
            raise NotLetIn("it does not offer XOAUTH2")
        code, said = self._command("AUTH XOAUTH2 " + _base64(f"user={user}\x01auth=Bearer {token}\x01\x01"))
        if code == 334:  # what is wrong stands in the challenge, which wants an empty answer
            code, said = self._command("")
        return code, said

    def _password(self, user: str, password: str, offered: Sequence[str]) -> tuple[int, bytes]:
        if "PLAIN" in offered:  # RFC 4616; the connection is encrypted, or does not leave this machine
            return self._command("AUTH PLAIN " + _base64(f"\0{user}\0{password}"))
        if "LOGIN" not in offered:
            raise NotLetIn("it offers neither PLAIN nor LOGIN")
        code, said = self._command("AUTH LOGIN")
        for answer in (user, password):
            if code == 334:
                code, said = self._command(_base64(answer))
        return code, said

    # -- sending -------------------------------------------------------------------------------------------

    def send(
        self, sender: str, recipients: Sequence[str], message: bytes, about_to_end: Callable[[], None]
    ) -> Refusals:
        """Hand a mail over; the recipients that were refused, each with why, when others were taken.

        `sender` is "" for the null sender. `message` is the whole mail; its line ends become CRLF.
        `about_to_end` is called before the final dot, without which there is no mail: what it raises
        withdraws the mail.

        Raises:
            Away, NotLetIn, Deferred, Rejected, NoSuchRecipient: nobody gets the mail.
            DeliveryUnknown: they may have got it.
        """
        self.used_at = time.monotonic()
        content = _with_crlf(message)
        self._mail(sender, recipients, content)
        refused = {address: found for address in recipients if (found := self._rcpt(address)) is not None}
        if len(refused) == len(recipients):
            self._forget()
            # One that may pass decides whether it is tried again for all.
            raise next((found for found in refused.values() if found.retryable), *list(refused.values())[:1])
        self._data(content, about_to_end)
        return refused

    def _mail(self, sender: str, recipients: Sequence[str], content: bytes) -> None:
        for address in (*filter(None, (sender,)), *recipients):
            if not _ADDRESS.fullmatch(address):
                raise Rejected(f"{visible(address)[:100]} is not a mail address")
        options = self._options("".join((sender, *recipients)), content)
        self._ok("MAIL", *self._command(f"MAIL FROM:<{sender}>{options}"))

    def _options(self, addresses: str, content: bytes) -> str:
        offers = self._client.has_extn
        head = content.partition(b"\r\n\r\n")[0]
        options = ""
        if offers("size"):
            said = self._client.esmtp_features["size"]
            most = int(said) if said.isdecimal() else 0  # 0 and nothing mean no limit (RFC 1870 §4)
            if 0 < most < len(content):
                raise Rejected(f"it has {len(content)} bytes, and the server takes {most}")
            options += f" SIZE={len(content)}"
        if not content.isascii() and offers("8bitmime"):
            options += " BODY=8BITMIME"
        if not addresses.isascii() or not head.isascii():
            if not offers("smtputf8"):
                raise Rejected("the server takes no addresses beyond ASCII: it does not offer SMTPUTF8")
            options += " SMTPUTF8"
        return options

    def _rcpt(self, address: str) -> DeliveryFailed | None:
        code, said = self._command(f"RCPT TO:<{address}>")
        if code in (250, 251, 252):
            return None
        if code == 421:
            self.close()
            raise Away(reply(code, said))
        return failure_of_recipient(address, code, said)

    def _data(self, content: bytes, about_to_end: Callable[[], None]) -> None:
        self._ok("DATA", *self._command("DATA"), wanted=354)
        assert self._client.sock is not None
        try:
            self._client.sock.settimeout(CONTENT_SECONDS)
            self._client.send(re.sub(rb"(?m)^\.", b"..", content))
            about_to_end()
            # Apart, so that it is known whether it was written: without it there is no mail.
            self._client.send(b".\r\n")
        except DeliveryFailed:
            self.close()
            raise
        except (smtplib.SMTPException, OSError) as error:
            self.close()
            raise Away(f"cut off in the middle of the mail: {why(error)}") from error
        try:
            code, said = self._client.getreply()
            self._client.sock.settimeout(COMMAND_SECONDS)
        except (smtplib.SMTPException, OSError) as error:
            self.close()
            raise DeliveryUnknown(f"the mail server took the mail and said nothing ({why(error)})") from error
        if not 200 <= code < 600:
            self.close()
            raise DeliveryUnknown("the mail server took the mail and its answer is none")
        self._ok("content", code, said)

    def _ok(self, step: str, code: int, said: bytes, *, wanted: int = 250) -> None:
        """Raise what the reply means, and leave the connection ready for the next mail."""
        if code == wanted:
            return
        if code == 421:
            self.close()
            # After the content it answers the mail; before, it says that the connection is over.
            raise Deferred(reply(code, said)) if step == "content" else Away(reply(code, said))
        if step != "content":
            self._forget()
        raise failure(code, said)

    # -- the connection ------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._client.sock is not None

    def answers(self) -> bool:
        """Whether the server still listens."""
        try:
            return self._command("NOOP")[0] == 250
        except DeliveryFailed:
            return False

    def close(self) -> None:
        self._client.close()

    def cut(self) -> None:
        """Break off what another thread waits for in this connection; it hears of it as of any cut."""
        if (sock := self._client.sock) is not None:
            with suppress(OSError):
                socket.socket.shutdown(
                    sock, socket.SHUT_RDWR
                )  # not that of an SSLSocket, which first forgets TLS

    def quit(self) -> None:
        """Say goodbye and close."""
        if self._client.sock is not None:
            self._client.sock.settimeout(_GOODBYE_SECONDS)
            with suppress(DeliveryFailed):
                self._command("QUIT")
        self.close()

    def _forget(self) -> None:
        with suppress(DeliveryFailed):
            self._command("RSET")

    def _command(self, line: str) -> tuple[int, bytes]:
        try:
            return self._client.docmd(line)
        except (smtplib.SMTPException, OSError) as error:
            self.close()
            raise Away(why(error)) from error


def _connected(settings: SmtpTable) -> smtplib.SMTP:
    """A connection after its EHLO, encrypted as the settings say."""
    host, port = settings.host, settings.port
    client: smtplib.SMTP
    if settings.security == "tls":
        client = smtplib.SMTP_SSL(
            host, port, "localhost", timeout=COMMAND_SECONDS, context=verified_context(settings.ca_file)
        )
    else:
        client = smtplib.SMTP(host, port, "localhost", timeout=COMMAND_SECONDS)
    try:
        assert client.sock is not None
        client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.command_encoding = "utf-8"  # addresses; everything else is ASCII (RFC 6531)
        name = _literal(client.sock.getsockname()[0])
        _greet(client, name)
        if settings.security == "starttls":
            client.starttls(context=verified_context(settings.ca_file))
            _greet(client, name)
    except BaseException:
        client.close()
        raise
    return client


def _greet(client: smtplib.SMTP, name: str) -> None:
    code, said = client.ehlo(name)
    if code != 250:
        raise smtplib.SMTPHeloError(code, said)


def _literal(address: str) -> str:
    """An address as a name (RFC 5321 §4.1.3): the DNS may take long to name us, and be wrong."""
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _token(source: TokenSource, *, fresh: bool = False) -> str:
    try:
        return source.token(fresh=fresh)
    except DeliveryFailed:
        raise
    except (Unreachable, TimeoutError) as error:
        raise Away(str(error) or "no access token could be had in time") from error
    except PizzaBotError as error:
        raise NotLetIn(str(error)) from error


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


def _with_crlf(message: bytes) -> bytes:
    """`message` with CRLF at the end of every line, the last one too (RFC 5321 §2.3.8)."""
    content = _LINE_END.sub(b"\r\n", message)
    return content if content.endswith(b"\r\n") else content + b"\r\n"
