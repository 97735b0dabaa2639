"""Which argument does each line that came back belong to? The lines between the value markers, pure.

    line -> a name, a colon, the beginning of its value | what goes on with the value above | an error

Keyboards capitalise names, programs indent, mark and wrap lines. A line that does not surely go on with
the one above it is an error.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence

from pizzabot.messages import Args, Json
from pizzabot.text import visible

_WRAPPED = 68  # characters from which on a line may have been wrapped by a mail program
_MOST_WRAPPED = 500  # lines of one value
_COLON = re.compile("[:：]")
_BULLET = re.compile(r"(?:[-*•·◦▪]|\d{1,3}[.)])\s+")
_NAME_LIKE = re.compile(r"([^\W\d][\w.-]{0,60})\s*[:：](?:\s|$)")
_SPACES = str.maketrans("\u00a0\u202f\u3000", "   ")
_DECODER = json.JSONDecoder()
_OPENS_JSON = ("[", "{", '"', "“")


def squeezed(text: str) -> str:
    """A text for comparing: white space alone is no difference."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_SPACES).split())


def texts(block: str, args: Args, names: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The text of each argument by its name, and what is wrong with the lines.

    `names` are those that may stand there, `args` the proposed values.
    """
    found: dict[str, list[str]] = {}
    errors: dict[str, str] = {}
    known = _Names(names)
    name, previous = "", ""
    for line in filter(None, (raw.translate(_SPACES).strip() for raw in block.split("\n"))):
        if (begun := known.begun_by(line)) is not None:
            name, value = begun
            if name in found and squeezed(" ".join(found[name])) != squeezed(value):
                errors[name] = "stands there twice with different values"
            found.setdefault(name, [value])
        elif not found:
            errors[""] = f"begin with a line that names none of them: {_shown(line)}"
        elif _goes_on(found[name], previous, line, args.get(name)):
            found[name].append(line)
        elif (unknown := _NAME_LIKE.match(line)) is not None:
            errors[unknown[1]] = "is not among the values"
        else:
            errors.setdefault(name, f"goes on over a line break, which may not be meant: {_shown(line)}")
        previous = line
    return {key: " ".join(filter(None, parts)) for key, parts in found.items()}, errors


class _Names:
    """The names by the ways in which a line may begin with them."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self._folded: dict[str, str | None] = {}
        for name in names:
            # Names that differ only by case, or by spaces, are told apart by nothing less.
            for form in {squeezed(name), squeezed(name).lower()}:
                self._folded[form] = name if self._folded.get(form, name) == name else None

    def begun_by(self, line: str) -> tuple[str, str] | None:
        """The name that a line begins with, and what stands behind its colon."""
        for text in (line, _BULLET.sub("", line, count=1), line.lstrip("*_")):
            if (found := self._quoted(text) or self._plain(text, marked=text is not line)) is not None:
                return found
        return None

    def _plain(self, text: str, *, marked: bool) -> tuple[str, str] | None:
        colon = _COLON.search(text)
        if colon is None:
            return None
        before, behind = text[: colon.start()], text[colon.end() :]
        for form in (before, before.rstrip("*_ ")):
            name = self._named(form)
            if name is not None:
                return name, behind.lstrip("*_ " if marked else " ")
        return None

    def _named(self, form: str) -> str | None:
        if form in self._names:
            return form
        form = squeezed(form)
        return self._folded.get(form) or self._folded.get(form.lower())

    def _quoted(self, text: str) -> tuple[str, str] | None:
        if not text.startswith('"'):
            return None
        try:
            name, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            return None
        behind = text[end:].lstrip()
        return (name, behind[1:].lstrip()) if name in self._names and _COLON.match(behind) else None


def _goes_on(parts: Sequence[str], previous: str, line: str, proposed: Json) -> bool:
    """Whether a line surely goes on with the value above: JSON, the proposal, or a full line above."""
    if len(parts) > _MOST_WRAPPED:
        return False
    if parts[0].startswith(_OPENS_JSON):
        return True
    if isinstance(proposed, str) and squeezed(" ".join([*parts, line])) in squeezed(proposed):
        return True
    if len(previous) + 1 + len(line.split()[0]) > _WRAPPED:
        return True
    return not any(parts) and _NAME_LIKE.match(line) is None


def _shown(line: str) -> str:
    line = visible(line)
    return line if len(line) <= 60 else line[:59] + "…"
