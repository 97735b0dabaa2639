"""How do headers, text, HTML and files become the bytes of a mail? Pure: the same values, the same bytes.

mixed ( alternative ( text/plain, text/html ), file, … )
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP

from pizzabot.messages import Attachment

from .headers import Heads, header_lines, one_line

_POLICY = SMTP.clone(max_line_length=76)  # of quoted-printable and base64: RFC 2045, 6.7 and 6.8
_MEDIA_TYPE = re.compile(r"([a-z]+)/([a-z0-9][a-z0-9.+-]{0,100})")
# Types that hold mails must not be encoded (RFC 2045, 6.4), so they travel as unknown bytes.
_STRUCTURED = ("multipart", "message")
_LONGEST_NAME = 120
_MOSTLY_OTHER_LETTERS = 1 / 3  # from here on base64 is shorter than quoted-printable


def assembled(heads: Heads, text: str, html: str, attachments: Sequence[Attachment] = ()) -> bytes:
    """The mail. Lines are never wrapped by clients or servers: both texts are encoded, not flowed."""
    body = EmailMessage(policy=_POLICY)
    body.set_content(text, cte=_encoding(text))
    body.add_alternative(html, subtype="html", cte=_encoding(html))
    for attachment in attachments:
        _attach(body, attachment)
    _set_boundaries(body, heads.message_id)
    return header_lines(heads) + body.as_bytes()


def _encoding(text: str) -> str:
    other = sum(1 for character in text if not character.isascii())
    return "base64" if other > len(text) * _MOSTLY_OTHER_LETTERS else "quoted-printable"


def _attach(body: EmailMessage, attachment: Attachment) -> None:
    found = _MEDIA_TYPE.fullmatch(attachment.media_type.lower())
    kind, subtype = (found[1], found[2]) if found else ("application", "octet-stream")
    if kind in _STRUCTURED:
        kind, subtype = "application", "octet-stream"
    body.add_attachment(
        attachment.data,
        maintype=kind,
        subtype=subtype,
        filename=_file_name(attachment.filename),
        params={"charset": "utf-8"} if kind == "text" else None,
    )


def _file_name(untrusted: str) -> str:
    """The last part of a path, as one line, never hidden."""
    name = one_line(untrusted.replace("\\", "/").rpartition("/")[2], _LONGEST_NAME)
    return name.replace('"', "'").lstrip(".") or "file"


def _set_boundaries(body: EmailMessage, message_id: str) -> None:
    """Boundaries that follow from the mail's name; `=_` is in no encoded line (RFC 2045, 6.7)."""
    mark = hashlib.sha256(message_id.encode()).hexdigest()[:24]
    for number, part in enumerate(part for part in body.walk() if part.is_multipart()):
        part.set_boundary(f"=_{number}_{mark}")
