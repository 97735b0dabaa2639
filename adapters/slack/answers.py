"""How does an answer of any length become messages? Pure: Markdown to parts that each fit into one message.

    Markdown -> top-level blocks -> packed in order into up to four messages -> else a file and its beginning

Slack renders Markdown in `markdown` blocks, 12,000 characters in all of a message; in practice about 13,200
of JSON. Tables have a block of their own, one in a message; a further or a larger one is set in monospace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from pizzabot.text import visible

from .blocks import Block, context, markdown, plain_text, shortened
from .text import escaped, harmless, no_marks, parser

_MESSAGE_CHARACTERS = 11_500  # of Markdown, and of JSON in all, in one message
_MESSAGES = 4
# Taking more apart would keep everybody waiting, and is read in a file anyway.
_LONGEST_SPLIT = _MESSAGE_CHARACTERS * (_MESSAGES + 2)
_BEGINNING = 1_500
_FRAME = len('[{"type": "markdown", "text": ""}]')
_PIECE = _MESSAGE_CHARACTERS - 500  # of JSON; the rest is for fences and for what makes them blocks
_TABLE_ROWS, _TABLE_COLUMNS, _COLUMN_WIDTH = 100, 20, 40
_FALLBACK = 300  # what a notification shows
_INFO = 40  # of a fence: more is no name of a language
_LONG_RUN = re.compile("(`{20}|~{20})(?=[`~])")  # no fence needs more
_FENCE = re.compile(r"^([\s>]*(?:(?:[-*+]|\d{1,9}[.)])[\s>]+)*)(`{3,}(?=[^`]*$)|~{3,})(.*)$")


@dataclass(frozen=True, slots=True)
class Part:
    """One message: its blocks, and its text for notifications and screen readers."""

    text: str
    blocks: list[Block]


@dataclass(frozen=True, slots=True)
class File:
    """A file that is shared behind the messages."""

    filename: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is sent: the messages in order, then the file, when there is one."""

    parts: tuple[Part, ...]
    file: File | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stays together: a piece of Markdown, or a table as its rows and in monospace."""

    markdown: str
    rows: tuple[tuple[str, ...], ...] = ()


def answer(text: str, *, title: str | None = None, filename: str = "answer.md") -> Answer:
    """The messages of an answer; `title` names its thread where the place does not."""
    head = [context(plain_text(shortened(visible(title), 150)))] if title else []
    text = visible(text, body=True).strip() or "(There is no text in this answer.)"
    messages = _messages(text) if len(text) <= _LONGEST_SPLIT else None
    if messages is None or len(messages) > _MESSAGES:
        return _as_file(text, head, filename)
    parts = [Part(_fallback(text), [*head, *messages[0]])]
    parts += [Part("(continued)", blocks) for blocks in messages[1:]]
    return Answer(tuple(parts))


def _as_file(text: str, head: list[Block], filename: str) -> Answer:
    beginning = _cut(text, _BEGINNING)
    note = context(plain_text(f"The whole answer has {len(text):,} characters and is in {filename} below."))
    blocks = [*head, *_messages(beginning)[0], note]
    return Answer((Part(_fallback(text), blocks),), File(filename, text.encode()))


def _cut(text: str, most: int) -> str:
    """The beginning, up to the last end of a paragraph or line."""
    short = text[:most]
    for end in ("\n\n", "\n", " "):
        if (at := short.rfind(end)) > most // 2:
            return short[:at] + "\n\n…"
    return short + "…"


def _fallback(text: str) -> str:
    return escaped(shortened(" ".join(text[: _FALLBACK * 2].split()), _FALLBACK))


# -- Markdown to pieces --------------------------------------------------------------------------------------


def _pieces(text: str) -> Iterator[_Piece]:
    """The top-level blocks in order, each small enough for a message of its own."""
    lines = text.split("\n")
    tokens = parser().parse(text)
    at = 0
    for index, token in enumerate(tokens):
        if token.level != 0 or token.map is None or token.nesting < 0:
            continue
        start, end = token.map
        # Between blocks stand blank lines and link definitions.
        yield from _prose("\n".join(lines[at:start]))
        at = max(at, end)
        source = "\n".join(lines[start:end])
        match token.type:
            case "table_open":
                yield from _table_pieces(source, _rows(tokens, index))
            case "fence":
                yield from _fenced(source, token)
            case "code_block":
                yield from _whole_or(source, _code(token.content))
            case _:
                yield from _prose(source)
    yield from _prose("\n".join(lines[at:]))


def _prose(source: str) -> Iterator[_Piece]:
    source = harmless(source)
    if _fits(source):
        parts: Iterable[str] = [source]
    else:
        parts = _closed(_portions(_LONG_RUN.sub("\\1\u2060", source), _PIECE))
    # A cut can make a link of what was none.
    yield from (_Piece(harmless(part)) for part in parts if part.strip())


def _closed(parts: Iterable[str]) -> Iterator[str]:
    """Portions, each with its fences closed: code inside of lists and quotes goes on in one of its own."""
    mark = ""
    for part in parts:
        lines = [mark] if mark else []
        goes_on, indent = bool(mark), ""
        for line in part.split("\n"):
            found = _FENCE.match(line)
            if found and mark and found[2].startswith(mark) and not found[3].strip():
                line = mark if goes_on else line
                mark, goes_on = "", False
            elif found and not mark:
                mark, indent = found[2], re.sub(r"[^\s>]", " ", found[1])
            lines.append(line)
        yield "\n".join([*lines, indent + mark] if mark else lines)


def _fenced(source: str, fence: Token) -> Iterator[_Piece]:
    info, content, last = fence.info.strip(), fence.content, source.rpartition("\n")[2].strip()
    if len(info) > _INFO or "`" in info:
        info, content = "", f"{info}\n{content}"
    is_closed = "\n" in source and last.startswith(fence.markup) and not last.strip(fence.markup[0])
    code = _code(content, info)
    yield from _whole_or(source, code) if is_closed else code


def _whole_or(source: str, parts: Iterator[_Piece]) -> Iterator[_Piece]:
    source = no_marks(source)
    yield from [_Piece(source)] if _fits(source) else parts


def _code(text: str, info: str = "") -> Iterator[_Piece]:
    for part in _portions(_LONG_RUN.sub("\\1\u2060", no_marks(text.rstrip("\n"))), _PIECE - 100):
        ticks = _fence_for(part)
        yield _Piece(f"{ticks}{info}\n{part}\n{ticks}")


def _fence_for(text: str) -> str:
    """A fence that the text does not hold."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))


def _portions(text: str, most: int) -> Iterator[str]:
    """`text` in portions, cut at line breaks where there are any, else at spaces."""
    at = 0
    while not _fits(text, most, at):
        short = text[at : at + most]
        while not _fits(short, most):
            short = short[: len(short) * 9 // 10]
        end = max(short.rfind("\n"), 0) or max(short.rfind(" "), 0) or len(short)
        yield short[:end]
        at += end + (text[at + end] == "\n")
    yield text[at:]


def _table_pieces(source: str, rows: tuple[tuple[str, ...], ...]) -> Iterator[_Piece]:
    cells = max(1 + len(re.findall(r"(?<!\\)\|", line.strip().strip("|"))) for line in source.split("\n"))
    if cells > len(rows[0]):  # a table leaves out what stands beside it
        yield from _code(source)
        return
    text = _aligned(rows)
    pieces = list(_code(text if len(text) < 4 * len(source) else source))
    if len(pieces) == 1 and _is_table(rows):
        yield _Piece(pieces[0].markdown, rows)
    else:
        yield from pieces


def _rows(tokens: Sequence[Token], start: int) -> tuple[tuple[str, ...], ...]:
    """The cells of the table that begins at `start`, as plain text."""
    rows: list[tuple[str, ...]] = []
    row: list[str] = []
    for at in range(start, len(tokens)):
        token = tokens[at]
        match token.type:
            case "tr_open":
                row = []
            case "tr_close":
                rows.append(tuple(row))
            case "inline":
                row.append(_plain(token))
            case "table_close":
                break
    return tuple(rows)


def _plain(inline: Token) -> str:
    """What stands in a cell, without its formatting; a link with where it leads."""
    said: list[str] = []
    target = ""
    for child in inline.children or ():
        if child.type == "link_open":
            target = str(child.attrGet("href") or "")
        elif child.type == "link_close":
            if target and target != "".join(said).rpartition(" ")[2]:
                said.append(f" ({target})")
        elif child.type == "image":
            said.append(f"{child.content} ({child.attrGet('src')})")
        elif child.type in ("softbreak", "hardbreak"):
            said.append(" ")
        else:
            said.append(child.content)
    return "".join(said)


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table as text, its columns aligned where they are not too wide for that."""
    columns = max(map(len, rows))
    widths = [min(max(len(row[n]) for row in rows if n < len(row)), _COLUMN_WIDTH) for n in range(columns)]
    lines = [" | ".join(cell.ljust(widths[n]) for n, cell in enumerate(row)).rstrip() for row in rows]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)


# -- pieces to messages --------------------------------------------------------------------------------------


def _messages(text: str) -> list[list[Block]]:
    """The blocks of each message, as few messages as hold everything in order; one too many at most."""
    messages: list[list[_Piece]] = []
    weight = 0
    for piece in _pieces(text):
        more = _weight(piece)
        if not messages or weight + more > _MESSAGE_CHARACTERS:
            if len(messages) > _MESSAGES:
                break
            messages.append([])
            weight = _FRAME
        messages[-1].append(piece)
        weight += more
    return [_blocks(pieces) for pieces in messages]


def _weight(piece: _Piece) -> int:
    """How much a piece adds to a message, with the line breaks or the block behind it."""
    as_table = _size_of_blocks([_table(piece.rows), markdown("")]) if piece.rows else 0
    return max(_size(piece.markdown) + 2, as_table)


def _blocks(pieces: Sequence[_Piece]) -> list[Block]:
    """Markdown joined as far as possible; the first table as a table, others in monospace."""
    blocks: list[Block] = []
    said: list[str] = []
    has_table = False
    for piece in pieces:
        if piece.rows and not has_table:
            if said:
                blocks.append(markdown("\n\n".join(said)))
                said = []
            blocks.append(_table(piece.rows))
            has_table = True
        else:
            said.append(piece.markdown.strip("\n"))
    if said:
        blocks.append(markdown("\n\n".join(said)))
    return blocks


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    return (
        len(rows) <= _TABLE_ROWS
        and max(map(len, rows)) <= _TABLE_COLUMNS
        and _size_of_blocks([_table(rows)]) <= _PIECE
    )


def _table(rows: Sequence[Sequence[str]]) -> Block:
    cells = [[{"type": "raw_text", "text": no_marks(cell) or " "} for cell in row] for row in rows]
    return {"type": "table", "rows": cells}


def _fits(text: str, most: int = _PIECE, start: int = 0) -> bool:
    """Whether the rest of a text, from `start`, weighs no more than that."""
    return len(text) - start <= most and _size(text[start:]) <= most


def _size(text: str) -> int:
    """How much a text weighs in JSON: line breaks and quotes count twice."""
    return len(json.dumps(text, ensure_ascii=False))


def _size_of_blocks(blocks: Sequence[Block]) -> int:
    return len(json.dumps(blocks, ensure_ascii=False))
