"""Which parts is a mail made of, and is it of a size that can be read?

The tree of parts (RFC 2046 §5.1) is found by searching for the delimiter lines, outermost first, which takes
time in proportion to size times depth. The standard library's parser works line by line, descends without a
limit, and dies on a mail of a thousand nested parts. Bodies stay encoded here, and attached mails are never
opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..letters import MAX_BYTES, MAX_HEADER_BYTES
from .headers import Headers, headers_of, parameters

MAX_PARTS = 200
MAX_DEPTH = 30
# Lines that begin like a delimiter and are none; a boundary such as "-" in a long text costs time for each.
_MAX_CANDIDATES = 10_000

_HEADER_END = re.compile(rb"\r?\n\r?\n")
_MAILBOX_LINE = re.compile(rb"From [^:\s]")
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,64}/[a-z0-9!#$&^_.+-]{1,64}")


class OverLimit(Exception):
    """The mail is larger than one that is read; the message says which limit."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its header, and either further parts or a body as it was sent.

    `media_type` is a lower-case type/subtype; text/plain where none or nonsense is named (RFC 2045 §5.2).
    `is_closed` is False for a multipart without its last delimiter or without any, and for what holds one.
    `has_body` is False when the empty line below the header is missing.
    """

    headers: Headers
    media_type: str
    body: bytes = b""
    parts: tuple[Part, ...] = ()
    is_closed: bool = True
    has_body: bool = True

    def walk(self) -> Iterator[Part]:
        """This part and all below it, in their order."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(slots=True)
class _Left:
    """How many more parts and delimiter lines are looked at."""

    parts: int = MAX_PARTS
    candidates: int = _MAX_CANDIDATES


def halves(raw: bytes) -> tuple[bytes, bytes]:
    """Header and body of a mail, of the header at most as much as is read of one."""
    start = _start(raw)
    header_end, body_start = _borders(raw, start, len(raw))
    return raw[start : min(header_end, start + MAX_HEADER_BYTES)], raw[body_start:]


def tree(raw: bytes) -> Part:
    """The parts of a mail.

    Raises:
        OverLimit: it is over `MAX_BYTES`, `MAX_HEADER_BYTES`, `MAX_PARTS` or `MAX_DEPTH`.
    """
    if len(raw) > MAX_BYTES:
        raise OverLimit(f"the mail is larger than {MAX_BYTES // 2**20} MiB")
    return _part(raw, _start(raw), len(raw), 0, "text/plain", _Left())


def _part(raw: bytes, start: int, end: int, depth: int, default: str, left: _Left) -> Part:
    left.parts -= 1
    if left.parts < 0:
        raise OverLimit(f"the mail has more than {MAX_PARTS} parts")
    if depth > MAX_DEPTH:
        raise OverLimit(f"the mail has parts nested deeper than {MAX_DEPTH}")
    header_end, body_start = _borders(raw, start, end)
    if header_end - start > MAX_HEADER_BYTES:
        raise OverLimit(f"a header is larger than {MAX_HEADER_BYTES // 1024} KiB")
    headers = headers_of(raw[start:header_end])
    media_type, given = parameters(headers.first("content-type"))
    if not _MEDIA_TYPE.fullmatch(media_type):
        media_type = default
    boundary = given.get("boundary", "").rstrip(" ")
    if not media_type.startswith("multipart/"):
        return Part(headers, media_type, raw[body_start:end], has_body=body_start > header_end)
    if not boundary:
        return Part(headers, media_type, is_closed=False, has_body=body_start > header_end)
    spans, is_closed = _spans(raw, body_start, end, boundary.encode("utf-8", "replace"), left)
    inner = "message/rfc822" if media_type == "multipart/digest" else "text/plain"
    parts = tuple(_part(raw, first, last, depth + 1, inner, left) for first, last in spans)
    is_closed = is_closed and all(part.is_closed for part in parts)
    return Part(headers, media_type, b"", parts, is_closed, body_start > header_end)


def _start(raw: bytes) -> int:
    """Behind the line "From " that a mailbox file puts before each mail."""
    return raw.find(b"\n") + 1 if _MAILBOX_LINE.match(raw) else 0


def _borders(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the header ends and where the body begins; equal when there is no empty line."""
    for empty in (b"\r\n", b"\n"):
        if raw.startswith(empty, start, end):
            return start, start + len(empty)
    found = _HEADER_END.search(raw, start, min(end, start + MAX_HEADER_BYTES + 4))
    return (found.start(), found.end()) if found else (end, end)


def _spans(
    raw: bytes, start: int, end: int, boundary: bytes, left: _Left
) -> tuple[list[tuple[int, int]], bool]:
    """Where each part begins and ends, and whether the last delimiter is there."""
    spans: list[tuple[int, int]] = []
    opened: int | None = None
    delimiter = b"--" + boundary
    at = start
    while (at := raw.find(delimiter, at, end)) >= 0:
        left.candidates -= 1
        if left.candidates < 0:
            raise OverLimit("the mail has too many lines that begin like a delimiter")
        line_end = raw.find(b"\n", at, end)
        next_line = end if line_end < 0 else line_end + 1
        rest = raw[at + len(delimiter) : next_line].rstrip()
        if (at == start or raw[at - 1 : at] == b"\n") and rest in (b"", b"--"):
            if opened is not None:
                spans.append((opened, max(opened, _before_line_break(raw, at))))
            if len(spans) > MAX_PARTS:
                raise OverLimit(f"the mail has more than {MAX_PARTS} parts")
            if rest:
                return spans, True
            opened = next_line
            at = next_line
        else:
            at += len(delimiter)
    if opened is not None:
        spans.append((opened, end))
    return spans, False


def _before_line_break(raw: bytes, at: int) -> int:
    """The line break before a delimiter belongs to it (RFC 2046 §5.1.1)."""
    at -= raw[at - 1 : at] == b"\n"
    return at - (raw[at - 1 : at] == b"\r")
