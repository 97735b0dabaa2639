"""Which text can a database hold, and which can a person see?

No database takes NUL and half a surrogate pair; no person sees control, bidi and other format characters.
"""

from __future__ import annotations

import re
import unicodedata

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")

# Characters that join letters and choose the look of an emoji; without them whole scripts fall apart. They
# move nothing.
_JOINERS = "\u200c\u200d\ufe0e\ufe0f"
_HIDING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# Letters and marks by their category that show nothing: default-ignorable code points (Unicode, DerivedCore-
# Properties) and two that are blank by design.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)


def is_storable(text: str) -> bool:
    """Whether every database takes `text` as it is."""
    return _NOT_STORABLE.search(text) is None


def storable(text: str) -> str:
    """`text` of a model or a tool, with a replacement character for what no database holds."""
    return _NOT_STORABLE.sub("\ufffd", text)


def with_newlines(text: str) -> str:
    """`text` with every line break as a newline: forms send CR LF, whatever they were given."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def dollars(usd: float) -> str:
    """`$1.20`, and the digits that matter of small sums: `$0.0042`, `< $0.0001`."""
    if 0 < usd < 0.0001:
        return "< $0.0001"
    return f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def counted(count: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def visible(text: str, *, body: bool = False) -> str:
    r"""`text` with control, ANSI, bidi and other unseen characters written out, as in `\x1b` and `\u202e`.

    The body of a message keeps its line breaks and tabs; everything else becomes one line.
    """
    if body:
        text = text.replace("\r\n", "\n")
    # Most texts end here: printable is all but controls, formats and separators other than the space.
    bare = text.replace("\n", "").replace("\t", "") if body else text
    if bare.isprintable() and _BLANK.search(bare) is None:
        return text
    kept = _JOINERS + ("\n\t" if body else "")
    return "".join(c if c in kept or not _hides(c) else _written_out(c) for c in text)


def exact(text: str) -> str:
    """`text` with whatever could be taken for nothing or for a space written out: for arguments."""
    seen = visible(text, body=True)
    if seen.isascii():
        return seen
    before = " " + seen
    return "".join(_written_out(c) if _is_nothing(c, b) else c for c, b in zip(seen, before, strict=False))


def _is_nothing(character: str, before: str) -> bool:
    """An odd space, or a joiner where there is nothing to join: behind a plain letter or sign."""
    if character in _JOINERS:
        return before.isascii() or before in _JOINERS
    return character != " " and unicodedata.category(character) == "Zs"


def _hides(character: str) -> bool:
    return unicodedata.category(character) in _HIDING or _BLANK.match(character) is not None


def _written_out(character: str) -> str:
    named = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(character)
    if named is not None:
        return named
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
