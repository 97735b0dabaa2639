"""Which arguments for a tool does a plain English sentence hold?

A JSON Schema and a sentence go in, arguments and the names of what is missing come out. Nothing is invented:
an optional property without a word for it in the sentence is left out, a required one is named as missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pizzabot.agent import demo_words as words

Schema = Mapping[str, Any]

_AFTER = {
    "for": "note description reason purpose memo item comment",
    "about": "subject title topic query q text content message body question search",
    "to": "to recipient recipients destination address email person payee attendee",
    "in": "city location place where country region",
    "from": "from vendor merchant store shop supplier sender",
}
_OTHER_WORDS = {
    "for": ("on", "about"),
    "about": ("for", "saying", "on"),
    "in": ("at", "for"),
    "from": ("at",),
}
_PHRASE_END = re.compile(
    r"[,;!?\n]|\.(?:\s|$)|\s(?:tagged|tags|labelled|labeled|yesterday|today|tomorrow|and\s+tag\w*|please)\b"
    r"|\s(?:on|in|at|for)\s+(?=[€$¥£]?\d)|\s(?:on|for|about|saying)\s+",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?<![\w-])(?:(?:EUR|USD|JPY|GBP)\s*)?[€$¥£]?\s?\d[\d.,]*\s?(?:[€$¥£]|\b(?:EUR|USD|JPY|GBP|euros?|dollars?|yen|pounds?)\b)?",
    re.IGNORECASE,
)
_MARKED = re.compile(
    r"\b(?:tagged|tags?|labelled|labeled|labels?)\b.*|\b(?:yesterday|today|tomorrow)\b", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]|(?<!\w)'([^']+)'(?!\w)")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ABSENT = object()


@dataclass(frozen=True)
class Filled:
    """The arguments a sentence holds, and the required properties it says nothing about."""

    args: dict[str, Any]
    missing: tuple[str, ...]


@dataclass(frozen=True)
class _Sentence:
    text: str
    today: date
    commands: frozenset[str]
    used: set[str]


def fill(schema: Schema, text: str, *, today: date, commands: frozenset[str] = frozenset()) -> Filled:
    """The arguments for a tool from `text`.

    Args:
        schema: JSON Schema of the tool's arguments.
        text: what the person asked for.
        today: the day that "yesterday" is relative to.
        commands: stems of the tool's name, which are no part of a free text.
    """
    sentence = _Sentence(text, today, commands, set())
    required = tuple(schema.get("required", ()))
    args: dict[str, Any] = {}
    for name, declared in schema.get("properties", {}).items():
        value = _value(name, _plain(declared, schema), sentence, required=name in required)
        if value is not _ABSENT:
            args[name] = value
    return Filled(args, tuple(name for name in required if name not in args))


def _plain(declared: Schema, root: Schema) -> Schema:
    """`declared` without references and without the "or null" of optional values."""
    if "$ref" in declared:
        return _plain(root.get("$defs", {}).get(str(declared["$ref"]).rsplit("/", 1)[-1], {}), root)
    for key in ("anyOf", "oneOf", "allOf"):
        for option in declared.get(key, ()):
            if option.get("type") != "null":
                return {**{k: v for k, v in declared.items() if k != key}, **_plain(option, root)}
    return declared


def _value(name: str, declared: Schema, sentence: _Sentence, *, required: bool) -> Any:
    value = _evidence(name, declared, sentence, required=required)
    if value is _ABSENT and required:
        return declared.get("default", declared.get("const", _ABSENT))
    return value


def _evidence(name: str, declared: Schema, sentence: _Sentence, *, required: bool) -> Any:
    kind = declared.get("type")
    if "enum" in declared:
        return _choice(declared["enum"], sentence.text)
    if kind in ("number", "integer"):
        return _number(name, sentence, whole=kind == "integer")
    if kind == "boolean":
        return _switch(name, sentence.text, required=required)
    if kind == "array":
        return _items(name, declared, sentence)
    return _string(name, declared, sentence, required=required) if kind == "string" else _ABSENT


def _choice(options: list[Any], text: str) -> Any:
    named = words.currency(text)
    for option in options:
        spoken = re.escape(str(option).replace("_", " "))
        if option == named or re.search(rf"(?<!\w){spoken}(?!\w)", text, re.IGNORECASE):
            return option
    return _ABSENT


def _number(name: str, sentence: _Sentence, *, whole: bool) -> Any:
    free = [
        (written, value)
        for written, value in words.numbers(sentence.text)
        if written not in sentence.used and (value.is_integer() or not whole)
    ]
    beside = re.search(
        rf"\b{re.escape(name)}\W{{0,3}}(?:of |is )?(\d[\d.,]*\d|\d)", sentence.text, re.IGNORECASE
    )
    if beside:
        free.sort(key=lambda number: number[0] != beside.group(1))
    if not free:
        return _ABSENT
    written, value = free[0]
    sentence.used.add(written)
    return int(value) if value.is_integer() else value


def _switch(name: str, text: str, *, required: bool) -> Any:
    word = re.escape(name.replace("_", " ").removeprefix("is "))
    if re.search(rf"\b(?:not|no|without|isn't)\s+{word}", text, re.IGNORECASE):
        return False
    if re.search(rf"\b{word}", text, re.IGNORECASE):
        return True
    return False if required else _ABSENT


def _items(name: str, declared: Schema, sentence: _Sentence) -> Any:
    if declared.get("items", {}).get("type", "string") != "string":
        return _ABSENT
    if name in _AFTER["to"].split() and (addresses := _EMAIL.findall(sentence.text)):
        return addresses
    singular = name.removesuffix("s")
    keys = "|".join(
        {re.escape(singular) + r"s?", *(("tagged", "labell?ed") if singular in ("tag", "label") else ())}
    )
    item = r"(?!(?:and|on|in|at|for|from|with|yesterday|today|tomorrow|please)\b)[#\w-]+"
    listed = re.search(
        rf"\b(?:{keys})(?:\s+(?:as|with))?:?\s+({item}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){item})*)",
        sentence.text,
        re.IGNORECASE,
    )
    if not listed:
        return _ABSENT
    return [found.lstrip("#") for found in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", listed.group(1))]


def _string(name: str, declared: Schema, sentence: _Sentence, *, required: bool) -> Any:
    spoken = name.lower()
    if "month" in spoken:
        return words.month(sentence.text, sentence.today) or _ABSENT
    if declared.get("format") == "date" or re.search(r"(?:^|_)(?:date|day|due|when)(?:_|$)", spoken):
        return words.day(sentence.text, sentence.today) or _ABSENT
    if declared.get("format") or "currency" in spoken:
        named = words.currency(sentence.text) if "currency" in spoken else None
        return named or _ABSENT
    return _free_text(spoken, sentence, required=required) or _ABSENT


def _free_text(name: str, sentence: _Sentence, *, required: bool) -> str:
    text = sentence.text
    for found in _QUOTED.finditer(text):
        quoted = (found.group(1) or found.group(2)).strip()
        if quoted not in sentence.used:
            sentence.used.add(quoted)
            return quoted
    group = next((word for word, names in _AFTER.items() if name in names.split()), None)
    if group == "to" and (address := _EMAIL.search(text)):
        return address.group()
    for word in (re.escape(name.replace("_", " ")) + r"(?:\s+is|\s*[:=])?", *_prepositions(group)):
        if phrase := _phrase_after(word, text, sentence.used):
            sentence.used.add(phrase)
            return phrase
    return _what_is_left(sentence) if required and group in ("for", "about") else ""


def _prepositions(group: str | None) -> tuple[str, ...]:
    return (group, *_OTHER_WORDS.get(group, ())) if group else ()


def _phrase_after(word: str, text: str, used: set[str]) -> str:
    for found in re.finditer(rf"\b{word}\s+", text, re.IGNORECASE):
        rest = text[found.end() :]
        end = _PHRASE_END.search(rest)
        phrase = _trimmed(rest[: end.start()] if end else rest)
        if phrase and phrase not in used and not _AMOUNT.fullmatch(phrase):
            return phrase
    return ""


def _trimmed(phrase: str) -> str:
    phrase = _AMOUNT.sub("", phrase) if _AMOUNT.fullmatch(phrase.strip()) else phrase
    return re.sub(r"^(?:a|an|the|my|our|some)\s+", "", phrase.strip(" .,:;!?"), flags=re.IGNORECASE).strip()


def _what_is_left(sentence: _Sentence) -> str:
    rest = _MARKED.sub(" ", _AMOUNT.sub(" ", words.without_lead_in(sentence.text)))
    commands = (
        sentence.commands | words.GENERIC | {words.stem(word) for word in ("spend", "pay", "book", "cost")}
    )
    kept = [word for word in re.findall(r"[\w'-]+", rest) if words.stems(word) - commands]
    return " ".join(kept)
