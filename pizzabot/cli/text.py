"""How does text from outside look on a terminal, where it must neither rewrite the screen nor hide?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pizzabot.text import visible

SHORT_ID = 6


def shortened(text: str, length: int) -> str:
    """One visible line of at most `length` characters, for lists; a cut shows as an ellipsis."""
    line = visible(" ".join(text[: length * 4].split()))
    return line if len(line) <= length and len(text) <= length * 4 else line[: length - 1] + "…"


def short(identifier: str) -> str:
    """The end of an id, which commands take in place of the whole."""
    return visible(identifier)[-SHORT_ID:]


def shown_value(value: Any) -> str:
    """An argument on one line: text stands plain unless it would read as something else, the rest is JSON."""
    if isinstance(value, str) and _is_plain(value):
        return visible(value)
    return visible(json.dumps(value, ensure_ascii=False))


def _is_plain(text: str) -> bool:
    if not text or text != text.strip() or text[0] in "\"'[{" or "\n" in text:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def says_itself(row: Mapping[str, Any]) -> bool:
    """Whether an action's own sentence says what Approve does, and its arguments do not: that of a limit."""
    return row.get("kind") == "limit" and bool(row.get("why"))


def shown_question(row: Mapping[str, Any], indent: str = "  ") -> list[str]:
    """What is decided: all arguments, or the sentence of a limit."""
    if says_itself(row):
        return [indent + visible(" ".join(row["why"].split()))]
    return shown_args(row["args"], indent)


def shown_args(args: Mapping[str, Any], indent: str = "  ") -> list[str]:
    """Every argument in full, one a line; a long text stands behind a bar, which no text can fake."""
    width = min(max((len(visible(name)) for name in args), default=0), 24)
    lines: list[str] = []
    for name, value in args.items():
        label = f"{indent}{visible(name):<{width}}  "
        if isinstance(value, str) and "\n" in value:
            rest = " " * len(label)
            parts = visible(value, body=True).split("\n")
            lines += [f"{label if i == 0 else rest}│ {part}" for i, part in enumerate(parts)]
        else:
            lines.append(label + shown_value(value))
    return lines


def parsed_time(text: str | None) -> datetime | None:
    """A time of the API; None when there is none or it is not one."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def ago(moment: datetime | None, now: datetime, zone: ZoneInfo) -> str:
    """A time in a list: relative while it is near, then the date in the person's zone."""
    if moment is None:
        return ""
    passed = now - moment
    if passed < timedelta(minutes=1):
        return "now"
    if passed < timedelta(hours=1):
        return f"{passed // timedelta(minutes=1)} min ago"
    if passed < timedelta(days=1):
        return f"{passed // timedelta(hours=1)} h ago"
    if passed < timedelta(days=7):
        return f"{passed.days} d ago"
    return f"{moment.astimezone(zone):%Y-%m-%d}"


def at(moment: datetime | None, zone: ZoneInfo) -> str:
    """A time in full, in the person's zone."""
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}" if moment is not None else ""


def took(milliseconds: float | None) -> str:
    """How long something lasted, short: 340 ms, 2.1 s, 3 min 20 s, 5 h 20 min, 2 d 3 h."""
    if milliseconds is None:
        return ""
    seconds = milliseconds / 1000
    if seconds < 1:
        return f"{milliseconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    if seconds < 86400:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    return f"{int(seconds // 86400)} d {int(seconds % 86400 // 3600)} h"


def approvals_line(action: Mapping[str, Any]) -> str | None:
    """Who approved of the several that it takes: "1 of 2 approved: Ada in slack"; None when it takes one."""
    if action.get("quorum", 1) == 1:
        return None
    said = [f"{visible(vote['person'])} in {visible(vote['via'])}" for vote in action["approvals"]]
    counted = f"{len(said)} of {action['quorum']} approved"
    return f"{counted}: {', '.join(said)}" if said else counted
