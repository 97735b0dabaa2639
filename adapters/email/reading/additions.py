"""What stands around the words of a person? Warnings above; signatures, footers and disclaimers below.

Each function takes the lines of one run of own text, and returns those that remain. What does not surely
come from a program stays: a word too many makes a question, a word too few could make a decision.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pizzabot.approvals.grammar import turns

from . import reply_phrases

_DELIMITER = re.compile(r"\s*(?:--|—)\s*")
_SIGNATURE_LINES = 20
_FOOTER_LENGTH = 200  # characters
_FOOTERS = 4  # one below the other; no mail has more
_TITLE_WORDS = 4
_ENOUGH = 2  # different terms of law that make a paragraph a disclaimer wherever it stands
_LINK = re.compile(r"<?https?://[^\s<>]{1,1000}>?")
_PICTURE = re.compile(r"\[(?:cid|image|bild|imagen|https?):[^\]]{0,1000}\]", re.IGNORECASE)
_ARMOUR = re.compile(r"-----(BEGIN|END) PGP (SIGNED MESSAGE|SIGNATURE)-----\s*")
_HASH = re.compile(r"(?:Hash|Charset|Comment|Version): .*")


def unarmoured(lines: Sequence[str]) -> list[str]:
    """The text of a clear-signed message, without armour, signature and dash-escapes (RFC 9580, 7)."""
    kept: list[str] = []
    place = "outside"
    for line in lines:
        armour = _ARMOUR.fullmatch(line)
        if armour:
            place = {"BEGIN SIGNED MESSAGE": "headers", "BEGIN SIGNATURE": "signature"}.get(
                " ".join(armour.groups()), "outside"
            )
        elif place == "headers":
            if not line.strip():
                place = "text"
            elif not _HASH.fullmatch(line):
                place = "text"
                kept.append(line)
        elif place == "text":
            kept.append(line.removeprefix("- "))
        elif place == "outside":
            kept.append(line)
    return kept


def without_banner(lines: Sequence[str]) -> list[str]:
    """Without the warning that a gateway put above the text."""
    kept = trimmed(lines)
    paragraph = kept[: _paragraph_end(kept, 0)]
    if not paragraph or not reply_phrases.BANNER_START.match(paragraph[0][:_FOOTER_LENGTH]):
        return kept
    if len(paragraph) == 1 and len(paragraph[0].split()) <= _TITLE_WORDS and not _warns(paragraph):
        # A title of its own, with the warning in the next paragraph.
        below = trimmed(kept[1:])
        without = _without_warning(below)
        return kept if len(without) == len(below) else without
    return _without_warning(kept)


def _without_warning(lines: Sequence[str]) -> list[str]:
    paragraph = lines[: _paragraph_end(lines, 0)]
    if not _warns(paragraph):
        return list(lines)
    last = max(i for i, line in enumerate(paragraph) if reply_phrases.BANNER_BODY.search(line))
    is_tagged = paragraph[0].lstrip().startswith("[")
    if not is_tagged and any(reply_phrases.MATTER.search(x) or "?" in x for x in paragraph[: last + 1]):
        return list(lines)
    return trimmed(lines[last + 1 :])


def _warns(paragraph: Sequence[str]) -> bool:
    """Whether a paragraph bears the mark of a gateway, or speaks as gateways do in more than one point."""
    terms = {term.lower() for line in paragraph for term in reply_phrases.BANNER_BODY.findall(line)}
    return len(terms) >= _ENOUGH or bool(paragraph and reply_phrases.BANNER_TAG.match(paragraph[0]) and terms)


def _paragraph_end(lines: Sequence[str], start: int) -> int:
    """The index of the blank line or rule that ends the paragraph."""
    for end in range(start, len(lines)):
        if not lines[end].strip() or reply_phrases.RULE.fullmatch(lines[end]):
            return end
    return len(lines)


def without_signature(lines: Sequence[str]) -> list[str]:
    """Without what follows the delimiter "-- " (RFC 3676, section 4.3), unless that is too long for one."""
    for i, line in enumerate(lines):
        if _DELIMITER.fullmatch(line):
            signature = trimmed(lines[i + 1 :])
            goes_on = bool(signature) and _goes_on(signature[0], exact=line == "-- ")
            fits = sum(1 for rest in signature if rest.strip()) <= _SIGNATURE_LINES
            return list(lines[:i]) if fits and not goes_on else list(lines)
    return list(lines)


def _goes_on(line: str, *, exact: bool) -> bool:
    """Whether it goes on with what stands above dashes that a person may have typed, and is no name."""
    if reply_phrases.GOES_ON.match(line):
        return True
    # Many programs drop the blank behind the dashes.
    return not exact and ((line[:1].islower() and "@" not in line) or _is_meant(line[:_FOOTER_LENGTH]))


def without_footers(lines: Sequence[str]) -> list[str]:
    """Without "Sent from my …" and its like at the end."""
    kept = trimmed(lines)
    for _ in range(_FOOTERS):
        # Some put the address of their shop on a line of its own.
        last = 2 if len(kept) > 1 and _LINK.fullmatch(kept[-1].strip()) else 1
        if len(kept) < last or not _is_footer(kept[-last]):
            break
        kept = trimmed(kept[:-last])
    return kept


def without_pictures(lines: Sequence[str]) -> list[str]:
    """Without the lines that stand in a text part for pictures."""
    return [line for line in lines if not _PICTURE.fullmatch(line.strip())]


def _is_footer(line: str) -> bool:
    """Whether a phone or an app wrote that line."""
    return (
        len(line) <= _FOOTER_LENGTH
        and reply_phrases.FOOTER.fullmatch(line.strip().lower()) is not None
        and not _is_meant(line)
    )


def _is_meant(line: str) -> bool:
    """Whether a line could be a person's word on the matter, however much it looks like a program's."""
    return turns(line) or reply_phrases.MATTER.search(line) is not None


def without_disclaimer(lines: Sequence[str]) -> list[str]:
    """Without the law at the end: from the first line that is surely part of it."""
    start = 0
    after_rule = False
    while start < len(lines):
        end = _paragraph_end(lines, start)
        if (cut := _disclaimer(lines[start:end], certain=after_rule)) is not None:
            return without_rule(lines[: start + cut])
        after_rule = end < len(lines) and bool(reply_phrases.RULE.fullmatch(lines[end]))
        start = end + 1
    return without_rule(lines)


def _disclaimer(paragraph: Sequence[str], *, certain: bool) -> int | None:
    """The line of a paragraph at which a disclaimer begins."""
    terms = [{term.lower() for term in reply_phrases.DISCLAIMER.findall(line)} for line in paragraph]
    different: set[str] = set().union(*terms)
    if len(different) < (1 if certain else _ENOUGH):
        return None
    first = 0 if certain else next(i for i, found in enumerate(terms) if found)
    # A person who speaks of confidential things, or of deleting some, does not speak of the mail itself.
    speaks_of_the_mail = reply_phrases.OF_THE_MAIL.search(" ".join(paragraph[first:])) is not None
    takes_back = reply_phrases.TURNS_FIRST.match(paragraph[first]) is not None
    return first if speaks_of_the_mail and not takes_back else None


def without_rule(lines: Sequence[str]) -> list[str]:
    """Without a line of dashes at the end, which stood between the text and what was cut."""
    kept = trimmed(lines)
    for _ in range(_FOOTERS):
        if not kept or not reply_phrases.RULE.fullmatch(kept[-1]):
            break
        kept = trimmed(kept[:-1])
    return kept


def trimmed(lines: Sequence[str]) -> list[str]:
    """Without blank lines at both ends."""
    filled = [i for i, line in enumerate(lines) if line.strip()]
    return list(lines[filled[0] : filled[-1] + 1]) if filled else []
