"""On which line of a JSON text does a key stand, and was it there before? Parsers drop both."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:]')


@dataclass(frozen=True)
class Key:
    """One key: its path from the top (a list on the way counts as ""), its line, whether it repeats."""

    path: tuple[str, ...]
    line: int
    repeated: bool


def keys_of(text: str) -> tuple[Key, ...]:
    """All keys of all objects in `text`, which must be valid JSON, in the order in which they stand."""
    tokens = list(_TOKEN.finditer(text))
    keys: list[Key] = []
    seen: list[set[str]] = []
    path: list[str] = []
    line = position = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        line, position = line + text.count("\n", position, token.start()), token.start()
        if token[0] in "{[":
            seen.append(set())
            path.append("")
        elif token[0] in "}]":
            seen.pop()
            path.pop()
        elif token[0] != ":" and following is not None and following[0] == ":":
            path[-1] = json.loads(token[0])
            keys.append(Key(tuple(path), line + 1, path[-1] in seen[-1]))
            seen[-1].add(path[-1])
    return tuple(keys)
