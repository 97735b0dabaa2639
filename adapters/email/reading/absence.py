"""Is this an absence note, where no header says so? Only its words can tell, and people use the same words.

A subject that only programs write is enough. A subject such as "Out of office" needs a text that tells of an
absence. A text alone, below "Re: …", must open with the absence and say who stands in or when an answer
comes; "Approved. I'm on holiday until Monday" is a person.
"""

from __future__ import annotations

import re

from .robot_phrases import (
    ABSENCE_SUBJECTS,
    ABSENT,
    AUTOMATIC_SUBJECTS,
    AUTOMATIC_TEXTS,
    POLITE,
    STAND_IN,
    folded,
)

_LONGEST_NOTE = 2_000  # characters that are looked at
_OPENS = " \t[(【<«\"'*"
_ENDS = re.compile(
    r"\s*(?:$|[:：(\]】)>»\"*,.!–—|-]|(?:re|aw|antw|sv)\s*[:：]|(?:until|bis|from|von)\b"
    r"|(?:to your|auf ihre|à votre|a su|alla sua|op uw)\b)"
)
_SOMEBODY_IS_ABSENT = re.compile(r"(?!(?:re|aw|fwd?|wg)\s*:).{1,80} is out of (?:the )?office\b")  # HCL Notes
_SENTENCE_ENDS = re.compile(r"(?<!\d)[.!?]+(?=\s|$)|[。！？\n]+")  # but not within "until 9.11."
_QUOTE = re.compile(
    r"^\s*(?:>|-{4,}|_{8,}|on .{0,200}wrote:|am .{0,200}schrieb)", re.IGNORECASE | re.MULTILINE
)


def absence(subject: str, text: str) -> str | None:
    """Why a mail of this subject and text is an absence note; None when it is not."""
    subject = folded(subject).lstrip(_OPENS)
    told = _told(text)
    is_absent = any(phrase in told for phrase in ABSENT)
    if told.startswith(AUTOMATIC_TEXTS):
        return "a text that only programs begin with"
    if _begins(subject, AUTOMATIC_SUBJECTS):
        return "a subject that only programs write"
    if is_absent and (_begins(subject, ABSENCE_SUBJECTS) or _SOMEBODY_IS_ABSENT.match(subject)):
        return "the subject and the text tell of an absence"
    if is_absent and any(phrase in told for phrase in STAND_IN) and _opens_with_absence(told):
        return "the sentences of an absence note"
    return None


def _told(text: str) -> str:
    """The beginning of what is not quoted, as it can be compared; its lines are kept."""
    text = _QUOTE.split(text[:_LONGEST_NOTE], maxsplit=1)[0]
    lines = (" ".join(line.split()) for line in folded(text).splitlines())
    return "\n".join(filter(None, lines)).lstrip(_OPENS)


def _begins(subject: str, phrases: tuple[str, ...]) -> bool:
    return any(subject.startswith(phrase) and _ENDS.match(subject, len(phrase)) for phrase in phrases)


def _opens_with_absence(told: str) -> bool:
    """Whether the first sentence beyond politeness tells of the absence, and of nothing before it."""
    for sentence in map(str.strip, _SENTENCE_ENDS.split(told)[:4]):
        at = min((found for phrase in ABSENT if (found := sentence.find(phrase)) >= 0), default=-1)
        if at >= 0 and (sentence.startswith(POLITE) or not re.search(r"[,;:–—，、]", sentence[:at])):
            return True
        if sentence and not sentence.startswith(POLITE):
            return False
    return False
