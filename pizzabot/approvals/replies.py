"""What does a written reply mean for a pending action? Words and changed values together, pure.

    own words + values + action -> a verdict with what belongs to it | a message | unclear, and why

The words alone are read by `verdicts`, the lines between the value markers by `values`. Whatever does not fit
together is unclear: it changes nothing, and the person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from pizzabot.approvals import values as value_lines
from pizzabot.approvals import verdicts
from pizzabot.approvals.verdicts import ENGLISH, Reading, Words
from pizzabot.messages import Action, Args, Verdict

DISAGREE = "its text and its HTML say different things, or something in it is hidden"
UNCHANGED = "the values came back unchanged, without a word that decides"
VALUES_AND_WORD = "it changes values and says something else, too"
COPY = "copy the lines above the quote"
CHANGED_IN_QUOTE = "values are changed in the quoted part, where it is not sure who changed them"

# What may stand beside changed values. Searched in lower-case sentences, without their end.
_CHANGES = re.compile(
    r"(?:please )?(?:(?:see|with|use|take|here (?:are|is)|find|note|i made|i have made|made|as) )?"
    r"(?:my |the |these |this |those |following |some |a )*"
    r"(?:changed?|changes|edit|edited|edits|correction|corrections|corrected|correct|update|updated|updates"
    r"|values?|fixed"
    r"|(?:changed|new|corrected|updated|edited) values?|see)(?: (?:it|them|this|below|above|here|inline"
    r"|attached|values?|to this))*"
    r"|(?:approved?|yes|ok|okay) (?:with|after) (?:(?:my|the|these|this|those|following) )*(?:changes?"
    r"|edits?|corrections?|values)"
)
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Judged:
    """What a reply means. With a `verdict` it decides; with `why` it is unclear; else it is a message.

    `args` is the full set of an edit. `message` is what goes on to the agent as words: what stands beside the
    decision, or the whole text. `why` completes "I cannot tell what you decided: …".
    """

    verdict: Verdict | None = None
    args: Args | None = None
    reason: str = ""
    response: str = ""
    message: str = ""
    why: str = ""

    @property
    def unclear(self) -> bool:
        return bool(self.why)


def judge(
    text: str,
    agrees: bool,
    values: str | None,
    action: Action,
    words: Words = ENGLISH,
    *,
    in_quote: bool = False,
    names: Collection[str] = (),
) -> Judged:
    """What a reply to `action` means.

    `text` are the person's own words without the `values`. Those are the lines that came back between the
    markers, `in_quote` or among the own words. `agrees` is False when the mail's parts contradict each other.
    `names` are those of the author.
    """
    if not agrees:
        return Judged(message=text, why=DISAGREE)
    reading = verdicts.read(text, words, names)
    if values is None:
        return _decided(reading, text, action)
    changes = value_lines.read(values, action.args_schema, action.args)
    if in_quote:
        return _with_quote(reading, changes, text, action)
    return _with_values(reading, changes, text, action)


def _with_values(reading: Reading, changes: value_lines.Changes, text: str, action: Action) -> Judged:
    """The person sent values among their own words."""
    if changes.errors:
        return Judged(message=text, why=_in_words(changes))
    if not changes.changed:
        if reading.why == verdicts.EMPTY or _announces(text):
            return Judged(message=text, why=UNCHANGED)
        return _decided(reading, text, action)
    if reading.verdict is Verdict.APPROVE or reading.why == verdicts.EMPTY or _announces(text):
        return _allowed(Judged(Verdict.EDIT, args=changes.args, message=reading.rest), text, action)
    return Judged(message=text, why=VALUES_AND_WORD)


def _with_quote(reading: Reading, changes: value_lines.Changes, text: str, action: Action) -> Judged:
    """The values stand in the quote: mostly what we sent, perhaps changed there, or spoilt on the way."""
    if changes.is_cut or not (changes.changed or changes.errors):
        return _decided(reading, text, action)
    if not (changes.errors or changes.doubtful) and reading.why == verdicts.EMPTY and not text.strip():
        # Nothing was written but the change, and no program changes a value so.
        return _allowed(Judged(Verdict.EDIT, args=changes.args), text, action)
    if changes.errors and reading.why == verdicts.EMPTY:
        return Judged(message=text, why=_in_words(changes))
    spoilt = not changes.changed
    if spoilt and reading.verdict in (None, Verdict.REJECT, Verdict.RESPOND):
        return _decided(reading, text, action)
    return Judged(message=text, why=_in_quote(reading, changes))


def _in_quote(reading: Reading, changes: value_lines.Changes) -> str:
    """Why values in the quote do not count, and what to do so that they do."""
    if changes.errors:
        return f"in the quoted part {_in_words(changes)}; leave the quote out, or {COPY}"
    if changes.doubtful:
        return f"{CHANGED_IN_QUOTE}; {COPY}"
    words = "Approve" if reading.verdict is Verdict.APPROVE else "what you wrote"
    return f"{CHANGED_IN_QUOTE}; take {words} away, or {COPY}"


def _decided(reading: Reading, text: str, action: Action) -> Judged:
    if reading.verdict is None:
        return Judged(message=text, why=reading.why)
    judged = Judged(reading.verdict, reason=reading.reason, response=reading.response, message=reading.rest)
    return _allowed(judged, text, action)


def _allowed(judged: Judged, text: str, action: Action) -> Judged:
    if judged.verdict in action.allowed_decisions:
        return judged
    possible = ", ".join(action.allowed_decisions)
    return Judged(message=text, why=f"{judged.verdict} is not possible here; possible: {possible}")


def _announces(text: str) -> bool:
    """Whether the words only say that there is a change."""
    said = " ".join(text.lower().split()).strip(" .:!,")
    return len(said) <= _LONGEST and _CHANGES.fullmatch(said) is not None


def _in_words(changes: value_lines.Changes) -> str:
    """What is wrong with the values, the first few."""
    found = [f"{name or 'the lines'} {error}" for name, error in (changes.errors or {}).items()]
    return "; ".join(found[:3]) + ("; …" if len(found) > 3 else "")
