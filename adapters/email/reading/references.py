"""Which mails does this one name, and what is its own name? Message identifiers (RFC 5322 §3.6.4).

Programs put more into an identifier than the grammar allows; whatever is printable, without spaces, and has
one "@" between angle brackets is taken. What is not, is no name: two mails without one are told apart by
digest.
"""

from __future__ import annotations

import re
from itertools import islice

from .headers import Headers

MAX_REFERENCES = 100

_ID = re.compile(r"<[!-;=?A-~]{1,480}@[!-;=?A-~]{1,480}>")


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
