"""Which text can a database hold? What none of them takes: NUL, and half a surrogate pair."""

from __future__ import annotations

import re

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether every database takes `text` as it is."""
    return _NOT_STORABLE.search(text) is None


def storable(text: str) -> str:
    """`text` of a model or a tool, with a replacement character for what no database holds."""
    return _NOT_STORABLE.sub("\ufffd", text)
