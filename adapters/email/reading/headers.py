"""What do the header fields of a mail say? What other programs accept must not look absent here.

Fields are unfolded (RFC 5322 §2.2.3) and keep their order. Lines that are no field are passed over, and
reading goes on to the empty line, so that no second From hides behind a broken line.
"""

from __future__ import annotations

import base64
import binascii
import quopri
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from pizzabot.text import storable

from .charsets import text_of

_FOLD = re.compile(rb"\r?\n(?=[ \t])")
_NAME = re.compile(rb"[!-9;-~]+")  # RFC 5322 §2.2: printable, no colon
# RFC 2047 §2, with the language of RFC 2231 §5; careless programs write spaces inside.
_ENCODED_WORD = re.compile(r"=\?([^?\s*]{1,40})(?:\*[^?\s]*)?\?([bBqQ])\?([^?]*)\?=")
_PARAMETER = re.compile(r';\s*([^=;\s]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)', re.DOTALL)
_CONTINUED = re.compile(r"(.+?)\*(\d{1,2})(\*?)")  # RFC 2231 §3
_LONGEST_PARAMETERS = 8_192


@dataclass(frozen=True, slots=True)
class Headers:
    """The fields from top to bottom: names in lower case, values unfolded and otherwise as they stand."""

    fields: tuple[tuple[str, str], ...] = ()

    def all(self, name: str) -> tuple[str, ...]:
        """The values of every field `name`, which is in lower case."""
        return tuple(value for field, value in self.fields if field == name)

    def first(self, name: str) -> str:
        """The topmost field `name`; "" when there is none."""
        return next((value for field, value in self.fields if field == name), "")

    def __contains__(self, name: str) -> bool:
        return any(field == name for field, _ in self.fields)


def headers_of(block: bytes) -> Headers:
    """The fields of a header block."""
    fields = []
    for line in _FOLD.sub(b"", block).split(b"\n"):
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t")
        if colon and _NAME.fullmatch(name):
            fields.append((name.decode("ascii").lower(), text_of(value, None).strip()))
    return Headers(tuple(fields))


def decoded(value: str) -> str:
    """Unstructured text with its encoded words read (RFC 2047), on one line.

    Neighbouring words are put together first: programs cut them in the middle of a character.
    """
    pieces: list[str] = []
    end, charset, pending = 0, "", b""
    for word in _ENCODED_WORD.finditer(value):
        gap = value[end : word.start()]
        if pending and (gap.strip() or word[1].lower() != charset):
            pieces.append(text_of(pending, charset))
            pending = b""
        if gap.strip() or end == 0:
            pieces.append(gap)
        charset, pending, end = word[1].lower(), pending + _bytes_of(word[2], word[3]), word.end()
    if pending:
        pieces.append(text_of(pending, charset))
    return storable(" ".join("".join((*pieces, value[end:])).split()))


def _bytes_of(encoding: str, text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    if encoding in "qQ":
        return quopri.decodestring(raw.replace(b"_", b" "))
    return from_base64(raw)


def from_base64(data: bytes) -> bytes:
    """As much as can be read of Base64: foreign characters are passed over, as RFC 2045 §6.8 asks."""
    try:
        return base64.b64decode(data + b"==")
    except (binascii.Error, ValueError):
        clean = re.sub(rb"[^A-Za-z0-9+/]", b"", data)
        return base64.b64decode(clean[: len(clean) // 4 * 4])


def parameters(value: str) -> tuple[str, Mapping[str, str]]:
    """A structured value such as a Content-Type: what stands first, in lower case, and its parameters.

    The first of two equal names counts. Pieces and charsets of RFC 2231 are put together, and encoded words
    in a quoted value are read, although RFC 2047 §5 forbids them: most programs write file names so.
    """
    value = value[:_LONGEST_PARAMETERS]
    plain: dict[str, str] = {}
    pieces: dict[str, dict[int, tuple[str, bool]]] = {}
    for name, written in _PARAMETER.findall(value):
        name, text = name.lower(), _unquoted(written)
        if continued := _CONTINUED.fullmatch(name):
            number = int(continued[2])
            pieces.setdefault(continued[1], {}).setdefault(number, (text, bool(continued[3])))
        elif name.endswith("*"):
            pieces.setdefault(name[:-1], {}).setdefault(0, (text, True))
        else:
            plain.setdefault(name, decoded(text))
    joined = {name: _joined(parts) for name, parts in pieces.items()}
    return value.partition(";")[0].strip().lower(), {**plain, **joined}


def _unquoted(written: str) -> str:
    written = written.strip()
    if len(written) >= 2 and written[0] == written[-1] == '"':
        return re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL)
    return written.lstrip('"')


def _joined(pieces: Mapping[int, tuple[str, bool]]) -> str:
    """The pieces in their order; the first names the charset: `utf-8'en'%e2%82%ac` (RFC 2231 §4)."""
    charset, data = None, b""
    for index, (text, is_encoded) in sorted(pieces.items()):
        if is_encoded and index == 0 and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)
        data += unquote_to_bytes(text) if is_encoded else text.encode("utf-8", "replace")
    return storable(text_of(data, charset))
