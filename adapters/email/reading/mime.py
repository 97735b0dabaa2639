"""Which text was written in a mail, and which files came with it? (RFC 2045, 2046, 2183, 2387, 1847)

Every text of the body is kept, in its order: what stands behind an attached picture belongs to it, too. An
attached mail is a file and never somebody's own words here.
"""

from __future__ import annotations

import html
import mimetypes
import quopri
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pizzabot.messages import Attachment
from pizzabot.text import visible, with_newlines

from ..letters import MAX_HEADER_BYTES
from .charsets import text_of
from .flowed import unflowed
from .headers import decoded, from_base64, headers_of, parameters
from .shape import OverLimit, Part

MAX_TEXT = 1_048_576  # characters, all plain texts together: as much as one message may have
MAX_HTML = 4 * MAX_TEXT  # the same text with its markup
MAX_FILES = 20
MAX_FILENAME = 255

_TYPES = mimetypes.MimeTypes()  # the built-in table: the same on each machine
_TYPES.add_type("text/calendar", ".ics")

# Signatures over the rest; they are of no use to a reader.
_SIGNATURES = frozenset(
    ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
)
# Parts of a report that programs read (RFC 6522, 3464, 8098); the report itself is a text beside them.
_REPORTS = frozenset(
    (
        "message/delivery-status",
        "message/global-delivery-status",
        "message/disposition-notification",
        "message/global-disposition-notification",
        "text/rfc822-headers",
    )
)
_LONGEST_GIST = 100_000  # Word puts a long style before the text
_UNSEEN = [
    (re.compile(rf"<{tag}\b", re.IGNORECASE), re.compile(rf"</{tag}[^<>]*>", re.IGNORECASE))
    for tag in ("head", "style", "script")
] + [(re.compile("<!--"), re.compile("-->"))]
_BREAKS = re.compile(r"</?(?:br|p|div|tr|li|h[1-6])\b[^<>]*>", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Content:
    """What a mail holds: `texts` and `html` of its body in their order, and its files.

    `left_out` counts the files beyond `MAX_FILES`.
    """

    texts: tuple[str, ...]
    html: tuple[str, ...]
    files: tuple[Attachment, ...]
    left_out: int


def content(mail: Part) -> Content:
    """The texts and files of a mail.

    Raises:
        OverLimit: its texts are longer than `MAX_TEXT` or `MAX_HTML`.
    """
    texts: list[str] = []
    rich: list[str] = []
    files: list[Part] = []
    for part, is_alternative in _leaves(mail, is_alternative=False):
        if part.media_type in _SIGNATURES or part.media_type in _REPORTS:
            continue
        is_file = _is_file(part)
        if part.media_type == "text/plain" and not is_file:
            texts.append(_bounded(part, MAX_TEXT, texts))
        elif part.media_type == "text/html" and not is_file:
            rich.append(_bounded(part, MAX_HTML, rich))
        elif not is_alternative or is_file or part.media_type == "text/calendar":
            files.append(part)
    kept = tuple(_attachment(part, number) for number, part in enumerate(files[:MAX_FILES], 1))
    return Content(tuple(texts), tuple(rich), kept, len(files) - len(kept))


def _bounded(part: Part, limit: int, before: Sequence[str]) -> str:
    """The text of a part, which is not even decoded when it cannot be below `limit` with those before it."""
    text = body_text(part) if len(part.body) <= 16 * limit else ""
    if len(part.body) > 16 * limit or len(text) + sum(map(len, before)) > limit:
        raise OverLimit(f"its {part.media_type} is longer than {limit:,} characters")
    return text


def gist(held: Content) -> str:
    """What the body begins with, roughly: enough to tell a robot by its words, never somebody's answer."""
    plain = next((text for text in held.texts if text.strip()), "")
    if plain or not held.html:
        return plain
    markup = _BREAKS.sub("\n", _shown(held.html[0][:_LONGEST_GIST]))
    return html.unescape(re.sub(r"<[^<>]*>", " ", markup)).replace("\xa0", " ").strip()


def _shown(markup: str) -> str:
    """Markup without comments, head, styles and scripts. Split, not searched: time grows with length only."""
    for opening, closing in _UNSEEN:
        shown, *hidden = opening.split(markup)
        # What is never closed is not shown either.
        ends = [closing.split(piece, maxsplit=1) for piece in hidden]
        markup = " ".join((shown, *(after for _, *rest in ends for after in rest)))
    return markup


def body_bytes(part: Part) -> bytes:
    """The body without its transfer encoding (RFC 2045 §6); as it stands where that is unknown."""
    encoding = part.headers.first("content-transfer-encoding").strip().lower()
    if encoding == "base64":
        return from_base64(part.body)
    if encoding == "quoted-printable":
        return quopri.decodestring(part.body)
    return part.body


def body_text(part: Part) -> str:
    """The text of a text part, with newlines, unwrapped where its wrapping is marked."""
    data = body_bytes(part)
    _, given = parameters(part.headers.first("content-type"))
    label = given.get("charset")
    if label is None and part.media_type == "text/html" and (meta := _META_CHARSET.search(data, 0, 2_048)):
        label = meta[1].decode("ascii")
    text = with_newlines(text_of(data, label))
    if part.media_type == "text/plain" and given.get("format", "").lower() == "flowed":
        return unflowed(text, delsp=given.get("delsp", "").lower() == "yes")
    return text


def _leaves(part: Part, *, is_alternative: bool) -> Iterator[tuple[Part, bool]]:
    """The parts that hold something, and whether each is but another form of what stands beside it."""
    if not part.parts:
        if not part.media_type.startswith("multipart/"):
            yield part, is_alternative
        return
    for child in part.parts:
        yield from _leaves(child, is_alternative=part.media_type == "multipart/alternative")


def _is_file(part: Part) -> bool:
    disposition, given = parameters(part.headers.first("content-disposition"))
    return disposition == "attachment" or "filename" in given or bool(_name_in_type(part))


def _name_in_type(part: Part) -> str:
    return parameters(part.headers.first("content-type"))[1].get("name", "")


def _attachment(part: Part, number: int) -> Attachment:
    return Attachment(_filename(part, number), part.media_type, body_bytes(part))


def _filename(part: Part, number: int) -> str:
    """A name that shows everything, has no folder, and keeps its end, which says what it is."""
    _, given = parameters(part.headers.first("content-disposition"))
    name = given.get("filename") or _name_in_type(part)
    if not name and part.media_type == "message/rfc822":
        name = decoded(headers_of(part.body[:MAX_HEADER_BYTES]).first("subject"))[:80] + ".eml"
    name = visible(re.split(r"[/\\]", name)[-1]).strip().lstrip(".")
    if not name:
        name = f"attachment-{number}{_TYPES.guess_extension(part.media_type) or ''}"
    stem, dot, end = name.rpartition(".")
    if len(name) > MAX_FILENAME and dot and len(end) <= 10:
        return stem[: MAX_FILENAME - len(end) - 1] + dot + end
    return name[:MAX_FILENAME]
