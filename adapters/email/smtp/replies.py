"""What does a reply of the outgoing mail server mean, or that there is none?

not reached, cut off before the final dot -> Away: nothing happened
not let in                                -> NotLetIn: until the operator does something
4xx                                       -> Deferred: the server asks to try again
5xx                                       -> Rejected: trying again changes nothing
  of the address itself, at RCPT          -> NoSuchRecipient
cut off after the final dot               -> DeliveryUnknown: it may have been taken
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl

from pizzabot.errors import DeliveryFailed
from pizzabot.text import visible

from ..tls import refusal

_NOT_LET_IN = (530, 534, 535, 538)  # RFC 4954 §6
_NOT_LET_IN_AGAIN_SECONDS = 60.0
_ENHANCED = re.compile(r"[245]\.\d{1,3}\.\d{1,3}\b")  # RFC 3463
_OF_THE_SENDER = ("5.1.7", "5.1.8")
_LONGEST_WORDS = 300


class Away(DeliveryFailed):
    """The server cannot be reached, or does not speak with us now. Nothing was sent."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the outgoing mail server cannot be used ({why})", retryable=True)


class NotLetIn(DeliveryFailed):
    """The user name, the password or the token is not accepted."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the outgoing mail server does not let us in ({why}); check [email.smtp]",
            retryable=True,
            retry_after=_NOT_LET_IN_AGAIN_SECONDS,
        )


class Deferred(DeliveryFailed):
    """The server asks to try again later (4xx)."""

    def __init__(self, said: str) -> None:
        super().__init__(f"the mail server puts it off ({said})", retryable=True)


class Rejected(DeliveryFailed):
    """The server does not take this mail (5xx)."""

    def __init__(self, said: str) -> None:
        super().__init__(f"the mail server refused it ({said})", retryable=False)


class NoSuchRecipient(Rejected):
    """The address does not exist: a hard bounce. `recipient` is the address, `status` as in 5.1.1 or None."""

    def __init__(self, recipient: str, said: str, status: str | None) -> None:
        super().__init__(said)
        self.recipient, self.status = recipient, status


def failure(code: int, said: bytes) -> DeliveryFailed:
    """What a reply other than the one hoped for means, at any step but the greeting and the login."""
    words = reply(code, said)
    if code in _NOT_LET_IN:
        return NotLetIn(words)
    # What is no reply at all proves nothing about the mail.
    return Rejected(words) if 500 <= code < 600 else Deferred(words)


def failure_of_recipient(address: str, code: int, said: bytes) -> DeliveryFailed:
    """The same for RCPT, where a 5xx can be about the address itself (RFC 3463 §3.2)."""
    found = _ENHANCED.match(said.decode("utf-8", "replace"))
    status = found[0] if found else None
    is_of_address = status is None or (status.startswith("5.1.") and status not in _OF_THE_SENDER)
    if code in (550, 551, 553) and is_of_address:
        return NoSuchRecipient(address, reply(code, said), status)
    return failure(code, said)


def reply(code: int, said: bytes | str) -> str:
    """A reply on one line."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return f"{code} {visible(' '.join(text.split()))[:_LONGEST_WORDS]}".strip()


def unreached(error: Exception, host: str, port: int) -> str:
    """Why there is no connection, and to where, in words for the operator."""
    if isinstance(error, ssl.SSLError):
        return refusal(error, host)
    if isinstance(error, socket.gaierror):
        return f"the name {host} is not known ({error.strerror}); look at host in the settings"
    return f"{host}:{port}: {why(error)}"


def why(error: Exception) -> str:
    """What went wrong with a connection, in words for the operator."""
    if isinstance(error, smtplib.SMTPResponseException):
        return reply(error.smtp_code, error.smtp_error)
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return "it does not offer STARTTLS"
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return "it closed the connection"
    return getattr(error, "strerror", None) or type(error).__name__
