"""Is what a person wrote a clear decision? A strict grammar, pure, shared by every channel that reads words.

    text -> greeting and closing off -> one clear word, and nothing that takes it back -> a verdict
                                     -> sounds like a decision, and is none            -> unclear: ask
                                     -> anything else                                  -> a message

Only a clear word decides: an approval is the whole text apart from courtesy; a rejection may give its reason.
Silence, doubt, conditions, questions, two words, typing errors and look-alike letters never decide.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pizzabot.approvals import vocabulary as v
from pizzabot.approvals.courtesies import core
from pizzabot.approvals.grammar import (
    ENGLISH,
    QUESTIONS,
    SENTENCE,
    SENTENCE_END,
    WORD,
    Grammar,
    Words,
    grammar,
    plain,
    sentences,
    tidy,
    turns,
)
from pizzabot.messages import Verdict

EMPTY = "there is no answer in it"
QUESTION = "it is a question"
TWO_WORDS = "it says two different things"
MORE = "it says more than the one word that decides"
NOT_A_WORD = "it sounds like a decision, but none of the words that decide stands in it alone"
TOO_SHORT = "it is short and holds none of the words that decide"
NO_RESPONSE = "a response needs a text behind the colon"
TOO_LONG = "the reason is too long"

MOST_REASON = 10_000
_FEW_WORDS, _FEW_LETTERS, _FEWEST_LETTERS = 4, 40, 12
_HESITATES = re.compile(r"\.\s*\.|…")
_SEPARATOR = re.compile(r"\s*(?:[:,;.!\n–—]|-\s|\s-\s?)\s*")
_SUBJECTS = frozenset(
    ("i", "i'm", "i'll", "i'd", "we", "we'll", "please", "let's", "do", "don't", "go", "can't")
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says to a question. With a verdict it decides; with `why` it is unclear; else a message.

    `reason` is that of a rejection, `response` the text of a response, `rest` what an approval says besides
    and what must go on to the agent. `why` completes "I cannot tell what you decided: …".
    """

    verdict: Verdict | None = None
    reason: str = ""
    response: str = ""
    rest: str = ""
    why: str = ""

    @property
    def unclear(self) -> bool:
        return bool(self.why)


MESSAGE = Reading()
__all__ = ["ENGLISH", "MESSAGE", "Reading", "Words", "read"]


def read(text: str, words: Words = ENGLISH, names: Collection[str] = ()) -> Reading:
    """What `text` says; `names` are those of its author, which may stand below it."""
    patterns = grammar(words)
    lines = core(tidy(text), names, patterns)
    body = "\n".join(lines)
    if not lines:
        return Reading(why=EMPTY)
    if (response := v.RESPOND.match(plain(body))) is not None:
        return _response(body[response.end() :].strip(), patterns)
    return _approval(body, patterns) or _rejection(body, patterns) or _other(body, patterns)


# -- clear decisions --------------------------------------------------------------------------------------


def _approval(body: str, patterns: Grammar) -> Reading | None:
    """A clear approval, or one of the words on an uncertain call."""
    first, rest = _aside(body)
    if QUESTIONS.search(first) or _HESITATES.search(first) or len(first) > SENTENCE:
        return None
    meant = [s for s in sentences(first) if not patterns.courtesy.fullmatch(s)]
    if not meant:
        return None
    clear = [patterns.approval.fullmatch(s) is not None for s in meant]
    if any(clear) and all(c or s in v.BEFORE_APPROVAL for c, s in zip(clear, meant, strict=True)):
        return Reading(Verdict.APPROVE, rest=rest)
    for verdict, pattern in patterns.outcomes.items():
        if not rest and len(meant) == 1 and pattern.fullmatch(meant[0]):
            return Reading(verdict)
    return None


def _aside(body: str) -> tuple[str, str]:
    """An approval, and behind it an unrelated question: "Approve. Also, what time is it?"."""
    end = SENTENCE_END.search(body)
    if end is None:
        return body, ""
    rest = body[end.end() :].strip()
    lowered = plain(rest)
    if v.ASIDE.fullmatch(lowered) and not turns(rest) and not v.RETRACTS.search(lowered):
        return body[: end.start()], rest
    return body, ""


def _rejection(body: str, patterns: Grammar) -> Reading | None:
    """A clear rejection with its reason."""
    lowered = plain(body)
    # A letter that becomes two in lower case would shift what is cut out below.
    found = patterns.rejection.match(lowered) if len(lowered) == len(body) else None
    if found is None:
        return None
    after = body[found.end() :]
    is_no = found["word"] == "no"
    separated = _SEPARATOR.match(plain(after))
    reason = after[separated.end() :].strip() if separated else after.strip()
    reason = _without_courtesy(reason, patterns)
    explicit = bool(separated and (":" in separated[0] or "\n" in separated[0]))
    if not reason:
        return None if QUESTIONS.search(after) or _HESITATES.match(after.strip()) else Reading(Verdict.REJECT)
    if len(reason) > MOST_REASON:
        return Reading(why=TOO_LONG)
    if is_no and (separated is None or v.NO_BUT_YES.search(plain(reason))):
        return None
    if separated is None and found["word"][0].isalpha() and not v.REASON.match(plain(reason)):
        return None
    return _judged_reason(reason, patterns, explicit=explicit and not is_no)


def _judged_reason(reason: str, patterns: Grammar, *, explicit: bool) -> Reading | None:
    lowered = plain(reason)
    if not WORD.search(reason) or v.CONDITION.match(lowered):
        return None
    if any(
        patterns.approval.fullmatch(sentence) for sentence in sentences(lowered) if len(sentence) <= SENTENCE
    ):
        return Reading(why=TWO_WORDS)
    if not explicit:
        if patterns.assent.search(lowered) or v.RETRACTS.search(lowered):
            return Reading(why=TWO_WORDS)
        if QUESTIONS.search(reason):
            return Reading(why=QUESTION)
    return Reading(Verdict.REJECT, reason=reason)


def _without_courtesy(reason: str, patterns: Grammar) -> str:
    bare = " ".join(plain(reason).split()).strip(" ,.!")
    return "" if len(bare) <= SENTENCE and (not bare or patterns.courtesy.fullmatch(bare)) else reason


def _response(response: str, patterns: Grammar) -> Reading:
    if not response:
        return Reading(why=NO_RESPONSE)
    if _approval(response, patterns) or _rejection(response, patterns):
        return Reading(why=TWO_WORDS)
    return (
        Reading(Verdict.RESPOND, response=response) if len(response) <= MOST_REASON else Reading(why=TOO_LONG)
    )


# -- no decision: a question back, or a message --------------------------------------------------------------


def _other(body: str, patterns: Grammar) -> Reading:
    beginning = plain(body)[:SENTENCE]
    words = WORD.findall(beginning)
    verdicts = set(_found(beginning))
    question = QUESTIONS.search(body) is not None
    if not any(map(str.isalnum, body)) and not verdicts:
        return Reading(why=EMPTY)
    if len(verdicts) > 1:
        return Reading(why=TWO_WORDS)
    if _opens(beginning, words, patterns) or (
        v.FOREIGN.search(" ".join(words[:4])) and not (question and len(words) > 4)
    ):
        return Reading(why=QUESTION if question else MORE if verdicts else NOT_A_WORD)
    if question:
        return MESSAGE
    return Reading(why=TOO_SHORT) if _is_short(body, words) else MESSAGE


def _found(text: str) -> Iterable[str]:
    for match in v.VERDICTS.finditer(text):
        yield "no" if match[0].startswith(("rej", "dec", "den", "ref", "👎", "❌")) else "yes"


def _opens(beginning: str, words: Sequence[str], patterns: Grammar) -> bool:
    """Whether the first words sound like a decision."""
    first = " ".join(words[:6])
    start = beginning.lstrip("\"'“([-> ")
    if re.search("[👍👎✅❌]", beginning) or patterns.any.match(start) or v.FOREIGN_FIRST.match(start):
        return True
    if v.SOUNDS.match(start) and (len(words) <= _FEW_WORDS or v.VERDICTS.search(first) or not _talks(words)):
        return True
    return bool(words) and bool(
        difflib.get_close_matches(words[0], ("approve", "approved", "reject", "rejected"), 1, 0.8)
    )


def _talks(words: Sequence[str]) -> bool:
    """Whether it goes on about something: "I think that …", "Please send me …"."""
    return words[0] in _SUBJECTS


def _is_short(body: str, words: Sequence[str]) -> bool:
    """Whether it is too short to be work for the agent; scripts without spaces are counted by letters."""
    letters = sum(map(str.isalnum, body))
    return letters <= _FEWEST_LETTERS or (len(words) <= _FEW_WORDS and letters < _FEW_LETTERS)
