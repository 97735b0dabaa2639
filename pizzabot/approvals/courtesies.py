"""Which lines of a text are mere form? Greeting, closing formula, name and signature. Pure.

Without a delimiter nothing says where a signature begins, so these are strict: a line that could be meant as
a word on the matter is none of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

from pizzabot.approvals import vocabulary as v
from pizzabot.approvals.grammar import QUESTIONS, SENTENCE, WORD, Grammar, plain, turns

_SIGNATURE_LINES, _SIGNATURE_WIDTH = 6, 80
_MOST_ADDRESSED = 3  # words
_GREETING_ENDS = re.compile(r"[.!。！]+\s+")


def core(text: str, author: Collection[str], grammar: Grammar) -> list[str]:
    """The filled lines without the greeting, the closing formula and the `author`'s names."""
    names = _name_parts(author, grammar)
    lines = [line for line in text.split("\n") if line]
    lines = _without_name(_without_greeting(lines), names)
    for at in range(max(0, len(lines) - _SIGNATURE_LINES - 1), len(lines)):
        if _closes(lines[at]) and _is_signature(lines[at + 1 :], author, names):
            return _without_name(lines[:at], names)
    return lines


def _without_greeting(lines: list[str]) -> list[str]:
    """Without "Hi Ledger," on a line of its own or before the first sentence."""
    if not lines:
        return lines
    if _greets(lines[0]):
        return lines[1:]
    end = _GREETING_ENDS.search(lines[0], 0, SENTENCE)
    return [lines[0][end.end() :], *lines[1:]] if end and _greets(lines[0][: end.start()]) else lines


def _greets(line: str) -> bool:
    """Whether it is a greeting, perhaps with a name, and nothing that could be meant as a word on the matter.

    Names have a capital, where a script has any: "Hi, do not" is the beginning of a sentence.
    """
    lowered = plain(line)
    found = v.GREETING.match(lowered) if len(line) <= SENTENCE and len(lowered) == len(line) else None
    if found is None:
        return False
    named = line[found.end() :].strip(" ,.!:，。！：\u00a0")
    words = named.replace(",", " ").replace("，", " ").split()
    return (
        len(words) <= _MOST_ADDRESSED
        and all(word[0].isalpha() and (not word[0].islower() or word in v.ADDRESSED) for word in words)
        and not _means_something(named)
    )


def _means_something(line: str) -> bool:
    """Whether a line that looks like a name could be meant as a word on the matter."""
    lowered = plain(line)
    return bool(
        QUESTIONS.search(line) or turns(line) or v.STATEMENT.search(lowered) or v.VERDICTS.search(lowered)
    )


def _without_name(lines: list[str], names: frozenset[str]) -> list[str]:
    """Without the author's name at the end, on lines of its own or behind thanks."""
    while lines and _is_name(lines[-1], names):
        lines = lines[:-1]
    if not lines or len(lines[-1]) > SENTENCE:
        return lines
    found = list(WORD.finditer(lines[-1]))
    behind = len(lines[-1])
    for word in reversed(found):
        if word[0].lower() not in names:
            break
        behind = word.start()
    if (
        behind < len(lines[-1])
        and not QUESTIONS.search(lines[-1])
        and v.SIGNED.search(lines[-1][:behind].lower())
    ):
        return [*lines[:-1], lines[-1][:behind].rstrip(" ,")]
    return lines


def _closes(line: str) -> bool:
    """Whether it is a closing formula, in one or two languages: "Mit freundlichen Grüßen / Kind regards"."""
    parts = plain(line).split("/")
    return len(line) <= _SIGNATURE_WIDTH and all(v.CLOSING.fullmatch(part.strip()) for part in parts)


def _is_signature(lines: Sequence[str], author: Collection[str], names: frozenset[str]) -> bool:
    """Whether these are the author's name, titles and numbers, and nothing that could be meant otherwise.

    Where the author is not known, any name may stand there.
    """
    return (
        len(lines) <= _SIGNATURE_LINES
        and all(
            len(line) <= _SIGNATURE_WIDTH
            and not _means_something(line)
            and (not line[0].islower() or "@" in line or line.startswith(("www.", "http")))
            for line in lines
        )
        and (not lines or not names or _signs(lines[0], author, names))
    )


def _signs(line: str, author: Collection[str], names: frozenset[str]) -> bool:
    """Whether a part of the author's name stands in a line, or their initials are all of it."""
    words = WORD.findall(unicodedata.normalize("NFC", line))
    initials = "".join(words)
    return any(word.lower() in names for word in words) or (
        initials.isupper()
        and any("".join(word[0] for word in WORD.findall(name)).startswith(initials) for name in author)
    )


def _name_parts(names: Collection[str], grammar: Grammar) -> frozenset[str]:
    parts = {part.lower() for name in names for part in WORD.findall(unicodedata.normalize("NFC", name))}
    return frozenset(
        p for p in parts if not v.TURNS.search(p) and not v.VERDICTS.search(p) and not grammar.any.search(p)
    )


def _is_name(line: str, names: frozenset[str]) -> bool:
    found = WORD.findall(line.lower())
    return bool(found) and all(word in names for word in found) and not QUESTIONS.search(line)
