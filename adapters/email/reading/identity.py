"""Which mail is this, and which mails does it answer? Message identifiers (RFC 5322 §3.6.4), and a digest.

Programs put more into an identifier than the grammar allows; whatever is printable, without spaces, and has
one "@" between angle brackets is taken. What is not, is no name: two mails without one are told apart by
digest.
"""

from __future__ import annotations

import hashlib
import re
from itertools import islice

from .headers import Headers

MAX_REFERENCES = 100

_ID = re.compile(r"<[!-;=?A-~]{1,480}@[!-;=?A-~]{1,480}>")
# All that says who wrote what, and how the body is to be read. Received, Delivered-To, Return-Path,
# signatures and verdicts are added on the way, differently on each (RFC 5321 §4.4, RFC 8601).
_AUTHORED = ("from", "subject", "date", "message-id", "content-type", "content-transfer-encoding")


def message_id(headers: Headers) -> str | None:
    """The one well-formed Message-ID with its angle brackets; None when there is not exactly one."""
    written = headers.all("message-id")
    found = _ID.fullmatch(written[0]) if len(written) == 1 else None
    return found[0] if found else None


def references(headers: Headers) -> tuple[str, ...]:
    """The mails that it answers, nearest first: In-Reply-To, then References from their end."""
    answered = [found for value in headers.all("in-reply-to") for found in _ID.findall(value)]
    thread = [found for value in headers.all("references") for found in _ID.findall(value)]
    return tuple(islice(dict.fromkeys((*answered, *reversed(thread))), MAX_REFERENCES))


def digest(headers: Headers, body: bytes) -> str:
    """SHA-256 of what the author sent, in hex: equal for copies of one mail that came by different ways."""
    sum_ = hashlib.sha256()
    for name in _AUTHORED:
        for value in headers.all(name):
            sum_.update(f"{name}:{' '.join(value.split())}\n".encode("utf-8", "replace"))
    sum_.update(b"\n")
    sum_.update(body.replace(b"\r\n", b"\n").rstrip())
    return sum_.hexdigest()
