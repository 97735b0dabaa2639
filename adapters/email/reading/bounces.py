"""What does a delivery report say of whom? (RFC 3464, and the reports of servers that write plain text)"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pizzabot.text import storable

from ..letters import Bounce
from .headers import Headers, decoded, headers_of
from .mime import body_bytes
from .robot_phrases import DELAYED, folded
from .shape import Part

_REPORTS = ("message/delivery-status", "message/global-delivery-status")
_ACTIONS = ("failed", "delayed", "delivered", "relayed", "expanded")  # RFC 3464 §2.3.3, the gravest first
_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])")  # RFC 3463 §2
_ADDRESS = re.compile(r"<?\b([A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}[A-Za-z0-9])\b>?")
# Where a plain report goes over to the mail that comes back, as qmail, Exim, Sendmail and Domino write it.
_COPY = re.compile(
    r"^[^\w\n]{0,40}(?:below this line is a copy|this is a copy of (?:the|your) message|copy of message"
    r"|original message|original headers?|undelivered message|return-path:|received:)",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST_WORDS = 500


def reported(mail: Part) -> Bounce | None:
    """The gravest thing that the delivery reports within a mail say; None when it holds none."""
    found = [bounce for part in mail.walk() if part.media_type in _REPORTS for bounce in _recipients(part)]
    return min(found, key=lambda bounce: _ACTIONS.index(bounce.action), default=None)


def guessed(headers: Headers, text: str) -> Bounce:
    """What a report in plain text says; only text that comes before the returned mail is looked at."""
    text = _COPY.split(text[:20_000], maxsplit=1)[0]
    words = folded(f"{decoded(headers.first('subject'))}\n{text}")
    failed = headers.first("x-failed-recipients")
    address = _ADDRESS.search(failed) or _ADDRESS.search(text)
    status = _STATUS.search(text)
    permanent = status is not None and status[1].startswith("5")
    is_delayed = not permanent and any(phrase in words for phrase in DELAYED)
    return Bounce(
        recipient=address[1].lower() if address else None,
        action="delayed" if is_delayed else "failed",
        status=status[1] if status else None,
        said=_one_line(text[address.end() :] if address and address.string is text else text),
    )


def _recipients(report: Part) -> Iterator[Bounce]:
    """One for each group of fields with an action (§2.3); the first group is of the whole mail (§2.2)."""
    for block in re.split(rb"(?:\r?\n){2,}", body_bytes(report).strip())[:200]:
        fields = headers_of(block)
        action = fields.first("action").split("(")[0].strip().lower()
        if action not in _ACTIONS:
            continue
        status = _STATUS.search(fields.first("status"))
        yield Bounce(
            recipient=_named(fields),
            action=action,
            status=status[1] if status else None,
            said=_one_line(_after_type(fields.first("diagnostic-code"))),
        )


def _named(fields: Headers) -> str | None:
    """The address that the mail was sent to: the original one, where the report still knows it."""
    for name in ("original-recipient", "final-recipient"):
        if address := _ADDRESS.search(_after_type(fields.first(name))):
            return address[1].lower()
    return None


def _after_type(value: str) -> str:
    """`rfc822; maria@example.com` without its type (§2.1.2)."""
    return value.partition(";")[2] or value


def _one_line(text: str) -> str:
    return storable(" ".join(text.split()))[:_LONGEST_WORDS]
