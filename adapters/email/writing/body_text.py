"""How does Markdown read in a mail without HTML? Pure: tokens of Markdown to lines of plain text.

Prose is wrapped at 76 columns; code, tables and whatever has no spaces stay as they are. A link is its label
and, in brackets, where it leads, so none can say one thing and do another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode

from pizzabot.markdown import blocks
from pizzabot.text import visible

WIDTH = 76
_NARROWEST = 20  # what is nested deeply is still to be read
_BEFORE_CODE = "    "
_GAP = "  "  # between the columns of a table
_SIDES = {"text-align:right": "right", "text-align:center": "center"}
_EMPHASIS = {"strong": "*", "em": "_", "s": "~"}
# Lines of scripts without spaces end after any letter, but not before what closes.
_WIDE = r"[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]"
_CLOSING = r"[、。，．：；！？）」』】》〉”’…]"
_PIECES = re.compile(rf"[^\S\n]+|{_WIDE}{_CLOSING}*|(?:(?!{_WIDE})\S)+")


def readable(markdown: str) -> str:
    """`markdown` as plain text that reads well; nothing of it is left out."""
    tokens = blocks(markdown)
    if tokens is None:
        return visible(markdown, body=True)
    return visible("\n".join(_stacked(_tree(tokens), WIDTH)), body=True)


def wrapped(text: str, width: int = WIDTH) -> str:
    """Prose whose lines end where they ended, or before `width` columns."""
    return "\n".join(_wrapped(text, width))


def columns(text: str) -> int:
    """How many columns a line takes: letters of East Asia take two, marks upon letters none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _wrapped(text: str, width: int) -> list[str]:
    return [line for given in text.split("\n") for line in _filled(given, max(width, _NARROWEST))]


def _filled(line: str, width: int) -> list[str]:
    if columns(line) <= width:
        return [line.rstrip()]
    lines, used = [""], 0
    for piece in _PIECES.findall(line):
        needs = columns(piece)
        if used + needs > width and lines[-1].strip() and not piece.isspace():
            lines[-1] = lines[-1].rstrip()
            lines.append("")
            used = 0
        lines[-1] += piece
        used += needs
    lines[-1] = lines[-1].rstrip()
    return lines


# -- blocks ----------------------------------------------------------------------------------------------


def _tree(tokens: Sequence[Token]) -> list[SyntaxTreeNode]:
    return SyntaxTreeNode(tokens).children


def _stacked(nodes: Iterable[SyntaxTreeNode], width: int) -> list[str]:
    """Blocks with a blank line between them, where they are not those of a tight list."""
    lines: list[str] = []
    is_tight = False
    for node in nodes:
        is_tight = is_tight or _is_hidden(node)
        lines += [*([""] if lines and not is_tight else []), *_block(node, width)]
    return lines


def _is_hidden(node: SyntaxTreeNode) -> bool:
    return node.is_nested and node.hidden


def _block(node: SyntaxTreeNode, width: int) -> list[str]:
    match node.type:
        case "paragraph":
            return _wrapped(_content(node), width)
        case "heading":
            lines = _wrapped(_content(node), width)
            # At least three: a line of two dashes begins a signature.
            return [*lines, ("=" if node.tag == "h1" else "-") * max(3, *map(columns, lines))]
        case "blockquote":
            return [f"> {line}".rstrip() for line in _stacked(node.children, width - 2)]
        case "bullet_list" | "ordered_list":
            return _list(node, width)
        case "fence" | "code_block":
            return [_BEFORE_CODE + line for line in node.content.rstrip("\n").split("\n")]
        case "table":
            return _table(node, width)
        case "hr":
            return ["* * *"]
    return node.content.split("\n")


def _list(node: SyntaxTreeNode, width: int) -> list[str]:
    lines: list[str] = []
    is_tight = any(_is_hidden(child) for item in node.children for child in item.children)
    number = int(node.attrs.get("start", 1))
    for index, item in enumerate(node.children):
        mark = f"{number + index}. " if node.type == "ordered_list" else "- "
        inner = _stacked(item.children, width - len(mark)) or [""]
        lines += [""] if lines and not is_tight else []
        lines += _hanging(mark, inner)
    return lines


def _hanging(mark: str, lines: Sequence[str]) -> Iterator[str]:
    yield (mark + lines[0]).rstrip()
    for line in lines[1:]:
        yield (" " * len(mark) + line).rstrip()


def _table(node: SyntaxTreeNode, width: int) -> list[str]:
    rows = [[_content(cell) for cell in row.children] for part in node.children for row in part.children]
    head, *body = rows
    widths = [max(map(columns, cells)) for cells in zip(*rows, strict=True)]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        return _records(head, body, width) if body else _wrapped(" | ".join(head), width)
    sides = [
        _SIDES.get(str(cell.attrs.get("style")), "left") for cell in node.children[0].children[0].children
    ]
    rule = ["-" * max(1, w) for w in widths]
    return [_GAP.join(map(_aligned, row, widths, sides)).rstrip() for row in (head, rule, *body)]


def _aligned(cell: str, width: int, side: str) -> str:
    free = width - columns(cell)
    before = {"right": free, "center": free // 2}.get(side, 0)
    return " " * before + cell + " " * (free - before)


def _records(head: Sequence[str], body: Iterable[Sequence[str]], width: int) -> list[str]:
    """A table that is too wide for lines: each row as a paragraph that names its columns."""
    lines: list[str] = []
    for row in body:
        lines += [""] if lines else []
        for name, cell in zip(head, row, strict=True):
            if cell:
                first, *rest = _wrapped(f"{name}: {cell}" if name else cell, width - 2)
                lines += [first, *(f"  {line}" for line in rest)]
    return lines


# -- what stands in a line -------------------------------------------------------------------------------


def _content(node: SyntaxTreeNode) -> str:
    return "".join(_inline(child) for inline in node.children for child in inline.children)


def _inline(node: SyntaxTreeNode) -> str:
    match node.type:
        case "text":
            return node.content
        case "softbreak" | "hardbreak":
            return "\n"
        case "code_inline":
            return f"`{node.content}`"
        case "strong" | "em" | "s":
            mark = _EMPHASIS[node.type]
            return f"{mark}{_inside(node)}{mark}"
        case "link":
            return _link(_inside(node), str(node.attrs.get("href", "")))
        case "image":
            return _link(f"image: {_inside(node)}".rstrip(" :"), str(node.attrs.get("src", "")))
    return node.content


def _inside(node: SyntaxTreeNode) -> str:
    return "".join(map(_inline, node.children))


def _link(label: str, target: str) -> str:
    if not target or label in (target, target.removeprefix("mailto:")):
        return label
    return f"{label} ({target})" if label.strip() else target
