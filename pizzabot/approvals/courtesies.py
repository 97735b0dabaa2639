"""Which lines of a text are mere form? Greeting, closing formula, name and signature. Pure.

Without a delimiter nothing says where a signature begins, so these are strict: a line that could be meant as
a word on the matter is none of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence

from pizzabot.approvals import vocabulary as v
from pizzabot.approvals.grammar import QUESTIONS, SENTENCE, WORD, Grammar, plain

_SIGNATURE_LINES, _SIGNATURE_WIDTH = 6, 80


def core(text: str, author: Collection[str], grammar: Grammar) -> list[str]:
    """The filled lines without the greeting, the closing formula and the `author`'s names."""
    names = _name_parts(author, grammar)
    lines = [line for line in text.split("\n") if line]
    if lines and len(lines[0]) <= SENTENCE and v.GREETING.fullmatch(plain(lines[0])):
        lines = lines[1:]
    lines = _without_name(lines, names)
    for at in range(max(0, len(lines) - _SIGNATURE_LINES - 1), len(lines)):
        if _closes(lines[at]) and _is_signature(lines[at + 1 :]):
            return _without_name(lines[:at], names)
    return lines


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


def _is_signature(lines: Sequence[str]) -> bool:
    """Whether these are names, titles and numbers, and nothing that could be meant as a word on it."""
    return len(lines) <= _SIGNATURE_LINES and all(
        len(line) <= _SIGNATURE_WIDTH
        and not QUESTIONS.search(line)
        and not v.TURNS.search(plain(line))
        and (not line[0].islower() or "@" in line or line.startswith(("www.", "http")))
        for line in lines
    )


def _name_parts(names: Collection[str], grammar: Grammar) -> frozenset[str]:
    parts = {part.lower() for name in names for part in WORD.findall(unicodedata.normalize("NFC", name))}
    return frozenset(
        p for p in parts if not v.TURNS.search(p) and not v.VERDICTS.search(p) and not grammar.any.search(p)
    )


def _is_name(line: str, names: frozenset[str]) -> bool:
    found = WORD.findall(line.lower())
    return bool(found) and all(word in names for word in found) and not QUESTIONS.search(line)
