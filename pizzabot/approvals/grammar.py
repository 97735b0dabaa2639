"""Which texts decide? The patterns that the words make, and the form in which a text meets them. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pizzabot.approvals import vocabulary as v
from pizzabot.messages import Verdict

SENTENCE = 200  # characters; a longer one is no decision
QUESTIONS = re.compile("[?？¿؟՞፧\u037e⁇⁈⁉‽]")
SENTENCE_END = re.compile(r"[.!。！\n]+")
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# What moves and means nothing at the ends of a line.
_OUTER = (
    "\u200b\u200e\u200f\u2066\u2067\u2068\u2069\ufeff\u061c\u202a\u202b\u202c"  # unseen
    " \t\u00a0\u202f\u3000"  # spaces
)
_WIDE = str.maketrans("，。！：；？　\u00a0\u202f‘’", ",.!:;?   ''")
_EMOJI_LOOKS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
_EMPHASIS = re.compile(r"(?<!\w)([*_]{1,3})(?=\S)([^*_\n]{1,80})(?<=\S)\1(?!\w)")


@dataclass(frozen=True, slots=True)
class Words:
    """Words that decide beside the English ones, as in `Words(approve=frozenset({"freigegeben"}))`."""

    approve: frozenset[str] = frozenset()
    reject: frozenset[str] = frozenset()

    @classmethod
    def of(cls, approve: Iterable[str], reject: Iterable[str]) -> Words:
        """As the settings have them (`[approvals.words]`)."""
        return cls(frozenset(approve), frozenset(reject))


ENGLISH = Words()


@dataclass(frozen=True, slots=True)
class Grammar:
    """The patterns that some words make; each matches lower-case text."""

    approval: re.Pattern[str]
    rejection: re.Pattern[str]
    courtesy: re.Pattern[str]
    outcomes: dict[Verdict, re.Pattern[str]]
    any: re.Pattern[str]
    assent: re.Pattern[str]


@lru_cache(maxsize=32)
def grammar(words: Words) -> Grammar:
    """The patterns of English and of `words`."""
    approve, reject = prepared(words.approve), prepared(words.reject)
    courtesy = either(v.COURTESY)
    tail = rf"(?:[ ,]+{courtesy})*[ ,]*"
    objects = rf"(?: {either(v.OBJECTS)})?"
    said = rf"(?:{either([*v.APPROVE, *approve])}{objects}|go ahead with {either(v.OBJECTS)})"
    alone = either(v.APPROVE_ALONE)
    refused = either([*v.REJECT, *reject])
    return Grammar(
        approval=re.compile(
            rf"(?:{either(v.BEFORE_APPROVAL)}[ ,]+)*{said}(?:[ ,]*(?:👍|✅))?{tail}|{alone}{tail}", re.DOTALL
        ),
        rejection=re.compile(
            rf"(?:{either(v.BEFORE_REJECTION)}[ ,.!\n-]+)*(?P<word>{refused}(?!['’\w]){objects}(?!['’\w])"
            rf"|no(?!['’\w]))"
        ),
        courtesy=re.compile(rf"{courtesy}{tail}|{v.GREETING.pattern}[ ,]*"),
        outcomes={
            verdict: re.compile(rf"(?:please[ ,]+)?{either(phrases)}{tail}")
            for verdict, phrases in (
                (Verdict.RETRY, v.RETRY),
                (Verdict.DONE, v.DONE),
                (Verdict.FAILED, v.FAILED),
            )
        },
        any=re.compile(_within([*v.APPROVE, *v.APPROVE_ALONE, *v.REJECT, *approve, *reject])),
        assent=re.compile(f"{v.ASSENT.pattern}|{_within(approve)}") if approve else v.ASSENT,
    )


def prepared(words: Iterable[str]) -> list[str]:
    """Words of the settings in the form in which a text meets them."""
    return [" ".join(plain(tidy(word)).split()) for word in words if word.strip()]


def either(words: Iterable[str]) -> str:
    """A pattern for any of these words."""
    return "(?:" + "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) + ")"


def _within(words: Iterable[str]) -> str:
    return rf"(?<!\w){either(words)}(?!\w)"


def turns(text: str) -> bool:
    """Whether words stand in it that deny, restrict, postpone or doubt, in one of the known languages."""
    lowered = plain(text)
    return v.TURNS.search(lowered) is not None or v.TURNS_ELSEWHERE.search(lowered) is not None


def tidy(text: str) -> str:
    """One form for equal texts; letters stay what they are, so that look-alikes never match."""
    question = bool(QUESTIONS.search(text))
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    if question and "?" not in text:
        text += "?"  # the Greek question mark is a semicolon after normalisation, others are exotic
    lines = (_EMPHASIS.sub(r"\2", _EMOJI_LOOKS.sub("", line)) for line in text.split("\n"))
    return "\n".join(line.strip(_OUTER) for line in lines)


def plain(text: str) -> str:
    """A text for matching: lower case, with ASCII's punctuation and spaces."""
    return text.translate(_WIDE).lower()


def sentences(text: str) -> list[str]:
    """The sentences of a text, for matching."""
    return [
        part
        for sentence in SENTENCE_END.split(plain(text))
        if (part := " ".join(sentence.split()).strip(", "))
    ]
