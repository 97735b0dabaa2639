"""Is this text an id or a number of ours? Pure."""

from __future__ import annotations

import re

from pizzabot.errors import NotFound

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER = re.compile(r"0{0,18}[1-9][0-9]{0,18}", re.ASCII)


def is_id(text: str) -> bool:
    """Whether it looks like what `pizzabot.ids.new_id` makes."""
    return _ID.fullmatch(text) is not None


def known_id(text: str, what: str) -> str:
    """An id of a path; what cannot be one is not found, like one that is not there."""
    if not is_id(text):
        raise NotFound(f"There is no such {what}.")
    return text


def positive(text: str | None) -> int | None:
    """A whole number from 1 on, or None."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None
