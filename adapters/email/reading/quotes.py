"""Which lines of a mail are new, and which did its program repeat? Pure, line by line, in linear time.

    lines -> prefixed quotes, attributions, copied headers and what stands below them: all marked as quoted

A quote is recognised by what surely begins one: `>`, our own marker line, a copied header of at least three
labels, a separator, or an attribution ("On … X wrote:"). Anything else stays the person's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pizzabot.approvals import vocabulary
from pizzabot.approvals.grammar import turns

from ..letters import REPLY_ABOVE, Ours
from . import reply_phrases

_CONTROLS = "\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\u061c"
_PREFIX = re.compile(rf"[\s{_CONTROLS}]*>")
_PREFIXES = re.compile(rf"(?:[\s{_CONTROLS}]*>)+[ \u00a0]?")
_LONGEST = 500  # characters of a line that is looked at: no header and no attribution is longer
_WRAPPED = 3  # lines that one attribution may take
_HEADER_LINES = 24  # filled lines that a copied header may take
_TITLE_GAP = 3  # lines between a title and the header below it
_HEADER_GAP = 2  # blank or continued lines inside a copied header
_DIGIT_DATE = re.compile(r"\d{1,4}[./年년-]\s?\d{1,2}|\d{1,2}[:.]\d{2}|\b(?:19|20)\d\d\b")
_ONLY_DATE = re.compile(
    r"\s*(?:\w{2,12},? )?\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}:\d{2}(?::\d{2})?(?: [AP]M)?\s*"
)
_CONDITION = re.compile(r"\b(?:not|no|only|but|if|unless|until|before|after|half|part|wait)\b")
_ONLY_ADDRESS = re.compile(r"[\s<]*[^\s@<>]{1,80}@[^\s@<>]{1,120}[\s>]*")
_ADDRESS = re.compile(r"[^\s@<>]@[^\s@<>]{1,100}\.[^\s@<>]")
_ENDS = (":", "：", "--")
_ENDING = " \t\u00a0*_\u200b\u200e\u200f\u202a\u202b\u202c\u2068\u2069\ufeff"  # what may stand behind them
_LAST_WORDS = 25  # characters in which the verb stands when an attribution ends without a colon
_MARKER = " ".join(REPLY_ABOVE.strip("= ").lower().split())


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line break; `quoted` lines are not the person's own."""

    text: str
    quoted: bool = False

    @property
    def is_blank(self) -> bool:
        return not self.text.strip(" \t\u00a0\u200b\ufeff")


def bare(line: str) -> str:
    """A line without its quote prefixes."""
    return _PREFIXES.sub("", line, count=1) if _PREFIX.match(line) else line


def marked(lines: Sequence[Line], ours: Ours) -> list[Line]:
    """The same lines, with everything marked as quoted that is."""
    return _Marking([x if x.quoted else Line(x.text, bool(_PREFIX.match(x.text))) for x in lines], ours).run()


class _Marking:
    """One pass from top to bottom over the lines that nothing marked so far."""

    def __init__(self, lines: list[Line], ours: Ours) -> None:
        self.lines = lines
        self.short = [x.text[:_LONGEST] for x in lines]
        self.filled = [i for i, x in enumerate(lines) if not x.is_blank]
        self.ours = _our_addresses(ours)

    def run(self) -> list[Line]:
        position = 0
        while position < len(self.filled):
            at = self.filled[position]
            if self.lines[at].quoted:
                position += 1
                continue
            found = self._beginning(position)
            if found is None:
                position += 1
                continue
            first, after = found
            if after < len(self.filled) and self.lines[self.filled[after]].quoted:
                self._mark(first, self.filled[after])
                position = after
                continue
            self._mark(first, len(self.lines))
            break
        return self.lines

    def _mark(self, start: int, end: int) -> None:
        self.lines[start:end] = [Line(x.text, quoted=True) for x in self.lines[start:end]]

    def _beginning(self, position: int) -> tuple[int, int] | None:
        """Whether a quote begins here: its first line, and the filled line behind what introduces it."""
        at = self.filled[position]
        text = self.short[at]
        if _MARKER in " ".join(text.lower().split()):
            return self._envelope(position), position + 1
        if reply_phrases.ORIGINAL.fullmatch(text) or reply_phrases.FORWARD_BEGINS.fullmatch(text):
            return at, self._after_introduction(position + 1)
        if (end := self._header(position)) is not None:
            return self._above(position), end
        return self._attribution(position)

    # -- copied headers ----------------------------------------------------------------------------------

    def _header(self, position: int) -> int | None:
        """Where a copied header ends that begins here; None when it is none."""
        kinds: set[str] = set()
        end, gap, has_address = position, 0, False
        for index in range(position, min(position + _HEADER_LINES, len(self.filled))):
            line = self.short[self.filled[index]]
            label = reply_phrases.LABEL.match(line)
            if label is None:
                if index == position or gap == _HEADER_GAP or (gap and len(kinds) >= 4):
                    break
                gap += 1
                continue
            gap = 0
            kinds.add(label.lastgroup or "")
            has_address = has_address or bool(_ADDRESS.search(line))
            end = index + 1
        kinds.discard("other")
        enough = len(kinds) >= 3 or (len(kinds) == 2 and has_address)
        return end if enough and kinds & {"origin", "date"} and kinds & {"origin"} else None

    def _after_introduction(self, position: int) -> int:
        """Behind the header or the attribution that a separator may have below it."""
        if position >= len(self.filled) or self.lines[self.filled[position]].quoted:
            return position
        if (end := self._header(position)) is not None:
            return end
        attribution = self._attribution(position)
        return position if attribution is None else attribution[1]

    def _above(self, position: int) -> int:
        """The line where what belongs to a header begins: a rule or a dashed title may stand above it."""
        start = self.filled[position]
        for above in reversed(self.filled[max(0, position - 2) : position]):
            text = self.short[above]
            titled = (
                reply_phrases.RULE.fullmatch(text)
                or reply_phrases.DASHED.fullmatch(text)
                or _ONLY_ADDRESS.fullmatch(text)
            )
            if not titled or self.lines[above].quoted or start - above > _TITLE_GAP:
                break
            start = above
        return start

    def _envelope(self, position: int) -> int:
        """The line where what introduces our marker begins, upwards: headers, attributions, rules."""
        start = self.filled[position]
        for index in range(position - 1, max(-1, position - 13), -1):
            at = self.filled[index]
            above = self.short[self.filled[index - 1]] if index else ""
            if self.lines[at].quoted or not (
                self._introduces(self.short[at]) or reply_phrases.BARE_LABEL.fullmatch(above)
            ):
                break
            start = at
        return start if self._is_introduction(start, position) else self.filled[position]

    def _is_introduction(self, start: int, position: int) -> bool:
        """Whether it is more than one line that begins like a header and tells nothing: "To: half of it"."""
        lines = [self.short[at] for at in self.filled[max(0, position - 12) : position] if at >= start]
        return len(lines) != 1 or not (
            reply_phrases.LABEL.match(lines[0])
            and not _ADDRESS.search(lines[0])
            and not _DIGIT_DATE.search(lines[0])
        )

    def _introduces(self, text: str) -> bool:
        lowered = text.lower()
        return bool(
            reply_phrases.LABEL.match(text)
            or reply_phrases.BARE_LABEL.fullmatch(text)
            or _ONLY_DATE.fullmatch(text)
            or reply_phrases.RULE.fullmatch(text)
            or (reply_phrases.DASHED.fullmatch(text) and not turns(text))
            or (self.ours and self.ours.search(lowered))
            or (_ends(text) and _DIGIT_DATE.search(text) and reply_phrases.says_wrote(lowered))
        )

    # -- attributions ------------------------------------------------------------------------------------

    def _attribution(self, position: int) -> tuple[int, int] | None:
        """Whether an attribution begins here, on one line or wrapped."""
        start = self.filled[position]
        for length in range(1, _WRAPPED + 1):
            last = position + length - 1
            if last >= len(self.filled) or self.filled[last] - start != length - 1:
                return None
            if self.lines[self.filled[last]].quoted:
                return None
            joined = " ".join(self.short[start : start + length]).strip()
            if length == 2 and not self._opens(self.short[start]):
                return None
            if len(joined) > _LONGEST:
                return None
            follows = last + 1 < len(self.filled) and self.lines[self.filled[last + 1]].quoted
            if self._attributes(joined, before_quote=follows):
                return start, last + 1
        return None

    def _opens(self, text: str) -> bool:
        """Whether a wrapped attribution may begin with this line."""
        lowered = text.lower()
        return bool(
            reply_phrases.ATTRIBUTION_START.match(lowered)
            or (self.ours and self.ours.search(lowered))
            or (_DIGIT_DATE.search(text) and (_ADDRESS.search(text) or "<" in text))
        )

    def _attributes(self, text: str, *, before_quote: bool) -> bool:
        ends = _ends(text)
        lowered = text.lower()
        our = bool(self.ours and self.ours.search(lowered))
        addressed = our or bool(_ADDRESS.search(text))
        dated = bool(_DIGIT_DATE.search(text))
        if not ends and not before_quote:
            # "On … <X> wrote", without a colon.
            return dated and addressed and reply_phrases.says_wrote(lowered[-_LAST_WORDS:])
        wrote = reply_phrases.says_wrote(lowered)
        if not (dated or addressed or ends) or not (wrote or our or _is_bare(lowered)):
            return False
        if dated and addressed and (ends or before_quote):
            return True
        if ends and wrote and (dated or our):
            return True
        if not before_quote:
            return False
        return wrote or bool(dated and ends and reply_phrases.ATTRIBUTION_START.match(lowered))


def _is_bare(lowered: str) -> bool:
    """Whether no word stands in a line without a verb that makes it a condition: "On 10.3. only, a@b.c:"."""
    return vocabulary.TURNS_ELSEWHERE.search(lowered) is None and _CONDITION.search(lowered) is None


def _ends(text: str) -> bool:
    return text.rstrip(_ENDING).endswith(_ENDS)


def _our_addresses(ours: Ours) -> re.Pattern[str] | None:
    """Our addresses, with any token behind a plus."""
    parts = [address.lower().rpartition("@") for address in ours.addresses if "@" in address]
    if not parts:
        return None
    return re.compile(
        "|".join(
            rf"{re.escape(local)}(?:\+[\w.=-]{{1,200}})?@{re.escape(domain)}" for local, _, domain in parts
        )
    )
