"""What were the paragraphs before a program wrapped them? Text in `format=flowed` (RFC 3676), unwrapped.

A line that ends in a space goes on in the next one of the same quote depth; `delsp` says that the space was
put in by the program. A signature line is never joined.
"""

from __future__ import annotations

_SIGNATURE = "-- "


def unflowed(text: str, *, delsp: bool) -> str:
    """`text` with flowed lines joined; quotes keep one `>` for each level and a space behind them."""
    paragraphs: list[list[str]] = []
    depth_before: int | None = None  # of the line that wants to go on
    for line in text.replace("\r\n", "\n").split("\n"):
        depth, content = _quoted(line)
        flows = content.endswith(" ") and content != _SIGNATURE
        if flows and delsp:
            content = content[:-1]
        if depth_before == depth and content != _SIGNATURE:
            paragraphs[-1].append(content)
        else:
            paragraphs.append([">" * depth + (" " if depth and content else "") + content])
        depth_before = depth if flows else None
    return "\n".join(map("".join, paragraphs))


def _quoted(line: str) -> tuple[int, str]:
    """The quote depth of a line and what it says, without the stuffed space (§4.4)."""
    content = line.lstrip(">")
    depth = len(line) - len(content)
    return depth, content[1:] if content.startswith(" ") else content
