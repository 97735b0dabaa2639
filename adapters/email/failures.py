"""What keeps us from a mail server, and what does an operator read about it?

not there, cut off, silent    -> Unreachable: tried again soon
not let in                    -> NotLetIn: tried again seldom, until the operator does something
said NO or BAD to a command   -> Declined: the connection is as good as before
"""

from __future__ import annotations

import imaplib
import re
import socket
import ssl

from pizzabot.errors import PizzaBotError
from pizzabot.text import visible

from .tls import refusal

_MOST_WORDS = 200
# Response codes that say that it is not the password's fault (RFC 5530 §3).
_PASSING = ("UNAVAILABLE", "INUSE", "LIMIT", "SERVERBUG")
_CODE = re.compile(r"\[([A-Z]+)")


class Unreachable(PizzaBotError):
    """There is no connection, or there is none any more."""

    code = "unreachable"


class NotLetIn(PizzaBotError):
    """The server is there and refuses who we are."""

    code = "unauthorized"


class Declined(PizzaBotError):
    """The server does not do what one command asked for."""

    code = "declined"


def words(error: BaseException) -> str:
    """What the server said, as one line for a person."""
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return visible(text.strip())[:_MOST_WORDS] or type(error).__name__


def failed(error: Exception, host: str, port: int) -> PizzaBotError:
    """An error of the socket or of imaplib as one of ours."""
    place = f"{host}:{port}"
    if isinstance(error, ssl.SSLError):
        return Unreachable(refusal(error, host))
    if isinstance(error, TimeoutError):
        return Unreachable(f"{place} does not answer")
    if isinstance(error, socket.gaierror):
        return Unreachable(f"the name {host} is not known ({error.strerror}); look at host in the settings")
    if isinstance(error, OSError):
        return Unreachable(f"{place} cannot be reached ({error.strerror or type(error).__name__})")
    if isinstance(error, imaplib.IMAP4.abort):
        return Unreachable(f"{place} closed the connection ({words(error)})")
    return Declined(words(error))


def login_failed(error: Exception, host: str, port: int, username: str) -> PizzaBotError:
    """Why a login did not succeed. `error` is that of imaplib, as the server gave it."""
    if isinstance(error, imaplib.IMAP4.abort | OSError):
        return failed(error, host, port)
    said = words(error)
    code = _CODE.search(said)
    if code is not None and code[1] in _PASSING:
        return Unreachable(f"{host} lets nobody in at the moment: {said}")
    return NotLetIn(
        f"{host} refused the login of {visible(username)}: {said}; look at username and password or oauth"
    )
