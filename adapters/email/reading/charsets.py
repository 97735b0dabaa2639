"""Which characters do these bytes mean? Mail names its charset, and the name is often wrong.

What is labelled as a small charset is read as the larger one that contains it, as browsers do (WHATWG
Encoding §4.2): programs that say iso-8859-1 write windows-1252. Bytes that are valid UTF-8 are UTF-8 whatever
a label of one byte per character says, for no such text looks like it by chance; short Chinese text does, and
its label counts. Nothing here fails; what cannot be read becomes U+FFFD.
"""

from __future__ import annotations

import codecs

from pizzabot.text import storable

_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "iso8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "iso2022_jp": "iso2022_jp_ext",
}
# Names of the world's mail programs that Python does not know.
_ALIASES = {
    "x-sjis": "cp932",
    "shift-jis": "cp932",
    "x-euc-jp": "euc_jp",
    "ks_c_5601-1987": "cp949",
    "x-gbk": "gb18030",
    "x-windows-949": "cp949",
    "x-mac-roman": "mac_roman",
    "macintosh": "mac_roman",
    "iso-8859-8-i": "iso8859_8",
    "iso-8859-8-e": "iso8859_8",
    "windows-874": "cp874",
    "unicode-1-1-utf-7": "utf-7",
    "unicode-1-1-utf-8": "utf-8",
    "utf8mb4": "utf-8",
    "big5-hkscs": "big5hkscs",
    "ansi_x3.4-1968": "ascii",
}
# Codecs of Python that are no charsets of mail; some are slow on long input.
_NO_CHARSETS = frozenset(
    ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem")
)
# More than one byte for a character; the label is looked at first.
_WIDE = (
    "utf-16",
    "utf-32",
    "utf-7",
    "iso2022",
    "hz",
    "gb",
    "big5",
    "cp93",
    "cp94",
    "cp95",
    "euc",
    "shift",
    "johab",
)


def text_of(data: bytes, label: str | None) -> str:
    """`data` as text that a database holds, read as `label` says where that is possible."""
    charset = _codec(label) or "utf-8"
    charset = _WIDER.get(charset, charset)
    for attempt in (charset, "utf-8-sig") if charset.startswith(_WIDE) else ("utf-8-sig", charset):
        try:
            return storable(data.decode(attempt))
        except (UnicodeError, ValueError):
            continue
    return storable(_broken_utf8(data) if charset.startswith("utf-8") else data.decode(charset, "replace"))


def _codec(label: str | None) -> str | None:
    """Python's own name of the charset; None for an unknown one."""
    name = (label or "").strip().strip("'\"").lower()
    name = _ALIASES.get(name, name)
    if not name.isascii() or not 0 < len(name) <= 40 or "\0" in name:
        return None
    try:
        codec = codecs.lookup(name)
        b"".decode(name)  # refuses what maps bytes to bytes, as base64 does
    except (LookupError, UnicodeError, ValueError):
        return None
    return None if codec.name in _NO_CHARSETS else codec.name


def _broken_utf8(data: bytes) -> str:
    """UTF-8 with a few broken characters, or text of one byte per character with a wrong label."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    others = sum(1 for character in text if not character.isascii()) - broken
    return text if others >= broken else data.decode("cp1252", "replace")
