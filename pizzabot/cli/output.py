"""How are lists and values printed, on a terminal and into a pipe?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

_WIDTH_IN_A_PIPE = 160
_GAP = 2
_NARROWEST = 12

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def print_json(value: Any) -> None:
    """JSON in ASCII: whatever a text holds, it stays one token for programs and harmless on a terminal."""
    print(json.dumps(value, indent=2))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, wide: int) -> None:
    """Rows under their headings; the column `wide` gives way when the terminal is narrow.

    Cells are taken as they are: the caller has made them visible.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    is_terminal = sys.stdout.isatty()
    console = Console(
        file=sys.stdout,
        width=None if is_terminal else _WIDTH_IN_A_PIPE,
        color_system="standard" if is_terminal and not os.environ.get("NO_COLOR") else None,
        force_terminal=is_terminal,
        highlight=False,
        markup=False,
        emoji=False,
    )
    widths = column_widths([headings, *rows], wide, console.width)
    console.width = max(console.width, sum(widths) + _GAP * len(widths))
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for heading, width in zip(headings, widths, strict=True):
        table.add_column(heading, no_wrap=True, overflow="ellipsis", width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def column_widths(rows: Sequence[Sequence[str]], wide: int, room: int) -> list[int]:
    """Each column as wide as its widest cell, in cells of the terminal; `wide` takes what is left."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    left = room - (sum(widths) - widths[wide]) - _GAP * len(widths)
    widths[wide] = min(widths[wide], max(_NARROWEST, left))
    return widths


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 thread`, `3 threads`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
