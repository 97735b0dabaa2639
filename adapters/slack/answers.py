"""How does an answer of any length become messages? Pure: Markdown to parts that each fit into one message.

    Markdown -> top-level blocks -> packed in order into up to four messages -> else a file and its beginning

Slack renders Markdown in `markdown` blocks, 12,000 characters in all of a message; in practice about 13,200
of JSON. Tables have a block of their own, one in a message; a further or a larger one is set in monospace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pizzabot.text import visible

from .blocks import Block, context, markdown, plain_text, shortened
from .text import escaped, harmless, no_marks

_MESSAGE_CHARACTERS = 11_500  # of Markdown, and of JSON in all, in one message
_MESSAGES = 4
# Taking more apart would keep everybody waiting, and is read in a file anyway.
_LONGEST_SPLIT = _MESSAGE_CHARACTERS * (_MESSAGES + 2)
_BEGINNING = 1_500
_TABLE_ROWS, _TABLE_COLUMNS, _TABLE_CHARACTERS = 100, 20, 6_000
_FALLBACK = 300  # what a notification shows
_CODE = ("fence", "code_block")


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
    """What stays together: a piece of Markdown, or a table as its rows."""

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
    blocks = [*head, *_blocks(_pieces(beginning)), note]
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


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _pieces(text: str) -> list[_Piece]:
    """The top-level blocks in order, each small enough for a message of its own."""
    lines = text.split("\n")
    tokens = _parser().parse(text)
    found: list[_Piece] = []
    at = 0
    for index, token in enumerate(tokens):
        if token.level != 0 or token.map is None or token.nesting < 0:
            continue
        start, end = token.map
        # Between blocks stand blank lines and link definitions.
        found += _split("\n".join(lines[at:start]), code=False)
        at = max(at, end)
        source = "\n".join(lines[start:end])
        if token.type == "table_open":
            found.append(_Piece(_monospaced(rows := _rows(tokens[index:])), rows))
        else:
            found += _split(source, code=token.type in _CODE, info=token.info)
    return [*found, *_split("\n".join(lines[at:]), code=False)]


def _split(source: str, *, code: bool, info: str = "") -> Iterator[_Piece]:
    if not source.strip():
        return
    if not code:
        yield from (_Piece(harmless(part)) for part in _portions(source, _MESSAGE_CHARACTERS - 500))
        return
    if _size(source) < _MESSAGE_CHARACTERS - 500:
        yield _Piece(no_marks(source))
        return
    lines = source.split("\n")
    if lines[0].lstrip().startswith(("```", "~~~")):
        fence = lines[0].strip()[:3]
        body = "\n".join(lines[1:-1] if lines[-1].strip().startswith(fence) else lines[1:])
    else:
        body = source
    for part in _portions(body, _MESSAGE_CHARACTERS - 700):
        ticks = _fence_for(part)
        yield _Piece(no_marks(f"{ticks}{info.strip()}\n{part}\n{ticks}"))


def _fence_for(text: str) -> str:
    """A fence that the text does not hold."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return ticks


def _portions(text: str, most: int) -> Iterator[str]:
    """`text` in portions, cut at line breaks where there are any, else at spaces."""
    while _size(text) > most:
        short = text[:most]
        while _size(short) > most:
            short = short[: len(short) * 9 // 10]
        at = max(short.rfind("\n"), 0) or max(short.rfind(" "), 0) or len(short)
        yield text[:at]
        text = text[at:].lstrip("\n") if text[at : at + 1] == "\n" else text[at:]
    yield text


def _rows(tokens: Sequence[Token]) -> tuple[tuple[str, ...], ...]:
    """The cells of the table that begins here, as plain text."""
    rows: list[tuple[str, ...]] = []
    row: list[str] = []
    for token in tokens:
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
        elif child.type in ("softbreak", "hardbreak"):
            said.append(" ")
        else:
            said.append(child.content)
    return "".join(said)


def _monospaced(rows: Sequence[Sequence[str]]) -> str:
    """A table in a code block, its columns aligned."""
    columns = max(map(len, rows), default=0)
    widths = [max((len(row[n]) for row in rows if n < len(row)), default=0) for n in range(columns)]
    lines = [" | ".join(cell.ljust(widths[n]) for n, cell in enumerate(row)).rstrip() for row in rows]
    if lines:
        lines.insert(1, "-+-".join("-" * width for width in widths))
    body = "\n".join(lines)
    ticks = _fence_for(body)
    return no_marks(f"{ticks}\n{body}\n{ticks}")


# -- pieces to messages --------------------------------------------------------------------------------------


def _messages(text: str) -> list[list[Block]]:
    """The blocks of each message, as few messages as hold everything in order."""
    messages: list[list[_Piece]] = [[]]
    for piece in _wide_tables_as_text(_pieces(text)):
        if messages[-1] and _weight([*messages[-1], piece]) > _MESSAGE_CHARACTERS:
            messages.append([])
        messages[-1].append(piece)
    return [_blocks(pieces) for pieces in messages if pieces]


def _wide_tables_as_text(pieces: Sequence[_Piece]) -> Iterator[_Piece]:
    for piece in pieces:
        if piece.rows and _size(piece.markdown) > _MESSAGE_CHARACTERS - 500:
            yield from _split(piece.markdown, code=True)
        else:
            yield piece


def _weight(pieces: Sequence[_Piece]) -> int:
    return max(_size_of_blocks(_blocks(pieces)), sum(_size(piece.markdown) + 2 for piece in pieces))


def _blocks(pieces: Sequence[_Piece]) -> list[Block]:
    """Markdown joined as far as possible; the first table that fits as a table, others in monospace."""
    blocks: list[Block] = []
    said: list[str] = []
    has_table = False
    for piece in pieces:
        if piece.rows and not has_table and _is_table(piece.rows):
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
        and sum(len(cell) for row in rows for cell in row) <= _TABLE_CHARACTERS
    )


def _table(rows: Sequence[Sequence[str]]) -> Block:
    cells = [[{"type": "raw_text", "text": no_marks(cell) or " "} for cell in row] for row in rows]
    return {"type": "table", "rows": cells}


def _size(text: str) -> int:
    """How much a text weighs in JSON: line breaks and quotes count twice."""
    return len(json.dumps(text, ensure_ascii=False))


def _size_of_blocks(blocks: Sequence[Block]) -> int:
    return len(json.dumps(blocks, ensure_ascii=False))
