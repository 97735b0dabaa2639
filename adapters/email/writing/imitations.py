"""How does a text from outside say a marker line of ours without being one? Pure.

Whoever answers sends our mail back as a quote, where the markers tell what is whose. A text between them that
held markers of its own could pass for values that nobody was shown.
"""

from __future__ import annotations

import re

from pizzabot.text import visible

from ..letters import BEGIN_VALUES, END_VALUES, REPLY_ABOVE

# Clients join and break lines and change brackets, and readers drop what is not seen.
_BETWEEN = "[\\s\u200c\u200d\ufe0e\ufe0f]*"
_OPENING, _CLOSING = r"[\[［【]", r"[\]］】]"


def _spelled(words: str) -> str:
    letters = (re.escape(letter) for letter in words if not letter.isspace())
    return _BETWEEN.join(letters)


_BLOCK = "|".join(_spelled(marker.strip("[ ]")) for marker in (BEGIN_VALUES, END_VALUES))
_ABOVE = REPLY_ABOVE.strip("= ")
# The character by which a marker is broken: the bracket before its words, or the first letter.
_BREAK = re.compile(
    rf"{_OPENING}(?={_BETWEEN}(?:{_BLOCK}){_BETWEEN}{_CLOSING})"
    rf"|{_ABOVE[0]}(?={_BETWEEN}{_spelled(_ABOVE[1:])})",
    re.IGNORECASE,
)


def imitates(text: str) -> bool:
    """Whether a marker of ours, or what a reader could take for one, stands in `text`."""
    return _BREAK.search(text) is not None


def harmless(text: str) -> str:
    r"""`text` as it is, with one character of each marker written out, as in `[\x5b end values ]]`."""
    return _BREAK.sub(lambda found: _written_out(found[0]), text)


def line(text: str) -> str:
    """`text` of others as one line that shows all it holds."""
    return harmless(visible(" ".join(text.split())))


def body(text: str) -> str:
    """`text` of others with its line breaks."""
    return harmless(visible(text, body=True)).strip()


def _written_out(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
