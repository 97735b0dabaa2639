"""Where does a text hold what was searched for? Marks for the found words, and a line around the best place.

Words match as the full-text index of SQLite matches them (`database/schema.py`): a token is a run of letters
and digits, a word is found at a token's beginning, and neither case nor the accents of Latin letters count.
On PostgreSQL, which minds accents, more may be marked than the index saw.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

Pieces = tuple[tuple[str, bool], ...]
EXCERPT_LENGTH = 160

_MARK = "\u0300"  # stands for every mark that the index passes over inside a token
_MARKS = "\u0300-\u0304\u0306-\u030c\u030f\u0311\u031b\u0323-\u0328\u032d\u032e\u0330\u0331"
_IS_MARK = re.compile(f"[{_MARKS}]")
# A token may begin here: neither a letter nor a letter's marks stand before.
_BEGINNING = rf"(?<![^\W_])(?<![^\W_]{_MARK})(?<![^\W_]{_MARK}{_MARK})"


class _Folding(dict[int, str]):
    """Every character as the index compares it: exactly one each, so that places stay what they were."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _fold(chr(code))
        return folded


def _fold(character: str) -> str:
    if _IS_MARK.match(character):
        return _MARK
    apart = unicodedata.normalize("NFD", character)
    if apart[0].isascii() and all(map(unicodedata.combining, apart[1:])):
        character = apart[0]
    folded = character.casefold()
    return folded if len(folded) == 1 else character.lower()[0]  # ß is no ss: the index keeps them apart


_FOLDING = _Folding()


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def _found(text: str, words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Begin, end and word of each place, in order; of two words that fit, the longer one."""
    wanted = sorted({_folded(word).replace(_MARK, "") for word in words} - {""}, key=lambda w: (-len(w), w))
    if not wanted:
        return
    folded = _folded(text)
    between = f"{_MARK}*" if _MARK in folded else ""
    patterns = ("".join(re.escape(letter) + between for letter in word) for word in wanted)
    for match in re.finditer(f"{_BEGINNING}(?:{'|'.join(patterns)})", folded):
        yield match.start(), match.end(), match[0].replace(_MARK, "")


def marked(text: str, words: Sequence[str]) -> Pieces:
    """`text` in pieces, True where a token begins with one of the words; together they are the text.

    Only the part that was searched for is marked, not the rest of its token: it shows why this was found.
    """
    pieces: list[tuple[str, bool]] = []
    done = 0
    for begin, end, _ in _found(text, words):
        if begin > done:
            pieces.append((text[done:begin], False))
        pieces.append((text[begin:end], True))
        done = end
    if done < len(text):
        pieces.append((text[done:], False))
    return tuple(pieces)


def excerpt(text: str, words: Sequence[str], length: int = EXCERPT_LENGTH) -> str:
    """One line of at most `length` characters, around the place where most of the words stand closest."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    room = length - 2  # an ellipsis at either end
    begin, end = _best(_found(line, words), room)
    end = min(end, begin + room)
    start = max(0, min(begin - (room - (end - begin)) // 2, len(line) - room))
    stop = start + room
    if start > 0 and line[start - 1] != " ":
        start = line.find(" ", start, begin) + 1 or start
    if stop < len(line) and line[stop] != " ":
        space = line.rfind(" ", end, stop)
        stop = space if space >= 0 else stop
    return f"{'…' * (start > 0)}{line[start:stop].strip()}{'…' * (stop < len(line))}"


def _best(found: Iterator[tuple[int, int, str]], room: int) -> tuple[int, int]:
    """The span of at most `room` characters with the most words; of such the shortest, then the first."""
    window: list[tuple[int, int, str]] = []
    first = 0  # of the window: what lies before it has been left behind
    count: dict[str, int] = {}
    best, span = (0, 0), (0, 0)
    for place in found:
        window.append(place)
        count[place[2]] = count.get(place[2], 0) + 1
        # A beginning is left behind when it is too far away, or when its word stands again further on.
        while first < len(window) - 1 and (place[1] - window[first][0] > room or count[window[first][2]] > 1):
            left = window[first][2]
            count[left] -= 1
            if not count[left]:
                del count[left]
            first += 1
        extent = place[1] - window[first][0]
        if (len(count), -extent) > best:
            best, span = (len(count), -extent), (window[first][0], place[1])
    return span
