"""What did a person write anew in this mail? Read from the text part and from the HTML part, then compared.

    parts -> lines -> value blocks taken out -> quotes marked -> signatures, footers, warnings off -> own text

Each step only takes away what a program surely wrote. What two parts say differently decides nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..letters import BEGIN_VALUES, END_VALUES, Ours, OwnText
from . import additions
from .html_cut import Kind, seen
from .quotes import Line, bare, marked

MOST = 256_000  # characters of text that are read; nobody writes more in an answer
MOST_LINES = 20_000
_BLANKS = re.compile(r"\n(?:[ \t\u00a0]*\n){3,}")
_BLOCK = "\ue000"  # private use: stands for a block of values while the quotes are looked for


def _marker(words: str) -> re.Pattern[str]:
    inner = r"\s+".join(map(re.escape, words.strip("[ ]").split()))
    return re.compile(rf"\W*[\[［【]{{1,2}}\s*{inner}\s*[\]］】]{{1,2}}\W*", re.IGNORECASE)


_BEGIN, _END = _marker(BEGIN_VALUES), _marker(END_VALUES)
_MARKER_LENGTH = 100


@dataclass(frozen=True, slots=True)
class _Part:
    """What one kind of part says. `signed` is `full` with the signature that the HTML names as such.

    `doubtful` parts may hide or change a word, so that they prove nothing alone.
    """

    text: str
    full: str
    values: str | None
    in_quote: bool
    signed: str
    complete: bool
    doubtful: bool = False


def own_text(texts: Sequence[str], html: Sequence[str], ours: Ours) -> OwnText:
    """The new text of a mail.

    `texts` are all text/plain body parts in order, decoded and unflowed, `html` all text/html parts. It takes
    any input, raises nothing, and needs time linear in its length.
    """
    plain = _plain("\n\n".join(texts), ours) if any(map(str.strip, texts)) else None
    shown = _shown(html, ours) if any(map(str.strip, html)) else None
    if plain is None or shown is None:
        only = plain or shown
        if only is None:
            return OwnText("")
        return OwnText(only.text, only.complete and not only.doubtful, only.values, only.in_quote, only.full)
    said = _said(plain.full)
    agrees = plain.complete and shown.complete and said in (_said(shown.full), _said(shown.signed))
    best = shown if shown.full or not plain.full else plain
    values = _whole(shown, plain)
    return OwnText(best.text, agrees, values.values, values.in_quote, best.full)


def _plain(text: str, ours: Ours) -> _Part:
    lines = _lines(text[:MOST])
    complete = len(text) <= MOST and len(lines) <= MOST_LINES
    return _read([Line(x) for x in additions.unarmoured(lines[:MOST_LINES])], ours, complete=complete)


def _shown(html: Sequence[str], ours: Ours) -> _Part:
    parts = [seen(part) for part in html]
    lines = [line for part in parts for line in part.lines]
    complete = all(part.complete for part in parts) and len(lines) <= MOST_LINES
    doubtful = any(part.doubtful for part in parts)
    lines = lines[:MOST_LINES]
    without = [Line(text, kind is Kind.QUOTED) for text, kind in lines if kind is not Kind.SIGNATURE]
    found = replace(_read(without, ours, complete=complete), doubtful=doubtful)
    if len(without) == len(lines):
        return found
    signed = _read([Line(text, kind is Kind.QUOTED) for text, kind in lines], ours, complete=complete)
    return replace(found, signed=signed.full)


def _lines(text: str) -> list[str]:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n")
    return _BLANKS.sub("\n\n\n", text).split("\n")


def _read(lines: Sequence[Line], ours: Ours, *, complete: bool) -> _Part:
    collapsed, blocks = _blocks(lines)
    found = marked(collapsed, ours)
    kept = [line for run in _runs(found) for line in (*run, "")]
    own = [blocks[at] for at, line in enumerate(found) if at in blocks and not line.quoted]
    quoted = [blocks[at] for at, line in enumerate(found) if at in blocks and line.quoted]
    # Of several blocks that a person wrote all count; of those in a quote the nearest.
    values = [line for block in own for line in block] if own else quoted[0] if quoted else None
    full = "\n".join(_expanded(additions.trimmed(kept), blocks))
    return _Part(
        text="\n".join(additions.trimmed([line for line in kept if not line.startswith(_BLOCK)])),
        full=full,
        values=None if values is None else "\n".join(values),
        in_quote=not own and bool(quoted),
        signed=full,
        complete=complete,
    )


# -- values ----------------------------------------------------------------------------------------------


def _blocks(lines: Sequence[Line]) -> tuple[list[Line], dict[int, list[str]]]:
    """The lines with one line in place of each block of values, and the blocks by the index of that line."""
    collapsed: list[Line] = []
    blocks: dict[int, list[str]] = {}
    ends = _next_ends(lines)
    at = 0
    while at < len(lines):
        line = lines[at]
        if not _is(_BEGIN, line):
            collapsed.append(line)
            at += 1
            continue
        end = ends[at]
        blocks[len(collapsed)] = [bare(x.text).strip() for x in lines[at + 1 : end] if not x.is_blank]
        prefix = line.text[: len(line.text) - len(bare(line.text))]
        collapsed.append(Line(f"{prefix}{_BLOCK}{len(collapsed)}", line.quoted))
        at = end + 1 if end < len(lines) and _is(_END, lines[end]) else end
    return collapsed, blocks


def _next_ends(lines: Sequence[Line]) -> list[int]:
    """For each line where a block that begins there ends: our end marker, or where a quote begins or ends."""
    ends = [len(lines)] * (len(lines) + 1)
    for at in range(len(lines) - 2, -1, -1):
        below = lines[at + 1]
        if (
            _is(_END, below)
            or _is(_BEGIN, below)
            or (not below.is_blank and _prefixed(below) != _prefixed(lines[at]))
        ):
            ends[at] = at + 1
        else:
            ends[at] = ends[at + 1]
    return ends


def _is(marker: re.Pattern[str], line: Line) -> bool:
    return len(line.text) <= _MARKER_LENGTH and marker.fullmatch(line.text) is not None


def _prefixed(line: Line) -> bool:
    return line.quoted or bare(line.text) != line.text


def _expanded(lines: Iterable[str], blocks: dict[int, list[str]]) -> Iterable[str]:
    for line in lines:
        block = blocks.get(int(line[1:])) if line.startswith(_BLOCK) and line[1:].isdecimal() else None
        yield from [line] if block is None else [BEGIN_VALUES, *block, END_VALUES]


def _whole(shown: _Part, plain: _Part) -> _Part:
    """The part whose values are to be read: programs wrap lines in the text, and keep them in the HTML."""
    if shown.values is None or (plain.values is not None and shown.in_quote and not plain.in_quote):
        return plain
    flattened = "\n" not in shown.values and plain.values is not None and "\n" in plain.values
    return plain if flattened else shown


# -- own text --------------------------------------------------------------------------------------------


def _runs(lines: Sequence[Line]) -> Iterable[list[str]]:
    """What remains of each run of own lines between quotes."""
    run: list[str] = []
    is_first = True
    for line in [*lines, Line("", quoted=True)]:
        if not line.quoted:
            run.append(line.text)
            continue
        if any(map(str.strip, run)):
            yield _cleaned(run, is_first=is_first)
            is_first = False
        run = []


def _cleaned(run: Sequence[str], *, is_first: bool) -> list[str]:
    lines = additions.without_banner(run) if is_first else list(run)
    lines = additions.without_signature(additions.without_pictures(lines))
    lines = additions.without_disclaimer(lines)
    lines = additions.without_footers(lines)
    return [line.strip() for line in additions.without_rule(lines)]


# -- comparing -------------------------------------------------------------------------------------------

_LINK = re.compile(
    r"\s?<(?:https?|mailto|tel):[^<>\s]{1,2000}>|\[(?:image|cid|bild|imagen?)[^\]]{0,200}\]", re.IGNORECASE
)
_MARKDOWN_LINK = re.compile(r"\[([^\]\[]{0,200})\]\(https?://[^)\s]{1,2000}\)")
_BULLET = re.compile(r"^[ \t]*(?:[-*•·◦o▪§–]|\d{1,3}[.)])(?=\s)", re.MULTILINE)
_MEANINGLESS = re.compile("[\\s*_\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufe0e\ufe0f\u061c]+")
_QUOTES = str.maketrans("‘’‚‛′“”„‟″«»–—‐‑−", "'''''" + '""""""""'[:7] + "-----")


def _said(text: str) -> str:
    """A text for comparing: without spaces, marks of emphasis, bullets and the addresses of links."""
    text = _MARKDOWN_LINK.sub(r"\1", _LINK.sub("", text))
    text = unicodedata.normalize("NFKC", _BULLET.sub("", text)).translate(_QUOTES)
    return _MEANINGLESS.sub("", text)
